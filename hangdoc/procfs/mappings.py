"""Parse the list of a process's mappings: where its program and libraries lie in its memory."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.procfs.errors import refuse

DELETED = " (deleted)"
LARGEST_ADDRESS = 2**64


@dataclass(frozen=True, slots=True)
class Mapping:
    """One line of /proc/PID/maps. path: of a file, without " (deleted)"; "[heap]" and the like, or "" without one."""

    start: int
    end: int
    access: str
    offset: int
    path: str

    @property
    def is_data(self) -> bool:
        """Whether objects of a program can lie in it: readable and writable."""
        return self.access.startswith("rw")


def parse_mappings(data: bytes) -> tuple[Mapping, ...]:
    r"""Read a maps file, in the order of addresses.

    >>> parse_mappings(b"7f00-7f80 rw-p 00002000 08:01 42                 /lib/a b.so (deleted)\n")
    (Mapping(start=32512, end=32640, access='rw-p', offset=8192, path='/lib/a b.so'),)
    """
    return tuple(_mapping(line, data) for line in data.split(b"\n") if line)


def _mapping(line: bytes, data: bytes) -> Mapping:
    fields = line.split(None, 5)
    try:
        first, last = fields[0].split(b"-")
        start, end, offset = int(first, 16), int(last, 16), int(fields[2], 16)
        access = fields[1].decode("ascii")
    except (ValueError, IndexError):
        refuse("maps", data)
    if not 0 <= start < end <= LARGEST_ADDRESS or not 0 <= offset < LARGEST_ADDRESS:
        refuse("maps", data)
    path = fields[5].decode("utf-8", "replace") if len(fields) > 5 else ""
    return Mapping(start, end, access, offset, path.removesuffix(DELETED))
