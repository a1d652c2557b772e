"""A plain torch.distributed job under torchrun: what is said of it when it is well, slow, and ill in several ways."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.cli.commands import run

pytestmark = pytest.mark.sglang


def watch(pid: int) -> dict[str, Any]:
    ended = run("watch", str(pid), "--once", "--json")
    document: dict[str, Any] = json.loads(ended.out)
    assert document["target"]["engine"] == "torchrun"
    return document


def workers(document: dict[str, Any]) -> list[dict[str, int]]:
    return sorted(
        (one["rank"] for one in document["processes"] if one["role"] == "worker"), key=lambda one: one["rank"]
    )


def test_rank_1_loops(start: Callable[..., int]) -> None:
    """A loop in plain Python before the barrier may be a computation, and is named as what it may be."""
    document = watch(start("spin"))
    assert document["verdict"] == "undetermined", document["headline"]
    (loop,) = (one for one in document["hypotheses"] if one["id"] == "HD101")
    assert loop["grade"] == "undetermined"
    assert any("a finite computation looks the same" in lack for lack in loop["missing"])


@pytest.mark.parametrize(("act", "verdict"), [("absent", "blocked"), ("stopped", "blocked")])
def test_rank_1_is_ill(act: str, verdict: str, start: Callable[..., int]) -> None:
    """The rank that stays out of the barrier is named, whatever keeps it: a lock, a stop."""
    document = watch(start(act))
    assert workers(document) == [{"local_rank": 0, "rank": 0}, {"local_rank": 1, "rank": 1}]
    assert (document["verdict"], document["grade"] in {"likely", "confirmed"}) == (verdict, True), document["headline"]
    assert [one["rank"]["rank"] for one in document["culprits"]] == [1]


def test_a_slow_rank(start: Callable[..., int]) -> None:
    """A rank that reads at a slow pace while the other one waits for it is no hang."""
    assert watch(start("slow"))["verdict"] in {"slow-start", "undetermined"}


def test_a_job_that_is_well(start: Callable[..., int]) -> None:
    """A job that does its steps is no hang."""
    assert watch(start("healthy"))["verdict"] in {"healthy", "slow-start", "undetermined"}


def test_a_node_that_does_not_come(start: Callable[..., int]) -> None:
    """torchrun alone, waiting for its other node, is found from its own pid, and nothing is made up about ranks."""
    document = watch(
        start("absent", "--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0", ranks=0)
    )
    assert workers(document) == []
    assert document["verdict"] in {"blocked", "slow-start", "undetermined"}
