"""The observer with probes that work, fail, block and cost too much."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from hangdoc.errors import HangdocError
from hangdoc.model.process import Launch, Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Plain, Sample, Snapshot
from hangdoc.sampling.collect import Observer
from hangdoc.sampling.probe import Context, Probe, Round
from hangdoc.sampling.roster import PatientRoster

TICK_S = 0.01
MEMBERS = tuple(Process(key=ProcessKey(pid, 1), ppid=1, role="other") for pid in (30, 10, 20))
KEYS = tuple(sorted(process.key for process in MEMBERS))
CONTEXT = Context(launch=Launch(root=KEYS[0], engine="generic", processes=MEMBERS), intern=lambda _: 0)


class Scripted:
    """A session that does for each process what the test says."""

    def __init__(self, act: Callable[[Round, ProcessKey], None]) -> None:
        self.act = act
        self.closed = 0
        self.threads: set[str] = set()

    def take(self, now: Round) -> Iterable[Sample]:
        self.threads.add(threading.current_thread().name)
        for process in now.processes:
            self.act(now, process.key)
            yield sample("scripted", process.key)

    def close(self) -> None:
        self.closed += 1


def sample(probe: str, key: ProcessKey | None) -> Sample:
    return Sample(probe=probe, process=key, taken_ns=1, reading=Known(Plain({})))


def readable(proc: Path) -> Reading[str]:
    return Known("always")


def probe(
    session: Scripted | Callable[[Context], Scripted],
    *,
    every: int = 1,
    background: bool = False,
    deadline_s: float = 30.0,
    allowance_s: float = 100.0,
    host: bool = False,
    deep: bool = False,
    after_end: bool = False,
) -> Probe:
    return Probe(
        name="scripted",
        title="scripted",
        open=session if not isinstance(session, Scripted) else lambda _: session,
        check=readable,
        every=every,
        background=background,
        deadline_s=deadline_s,
        allowance_s=allowance_s,
        host=host,
        deep=deep,
        after_end=after_end,
    )


def nothing(now: Round, key: ProcessKey) -> None:
    """Read at once."""


def burn(now: Round, key: ProcessKey) -> None:
    """Use CPU time."""
    sum(range(100_000))


def until(event: threading.Event) -> Callable[[Round, ProcessKey], None]:
    """Read only once the event is set."""

    def wait(now: Round, key: ProcessKey) -> None:
        event.wait()

    return wait


def observe(
    rounds: int, *probes: Probe, members: Callable[[], tuple[Process, ...]] = lambda: MEMBERS
) -> list[Snapshot]:
    with Observer(CONTEXT, probes, members, interval_s=TICK_S) as observer:
        return list(itertools.islice(observer.rounds(), rounds))


def read(snapshot: Snapshot) -> dict[ProcessKey | None, str]:
    """Say for each process whether it was read, and if not, why."""
    return {
        entry.process: entry.reading.reason if isinstance(entry.reading, Missing) else "known"
        for entry in snapshot.samples
    }


def test_each_round_is_a_snapshot_of_every_member() -> None:
    """Rounds are numbered from 0, members sorted, the boot clock moves on, each member has its sample."""
    snapshots = observe(3, probe(Scripted(nothing)))
    assert [snapshot.index for snapshot in snapshots] == [0, 1, 2]
    assert all(tuple(process.key for process in snapshot.processes) == KEYS for snapshot in snapshots)
    assert snapshots[0].at_ns < snapshots[1].at_ns < snapshots[2].at_ns
    assert all(read(snapshot) == dict.fromkeys(KEYS, "known") for snapshot in snapshots)


def test_a_seldom_probe_is_taken_every_nth_round() -> None:
    """every=2 is taken in rounds 0 and 2."""
    assert [bool(snapshot.samples) for snapshot in observe(4, probe(Scripted(nothing), every=2))] == [True, False] * 2


def test_a_probe_that_raises_is_missing_and_says_what() -> None:
    """A fault in a probe becomes Missing failed with the exception's name, for the processes it had not read yet."""

    def fail(now: Round, key: ProcessKey) -> None:
        if key == KEYS[1]:
            raise ValueError("no such thing")

    (snapshot,) = observe(1, probe(Scripted(fail)))
    assert read(snapshot) == {KEYS[0]: "known", KEYS[1]: "failed", KEYS[2]: "failed"}
    (reading,) = (entry.reading for entry in snapshot.samples if entry.process == KEYS[1])
    assert isinstance(reading, Missing)
    assert reading.detail == "ValueError: no such thing"


def test_a_probe_that_cannot_be_opened_is_missing() -> None:
    """A fault while opening costs that probe's samples, not the observation."""

    def refuse(context: Context) -> Scripted:
        raise HangdocError("not here")

    (snapshot,) = observe(1, probe(refuse))
    assert read(snapshot) == dict.fromkeys(KEYS, "failed")


def test_a_host_probe_has_one_sample_without_a_process() -> None:
    """What concerns the host is missing once, not once a process."""

    def refuse(context: Context) -> Scripted:
        raise OSError("no")

    (snapshot,) = observe(1, probe(refuse, host=True))
    assert read(snapshot) == {None: "failed"}


def test_a_reading_that_blocks_for_ever_costs_only_its_process() -> None:
    """The process is Missing timeout, round after round; the others are read again by a fresh session."""
    never = threading.Event()

    def block(now: Round, key: ProcessKey) -> None:
        if key == KEYS[0]:
            never.wait()

    first, second, third = observe(3, probe(lambda _: Scripted(block), deadline_s=0.1))
    assert read(first) == dict.fromkeys(KEYS, "timeout")
    assert read(second) == read(third) == {KEYS[0]: "timeout", KEYS[1]: "known", KEYS[2]: "known"}
    never.set()


def test_a_reading_that_comes_back_is_taken_again() -> None:
    """Once the blocked reading returns, its process is read like the others."""
    blocked = threading.Event()
    sessions: list[Scripted] = []

    def block(now: Round, key: ProcessKey) -> None:
        if now.index == 0:
            blocked.wait()

    def opened(context: Context) -> Scripted:
        sessions.append(Scripted(block))
        return sessions[-1]

    with Observer(CONTEXT, [probe(opened, deadline_s=0.1)], lambda: MEMBERS, interval_s=TICK_S) as observer:
        rounds = observer.rounds()
        assert set(read(next(rounds)).values()) == {"timeout"}
        blocked.set()
        while set(read(next(rounds)).values()) != {"known"}:
            pass
    assert all(session.closed == 1 for session in sessions)


def test_a_background_probe_does_not_hold_the_rounds() -> None:
    """Rounds go on while it works; its samples join the snapshot of the round in which they arrive."""
    gate = threading.Event()
    session = Scripted(until(gate))
    with Observer(
        CONTEXT, [probe(session, background=True, every=100)], lambda: MEMBERS, interval_s=TICK_S
    ) as observer:
        rounds = observer.rounds()
        assert next(rounds).samples == next(rounds).samples == ()
        gate.set()
        arrived: list[Sample] = []
        while len(arrived) < len(KEYS):
            arrived += next(rounds).samples
    assert tuple(entry.process for entry in arrived) == KEYS


def test_finish_waits_for_what_is_under_way() -> None:
    """The last snapshot comes back with the late samples, under its own index."""
    gate = threading.Event()
    session = Scripted(until(gate))
    with Observer(CONTEXT, [probe(session, background=True)], lambda: MEMBERS, interval_s=TICK_S) as observer:
        next(observer.rounds())
        threading.Thread(target=gate.set).start()
        last = observer.finish(late_s=30.0)
    assert last is not None
    assert (last.index, read(last)) == (0, dict.fromkeys(KEYS, "known"))


def test_finish_says_what_never_came() -> None:
    """A background reading that never arrived in the whole observation is Missing timeout."""
    never = threading.Event()
    session = Scripted(until(never))
    with Observer(CONTEXT, [probe(session, background=True)], lambda: MEMBERS, interval_s=TICK_S) as observer:
        next(observer.rounds())
        last = observer.finish(late_s=0.0)
        never.set()
    assert last is not None
    assert read(last) == dict.fromkeys(KEYS, "timeout")


def test_a_probe_over_its_budget_is_left_out() -> None:
    """Once its allowance is used up, rounds are left out and say so."""
    first, second = observe(2, probe(Scripted(burn), allowance_s=0.0001))
    assert read(first) == dict.fromkeys(KEYS, "known")
    assert read(second) == dict.fromkeys(KEYS, "not-taken")


def test_the_rounds_end_when_the_launch_is_gone() -> None:
    """The snapshot without members is the last, and the observer says that the launch is gone."""
    roster = iter([MEMBERS, MEMBERS[:1], ()])
    with Observer(CONTEXT, [probe(Scripted(nothing))], lambda: next(roster), interval_s=TICK_S) as observer:
        snapshots = list(observer.rounds())
        assert observer.gone
    assert [len(snapshot.processes) for snapshot in snapshots] == [3, 1, 0]
    assert snapshots[-1].samples == ()


def test_a_roster_that_blocks_does_not_hold_the_rounds() -> None:
    """While the list of members cannot be read, the last known members are observed."""
    never = threading.Event()

    def block() -> tuple[Process, ...]:
        never.wait()
        return ()

    with Observer(CONTEXT, [probe(Scripted(nothing))], block, interval_s=TICK_S) as observer:
        observer._roster._deadline_s = 0.05
        first, second = itertools.islice(observer.rounds(), 2)
        assert not observer.gone
        never.set()
    assert set(read(first)) == set(read(second)) == set(KEYS)


def test_a_roster_that_fails_is_the_callers_error() -> None:
    """What refresh raises for the user reaches the user."""

    def refuse() -> tuple[Process, ...]:
        raise HangdocError("cannot list processes")

    observer = Observer(CONTEXT, [], refuse, interval_s=TICK_S)
    with observer, pytest.raises(HangdocError, match="cannot list processes"):
        next(observer.rounds())


def test_stop_ends_the_rounds() -> None:
    """stop() from elsewhere ends the rounds at the next moment."""
    with Observer(CONTEXT, [], lambda: MEMBERS, interval_s=TICK_S) as observer:
        rounds = observer.rounds()
        next(rounds)
        observer.stop()
        assert list(rounds) == []


def test_sessions_are_closed_and_no_thread_stays() -> None:
    """After the observation every session was closed once, in the one thread that used it, and the threads ended."""
    before = set(threading.enumerate())
    sessions = [Scripted(nothing), Scripted(nothing)]
    observe(2, probe(sessions[0]), probe(sessions[1], background=True))
    assert [session.closed for session in sessions] == [1, 1]
    assert all(len(session.threads) == 1 for session in sessions)
    assert set(threading.enumerate()) == before


def test_the_overhead_is_measured() -> None:
    """CPU time of hangdoc itself is told against the time that passed."""
    with Observer(CONTEXT, [probe(Scripted(burn))], lambda: MEMBERS) as observer:
        next(observer.rounds())
        used = observer.overhead()
    assert used.own_cpu_s > 0
    assert used.wall_s > 0
    assert used.cpu_ratio == (used.own_cpu_s + used.children_cpu_s) / used.wall_s


@pytest.mark.parametrize("background", [False, True])
def test_deep_probes_rest_while_the_launch_is_well(background: bool) -> None:
    """In calm rounds a deep probe is taken every tenth time, before the diagnosis; suspicion wakes it at once."""
    rounds: dict[bool, list[int]] = {True: [], False: []}

    def seen(deep: bool) -> Scripted:
        return Scripted(lambda now, key: rounds[deep].append(now.index) if key == KEYS[0] else None)

    probes = [probe(seen(deep), deep=deep, background=background) for deep in (True, False)]
    with Observer(CONTEXT, probes, lambda: MEMBERS, interval_s=TICK_S) as observer:
        observer.pace.calm_down()
        for snapshot in itertools.islice(observer.rounds(), 25):
            if snapshot.index == 22:
                observer.pace.suspect()
            observer.finish()
    assert rounds[True] == [6, 16, 23, 24]
    assert rounds[False] == list(range(25))


def test_a_probe_that_is_taken_after_the_end() -> None:
    """The round that finds nobody left has the readings of probes that ask for it, and of no other."""
    taken: list[str] = []

    class Last(Scripted):
        def take(self, now: Round) -> Iterable[Sample]:
            taken.append(f"{len(now.processes)} left")
            return [] if now.processes else [sample("scripted", KEYS[0])]

    rosters = iter([MEMBERS, ()])
    others = Scripted(nothing)
    with Observer(
        CONTEXT, [probe(Last(nothing), after_end=True), probe(others)], lambda: next(rosters), interval_s=TICK_S
    ) as observer:
        last = list(observer.rounds())[-1]
    assert taken == ["3 left", "0 left"]
    assert [one.process for one in last.samples] == [KEYS[0]]


def test_a_probe_on_request_is_taken_when_asked_for() -> None:
    """It is in no round, comes once with the last one, and what it does not tell in time is missing."""
    session = Scripted(nothing)
    asked = replace(probe(session), on_request=True)
    with Observer(CONTEXT, [asked], lambda: MEMBERS, TICK_S) as observer:
        first = next(iter(observer.rounds()))
        assert first.samples == ()
        assert observer.request("nobody") is None
        found = observer.request("scripted")
    assert found is not None
    assert [one.process for one in found.samples] == [process.key for process in first.processes]
    assert found.tally == {"scripted": len(MEMBERS)}
    assert session.closed == 1


def test_a_probe_on_request_that_blocks_is_not_waited_for() -> None:
    """Each process that it did not come to by its deadline is Missing with the reason timeout."""
    release = threading.Event()
    blocked = replace(probe(Scripted(lambda _now, _key: (release.wait(), None)[1]), deadline_s=0.05), on_request=True)
    with Observer(CONTEXT, [blocked], lambda: MEMBERS, TICK_S) as observer:
        next(iter(observer.rounds()))
        found = observer.request("scripted")
        release.set()
    assert found is not None
    assert {one.reading.reason for one in found.samples if isinstance(one.reading, Missing)} == {"timeout"}


def test_a_list_that_failed_once_is_asked_for_again() -> None:
    """What refresh raised is raised once: the next answer counts."""
    answers: list[HangdocError | tuple[Process, ...]] = [HangdocError("cannot list processes"), ()]

    def refresh() -> tuple[Process, ...]:
        answer = answers.pop(0)
        if isinstance(answer, HangdocError):
            raise answer
        return answer

    roster = PatientRoster(refresh, (), deadline_s=60.0)
    with pytest.raises(HangdocError, match="cannot list processes"):
        roster.members()
    assert roster.members() == ()
