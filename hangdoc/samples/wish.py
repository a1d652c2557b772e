"""What a user wants captured."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from hangdoc.capture.layout import RECORDS
from hangdoc.errors import HangdocError

Form = Literal["specforge", "safetensors"]


@dataclass(frozen=True)
class Wish:
    """layers: counted from 0, their INPUTS are wanted, in this order; directory: absolute."""

    layers: tuple[int, ...]
    directory: Path
    form: Form = "specforge"


def wish(layers: str, directory: Path, form: str = "specforge") -> Wish:
    """Read --capture-layers, --capture-dir and --capture-format; HangdocError (wrong use) when they make no sense."""
    try:
        numbers = tuple(int(text) for text in layers.split(","))
    except ValueError:
        raise HangdocError(f"--capture-layers {layers}: not layer numbers", "write them as in 3,31,59") from None
    if min(numbers) < 0 or len(set(numbers)) < len(numbers):
        raise HangdocError(f"--capture-layers {layers}: a number is below 0 or given twice", "write them as in 3,31,59")
    if form not in get_args(Form):
        raise HangdocError(
            f"--capture-format {form}: there is no such format", f"take one of {', '.join(get_args(Form))}"
        )
    return Wish(numbers, directory.absolute(), form)  # type: ignore[arg-type]


def differs(wish: Wish) -> str:
    """Return in what the samples that are in the directory differ from the wish, "" when in nothing; HangdocError."""
    path = wish.directory / RECORDS / "run.json"
    try:
        before: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise HangdocError(f"{path} cannot be read: {error}", "capture into another directory") from error
    if before.get("layers") != list(wish.layers):
        return f"has inputs of layers {before.get('layers')}, and {list(wish.layers)} are wanted"
    if before.get("form") != wish.form:
        return f"is in format {before.get('form')}, and {wish.form} is wanted"
    return ""
