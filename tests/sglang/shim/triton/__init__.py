"""Stand-in for triton: SGLang imports it everywhere, its CPU path runs no kernel."""

import _mock

__version__ = "3.0.0"
__getattr__ = _mock.install("triton")


def cdiv(a, b):
    return (a + b - 1) // b


def next_power_of_2(n):
    return 1 << (n - 1).bit_length() if n > 0 else 1


def jit(*args, **kwargs):
    if len(args) == 1 and callable(args[0]) and not kwargs:
        return args[0]
    return lambda function: function


autotune = heuristics = jit


class Config(_mock.Empty):
    pass


class _Constexpr:
    def __init__(self, value=None):
        self.value = value


import triton.compiler.compiler as _compiler  # noqa: E402
import triton.runtime.cache as _cache  # noqa: E402
from triton import language  # noqa: E402

language.constexpr = _Constexpr
_compiler.triton_key = _cache.triton_key = lambda: "stub"
