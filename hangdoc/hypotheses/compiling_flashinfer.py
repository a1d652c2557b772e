"""HD308: FlashInfer compiles kernels that are not in its cache, or tunes them."""

from __future__ import annotations

import re

from hangdoc.hypotheses._toolchains import Toolchain, compiles_with

HYPOTHESIS = compiles_with(
    Toolchain(
        "FlashInfer",
        re.compile(r"(?:^|/)flashinfer/(?:jit/|autotuner\.py|\w*aot\w*\.py)"),
        frozenset({"flashinfer-autotune"}),
    ),
    "HD308",
    "slow-start-flashinfer",
    "Wait (several minutes with a cold cache); keep ~/.cache/flashinfer, or install its ahead-of-time kernels.",
)
