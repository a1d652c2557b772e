"""Maps as the kernel writes them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.procfs.errors import ProcParseError
from hangdoc.procfs.maps import mapping_at, parse_maps, shared_key

LINES = b"""7f00-7f10 r--p 00000000 fe:00 26933                      /usr/lib/lib one.so
7f10-7f30 rw-s 00001000 00:01 42                         /dev/zero (deleted)
7f40-7f50 rw-p 00000000 00:00 0
"""


def test_a_futex_is_known_by_its_file() -> None:
    """In shared memory by device, inode and the offset in the file; elsewhere there is no such key."""
    mappings = parse_maps(LINES)
    assert [mapping.path for mapping in mappings] == ["/usr/lib/lib one.so", "/dev/zero (deleted)", ""]
    assert [(mapping.readable, mapping.writable, mapping.shared) for mapping in mappings] == [
        (True, False, False),
        (True, True, True),
        (True, True, False),
    ]
    assert shared_key(mappings, 0x7F18) == f"00:01:42:{0x1008}"
    assert shared_key(mappings, 0x7F08) == shared_key(mappings, 0x7F35) == ""
    assert mapping_at(mappings, 0x7F30) is None


@pytest.mark.parametrize(
    "line", [b"7f00 r--p 0 fe:00 1", b"x-y r--p 0 fe:00 1", b"1-2 r--p 0 fe:00", b"2-1 r--p 0 a 1"]
)
def test_what_is_no_maps_file_is_refused(line: bytes) -> None:
    """It is an error, never a guess."""
    with pytest.raises(ProcParseError):
        parse_maps(line)


def test_our_own() -> None:
    """Every line of a live process is read."""
    data = Path("/proc/self/maps").read_bytes()
    assert len(parse_maps(data)) == len(data.splitlines())
