"""Mock packages: every submodule imports, every unknown attribute exists, capitalised ones are empty classes."""

import importlib.abc
import importlib.machinery
import sys
import types

_roots = set()


class _Meta(type):
    def __getattr__(cls, name):  # enum-like members: Class.MEMBER
        if name.startswith("_"):
            raise AttributeError(name)
        return f"{cls.__name__}.{name}"


class Empty(metaclass=_Meta):
    def __init__(self, *args, **kwargs):
        pass


class _Mock(types.ModuleType):
    def __init__(self, name):
        super().__init__(name)
        self.__path__ = []
        self.__package__ = name
        self.__spec__ = importlib.machinery.ModuleSpec(name, _finder, is_package=True)

    def __getattr__(self, name):
        return attribute(self.__name__, name)

    def __call__(self, *args, **kwargs):  # serves as a decorator, with or without arguments
        if len(args) == 1 and callable(args[0]) and not kwargs:
            return args[0]
        return lambda function: function

    def __getitem__(self, item):
        return self

    # Without these, `x in mock` would walk __getitem__(0), (1), ... for ever.
    def __iter__(self):
        return iter(())

    def __contains__(self, item):
        return False

    def __len__(self):
        return 0

    def __bool__(self):
        return True

    def __or__(self, other):
        return self

    __ror__ = __or__


def attribute(parent, name):
    if name.startswith("__") and name.endswith("__"):
        raise AttributeError(name)
    full = f"{parent}.{name}"
    if full in sys.modules:
        return sys.modules[full]
    if name[:1].isupper():
        base = Exception if name.endswith(("Error", "OutOfResources")) else Empty
        value = type(name, (base,), {"__module__": parent})
    else:
        value = sys.modules[full] = _Mock(full)
    setattr(sys.modules[parent], name, value)
    return value


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        root, dot, _ = fullname.partition(".")
        if dot and root in _roots:
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        return _Mock(spec.name)

    def exec_module(self, module):
        pass


_finder = _Finder()
sys.meta_path.insert(0, _finder)


def install(root):
    """For root/__init__.py: returns the package's __getattr__."""
    _roots.add(root)
    return lambda name: attribute(root, name)
