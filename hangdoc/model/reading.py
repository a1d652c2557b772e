"""Unknown is a value: a reading is Known or Missing, never None, 0 or -1."""

from __future__ import annotations

from typing import Generic, Literal, TypeAlias, TypeVar

from msgspec import Struct

T = TypeVar("T")

Reason: TypeAlias = Literal[
    "denied", "gone", "timeout", "unsupported", "not-installed", "not-taken", "not-in-input", "failed"
]


class Known(Struct, Generic[T], frozen=True, tag="k", array_like=True):
    """A value that was read."""

    value: T


class Missing(Struct, frozen=True, tag="m", array_like=True):
    """A value that was not read: by which probe, why, and what would change that."""

    probe: str
    reason: Reason
    detail: str = ""
    remedy: str = ""


Reading: TypeAlias = Known[T] | Missing
