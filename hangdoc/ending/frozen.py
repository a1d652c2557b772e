"""Tell a process that a control group's freezer holds from one that waits in the kernel: both look alike (state D)."""

from __future__ import annotations

from pathlib import Path

from hangdoc.model.process import ProcessKey

CONTROLLER = "freezer"
"""Of version 1 (docker pause). What version 2 has frozen ends by SIGKILL at once, so it needs no word."""


def frozen_group(proc: Path, key: ProcessKey) -> str:
    """Return the path of the control group whose freezer holds a process; "" for none, or when it cannot be told."""
    try:
        groups = [line.split(":", 2) for line in (proc / str(key.pid) / "cgroup").read_text().splitlines()]
        mounts = [row.split() for row in (proc / "self" / "mountinfo").read_text(errors="replace").splitlines()]
    except OSError:
        return ""
    path = next((one[2] for one in groups if len(one) > 2 and CONTROLLER in one[1].split(",")), "")
    points = [(row[3], Path(row[4])) for row in mounts if CONTROLLER in row[-1].split(",")]
    for top, point in points if path else ():
        try:
            state = (point / path.removeprefix(top).strip("/") / "freezer.state").read_text().strip()
        except OSError:
            continue
        return path if state in {"FROZEN", "FREEZING"} else ""
    return ""
