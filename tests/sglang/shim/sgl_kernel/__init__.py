"""Stand-in for sgl_kernel (no CPU build on PyPI): the one operator the CPU path calls; other names fail when called."""

import importlib.abc
import importlib.machinery
import sys
import types

__version__ = "0.4.10"


def assign_req_to_token_pool_cpu(req_pool_indices, req_to_token, start_offset, end_offset, out_cache_loc, pool_len):
    position = 0
    for request, start, end in zip(req_pool_indices.tolist(), start_offset.tolist(), end_offset.tolist(), strict=False):
        count = end - start
        req_to_token[request, start:end] = out_cache_loc[position : position + count].to(req_to_token.dtype)
        position += count


class _Missing:
    """An importable name; reading an attribute of it is fine, calling it is not."""

    def __init__(self, name):
        self.__name__ = self.__qualname__ = name

    def __call__(self, *args, **kwargs):
        raise NotImplementedError(f"sgl_kernel stand-in: {self.__name__}")

    def __getattr__(self, name):
        return _missing(f"{self.__name__}.", name)


def _missing(prefix, name):
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    return _Missing(prefix + name)


def __getattr__(name):
    return _missing("", name)


class _Submodule(types.ModuleType):
    def __getattr__(self, name):
        return _missing(f"{self.__name__}.", name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        if fullname.startswith("sgl_kernel."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Submodule(spec.name)

    def exec_module(self, module):
        pass


sys.meta_path.insert(0, _Finder())
