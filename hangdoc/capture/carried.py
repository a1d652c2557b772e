"""Copied as `sitecustomize` where SGLang has no plugins: starts the capture, then runs the user's own sitecustomize."""

from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import PathFinder
from pathlib import Path


def _run_the_users_own() -> None:
    """Python takes one sitecustomize, and ours stands in front of the one that it would have taken."""
    here = Path(__file__).resolve().parent
    others = [entry for entry in sys.path if Path(entry or ".").resolve() != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is None or spec.loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    from hangdoc_capture.activate import activate  # type: ignore[import-not-found] # the private copy's name

    activate()
    _run_the_users_own()
