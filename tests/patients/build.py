"""Compile a patient's native part, once for each launch."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.patients.stage import Stage

COMPILERS = {".c": "cc", ".cc": "c++"}

FUNCTION = "double f{n}(double x) {{ for (int i = 0; i < 9; i++) x = x * {n}.5 + i / (x + 2); return x; }}\n"
FUNCTIONS = 1500


def kernels(stage: Stage) -> str:
    """Write a source that takes a compiler some seconds; return its path."""
    source = Path(stage.folder, "kernels.c")
    source.write_text("".join(FUNCTION.format(n=n) for n in range(FUNCTIONS)))
    return str(source)


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
