"""What an HTTP server's answers and counters prove, and what its silence does not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread, weigh
from hangdoc.engines.sglang import ENGINE
from hangdoc.features.features import Features, features
from hangdoc.hypotheses._http import counters_rise, http_answers, http_is_silent, requests_stand
from hangdoc.hypotheses._signs import nothing_progresses
from hangdoc.hypotheses.idle_poll import HYPOTHESIS as IDLE_POLL
from hangdoc.hypotheses.serving import HYPOTHESIS as SERVING
from hangdoc.model.http import Http, HttpOutcome, HttpReply, Listener, ServerMetrics
from hangdoc.model.reading import Known, Missing
from hangdoc.model.thread import ProcessIo, Progress
from tests.unit.features.synthetic import KEY, Readings, clock, cpu, dump, links, process, stack, trace, whole

NONE = Missing("http", "unsupported")
STILL = Progress(Known(ProcessIo(0, 0, 0, 0, 0, 0)), 0, 0, 0, 0, 0)
LOOP = stack("event_loop_normal", "run_scheduler_process", file="managers/scheduler.py")
BATCH = stack("run_batch", "event_loop_normal", "run_scheduler_process", file="managers/scheduler.py")


def http(
    tokens: int | None = None, running: int = 0, outcome: HttpOutcome = "answered", listener: Listener = "member"
) -> Http:
    counters = ServerMetrics(running=Known(running), waiting=Known(0), tokens=Known(tokens or 0), finished=Known(0))
    replies = (HttpReply("/model_info", outcome, 200 if outcome == "answered" else None, 0.1),)
    metrics = NONE if tokens is None else Known(counters)
    return Http(port=30000, listener=listener, listener_pid=100, replies=replies, metrics=metrics)


def test_a_counter_that_is_lost_is_no_standstill() -> None:
    """A server that publishes one counter less than before is not compared by the sum of what is left of them."""
    before = http(tokens=1000, running=1)
    assert isinstance(before.metrics, Known)
    lost = replace(before.metrics.value, tokens=NONE, finished=Known(7))
    found = seen(before, replace(before, metrics=Known(lost))).http
    assert isinstance(found, Known)
    assert found.value is not None
    assert found.value.moved == Known(7)
    nothing = replace(before.metrics.value, tokens=NONE, finished=NONE)
    found = seen(before, replace(before, metrics=Known(nothing))).http
    assert isinstance(found, Known)
    assert found.value is not None
    assert isinstance(found.value.moved, Missing)


def seen(*asked: Http | Missing | None, at: int = 0, metrics: bool = True) -> Features:
    """A scheduler that goes round its loop for so many rounds; what was asked in each of them."""
    rounds: list[Readings] = []
    for number, one in enumerate(asked):
        readings: Readings = {
            ("cpu", KEY): cpu(clock(number * 0.97, slices=number)),
            ("progress", KEY): STILL,
            ("links", KEY): links(received=0),
            ("stacks", KEY): dump((100, at)),
            ("fds", KEY): Missing("fds", "denied"),
        }
        rounds.append({**readings, **({} if one is None else {("http", None): one})})
    of = trace(rounds, processes=[process(role="scheduler")], stacks=[LOOP, BATCH], engine="sglang")
    settings = {"enable_metrics": "true"} if metrics else {}
    of = replace(of, header=replace(of.header, launch=replace(of.header.launch, settings=settings)))
    return features(of, ENGINE, whole(of), steady=True)


@pytest.mark.parametrize(
    ("asked", "outcome"),
    [
        ((http(10), None, http(20)), Absent),
        ((http(10), None, http(10)), Unread),
        ((http(10), None, None), Unread),
        ((Missing("http", "denied"),) * 3, Unread),
        ((None,) * 3, Unread),
    ],
    ids=["rise", "stand", "read once", "refused", "not asked"],
)
def test_counters_that_rise_are_work(asked: tuple[Http | None, ...], outcome: type[Outcome]) -> None:
    """Tokens that are counted are progress, and without a second reading of a server that counts it stays open."""
    of = seen(*asked)
    assert isinstance(nothing_progresses(Case(of, None)), outcome)
    wanted = {"Absent": Absent, "Unread": Unread}[outcome.__name__]
    risen = counters_rise(of)
    assert isinstance(risen, wanted) or risen is None


def test_a_server_without_counters_lacks_nothing() -> None:
    """Without --enable-metrics there is no counter, and no reading of it is missing."""
    assert counters_rise(seen(http(), None, http(), metrics=False)) is None
    assert counters_rise(seen(Missing("http", "denied"), None, metrics=False)) is None
    assert isinstance(counters_rise(seen(Missing("http", "denied"), None)), Unread)


@pytest.mark.parametrize(("running", "rounds", "present"), [(1, 40, True), (0, 40, False), (1, 20, False)])
def test_requests_that_stand(running: int, rounds: int, present: bool) -> None:
    """Requests that run for half a minute while no token is counted speak for a hang; sooner they do not."""
    of = seen(*(http(10, running) if number % 5 == 0 else None for number in range(rounds)))
    assert isinstance(requests_stand(Case(of, None)), Present if present else Absent)


@pytest.mark.parametrize(
    ("asked", "silent", "answers"),
    [
        ((http(), http()), Absent, Present),
        ((http(outcome="silent"),) * 2, Present, Absent),
        ((http(), http(outcome="silent")), Unread, Absent),
        ((http(outcome="refused"),) * 2, Unread, Absent),
        ((Missing("http", "denied"),) * 2, Unread, Unread),
        ((None, None), Absent, Absent),
    ],
)
def test_silence(asked: tuple[Http | None, ...], silent: type[Outcome], answers: type[Outcome]) -> None:
    """One question without an answer is a pause, two are silence; a launch that nobody asks lacks nothing."""
    of = seen(*asked)
    assert isinstance(http_is_silent(Case(of, None)), silent)
    assert isinstance(http_answers(Case(of, None)), answers)


def test_a_silent_http_process_is_no_hang_of_the_ranks() -> None:
    """Ranks that go round their loop stay healthy behind a silent HTTP process, but no longer for certain."""
    grades = [weigh(IDLE_POLL, seen(*[http(outcome=how)] * 4)).grade for how in ("answered", "silent")]
    assert grades == ["confirmed", "likely"]


def test_counted_tokens_show_that_a_server_serves() -> None:
    """A rank in a batch whose tokens are counted serves; with counters that stand that is not shown."""
    assert weigh(SERVING, seen(http(10), None, None, http(20), at=1)).grade == "confirmed"
    assert weigh(SERVING, seen(http(10), None, None, http(10), at=1)).grade == "ruled-out"
