"""Launches on paper whose diagnosis rests on the server's answers, on instructions, and on how members ended.

Taking any of these readings away makes nothing more certain, as for the recorded ones.
"""

from __future__ import annotations

from itertools import combinations

import pytest
from msgspec.structs import replace

from hangdoc.diagnosis import diagnose
from hangdoc.model.diagnosis import Verdict
from hangdoc.model.ending import Ended
from hangdoc.model.fd import OpenFiles
from hangdoc.model.gpu import Gpus
from hangdoc.model.http import Http, HttpOutcome, HttpReply, ServerMetrics
from hangdoc.model.locks import Locks
from hangdoc.model.places import Places, ThreadPlaces
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.ras import Ras, RasRank
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import tally_of
from hangdoc.model.stack import Stack, Stacks, ThreadStack
from hangdoc.model.thread import SystemCall, ThreadWait, Waits
from hangdoc.trace.records import Trace
from tests.properties.test_missing_readings import check, groups_of, losses_of, without, without_samples
from tests.unit.features.synthetic import (
    KEY,
    Readings,
    clock,
    cpu,
    links,
    process,
    progress,
    stack,
    trace,
    waits,
)

LAUNCHER, RANK = process(1, "launcher"), process(100, "scheduler", 1)
LOOP = stack("event_loop_normal", "run_scheduler_process", file="managers/scheduler.py")
BATCH = stack("run_batch", "event_loop_normal", "run_scheduler_process", file="managers/scheduler.py")
LINE = stack("wait:7", "forward:3", "main:1", file="models/llama.py")
PARENT = stack("run_until_complete", file="uvloop/loop.py")


def server(at: Stack, ratio: float, *asked: Http | None, **extra: Places) -> Trace:
    """Six rounds of a launcher and a rank of which everything was read."""
    rounds: list[Readings] = []
    for number, answer in enumerate(asked):
        readings: Readings = {("gpu", None): Gpus(())}
        for one, used, where in ((LAUNCHER, 0.0, 1), (RANK, ratio, 0)):
            key, tid = one.key, one.key.pid
            readings = {
                **readings,
                ("cpu", key): cpu(clock(number * used, slices=number * (used > 0), tid=tid)),
                ("progress", key): progress(),
                ("links", key): links(received=0),
                ("futex", key): waits((tid, None)),
                ("fds", key): OpenFiles(True, (), ()),
                ("locks", key): Locks((), Known(None), Known(())),
                ("stacks", key): Stacks((ThreadStack(tid, "MainThread", used > 0, used > 0, where),)),
            }
        readings = {**readings, **{(name, KEY): value for name, value in extra.items()}}
        rounds.append({**readings, **({} if answer is None else {("http", None): answer})})
    of = trace(rounds, processes=[LAUNCHER, RANK], stacks=[at, PARENT], engine="sglang")
    launch = replace(of.header.launch, root=LAUNCHER.key, settings={"enable_metrics": "true"})
    return replace(of, header=replace(of.header, launch=launch))


def answer(tokens: int, outcome: HttpOutcome = "answered") -> Http:
    status = 200 if outcome == "answered" else None
    counters = ServerMetrics(running=Known(1), waiting=Known(0), tokens=Known(tokens), finished=Known(0))
    metrics = Known(counters) if status else Missing("http", "failed")
    replies = (HttpReply("/model_info", outcome, status, 0.1),)
    return Http(port=30000, listener="member", listener_pid=1, replies=replies, metrics=metrics)


SLEEP = SystemCall(230, (1, 0, 0x7F00, 0, 0, 0))
"""clock_nanosleep(2) on x86_64."""


def asleep(tid: int) -> ThreadWait:
    return ThreadWait(tid, "S", Known(SLEEP), Known(""), Known(900 * 10**9))


def running(tid: int) -> ThreadWait:
    return ThreadWait(tid, "R", Known(None), Known(""))


def behind(ahead: int, ras: int | None = 7) -> Trace:
    """Twelve rounds of two ranks, one of which sleeps for long; NCCL counts each, in every third round."""
    ranks = (process(100, "scheduler", 1, rank={"tp": 0}), process(101, "scheduler", 1, rank={"tp": 1}))
    rounds: list[Readings] = []
    for number in range(12):
        readings: Readings = {("gpu", None): Gpus(())}
        for one, at in zip(ranks, (0, 1), strict=True):
            key, tid = one.key, one.key.pid
            readings = {
                **readings,
                ("cpu", key): cpu(clock(number * 1.0 if at == 0 else 0.0, slices=number if at == 0 else 0, tid=tid)),
                ("progress", key): progress(),
                ("links", key): links(received=0),
                ("futex", key): Waits("x86_64", 0, (asleep(tid) if at else running(tid),)),
                ("fds", key): OpenFiles(True, (), ()),
                ("locks", key): Locks((), Known(None), Known(())),
                ("stacks", key): Stacks((ThreadStack(tid, "MainThread", at == 0, False, at),)),
            }
        if number % 3 == 0 and ras is not None:
            counts = (RasRank(0, ahead, 100, ranks[0].key), RasRank(1, ras, 101, ranks[1].key))
            readings = {**readings, ("ras", None): Ras(port=1, outcome="answered", ranks=counts, leading=ahead)}
        rounds.append(readings)
    places = (stack("forward:3", "run_batch:1", file="llama.py"), stack("pick:9", "run_batch:1", file="llama.py"))
    return trace(rounds, processes=ranks, stacks=places, engine="sglang")


def ending(launcher: int, rank: int) -> Trace:
    """A launch of which nobody was left in the last round."""
    of = server(LOOP, 1.0, *[None] * 5)
    gone: list[tuple[Process, int]] = [(LAUNCHER, launcher), (RANK, rank)]
    last = of.snapshots[-1]
    ends = tuple(
        replace(last.samples[0], probe="exits", process=one.key, reading=Known(Ended(status))) for one, status in gone
    )
    return replace(of, snapshots=(*of.snapshots[:-1], replace(last, processes=(), samples=ends)))


ROUND = Places((ThreadPlaces(100, "wait", "models/llama.py", 40, 40, 3, 6),))
CALL = Places((ThreadPlaces(100, "wait", "models/llama.py", 40, 40, 1, 0),))
CASES: dict[str, tuple[Trace, Verdict]] = {
    "idle": (server(LOOP, 1.0, answer(5), None, None, None, None, answer(5)), "healthy"),
    "idle, silent": (server(LOOP, 1.0, *[answer(0, "silent")] * 6), "healthy"),
    "serves": (server(BATCH, 1.0, answer(5), None, None, None, None, answer(9)), "healthy"),
    "tokens come": (server(LINE, 1.0, answer(5), None, None, None, None, answer(9), places=ROUND), "undetermined"),
    "tokens stand": (server(LINE, 1.0, answer(5), None, None, None, None, answer(5), places=ROUND), "busy-wait"),
    "loop of one line": (server(LINE, 1.0, *[None] * 6, places=ROUND), "busy-wait"),
    "one native call": (server(LINE, 1.0, *[None] * 6, places=CALL), "undetermined"),
    "behind in a collective": (behind(17), "busy-wait"),
    "counts are equal": (behind(7), "undetermined"),
    "ended in order": (ending(0, 0), "healthy"),
    "ended with a failure": (ending(0, 1 << 8), "crashed"),
}


def seen_elsewhere(of: Trace, position: int, *functions: str) -> Trace:
    """The same, but that the rank was seen in another place in one round; functions: inside the outermost one."""
    there = Stacks((ThreadStack(100, "MainThread", True, True, len(of.stacks)),))
    snapshots = list(of.snapshots)
    snapshots[position] = replace(
        snapshots[position],
        samples=tuple(
            replace(one, reading=Known(there)) if (one.probe, one.process) == ("stacks", KEY) else one
            for one in snapshots[position].samples
        ),
    )
    other = (*stack(*functions, file="managers/scheduler.py"), *of.stacks[0][-1:])
    return replace(of, snapshots=tuple(snapshots), stacks=(*of.stacks, other))


ELSEWHERE = ("read:1", "parse:2", "fill:3", "load:4")
BELOW = stack("evict:7", "match:3", "event_loop_normal:1", "run_scheduler_process:1", file="managers/scheduler.py")
LOST = {
    **{name: of for name, (of, _) in CASES.items()},
    **{f"once elsewhere, {at}": seen_elsewhere(CASES["loop of one line"][0], at, *ELSEWHERE) for at in range(6)},
    **{
        f"once back in its loop, {at}": seen_elsewhere(
            seen_elsewhere(server(BELOW, 1.0, *[None] * 12), 5, "evict:8", "match:3", "event_loop_normal:1"),
            at,
            *("recv_requests", "event_loop_normal:2"),
        )
        for at in range(0, 12, 3)
    },
}


@pytest.mark.parametrize("name", LOST)
def test_samples_that_are_lost(name: str) -> None:
    """Without any one or two samples of a probe no grade rises: the one that is lost may be what ruled it out."""
    counted = tuple(replace(one, tally=tally_of(one.samples)) for one in LOST[name].snapshots)
    of = replace(LOST[name], snapshots=counted)
    before, places = diagnose(of, "trace"), losses_of(of).items()
    pairs = ((one, two) for ((a, _), one), ((b, _), two) in combinations(places, 2) if a == b == "stacks")
    for numbers in (*((number,) for _, number in places), *pairs):
        check(before, diagnose(without_samples(of, frozenset(numbers)), "trace"), f"samples {numbers}")


@pytest.mark.parametrize("name", CASES)
def test_what_it_is(name: str) -> None:
    """Each case is what its name says, so that the checks below have something to lose."""
    of, verdict = CASES[name]
    found = diagnose(of, "trace")
    assert found.verdict == verdict, [(one.id, one.grade, one.missing) for one in found.hypotheses]


@pytest.mark.parametrize("name", CASES)
def test_readings_that_are_taken_away(name: str) -> None:
    """Without any one or two probes of a process no grade rises; the verdict is the same or undetermined."""
    of, _ = CASES[name]
    before, groups = diagnose(of, "trace"), groups_of(of)
    for taken in (*((one,) for one in groups), *combinations(groups, 2)):
        check(before, diagnose(without(of, frozenset(taken)), "trace"), str(taken))


def test_the_keys_are_those_of_the_roster() -> None:
    """The rank is the process that the readings on paper are of."""
    assert RANK.key == KEY == ProcessKey(100, 1)
