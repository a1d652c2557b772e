"""Tell from a program's first bytes why the kernel would refuse to execute it, before anything is ended for it."""

from __future__ import annotations

import os
import re
import shutil
import struct
from pathlib import Path

FIRST_BYTES = 4096
"""Of the file: header and program headers of an ELF file, or the line of a script, of which the kernel reads 256."""

DEEPEST = 4
"""Scripts whose interpreters are scripts: the kernel follows so many (BINPRM recursion, exec.c)."""

BINFMT = Path("/proc/sys/fs/binfmt_misc")
"""Where other formats are registered; besides them it holds `register` and `status`."""

_ELF64_LITTLE = b"\x7fELF\x02\x01"
_INTERPRETER = 3
"""PT_INTERP, see elf(5)."""


def refusal(program: Path, cwd: Path, path: str, depth: int = 0) -> str:
    """Return why a file that may be run cannot be, "" when nothing speaks against it or it cannot be read.

    cwd, path: where the new launch would look for an interpreter.
    """
    try:
        with program.open("rb") as file:
            begin = file.read(FIRST_BYTES)
    except OSError:
        return ""
    if begin.startswith(b"\x7fELF"):
        loader = _loader(begin)
        return f"its loader {loader} is not there" if loader and not (cwd / loader).exists() else ""
    if begin.startswith(b"#!"):
        return _of_script(begin, cwd, path, depth)
    return "" if _other_formats() else "it is neither a binary nor a script with a #! line"


def _of_script(begin: bytes, cwd: Path, path: str, depth: int) -> str:
    # Split as the kernel does: a carriage return from a DOS file is part of the name.
    words = re.split(r"[ \t]+", os.fsdecode(begin[2:].split(b"\n", 1)[0].strip(b" \t")), maxsplit=1)
    if not words[0]:
        return "its #! line names no interpreter"
    interpreter = cwd / words[0]
    if not interpreter.is_file() or not os.access(interpreter, os.X_OK):
        return f"its interpreter {words[0]!r} is not there or may not be run"
    if interpreter.name == "env" and len(words) > 1:
        name = words[1].strip()
        is_name = not name.startswith("-") and "=" not in name and len(name.split()) == 1
        return f"its interpreter {name} is not on the PATH" if is_name and shutil.which(name, path=path) is None else ""
    return refusal(interpreter, cwd, path, depth + 1) if depth < DEEPEST else "its interpreters are scripts"


def _loader(begin: bytes) -> str:
    """Return the interpreter that a 64-bit ELF file names, "" when it names none among its first bytes."""
    if not begin.startswith(_ELF64_LITTLE):
        return ""
    try:
        (table,) = struct.unpack_from("<Q", begin, 32)
        size, count = struct.unpack_from("<HH", begin, 54)
        for number in range(count):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", begin, table + number * size)
            if kind == _INTERPRETER and offset + length <= len(begin):
                return os.fsdecode(begin[offset : offset + length].rstrip(b"\0"))
    except struct.error:
        return ""
    return ""


def _other_formats() -> bool:
    try:
        return bool({entry.name for entry in BINFMT.iterdir()} - {"register", "status"})
    except OSError:
        return False
