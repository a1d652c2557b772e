"""The bytes of a log as UTF-8: what PowerShell wrote, and the holes that a rotation or a crash of the host leaves."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator
from itertools import chain

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)

_LEAST_BYTES, _LOOKED_AT_BYTES = 64, 4096
"""What tells UTF-16 without a mark. Arbitrary: less than a line, and some 20 lines."""

_MOSTLY, _HARDLY = 0.8, 0.05
"""Shares of zero bytes in the two halves of UTF-16 that is mostly ASCII. Arbitrary: logs are English."""

_HOLE = re.compile(rb"\0{2,}")


def text(pieces: Iterable[bytes]) -> Iterator[bytes]:
    r"""Yield a log as UTF-8; a run of NULs, which is no text, ends a line, and a single one is left out.

    Why: a log that was truncated while its writer kept its place (logrotate's copytruncate) begins with a hole, and a
    file that was being written when the host crashed has one in it; what stands after them counts.

    >>> list(text([b"\xff\xfeo\0k\0", b"\n\0"])), list(text([b"half a\0\0\0", b"\0\0whole\n"]))
    ([b'ok', b'\n'], [b'half a\n', b'whole\n'])
    """
    rest = iter(pieces)
    first = next(rest, b"")
    mark, name = _encoding(first)
    every = chain([first[mark:]], rest)
    return _without_holes(every if name == "utf-8" else _decoded(every, name))


def is_utf8(first: bytes) -> bool:
    """Tell whether a log that begins so is no UTF-16 or UTF-32."""
    return _encoding(first)[1] == "utf-8"


def _encoding(first: bytes) -> tuple[int, str]:
    """Return the length of the mark that a log begins with, and how it is encoded."""
    for mark, name in _MARKS:
        # Without a single NUL, not even of a line's end, the mark is a broken byte or two.
        if first.startswith(mark) and (name == "utf-8" or b"\0" in first[len(mark) : _LOOKED_AT_BYTES]):
            return len(mark), name
    even, odd = first[:_LOOKED_AT_BYTES:2], first[1:_LOOKED_AT_BYTES:2]
    for zeros, others, name in ((odd, even, "utf-16-le"), (even, odd, "utf-16-be")):
        if (
            len(first) >= _LEAST_BYTES
            and zeros.count(0) > _MOSTLY * len(even)
            and others.count(0) < _HARDLY * len(even)
        ):
            return 0, name
    return 0, "utf-8"


def _decoded(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(name)("replace")
    for piece in pieces:
        if found := decoder.decode(piece):
            yield found.encode("utf-8", "replace")
    if found := decoder.decode(b"", final=True):
        yield found.encode("utf-8", "replace")


def _without_holes(pieces: Iterable[bytes]) -> Iterator[bytes]:
    in_hole = False
    for piece in pieces:
        if b"\0" not in piece:
            in_hole = False
            yield piece
            continue
        filled = piece.lstrip(b"\0") if in_hole else piece
        in_hole = piece.endswith(b"\0")
        if found := _HOLE.sub(b"\n", filled).replace(b"\0", b""):
            yield found
