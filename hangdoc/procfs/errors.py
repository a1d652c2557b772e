"""The one error of the parsers: these bytes are not what the kernel writes into that file."""

from __future__ import annotations

from typing import NoReturn

from hangdoc.errors import HangdocError

SHOWN_BYTES = 60
"""How much of the refused content an error quotes; arbitrary."""


class ProcParseError(HangdocError):
    """A /proc file had content that its parser does not know."""


def refuse(file: str, data: bytes) -> NoReturn:
    """Raise the error of a file whose content could not be read as what it should be.

    >>> refuse("stat", b"nonsense")
    Traceback (most recent call last):
    hangdoc.procfs.errors.ProcParseError: not a /proc stat file: b'nonsense'
    """
    raise ProcParseError(
        f"not a /proc {file} file: {data[:SHOWN_BYTES]!r}", "report this kernel's version to hangdoc's maintainers"
    )
