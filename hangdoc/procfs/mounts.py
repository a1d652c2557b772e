"""Parse /proc/PID/mountinfo: which file system a path lies on."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hangdoc.procfs.errors import refuse

_ESCAPE = re.compile(rb"\\([0-7]{3})")
SHARED_KINDS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "ceph", "lustre", "beegfs", "gpfs", "glusterfs", "afs", "9p", "virtiofs", "ocfs2"}
)
"""File systems that other machines, or the host of a virtual one, may use at the same time."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A mounted file system. point: where it is mounted, in the process's own view; kind: "ext4", "nfs4" ..."""

    point: str
    kind: str

    @property
    def shared(self) -> bool:
        """Tell whether processes of another machine may use it; of FUSE nobody can tell."""
        return self.kind in SHARED_KINDS or self.kind.startswith("fuse")


def parse_mounts(data: bytes) -> tuple[Mount, ...]:
    r"""Read a mountinfo file; optional fields end at a lone "-".

    >>> parse_mounts(b"36 35 98:0 / /mnt\\040x rw master:1 - nfs4 srv:/export rw\n")
    (Mount(point='/mnt x', kind='nfs4'),)
    """
    return tuple(_mount(line) for line in data.splitlines())


def _mount(line: bytes) -> Mount:
    before, dash, after = line.partition(b" - ")
    fields, kinds = before.split(b" "), after.split(b" ")
    if not dash or len(fields) < 6 or not kinds[0]:
        refuse("mountinfo", line)
    return Mount(_text(fields[4]), _text(kinds[0]))


def _text(field: bytes) -> str:
    return _ESCAPE.sub(lambda match: bytes([int(match[1], 8) & 0xFF]), field).decode("utf-8", "replace")


def mount_of(mounts: tuple[Mount, ...], path: str) -> Mount | None:
    """Return the mount that a path lies on: the longest that begins it, of equals the last, which hides the others.

    >>> mount_of((Mount("/", "ext4"), Mount("/mnt", "nfs"), Mount("/mn", "xfs")), "/mnt/a").kind
    'nfs'
    """
    around = [one for one in mounts if path == one.point or path.startswith(one.point.rstrip("/") + "/")]
    return max(enumerate(around), key=lambda pair: (len(pair[1].point), pair[0]))[1] if around else None
