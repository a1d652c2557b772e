"""What the stand-ins and the fault injections share: post-import hooks, source edits, marks and a scratch directory."""

import importlib.abc
import importlib.util
import os
import sys
import threading

_before = {}
_after = {}
_edits = {}


def before_import(name, action):
    """Call action() when the import of module `name` begins."""
    _before.setdefault(name, []).append(action)


def after_import(name, action):
    """Call action(module) right after module `name` was imported."""
    _after.setdefault(name, []).append(action)


def edit_source(name, old, new):
    """Import module `name` from its source with `old` (which must occur once) replaced by `new`.

    The code keeps the real file's name, so that stacks look as if the fault were in the real file.
    """
    _edits.setdefault(name, []).append((old, new))


def scratch(name):
    """A path for an injection's own files, in the directory of this launch."""
    return os.path.join(os.environ["HANG_DIR"], name)


def mark(name):
    """Say that something has set in: a file `mark.NAME` that holds the process id."""
    path = scratch(f"mark.{name}")
    # Threads of one process may set the same mark at once.
    with open(f"{path}.{threading.get_native_id()}", "w") as handle:
        handle.write(f"{os.getpid()}\n")
    os.replace(handle.name, path)


def wrap_load(load):
    """Let the model's load_weights be load(original, weights), `original` taking the weights alone."""

    def patch(module):
        original = module.DeepseekV2ForCausalLM.load_weights

        def load_weights(self, weights, *args, **kwargs):
            return load(lambda given: original(self, given, *args, **kwargs), weights)

        module.DeepseekV2ForCausalLM.load_weights = load_weights

    after_import("sglang.srt.models.deepseek_v2", patch)


def wrap_open(open_shard):
    """Let the weight loader open each shard by open_shard(original, path, ...)."""

    def patch(module):
        original = module.safetensors.safe_open
        module.safetensors.safe_open = lambda path, *args, **kwargs: open_shard(original, path, *args, **kwargs)

    after_import("sglang.srt.model_loader.weight_utils", patch)


class _Loader(importlib.abc.Loader):
    def __init__(self, inner, name):
        self.inner, self.name = inner, name

    def create_module(self, spec):
        return self.inner.create_module(spec)

    def exec_module(self, module):
        for action in _before.get(self.name, ()):
            action()
        self._run(module)
        for action in _after.get(self.name, ()):
            action(module)

    def _run(self, module):
        if self.name not in _edits:
            self.inner.exec_module(module)
            return
        source = self.inner.get_source(self.name)
        for old, new in _edits[self.name]:
            if source.count(old) != 1:
                raise ImportError(f"fault injection: {self.name} has {source.count(old)} times {old!r}")
            source = source.replace(old, new)
        exec(compile(source, self.inner.get_filename(self.name), "exec"), module.__dict__)

    def __getattr__(self, name):  # get_source, get_filename, ... for tracebacks
        return getattr(self.inner, name)


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self):
        self.busy = False

    def find_spec(self, fullname, path=None, target=None):
        if self.busy or not (fullname in _before or fullname in _after or fullname in _edits):
            return None
        self.busy = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self.busy = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, fullname)
        return spec


sys.meta_path.insert(0, _Finder())
