"""HD306: DeepGEMM compiles its kernels, or warms them up, with a cold cache."""

from __future__ import annotations

import re

from hangdoc.hypotheses._toolchains import Toolchain, compiles_with

HYPOTHESIS = compiles_with(
    Toolchain(
        "DeepGEMM",
        re.compile(r"(?:^|/)(?:deep_gemm|deep_gemm_wrapper)/|deep_gemm\w*\.py$"),
        frozenset({"deep-gemm-compile", "deep-gemm-warmup"}),
    ),
    "HD306",
    "slow-start-deep-gemm",
    "Wait (10 to 20 min with a cold cache); compile ahead with python3 -m sglang.compile_deep_gemm and keep the cache.",
)
