"""What containers change: pid 1 that no signal reaches, and others who share files without being seen."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable
from pathlib import Path

from hangdoc.procfs.errors import ProcParseError
from hangdoc.procfs.status import parse_status

INITIAL_PID_NAMESPACE = "pid:[4026531836]"
"""PROC_PID_INIT_INO (include/linux/proc_ns.h): whoever is in it sees every process."""

UNSEEN_HOLDERS = (
    "hangdoc is in a container: who has these files open outside it is not visible here; look from the host before rm"
)

CONTAINER_ID_LENGTH = 12
"""Docker and Podman name a container's host after the first digits of its id, unless told otherwise."""


def sees_everybody(proc: Path) -> bool:
    """Say whether hangdoc is in the first pid namespace, so that no process is hidden from it by one."""
    try:
        return os.readlink(proc / "self" / "ns" / "pid") == INITIAL_PID_NAMESPACE  # noqa: PTH115  no path
    except OSError:
        return False


def caveat(proc: Path) -> str:
    """Return what has to be known before a file is removed by hand; "" where hangdoc sees every process."""
    return "" if sees_everybody(proc) else UNSEEN_HOLDERS


def sharers(proc: Path, pids: Iterable[int], device: int) -> list[int]:
    """Return processes of inner pid namespaces that have the file system of this device mounted, too."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    found: list[int] = []
    for pid in pids:
        try:
            is_inner = len(parse_status((proc / str(pid) / "status").read_bytes()).namespace_pids) > 1
            if is_inner and _mounts(proc, pid, wanted):
                found.append(pid)
        except (OSError, ProcParseError):
            continue
    return found


def _mounts(proc: Path, pid: int, device: str) -> bool:
    rows = (proc / str(pid) / "mountinfo").read_text(errors="replace").splitlines()
    return any(row.split()[2:3] == [device] for row in rows)


def host_command() -> str:
    """Return what ends this container from its host: the only place from which its pid 1 can be killed."""
    name = socket.gethostname()
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return f"kubectl delete pod {name}"
    if len(name) == CONTAINER_ID_LENGTH and all(digit in "0123456789abcdef" for digit in name):
        return f"docker kill {name}   (or podman kill {name})"
    return "docker kill CONTAINER   (or podman kill, or there: sudo hangdoc kill-clean HOST-PID)"


LOCAL_FILE_SYSTEMS = frozenset(
    {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs", "ramfs", "overlay", "bcachefs"}
)
"""File systems that no other machine can have open at the same time."""


def file_system(proc: Path, device: int) -> str:
    """Return the type of the file system of a device, "" when it is not in hangdoc's own mounts."""
    wanted = f"{os.major(device)}:{os.minor(device)}"
    try:
        rows = (proc / "self" / "mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return ""
    kinds = (row.partition(" - ")[2].split()[:1] for row in rows if row.split()[2:3] == [wanted])
    return next((kind[0] for kind in kinds if kind), "")
