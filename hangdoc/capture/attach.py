"""Finds the layer loop in a loaded model and hooks into it: the input of layers, and the state after the final norm."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

NORMS = ("norm", "final_layernorm", "final_norm", "ln_f")
"""What the final norm is called beside the layers, in SGLang's models."""


class UnsupportedError(Exception):
    """Capture would be wrong or nothing here: says what was looked for and what was found."""


def layer_stacks(model: Any, count: int) -> Iterator[tuple[str, Any]]:
    """Yield name and module of whatever has `layers` of this number that take hidden states and a forward batch."""
    for name, module in model.named_modules():
        layers = getattr(module, "layers", None)
        if layers is not None and hasattr(layers, "__len__") and len(layers) == count and _is_layer(layers[0]):
            yield name or type(module).__name__, module


def _is_layer(module: Any) -> bool:
    names = inspect.signature(module.forward).parameters
    return "hidden_states" in names and "forward_batch" in names


def the_stack(model: Any, count: int) -> Any:
    """Return the module that owns the layer loop; UnsupportedError when there is none, or several."""
    found = list(layer_stacks(model, count))
    if len(found) == 1:
        return found[0][1]
    names = ", ".join(name for name, _ in found) or "none"
    raise UnsupportedError(
        f"{type(model).__name__}: looked for one list of {count} `layers` whose forward takes hidden_states and "
        f"forward_batch, and found {names}"
    )


def final_norm(stack: Any) -> Any:
    """Return the norm behind the last layer; UnsupportedError when it has another name."""
    for name in NORMS:
        if hasattr(stack, name):
            return getattr(stack, name)
    raise UnsupportedError(f"{type(stack).__name__}: looked for a final norm named {', '.join(NORMS)}, and found none")


class Arguments:
    """Reads a layer's arguments by name, however they were passed."""

    def __init__(self, layer: Any) -> None:
        self._places = {name: place for place, name in enumerate(inspect.signature(layer.forward).parameters)}

    def value(self, name: str, given: Sequence[Any], named: dict[str, Any]) -> Any:
        """Return the argument, None when it was not given."""
        place = self._places.get(name, len(given))
        return named.get(name, given[place] if place < len(given) else None)


def state_before(arguments: Arguments, given: Sequence[Any], named: dict[str, Any]) -> Any:
    """Return the state that enters a layer, residual included, in memory of its own.

    Newer versions keep the residual in the batch, and only they know whether a sum over ranks is still owed: there it
    is a collective. Older ones pass it to the layer.
    """
    hidden = arguments.value("hidden_states", given, named)
    stream = getattr(arguments.value("forward_batch", given, named), "residual_stream", None)
    if stream is not None:
        return stream.snapshot(hidden)
    residual = arguments.value("residual", given, named)
    return hidden.clone() if residual is None else hidden + residual


def hook(
    stack: Any, layers: Sequence[int], on_layer: Callable[[int, Any], None], on_last: Callable[[Any], None]
) -> None:
    """Call on_layer(position, read) before each layer wanted, on_last(read) after the norm; read() gives the state."""
    for position, number in enumerate(layers):
        layer = stack.layers[number]
        arguments = Arguments(layer)

        def before(_: Any, given: Any, named: Any, position: int = position, arguments: Arguments = arguments) -> None:
            on_layer(position, lambda: state_before(arguments, given, named))

        layer.register_forward_pre_hook(before, with_kwargs=True)

    def after(_: Any, __: Any, output: Any) -> None:
        on_last((output[0] if isinstance(output, tuple) else output).clone)

    final_norm(stack).register_forward_hook(after)
