"""What one probe has read in a round, the others do not read again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hangdoc.sampling.probe import Round, Shared


def counted(results: list[object]) -> tuple[Callable[[], object], list[int]]:
    """Return a reader that gives these results one after the other, and the calls of it so far."""
    calls: list[int] = []

    def read() -> object:
        calls.append(1)
        result = results[len(calls) - 1]
        if isinstance(result, Exception):
            raise result
        return result

    return read, calls


def test_read_once() -> None:
    """Whoever asks first reads; the others get the same object; another key is another reading."""
    shared = Shared()
    read, calls = counted(["first", "second"])
    assert [shared.once(("a", 1), read), shared.once(("a", 1), read), shared.once(("a", 2), read)] == [
        "first",
        "first",
        "second",
    ]
    assert len(calls) == 2


def test_an_error_is_not_kept() -> None:
    """After an error the next one who asks reads again."""
    shared = Shared()
    read, _ = counted([ProcessLookupError("gone"), "there"])
    with pytest.raises(ProcessLookupError):
        shared.once("a", read)
    assert shared.once("a", read) == "there"


def test_each_round_reads_anew() -> None:
    """Nothing of one round is left in the next."""
    read, _ = counted(["first", "second"])
    rounds = [Round(number, 0, (), thorough=True) for number in range(2)]
    assert [one.shared.once("a", read) for one in rounds] == ["first", "second"]
