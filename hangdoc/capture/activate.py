"""The start in each process of the launch: nothing but watches for the modules of SGLang that matter."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .imports import watch
from .session import Session
from .settings import load, sign_in
from .warming import Warming, marked, ready_ends

_active: list[Session] = []


def activate() -> None:
    """Start once in this process: called by SGLang as a plugin, or by sitecustomize."""
    if _active:
        return
    sign_in()
    warming = Warming()
    session = Session(load(), warming)
    _active.append(session)
    watch(
        {
            "sglang.srt.model_executor.model_runner": lambda module: _follow_loading(module, session),
            "sglang.srt.managers.scheduler": lambda module: _follow_batches(module, session),
            "sglang.srt.managers.tokenizer_manager": lambda module: ready_ends(module.TokenizerManager, warming),
            "sglang.srt.entrypoints.http_server": lambda module: _follow_warm_up(module, warming),
        }
    )


def _follow_loading(module: ModuleType, session: Session) -> None:
    def load_model(original: Callable[..., Any], self: Any, *args: Any, **kwargs: Any) -> Any:
        result = original(self, *args, **kwargs)
        session.attach(self)
        return result

    _wrap(module.ModelRunner, "load_model", load_model)


def _follow_batches(module: ModuleType, session: Session) -> None:
    def run_batch(original: Callable[..., Any], self: Any, batch: Any, *args: Any, **kwargs: Any) -> Any:
        return session.run(functools.partial(original, self), batch, *args, **kwargs)

    _wrap(module.Scheduler, "run_batch", run_batch)


def _follow_warm_up(module: Any, warming: Warming) -> None:
    module._wait_and_warmup = marked(module._wait_and_warmup, warming)
    custom = getattr(module, "execute_warmups", None)
    if custom is not None:  # a coroutine that runs before _wait_and_warmup, which takes the mark

        def execute_warmups(*args: Any, **kwargs: Any) -> Any:
            warming.begin()
            return custom(*args, **kwargs)

        module.execute_warmups = execute_warmups


def _wrap(owner: Any, name: str, around: Callable[..., Any]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return around(original, *args, **kwargs)

    setattr(owner, name, wrapped)
