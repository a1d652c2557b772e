"""What a patient cannot do without, and whether it is here."""

from __future__ import annotations

import os
import shutil

from tests.patients.companions import FREEZER, UNIFIED

RIGHTS = frozenset({"root", "freezer"})
"""Needs that are no programs: what the kernel or the container has to allow."""


def lacking(needs: str) -> tuple[str, ...]:
    """Return those of the needs that are not met here."""
    return tuple(need for need in needs.split() if not _met(need))


def _met(need: str) -> bool:
    if need == "root":
        return os.geteuid() == 0
    if need == "freezer":
        return os.access(FREEZER, os.W_OK) or os.access(UNIFIED / "cgroup.procs", os.W_OK)
    return shutil.which(need) is not None
