"""Whether a launch can be captured, said before anything is started or ended: what was looked for and not found."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hangdoc.capture.unsupported import REFUSED, refusals
from hangdoc.errors import HangdocError
from hangdoc.launch.commands import base_name, is_python_name
from hangdoc.launch.settings import read_settings
from hangdoc.model.engine import Option
from hangdoc.samples import model
from hangdoc.samples.install import Install
from hangdoc.samples.wish import Wish, differs

OLDEST_PYTHON = (3, 10)
HOOKED = (
    ("srt/model_executor/model_runner.py", "ModelRunner.load_model"),
    ("srt/managers/scheduler.py", "Scheduler.run_batch"),
    ("srt/managers/tokenizer_manager.py", "TokenizerManager"),
    ("srt/entrypoints/http_server.py", "_wait_and_warmup"),
)
"""What is wrapped, by file and name."""

READ = (
    ("srt/managers/tokenizer_manager.py", "server_status"),
    *(("srt/managers/schedule_batch.py", name) for name in ("prefix_lens", "extend_lens", "origin_input_ids")),
    ("srt/sampling/sampling_params.py", "custom_params"),
)
"""What is read, by file and text."""

OTHER_FLAGS = {
    "pp_size": ("--pipeline-parallel-size",),
    "attn_cp_size": ("--attention-context-parallel-size",),
    "attn_dp_size": ("--attention-data-parallel-size",),
}
SWITCHES = tuple(name for name, fine, _ in REFUSED if fine == (False,))
_ISOLATING = re.compile(r"-[A-Za-z]*[EIS][A-Za-z]*")
"""Switches of Python under which it takes no PYTHONPATH, or no sitecustomize."""

MODEL = Option("model_path", ("--model-path", "--model"), None)


@dataclass(frozen=True)
class Support:
    """faults: why it cannot be captured (not found, refused); notes: what could not be checked, or is unusual."""

    faults: tuple[str, ...]
    notes: tuple[str, ...] = ()


def check(wish: Wish, install: Install, argv: tuple[str, ...], environment: Mapping[str, str], cwd: Path) -> Support:
    """Look for all that the capture of this launch needs; HangdocError when a layer does not exist (wrong use)."""
    absent = [f"{name} in sglang/{path}" for path, name in HOOKED if not install.defines(path, name)]
    absent += [f"the word {name} in sglang/{path}" for path, name in READ if name not in install.text(path)]
    faults = [f"SGLang {install.version}: looked for {what} and did not find it" for what in absent]
    if install.python < OLDEST_PYTHON:
        faults.append(f"its Python is {install.python[0]}.{install.python[1]}, and 3.10 is needed")
    faults += [f"python {word}: the launch would not see the capture's code" for word in _isolating(argv)]
    faults += refusals(_arguments(argv))
    different = differs(wish)
    if different:
        faults.append(f"{wish.directory} {different}: take another directory")
    more, notes = _of_model(wish, install, argv, environment, cwd)
    if len(wish.layers) != 3:
        notes.append(f"{len(wish.layers)} layers are wanted: SpecForge's EAGLE-3 training reads three")
    return Support((*faults, *more), tuple(notes))


def refuse(support: Support) -> None:
    """Raise a HangdocError with all faults, if there are any."""
    if support.faults:
        raise HangdocError("capture is not possible here: " + "; ".join(support.faults), "nothing was started or ended")


def _isolating(argv: tuple[str, ...]) -> list[str]:
    """Return the switches of the interpreter, which stand before its -m or its script."""
    if not argv or not is_python_name(base_name(argv[0])):
        return []
    switches = itertools.takewhile(lambda word: word.startswith("-") and word not in ("-m", "-c"), argv[1:])
    return [word for word in switches if _ISOLATING.fullmatch(word)]


def _arguments(argv: tuple[str, ...]) -> dict[str, Any]:
    options = tuple(
        Option(name, (f"--{name.replace('_', '-')}", *OTHER_FLAGS.get(name, ())), None, is_switch=name in SWITCHES)
        for name, _, _ in REFUSED
    )
    given: dict[str, Any] = dict(read_settings(argv, options))
    return {name: int(text) if text.isdigit() else {"true": True}.get(text, text) for name, text in given.items()}


def _of_model(
    wish: Wish, install: Install, argv: tuple[str, ...], environment: Mapping[str, str], cwd: Path
) -> tuple[list[str], list[str]]:
    name = read_settings(argv, (MODEL,)).get(MODEL.name)
    found = model.find(name, environment, cwd) if name else None
    if found is None:
        return [], [f"config.json of {name or 'the model'} is not on this machine: layers and model were not checked"]
    if found.layers is not None and max(wish.layers) >= found.layers:
        raise HangdocError(
            f"layer {max(wish.layers)} does not exist: {name} has layers 0 to {found.layers - 1}",
            "a layer's number means its input; the state behind the last one is always in hidden_state",
        )
    if found.architecture is None:
        return [], [f"{found.path}/config.json names no architecture: the model was not checked"]
    source = model.source_of(found.architecture, install)
    if source is None:
        return [f"looked for class {found.architecture} in sglang/srt/models and did not find it"], []
    other = model.OTHER_RESIDUALS.search(source.read_text(errors="replace"))
    if other:
        where = f"sglang/srt/models/{source.name}: {other[other.lastindex or 0]}"
        return [f"{found.architecture}: its residual is no plain sum ({where})"], []
    return [], []
