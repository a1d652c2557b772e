"""What a watchdog prints of the batch that a rank holds is read, with the rank of the line that begins its message."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc import discovery
from hangdoc.diagnosis import diagnose
from hangdoc.features.held_batches import of_log
from hangdoc.features.outputs import LogState
from hangdoc.logs.lines import events
from hangdoc.logs.read import Wishes, read
from hangdoc.logs.stream import Stream
from hangdoc.model.log import LogEvent
from hangdoc.trace import wording
from hangdoc.trace.tokens import Tokens

NEWEST = """\
[2026-08-04 11:58:42 TP1] Scheduler debug info:
scheduler.cur_batch_for_debug.batch_size()=24
scheduler.cur_batch_for_debug.reqs=[Req(rid=86e5957d, input_ids=[1, 2], output_ids=[3], self.grammar=None)]
[full] total=4974080, available=1024, evictable=4947200, protected=24832, session_held=0, uncached=0
[2026-08-04 11:58:43 TP1] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)
"""
OLDER = NEWEST.replace("_for_debug", "")
OLDEST = (
    "[2025-08-02 19:24:30 TP1] self.cur_batch.batch_size()=24, self.cur_batch.reqs=[Req(rid=86e5957d, "
    "input_ids=[1, 2], output_ids=[3])], self.token_to_kv_pool_allocator.available_size()=2225, \n"
)
IN_DOCKER = "".join(f"sglang-1  | {line}\n" for line in NEWEST.splitlines())
UNNAMED = NEWEST.replace("Req(rid=86e5957d, input_ids=[1, 2], output_ids=[3], self.grammar=None)", "")


def streamed(text: str) -> list[LogEvent]:
    stream = Stream(discovery.engine("sglang"))
    stream.feed(text.encode())
    return list(stream.finish().events)


def followed(text: str) -> list[LogEvent]:
    return list(events(text.encode(), discovery.engine("sglang")))


@pytest.mark.parametrize("read", [streamed, followed])
@pytest.mark.parametrize("text", [NEWEST, OLDER, OLDEST, IN_DOCKER])
def test_each_wording_says_what_a_rank_holds(read: object, text: str) -> None:
    """From 0.3.6 to 0.5.23 the rank, how many requests its batch holds and which is the first one are read."""
    assert callable(read)
    held = of_log(LogState((), (), (), 0, 0.0, "", complaints=tuple(read(text))))
    assert [(one.rank, one.requests) for one in held] == [((("tp", 1),), 24)]
    assert held[0].first is not None


def test_the_first_request_is_told_apart_and_not_told() -> None:
    """Two requests differ, equal ones are equal, and no text has the name that a client gave."""
    mine, same, other = (
        of_log(LogState((), (), (), 0, 0.0, "", complaints=tuple(followed(text))))[0].first
        for text in (NEWEST, OLDER, NEWEST.replace("86e5957d", "f224663e"))
    )
    assert mine == same != other
    assert all("86e5957d" not in event.text for event in followed(NEWEST))


def test_a_batch_without_a_request_has_no_first_one() -> None:
    """What is not there is not made up."""
    held = of_log(LogState((), (), (), 0, 0.0, "", complaints=tuple(followed(UNNAMED))))
    assert [(one.requests, one.first) for one in held] == [(24, None)]


def test_a_line_far_from_any_head_has_no_rank() -> None:
    """A line that a cut log begins with, or that stands far below another rank's message, is not put down to it."""
    lines = NEWEST.splitlines(keepends=True)
    filler = "[2026-08-04 11:58:42 TP1] Decode batch, #running-req: 1\n" * 40
    cut = followed("".join(lines[1:2]))
    far = followed(lines[0] + filler + lines[1])
    assert [event.rank for event in (*cut, *far) if event.name == "held-batch"] == [{}, {}]


@pytest.mark.parametrize("event", followed(NEWEST), ids=lambda event: event.name)
def test_texts_are_of_the_vocabulary(event: LogEvent) -> None:
    """A redacted trace keeps the sentences."""
    assert wording.sentence(Tokens(), event.text) == event.text


COUNTS = (
    "[rank{rank}]:[E1001 16:06:04.6 ProcessGroupNCCL.cpp:1664] [PG 0 (default_pg) Rank {rank}] Exception (either an "
    "error or timeout) detected by watchdog at work: 1, "
    "last enqueued NCCL work: 1, last completed NCCL work: {completed}.\n"
)
OTHER = NEWEST.replace("TP1", "TP0").replace("=24", "=25")


@pytest.mark.parametrize(
    ("text", "playbook"),
    [
        (OTHER + NEWEST, "rank-divergence"),
        (NEWEST, "hung-by-its-watchdog"),
        (NEWEST + "".join(COUNTS.format(rank=rank, completed=-1) for rank in (1,)), "first-collective-never-finishes"),
        (NEWEST + "".join(COUNTS.format(rank=rank, completed=0) for rank in (1,)), "hung-by-its-watchdog"),
    ],
)
def test_the_first_step_follows_from_what_was_printed(text: str, playbook: str, tmp_path: Path) -> None:
    """Two batches lead to what the ranks decide for themselves, a first collective to the transport."""
    log = tmp_path / "server.log"
    log.write_text(text)
    assert diagnose(read([log], Wishes()), "log").next_steps[0].playbook == playbook
