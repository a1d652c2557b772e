"""The model that a launch names, read from its config.json: how many layers it has and which class serves it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hangdoc.samples.install import Install

TEXT_CONFIGS = ("text_config", "language_config", "llm_config")
"""Where a multimodal model's config.json keeps its language model's."""

OTHER_RESIDUALS = re.compile(
    r"layer_boundary\.residual(?:\.| import [^\n]*?\b)(mhc|ihc|gated|attn_bank|short_conv|post_norm)\b"
    r"|\bimport [^\n]*\b(LayerResidualOps|REPLACE_AT_EXIT)\b"
    r"|\bmodels\.(deepseek_v4_\w+) import"
)
"""Imports of a model whose residual is no plain sum, so that `hidden_states + residual` is not its state."""


@dataclass(frozen=True)
class Model:
    """layers, architecture: None where config.json does not say."""

    path: Path
    layers: int | None
    architecture: str | None


def find(name: str, environment: Mapping[str, str], cwd: Path) -> Model | None:
    """Return the model in this directory or of this name in the Hugging Face cache; None without its config."""
    for directory in (cwd / name, *_cached(name, environment)):
        try:
            config = json.loads((directory / "config.json").read_text())
        except (OSError, ValueError):
            continue
        if isinstance(config, dict):
            return Model(directory, _layers(config), _architecture(config))
    return None


def _cached(name: str, environment: Mapping[str, str]) -> list[Path]:
    home = environment.get("HF_HOME") or f"{environment.get('HOME', '/')}/.cache/huggingface"
    hub = Path(environment.get("HF_HUB_CACHE") or f"{home}/hub")
    return sorted(hub.glob(f"models--{name.strip('/').replace('/', '--')}/snapshots/*")) if "/" in name else []


def _layers(config: dict[str, Any]) -> int | None:
    for part in (*(config.get(key) for key in TEXT_CONFIGS), config):
        count = part.get("num_hidden_layers") if isinstance(part, dict) else None
        if isinstance(count, int):
            return count
    return None


def _architecture(config: dict[str, Any]) -> str | None:
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else None


def source_of(architecture: str, install: Install) -> Path | None:
    """Return the file of SGLang that defines the class, None when none does."""
    definition = re.compile(rf"^class {re.escape(architecture)}\b", re.MULTILINE)
    for path in sorted((install.package / "srt" / "models").rglob("*.py")):
        if definition.search(path.read_text(errors="replace")):
            return path
    return None
