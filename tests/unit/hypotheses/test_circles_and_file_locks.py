"""Deadlocks and file locks: what each asks for, and what a missing reading leaves open."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from hangdoc.criteria import Weighed, weigh
from hangdoc.features.features import features
from hangdoc.hypotheses.blocked_on_file_lock import HYPOTHESIS as FILE_LOCK
from hangdoc.hypotheses.deadlock import HYPOTHESIS as DEADLOCK
from hangdoc.hypotheses.stopped import HYPOTHESIS as STOPPED
from hangdoc.model.engine import Engine
from hangdoc.model.fd import OpenFiles
from hangdoc.model.link import Link, LinkEnd, Links
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Payload
from hangdoc.model.thread import SystemCall
from tests.unit.features.synthetic import Readings, clock, cpu, link, links, process, progress, trace, waits, whole

LAUNCHER, RANK, OTHER = (ProcessKey(pid, 1) for pid in (100, 101, 102))
KEYS = (LAUNCHER, RANK, OTHER)
READ = SystemCall(0, (3, 0, 1))
Given = Mapping[ProcessKey, Links | Missing]


def still(*found: Given, threads: tuple[int, ...] = ()) -> list[Readings]:
    """Rounds in which everybody stands still; threads: others of the rank, in a poll."""
    rounds: list[Readings] = []
    for given in found:
        readings: dict[tuple[str, ProcessKey | None], Payload | Missing] = {}
        for key in KEYS:
            others = threads if key == RANK else ()
            readings["cpu", key] = cpu(clock(tid=key.pid), *(clock(tid=tid) for tid in others))
            readings["progress", key] = progress()
            readings["futex", key] = waits((key.pid, READ), *((tid, SystemCall(7, (0, 1, 0))) for tid in others))
            readings["links", key] = given.get(key, links())
            readings["fds", key] = Missing("fds", "denied")
        rounds.append(readings)
    return rounds


def weighed(hypothesis: object, rounds: list[Readings]) -> Weighed:
    of = trace(rounds, processes=[process(100, "launcher"), process(101, ppid=100), process(102, ppid=100)])
    return weigh(hypothesis, features(of, Engine(name="generic"), whole(of), steady=True))  # type: ignore[arg-type]


CIRCLE: Given = {LAUNCHER: links(link(100, 101)), RANK: links(link(101, 100)), OTHER: links(link(102, 101))}


def without_gpu(rounds: list[Readings]) -> list[Readings]:
    """The same, with no GPU open."""
    return [{**one, **{("fds", key): OpenFiles(complete=True, files=(), nvidia=()) for key in KEYS}} for one in rounds]


def test_a_circle_is_a_deadlock() -> None:
    """Two that wait for each other, standing still, with no other thread: confirmed; the launcher is no culprit."""
    found = weighed(DEADLOCK, without_gpu(still(*[CIRCLE] * 4)))
    assert (found.grade, [one.pid for one in found.culprits]) == ("confirmed", [101])
    assert {(wait.from_.pid, wait.to.pid) for wait in found.waits} == {(100, 101), (101, 100)}


def test_another_thread_may_answer() -> None:
    """A thread in a poll may get a request and speak: undetermined, however long it stands."""
    assert weighed(DEADLOCK, without_gpu(still(*[CIRCLE] * 4, threads=(105,)))).grade == "undetermined"


def test_a_circle_that_was_read_once_is_open() -> None:
    """What one reading shows may be passing."""
    once: Given = {key: links(thorough=False) for key in KEYS}
    assert weighed(DEADLOCK, without_gpu(still(CIRCLE, once, once, once))).grade != "confirmed"
    assert weighed(DEADLOCK, without_gpu(still(once, once, once, CIRCLE))).grade == "undetermined"


def test_a_weak_edge_makes_no_circle() -> None:
    """An idle server and its client look alike: no deadlock."""
    weak: Given = {**CIRCLE, RANK: links(link(101, 100, weak=True))}
    assert weighed(DEADLOCK, without_gpu(still(*[weak] * 4))).grade == "ruled-out"


def test_an_unread_member_leaves_it_open() -> None:
    """Whom a member waits for was refused: there may be a circle through it."""
    refused: Given = {**CIRCLE, RANK: Missing("links", "denied")}
    assert weighed(DEADLOCK, without_gpu(still(*[refused] * 4))).grade == "undetermined"


def locked(ticks: int, pid: int = 999, *, stopped: bool = False) -> Given:
    wait = link(101, pid, through="file-lock", member=pid != 999, ticks=ticks)
    if stopped:
        holder = LinkEnd(ProcessKey(pid, 1), False, None, False, "python", ticks, stopped=True, rests=False)
        wait = replace(wait, ends=Known((holder,)))
    return {LAUNCHER: links(link(100, 101)), RANK: links(wait)}


def test_who_holds_the_lock_is_the_culprit() -> None:
    """An unrelated process that holds the lock and is stopped is named, as one outside the launch."""
    found = weighed(FILE_LOCK, without_gpu(still(*[locked(7, stopped=True)] * 4)))
    assert found.grade == "confirmed"
    ((pid, outside),) = [(one.pid, one.outside) for one in found.culprits]
    assert (pid, outside) == (999, True)


def test_a_holder_that_only_sleeps_may_release_it() -> None:
    """Nothing says that an unrelated process that holds the lock and does nothing will never go on: undetermined."""
    assert weighed(FILE_LOCK, without_gpu(still(*[locked(7)] * 4))).grade == "undetermined"


def test_a_holder_at_work_may_release_it() -> None:
    """A holder that uses CPU, or whose children do, may be a build that ends: undetermined."""
    assert weighed(FILE_LOCK, without_gpu(still(*[locked(7), locked(7), locked(7), locked(9)]))).grade != "confirmed"
    assert weighed(FILE_LOCK, without_gpu(still(*[locked(ticks) for ticks in range(4)]))).grade == "undetermined"


def test_the_chain_goes_on_behind_a_member() -> None:
    """When a member holds the lock and waits itself for somebody outside, that one has to move."""
    behind: Given = {**locked(7, 102), OTHER: links(link(102, 999, member=False))}
    found = weighed(FILE_LOCK, without_gpu(still(*[behind] * 4)))
    assert [one.pid for one in found.culprits] == [999]


def test_a_frozen_rank_is_stopped() -> None:
    """A rank whose control group is frozen is in no state that says so; the freezer is the cause, confirmed."""
    frozen = Link(tid=101, through="freezer", detail="its cgroup is frozen", ends=Known(()))
    waited_for: Given = {RANK: links(frozen), OTHER: links(link(102, 101))}
    assert weighed(STOPPED, without_gpu(still(*[waited_for] * 4))).grade == "confirmed"
    assert weighed(STOPPED, without_gpu(still(*[{**waited_for, OTHER: links()}] * 4))).grade == "undetermined"
    assert weighed(STOPPED, without_gpu(still(*[{}] * 4))).grade == "ruled-out"


def test_without_links_it_is_open() -> None:
    """Refused, the probe leaves it open whether anybody waits for a file lock."""
    refused: Given = {key: Missing("links", "denied") for key in KEYS}
    assert weighed(FILE_LOCK, without_gpu(still(*[refused] * 4))).grade == "undetermined"
