"""Any other program: the processes that look the same under every engine, above all compilers."""

from __future__ import annotations

import re

from hangdoc.engines._torch import LINES
from hangdoc.model.engine import Engine, Title

_COMPILERS = (
    "nvcc|cicc|ptxas|fatbinary|nvlink|cudafe\\+\\+|bin2c|ninja|cmake|cc1plus|cc1|cc|c\\+\\+|g\\+\\+|gcc|clang|"
    "clang\\+\\+|collect2|ld|lld|as|hipcc|amdclang|x86_64-linux-gnu-\\S+|tcc"
)

TITLES = (
    Title(re.compile(rf"^(?:\S*/)?(?:{_COMPILERS})(?:-[\d.]+)?(?:\s|$)"), "compiler"),
    Title(re.compile(r"torch[./]_inductor[./]compile_worker"), "compiler"),
    Title(re.compile(r"^pt_compile_worker|^pt_async_compil"), "compiler"),
)

ENGINE = Engine(name="generic", titles=TITLES, log_lines=LINES)
