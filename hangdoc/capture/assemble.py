"""Puts the chunks of a prompt together: SGLang runs a long prompt in several forward passes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from .passes import Portion

MOST_OPEN = 64
"""Prompts of which some chunks came. SGLang runs one at a time; those before it were aborted. Arbitrary."""


@dataclass(frozen=True)
class Chunk:
    """States of rows on the host: by layer, then the last one; `ready` is an event to wait for, or None."""

    layers: tuple[Any, ...]
    last: Any
    ready: Any
    first_row: int
    rows: int


@dataclass
class Sample:
    """A prompt with all its states, once `rows` is its length."""

    portion: Portion
    chunks: list[Chunk] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Return how many tokens have their states."""
        return sum(chunk.rows for chunk in self.chunks)

    @property
    def size_bytes(self) -> int:
        """Return what its states take."""
        return sum(
            chunk.rows * state.shape[-1] * state.element_size()
            for chunk in self.chunks
            for state in (*chunk.layers, chunk.last)
        )


class Assembly:
    """The prompts that are not complete yet."""

    def __init__(self) -> None:
        self._open: OrderedDict[str, Sample] = OrderedDict()
        self.dropped = 0
        """Prompts given up: aborted, or begun anew."""

    def add(self, portion: Portion, chunk: Chunk) -> tuple[Sample | None, bool]:
        """Return the sample if it is complete now, and whether rows of it are missing: the prefix cache had them."""
        sample = self._open.pop(portion.request, None)
        if sample is not None and portion.start == 0:
            self.dropped += 1
            sample = None
        sample = sample or Sample(portion)
        if sample.rows != portion.start:
            return None, True
        sample.chunks.append(chunk)
        if portion.is_last:
            return sample, False
        self._open[portion.request] = sample
        while len(self._open) > MOST_OPEN:
            self._open.popitem(last=False)
            self.dropped += 1
        return None, False
