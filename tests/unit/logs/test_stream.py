"""A log as it streams by: pieces of any size, both ways of finding lines, several launches, dumps and tables in it."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hangdoc import discovery
from hangdoc.engines.sglang import ENGINE
from hangdoc.logs.blocks import SmiTable
from hangdoc.logs.lines import events
from hangdoc.logs.scan import Lines, expressions_of, lines_around, one_by_one, with_hyperscan, without_dull
from hangdoc.logs.stream import LONGEST_PIECE_BYTES, LogText, Stream
from hangdoc.model.engine import Engine
from hangdoc.model.reading import Missing
from tests.conftest import NOT_TO_BE_HAD

LAUNCHES = Path(__file__).resolve().parents[2] / "corpus" / "launches"
LOGS = sorted(LAUNCHES.glob("*.log"))
HAS_HYPERSCAN = importlib.util.find_spec("hyperscan") is not None

PIECES = st.sampled_from(
    [
        b"[2026-11-29 12:00:01 TP1] Load weight begin.\n",
        b"[2026-11-29 12:00:01 TP1] Scheduler hit an exception: x\r\n",
        b"[2026-11-29 12:00:02] Decode batch, #running-req: 1, #queue-req: 0\n",
        b'[2026-11-29 12:00:02] INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK\n',
        b"Loading safetensors checkpoint shards:  50% Completed | 2/4 [00:10<00:10,  5.0s/it]\r",
        b"[2026-11-29 12:00:00] server_args=ServerArgs(tp_size=2)\n",
        b"Process 7: sglang::scheduler_TP1\n",
        b"Process 8: python\nPython v3.11.7 (/usr/bin/python3.11)\n\n",
        b'Thread 7 (idle): "MainThread"\n    wait (threading.py:324)\n',
        b"Thread 8 (active)\n",
        b"    poll (selectors.py:415)\n",
        b"[2026-11-29 12:00:02 TP1] done (in 3 s)\n",
        b"[2026-11-29 12:00:02 TP1] a frame of another rank (see above: 12)\n",
        b"Thread 0x00007f0000000001 (most recent call first):\n",
        b'  File "lib/python3.11/threading.py", line 324 in wait\n',
        b"        Arguments:\n",
        b"(7) nothing of a dump\n",
        b"sglang version: 0.5.9\n",
        b"x" * 1100 + b"\n",
        b"|   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |                    0 |\n",
        b"| N/A   42C    P0            128W /  700W |    9444MiB / 143771MiB |    100%      Default |\n",
        b"\n",
        b"  \n",
        b'[2026-11-29 12:00:03] INFO:     127.0.0.1:1 - "GET /Process 7: sglang HTTP/1.1" 200 OK\n',
        b'[2026-11-29 12:00:03] INFO:     127.0.0.1:1 - "GET / HTTP/1.1" 404 Thread 9 (idle)\n',
        b"docker-1  | |   1  NVIDIA H200                    On  |   00000000:00:07.0 Off |                    0 |\n",
        b"|    0   N/A  N/A            1943      C   sglang::scheduler_TP0                  4714MiB |\n",
        b"the child exited with code 7\n",
        b"\x1b[31m[2026-11-29 12:00:04 TP1] Scheduler hit\x1b[0m an exception: x\n",
        b"\x1b\x1b[mProcess\x1b[0m 9: sglang::scheduler_TP0\n",
        b"0%|          | 0/4 [00:00<?, ?it/s]\r",
        b"\xff\xfe plain text",
        b"Killed\n",
    ]
)


def read(
    data: bytes, step: int, *, fast: bool = False, launch: int | None = None, engine: Engine = ENGINE
) -> tuple[LogText, Stream]:
    stream = Stream(engine, launch, fast=fast)
    for start in range(0, len(data), step):
        stream.feed(data[start : start + step])
    return stream.finish(), stream


@given(st.lists(PIECES, max_size=30).map(b"".join), st.integers(1, 200))
def test_pieces_of_any_size(data: bytes, step: int) -> None:
    """Where the pieces are cut changes nothing: neither the events nor the dumps."""
    whole, first = read(data, len(data) or 1)
    cut, second = read(data, step)
    assert cut == whole
    assert told_by(first) == told_by(second)


def told_by(stream: Stream) -> tuple[object, ...]:
    """All that is taken from a log beside its events."""
    journal = stream.journal
    return journal.dumps.processes, journal.table.gpus(), journal.version, journal.settings, journal.launches


@pytest.mark.parametrize(
    "other",
    [
        one_by_one,
        pytest.param(
            with_hyperscan,
            marks=pytest.mark.skipif(
                not HAS_HYPERSCAN, reason=f"{NOT_TO_BE_HAD}hyperscan has no wheel for this machine"
            ),
        ),
    ],
)
@given(st.lists(PIECES, max_size=30).map(b"".join), st.integers(1, 200), st.sampled_from([1, 200, 256 << 10]))
def test_every_way_finds_the_same(other: Callable[[Engine], Lines], data: bytes, step: int, tail_bytes: int) -> None:
    """Skipping dull lines, looking for one text after the other, and the multi-pattern engine find the same events,
    dumps, tables and versions, wherever a dump ends and however little of the log's end is kept.
    """

    def found(finder: Callable[[Engine], Lines]) -> tuple[object, ...]:
        with (
            mock.patch("hangdoc.logs.stream.lines_for", lambda engine, **_: finder(engine)),
            mock.patch("hangdoc.logs.stream.TAIL_BYTES", tail_bytes),
        ):
            text, stream = read(data, step)
        return text, told_by(stream)

    assert found(other) == found(without_dull)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_dull_lines_hide_nothing(log: Path) -> None:
    """Of a real log every event is found that reading line by line finds; of bars, which have no end, the last ones."""
    data = log.read_bytes()
    found = {(event.name, event.offset) for event in read(data, 1000)[0].events}
    line_by_line = [event for event in events(data + b"\n", ENGINE) if event.kind != "progress"]
    assert {(event.name, event.offset) for event in line_by_line} <= found


def test_the_last_launch_is_the_patient() -> None:
    """Of several launches in one file the last one counts, unless another one is asked for."""
    begin = b"[2026-11-29 1%d:00:00] server_args=ServerArgs(tp_size=1)\n"
    failed = b"[2026-11-29 11:00:01] Scheduler hit an exception: x\n"
    loaded = b"[2026-11-29 12:00:01] Load weight begin.\n"
    data = begin % 1 + failed + begin % 2 + loaded
    assert [event.name for event in read(data, 7)[0].events] == ["server-args", "load-weight-begin"]
    assert [event.name for event in read(data, 7, launch=1)[0].events] == ["server-args", "exception"]
    text, stream = read(data, 7)
    assert (stream.journal.launches, text.lines) == (2, 2)


def test_memory_stays_flat() -> None:
    """A line of any length, and complaints without end, leave little in memory."""
    stream = Stream(ENGINE, fast=False)
    for _ in range(40):
        stream.feed(b"x" * LONGEST_PIECE_BYTES)
    for number in range(5_000):
        stream.feed(b"[2026-11-29 12:00:00 TP%d] Watchdog timeout (self.watchdog_timeout=300)\n" % (number % 4))
    text = stream.finish()
    assert len(text.events) < 200
    assert text.size_bytes > 40 * LONGEST_PIECE_BYTES


def test_a_bar_takes_the_time_of_the_line_before() -> None:
    """Lines without a time get that of the last one that had one."""
    data = (
        b"[2026-11-29 12:00:01] Load weight begin.\nLoading pt checkpoint shards: 50% | 1/2 [00:01<00:01,  1.0s/it]\r"
    )
    begin, bar = read(data, 9)[0].events
    assert (begin.stamp, bar.stamp) == ("2026-11-29 12:00:01", "2026-11-29 12:00:01")


def test_dumps_and_tables_in_a_log() -> None:
    """A watchdog's py-spy dump and nvidia-smi's table become the records that the probes make."""
    data = b"""[2026-11-29 12:00:00 TP6] Pyspy dump for PID 309:
Process 309: sglang::scheduler_TP6
Python v3.10.12 (/usr/bin/python3.10)

Thread 309 (active+gil): "MainThread"
    _apply (penaltylib/min_new_tokens.py:78)
    pthread_cond_timedwait (libc.so.6)
Thread 400 (idle): "watchdog"
    wait (threading.py:324)
[2026-11-29 12:00:01] more text
|   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |                    0 |
| N/A   42C    P0            128W /  700W |    9444MiB / 143771MiB |    100%      Default |
|    0   N/A  N/A            1943      C   sglang::scheduler_TP0                  4714MiB |
"""
    for fast in (False, True):
        _, stream = read(data, 11, fast=fast)
        (process,) = stream.journal.dumps.processes
        assert (process.pid, process.title) == (309, "sglang::scheduler_TP6")
        assert [(thread.name, len(thread.frames), thread.owns_gil) for thread in process.threads] == [
            ("MainThread", 2, True),
            ("watchdog", 1, False),
        ]
        table = stream.journal.table.gpus()
        assert table is not None
        (gpu,) = table.devices
        assert (gpu.name, gpu.util_ratio.value, gpu.power_w.value) == ("NVIDIA H200", 1.0, 128.0)  # type: ignore[union-attr]
        assert gpu.processes.value[0].pid == 1943  # type: ignore[union-attr]


def test_a_table_without_its_list_of_processes() -> None:
    """A table that was pasted without its second part, or printed in a container, does not say that nobody is there."""
    table = SmiTable()
    for line in (
        "|   0  NVIDIA H200                    On  |   00000000:00:06.0 Off |                    0 |",
        "| N/A   42C    P0            128W /  700W |    9444MiB / 143771MiB |    100%      Default |",
    ):
        table.take(line)
    found = table.gpus()
    assert found is not None
    assert isinstance(found.devices[0].processes, Missing)


def test_a_dump_of_faulthandler() -> None:
    """What faulthandler prints on a fatal error or a time-out is a dump, too; its last thread is the main one."""
    data = b"""Timeout (0:02:00)!
Thread 0x00007f0000000001 (most recent call first):
  File "lib/python3.11/threading.py", line 324 in wait
Current thread 0x00007f0000000002 (most recent call first):
  File "torch/utils/file_baton.py", line 50 in wait
  File "torch/utils/cpp_extension.py", line 2156 in _jit_compile

done
"""
    for fast in (False, True):
        (process,) = read(data, 13, fast=fast)[1].journal.dumps.processes
        assert [(thread.name, len(thread.frames)) for thread in process.threads] == [("", 1), ("MainThread", 2)]


@pytest.mark.parametrize("name", ["sglang", "vllm", "torchrun", "generic"])
def test_patterns_suit_the_multi_pattern_engine(name: str) -> None:
    """It gets plain texts only, each of three characters or more: these it finds faster than anything else."""
    for expression in expressions_of(discovery.engine(name)):
        texts = expression.replace(b"\\", b"")
        assert len(texts) >= 3
        assert re.escape(texts) == expression


def test_matches_become_lines_once() -> None:
    """Several matches in one line are one line."""
    data = b"aa bb\ncc\ndd dd\n"
    assert list(lines_around(data, [14, 11, 2, 5], 0, len(data), lambda _: False)) == [(0, 5), (9, 14)]


def test_places_in_a_coloured_log() -> None:
    """Where a line stands in the log does not depend on its colours being taken out."""
    line = b"\x1b[32m[2026-11-29 12:00:01 TP1]\x1b[0m Load \x1b[1mweight begin.\x1b[0m\n"
    for step in (1, 7, 999):
        found = read(line * 3, step)[0].events
        assert [event.offset for event in found] == [0, len(line), 2 * len(line)]
