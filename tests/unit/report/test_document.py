"""The JSON document: the contract's fields and order, and the same bytes whatever order the readings came in."""

from __future__ import annotations

import json
import random

from hypothesis import given
from hypothesis import strategies as st

from hangdoc.report.document import document, encode
from tests.unit.report.diagnoses import FULL, a_diagnosis

CONTRACT_ORDER = [
    "schema",
    "hangdoc",
    "taken_at",
    "target",
    "verdict",
    "grade",
    "phase",
    "headline",
    "culprits",
    "hypotheses",
    "waits",
    "next_steps",
    "outputs",
    "gpus",
    "missing",
    "window_s",
    "processes",
]

GROWN = ["stack_classes", "log", "no_progress_s", "limits"]
"""Fields that the document has gained since: behind all others."""


def test_fields_in_the_order_of_the_contract() -> None:
    """The document has exactly the contract's fields, in its order, and behind them what it has gained."""
    assert list(document(FULL)) == CONTRACT_ORDER + GROWN


def test_names_that_python_reserves() -> None:
    """Evidence is under "for", a wait begins at "from"; no underscore of Python's shows."""
    fields = document(FULL)
    assert list(fields["hypotheses"][0]) == ["id", "name", "verdict", "grade", "for", "against", "missing"]
    assert list(fields["waits"][0]) == ["from", "to", "through", "detail"]


def test_time_is_utc_in_seconds() -> None:
    """taken_at is UTC, whole seconds, with a Z."""
    assert document(FULL)["taken_at"] == "2026-11-30T00:53:20Z"


def test_unread_is_null() -> None:
    """What could not be read is null, never 0 or a blank."""
    launcher = document(FULL)["processes"][0]
    assert launcher["pid"] == 100
    assert launcher["state"] is None
    assert launcher["cpu_ratio"] is None


def test_no_gpu_is_a_reading() -> None:
    """No GPU is [], unread GPUs are null."""
    assert document(a_diagnosis(gpus=()))["gpus"] == []
    assert document(a_diagnosis(gpus=None))["gpus"] is None


def test_floats_are_rounded() -> None:
    """Floats have three digits, and what is no number is null."""
    fields = document(a_diagnosis(window_s=float("nan")))
    assert fields["window_s"] is None
    assert fields["gpus"][0]["power_w"] == 123.457
    assert json.loads(encode(a_diagnosis(window_s=-0.0001)))["window_s"] == 0.0
    assert "-0.0" not in encode(a_diagnosis(window_s=-0.0001))


def test_one_line() -> None:
    """Without indentation a document is one line, for a stream of documents."""
    assert encode(FULL, indent=None).count("\n") == 1


@given(seed=st.integers(0, 2**32))
def test_same_bytes_in_any_order(seed: int) -> None:
    """Lists without a rank of their own come out the same whatever order they were found in."""
    shuffle = random.Random(seed)

    def mixed(items: tuple[object, ...]) -> tuple[object, ...]:
        return tuple(shuffle.sample(items, len(items)))

    names = ("waits", "outputs", "missing", "processes", "gpus")
    changed = a_diagnosis(**{name: mixed(getattr(FULL, name)) for name in names})
    assert encode(changed) == encode(FULL)


@given(text=st.text(st.characters(), max_size=60))
def test_any_text_of_the_target(text: str) -> None:
    """Whatever the target wrote, the document is ASCII without control characters, and JSON gives it back."""
    encoded = encode(a_diagnosis(headline=text))
    assert encoded.isascii()
    assert all(char == "\n" or char >= " " for char in encoded)
    assert json.loads(encoded)["headline"] == text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") or any(
        0xD800 <= ord(char) < 0xE000 for char in text
    )


def test_bytes_that_are_no_text() -> None:
    """A lone surrogate, which no strict parser takes, becomes the replacement character."""
    assert json.loads(encode(a_diagnosis(headline="a\udcffb")))["headline"] == "a\ufffdb"
