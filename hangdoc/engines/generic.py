"""Any other program: the processes that look the same under every engine, above all compilers."""

from __future__ import annotations

import re

from hangdoc.engines._torch import LINES
from hangdoc.model.engine import Engine, LogLine, Title

_COMPILERS = (
    "nvcc|cicc|ptxas|fatbinary|nvlink|cudafe\\+\\+|bin2c|ninja|cmake|cc1plus|cc1|cc|c\\+\\+|g\\+\\+|gcc|clang|"
    "clang\\+\\+|collect2|ld|lld|as|hipcc|amdclang|x86_64-linux-gnu-\\S+|tcc"
)

TITLES = (
    Title(re.compile(rf"^(?:\S*/)?(?:{_COMPILERS})(?:-[\d.]+)?(?:\s|$)"), "compiler"),
    Title(re.compile(r"torch[./]_inductor[./]compile_worker"), "compiler"),
    Title(re.compile(r"^pt_compile_worker|^pt_async_compil"), "compiler"),
)

STEPS = tuple(
    LogLine("step", "progress", re.compile(rf"{word}\W{{1,3}}(?P<done>\d+)"), "counts its steps")
    for word in (r"\b[Ss]tep", r"\b[Ii]teration", r"\b[Ee]poch", r"checkpoint shards", r"#token")
)
"""What programs count that get on; attempts and retries are counted by those that do not, too."""

ENGINE = Engine(name="generic", titles=TITLES, log_lines=(*LINES, *STEPS))
