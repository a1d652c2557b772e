"""Stack dumps of a process: torn ones are left out, threads that ended are forgotten, phases follow from frames."""

from __future__ import annotations

import re

from hangdoc.features.dumps import Dumps, dumps
from hangdoc.features.index import Index
from hangdoc.features.outputs import LogState
from hangdoc.features.phases import launch_phase, member_phase
from hangdoc.model.engine import Engine, FrameRule
from hangdoc.model.log import LogEvent, Phase
from hangdoc.model.reading import Known, Missing
from hangdoc.model.stack import Stack, Stacks
from tests.unit.features.synthetic import KEY, dump, stack, trace, whole

ENGINE = Engine(
    name="generic",
    frames=(
        FrameRule("load", re.compile("load"), phase="weight-load"),
        FrameRule("event-loop", re.compile("loop"), phase="ready"),
        FrameRule("forward", re.compile("forward"), phase="serving"),
    ),
)
UNREAD = Missing("log", "not-taken")


def read(table: list[Stack], *taken: Stacks) -> Known[Dumps]:
    of = trace([{("stacks", KEY): one} for one in taken], stacks=table)
    found = dumps(Index(of), KEY, whole(of), of.stacks, ENGINE)
    assert isinstance(found, Known)
    return found


def test_a_torn_view_is_left_out() -> None:
    """A view that does not reach down to the thread's first frame broke off while it was read."""
    seen = read([stack("f", "main"), stack("g")], dump((100, 0)), dump((100, 1)), dump((100, 0)))
    assert len(seen.value.threads[100].views) == 2
    assert seen.value.count == 3


def test_a_thread_that_ended_is_forgotten() -> None:
    """Only threads of the newest dump are alive."""
    seen = read([stack("f", "main")], dump((100, 0), (101, 0)), dump((100, 0)))
    assert set(seen.value.threads) == {100}


def test_no_dump_is_missing() -> None:
    """Without a dump the reason of the last failure stands."""
    denied = Missing("stacks", "denied")
    of = trace([{("stacks", KEY): denied}])
    assert dumps(Index(of), KEY, whole(of), (), ENGINE) == denied


def test_phase_of_a_member() -> None:
    """The newest stack tells; a loop in which a batch was ever seen serves; without a main thread it is unknown."""
    table = [stack("loop", "main"), stack("forward", "loop", "main"), stack("load", "main")]
    assert member_phase(read(table, dump((100, 2)), dump((100, 0))), 100) == "ready"
    assert member_phase(read(table, dump((100, 1)), dump((100, 0))), 100) == "serving"
    assert member_phase(read(table, dump((101, 0))), 100) == "unknown"
    assert member_phase(UNREAD, 100) == "unknown"


def log_at(phase: Phase) -> Known[LogState]:
    event = LogEvent(kind="milestone", name=phase, phase=phase)
    return Known(LogState((event,), (), (), 0, 0.0, "server.log"))


def test_phase_of_a_launch() -> None:
    """The least advanced rank decides; serving before the warm-up was answered is warm-up; then the log's word."""
    assert launch_phase(["serving", "weight-load"], UNREAD, asks_warmup=False) == "weight-load"
    assert launch_phase(["serving", "unknown"], UNREAD, asks_warmup=True) == "warmup"
    assert launch_phase(["ready"], log_at("weight-load"), asks_warmup=False) == "warmup"
    assert launch_phase(["ready"], log_at("ready"), asks_warmup=False) == "ready"
    assert launch_phase(["unknown"], log_at("graph-capture"), asks_warmup=False) == "graph-capture"
    assert launch_phase([], UNREAD, asks_warmup=False) == "unknown"
