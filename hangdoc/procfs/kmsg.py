"""Parse records of /dev/kmsg: the errors that NVIDIA's driver gives ("NVRM: Xid")."""

from __future__ import annotations

import re
from typing import NamedTuple

_RECORD = re.compile(rb"\d+,\d+,(?P<us>\d{1,18}),[^;]*;(?P<text>[^\n]*)")
_XID = re.compile(rb"NVRM: Xid \(PCI:[0-9A-Fa-f:.]+\): (?P<code>\d{1,5})\b(?:, pid='?(?P<pid>\d{1,10})\b)?")


class XidLine(NamedTuple):
    """code: the Xid; since_boot_ns: by the clock of the kernel's log, which stands while the machine sleeps."""

    code: int
    since_boot_ns: int
    pid: int


def parse_xid(record: bytes) -> XidLine | None:
    r"""Return the error in a record; None for any other record.

    >>> parse_xid(b"4,871,512000,-;NVRM: Xid (PCI:0000:65:00): 79, pid=1943, GPU has fallen off the bus.\n SUBSYSTEM=x")
    XidLine(code=79, since_boot_ns=512000000, pid=1943)
    >>> parse_xid(b"6,1,0,-;Linux version 6.1\n") is None
    True
    """
    match = _RECORD.match(record)
    found = _XID.search(match["text"]) if match is not None else None
    if match is None or found is None:
        return None
    return XidLine(int(found["code"]), int(match["us"]) * 1000, int(found["pid"] or 0))
