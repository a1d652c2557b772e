"""Compile a patient's native part, once for each launch."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.patients.stage import Stage

COMPILERS = {".c": "cc", ".cc": "c++"}


def library(stage: Stage, name: str, source: str) -> str:
    """Return the path of a shared library made of this source; name: of the source file, "hog.c" or "lock.cc"."""
    return _compiled(stage, name, source, "-shared", "-fPIC")


def program(stage: Stage, name: str, source: str) -> str:
    """Return the path of a program made of this source."""
    return _compiled(stage, name, source)


def _compiled(stage: Stage, name: str, source: str, *flags: str) -> str:
    path = Path(stage.folder, name)
    path.write_text(source)
    made = path.with_suffix(".so" if flags else "")
    compiler = COMPILERS[path.suffix]
    subprocess.run([compiler, "-O1", "-pthread", *flags, "-o", str(made), str(path)], check=True)
    return str(made)
