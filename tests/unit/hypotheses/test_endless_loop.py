"""A loop without an exit is a spin by itself, unless something beside it may end it or needs it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from hangdoc.diagnosis import diagnose
from hangdoc.model.fd import OpenFiles
from hangdoc.model.gpu import Gpus
from hangdoc.model.locks import Locks
from hangdoc.model.places import Places, ThreadPlaces
from hangdoc.model.process import Process
from hangdoc.model.reading import Known
from hangdoc.model.stack import Stacks, ThreadStack
from hangdoc.model.thread import SystemCall, Waits
from hangdoc.trace.records import Trace
from tests.unit.features.synthetic import PARKED, Readings, clock, cpu, links, process, progress, stack, trace, waits

RANK = process(100, "other")
RECEIVING = SystemCall(45, (5, 0, 0, 0, 0, 0))
LOOP = stack("wait:7", "main:1", file="job.py")
ENDLESS = ThreadPlaces(100, "wait", "job.py", 40, 40, 1, 0, endless=True)


def program(
    place: ThreadPlaces = ENDLESS,
    *,
    calls: Waits | None = None,
    other_runs: bool = False,
    members: tuple[Process, ...] = (),
) -> Trace:
    """Six rounds of a program of no known engine that burns a core on one line; a second thread of it is parked."""
    rounds: list[Readings] = []
    for number in range(6):
        rounds.append({("gpu", None): Gpus(())})
        for one in (RANK, *members):
            key, tid = one.key, one.key.pid
            burns = one is RANK
            other = clock(number * 0.001 * other_runs, slices=number * other_runs, tid=tid + 1)
            rounds[-1] |= {
                ("cpu", key): cpu(clock(number * burns, slices=number * burns, tid=tid), other),
                ("progress", key): progress(),
                ("links", key): links(received=0),
                ("futex", key): calls or waits((tid, None if burns else RECEIVING), (tid + 1, PARKED)),
                ("fds", key): OpenFiles(True, (), ()),
                ("locks", key): Locks((), Known(None), Known(())),
                ("stacks", key): Stacks((ThreadStack(tid, "MainThread", burns, burns, 0),)),
                ("places", key): Places((place,) if burns else ()),
            }
    return trace(rounds, processes=[RANK, *members], stacks=[LOOP], engine="generic")


def test_it_never_ends() -> None:
    """Alone, it is a busy-wait, likely at most, and named."""
    found = diagnose(program(), "trace")
    assert (found.verdict, found.grade) == ("busy-wait", "likely")
    assert [one.pid for one in found.culprits] == [100]


HANDLER = replace(waits((100, None), (101, PARKED)), caught_signals=1 << 13)
OPEN = {
    "a loop with a body": program(replace(ENDLESS, endless=False, places=3, turns=6)),
    "a native call": program(replace(ENDLESS, endless=False)),
    "a handler of SIGALRM": program(calls=HANDLER),
    "another thread that runs": program(other_runs=True),
    "a child that it may keep alive": program(members=(replace(process(200, "other"), ppid=100),)),
}


@pytest.mark.parametrize("name", OPEN)
def test_it_may_be_well(name: str) -> None:
    """A finite computation, or a loop that something else may end or lives by, is never called a hang."""
    assert diagnose(OPEN[name], "trace").verdict == "undetermined"
