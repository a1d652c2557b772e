"""The marker in the environment by which hangdoc knows a launch that it started itself."""

from __future__ import annotations

from pathlib import Path

from hangdoc.launch.table import is_same
from hangdoc.model.process import ProcessKey

VARIABLE = "HANGDOC_LAUNCH"
"""Set to a value of its own for each launch by what starts one; every process that descends from it inherits it."""


def read_marker(proc: Path, key: ProcessKey) -> str:
    """Return the marker of a process, "" when it has none or its environment may not be read."""
    return read_variable(proc, key, VARIABLE)


def read_variable(proc: Path, key: ProcessKey, name: str) -> str:
    """Return a variable that a process was started with, "" when it was not, or that may not be read."""
    try:
        data = (proc / str(key.pid) / "environ").read_bytes()
    except OSError:
        return ""
    begin = f"{name}=".encode()
    found = next((item[len(begin) :] for item in data.split(b"\0") if item.startswith(begin)), b"")
    return found.decode("utf-8", "replace") if is_same(proc, key) else ""
