"""Log bytes become events: prefixes, glued progress bars, escape sequences, lines of an earlier launch."""

from __future__ import annotations

import re
from datetime import datetime

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from hangdoc import discovery
from hangdoc.engines.sglang import ENGINE
from hangdoc.logs.anchors import anchors_of, candidates, may_be_known
from hangdoc.logs.lines import events, read_line
from hangdoc.model.engine import LogLine
from hangdoc.model.log import HEALTH_CHECKS
from hangdoc.trace.tokens import Tokens
from hangdoc.trace.wording import sentence


@pytest.mark.parametrize(
    ("line", "name", "phase", "rank"),
    [
        ("[12:00:01] Init nccl begin.", "rendezvous-begin", "rendezvous", {}),
        ("[2026-11-29 12:00:01 TP1] Init torch distributed begin.", "rendezvous-begin", "rendezvous", {"tp": 1}),
        ("[2026-11-29 12:00:01] Init parallel begin.", "rendezvous-begin", "rendezvous", {}),
        ("[2026-11-29 12:00:01 DP1 TP3 EP3] Load weight begin. avail mem=21.31 GB", "load-weight-begin", "weight-load",
         {"dp": 1, "tp": 3, "ep": 3}),
        ("[2026-11-29 12:00:01] Load weight end. elapsed=0.12 s, type=X", "load-weight-end", "weight-load", {}),
        ("[2026-11-29 12:00:01] KV Cache is allocated. #tokens: 4096", "kv-cache-allocated", "memory-pool", {}),
        ("[2026-11-29 12:00:01] Capture cuda graph begin. This can take", "capture-begin", "graph-capture", {}),
        ("[2026-11-29 12:00:01] Capture target decode CUDA graph begin. backend=full", "capture-begin",
         "graph-capture", {}),
        ("[2026-11-29 12:00:01] INFO:     Uvicorn running on http://127.0.0.1:30000", "http-listening", "warmup", {}),
        ("[2026-11-29 12:00:01] The server is fired up and ready to roll!", "ready", "ready", {}),
        ("[2026-11-29 12:00:01 TP0] Decode batch. #running-req: 1", "decode-batch", "unknown", {"tp": 0}),
        ("[2026-11-29 12:00:01 TP0] Decode batch, #running-req: 1", "decode-batch", "unknown", {"tp": 0}),
    ],
)  # fmt: skip
def test_wordings_of_all_versions(line: str, name: str, phase: str, rank: dict[str, int]) -> None:
    """Old and new wordings of a milestone are the same event, with the phase it opens and the rank that wrote it."""
    event = read_line(line, ENGINE)
    assert event is not None
    assert (event.name, event.phase, event.rank) == (name, phase, rank)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("[2026-11-29 12:00:01 TP1] Scheduler hit an exception: Traceback", "Scheduler hit an exception"),
        ("Subprocess scheduler_0 (pid=4711) crashed with exit code -9.", "subprocess 4711 crashed with exit code -9"),
        ("Fatal Python error: Aborted", "Fatal Python error: Aborted"),
        ("Rank 2 scheduler is dead. Please check", "rank 2 scheduler died"),
    ],
)
def test_crash_lines_keep_their_numbers_only(line: str, text: str) -> None:
    """A crash line becomes the table's wording with the numbers of the line, never its free text."""
    event = read_line(line, ENGINE)
    assert event is not None
    assert (event.kind, event.text) == ("crash", text)


@pytest.mark.parametrize(
    "line",
    [
        "Ignore import error when loading sglang.srt.models.x",
        "Health check failed. Server couldn't get a response from detokenizer for last 20 seconds",
        'INFO: 127.0.0.1:1 - "GET /health HTTP/1.1" 503 Service Unavailable',
        "[2026-11-29 12:00:01] Receive: obj=GenerateReqInput(text='why CUDA out of memory?')",
    ],
)
def test_lines_that_prove_nothing(line: str) -> None:
    """Lines that look like a failure and are none are no failure; a health check that fails is a complaint."""
    event = read_line(line, ENGINE)
    assert event is None or event.kind == "watchdog" or event.name in HEALTH_CHECKS


def test_a_line_glued_on_a_bar() -> None:
    """A log line behind a progress bar that is written over with carriage returns is found, at its own offset."""
    log = b"\x1b[32mLoading safetensors checkpoint shards:  50% Completed\x1b[0m\r  0/23 [00:00<?]"
    log += b"[2026-11-29 12:00:01 TP3] Capture cuda graph begin.\n"
    bar, begin = events(log, ENGINE, offset=100)
    assert (bar.name, bar.text, bar.offset) == ("shard-bar", "loading shards 50 %", 100)
    assert (begin.name, begin.rank, begin.offset) == ("capture-begin", {"tp": 3}, 100 + log.index(b"\r") + 1)


def test_an_earlier_launch_in_the_same_file() -> None:
    """Lines older than this launch, and the untimed ones behind them, belong to another launch."""
    log = (
        b"[2026-11-29 11:00:00] Scheduler hit an exception: x\nFatal Python error: Aborted\n"
        b"[2026-11-29 12:00:00] Load weight begin.\nSubprocess s (pid=1) crashed with exit code 1\n"
    )
    found = [event.name for event in events(log, ENGINE, since=datetime(2026, 11, 29, 11, 59, 59))]  # noqa: DTZ001
    assert found == ["load-weight-begin", "subprocess-crashed"]


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    """No bytes whatever raise, and every event lies inside them."""
    assert all(0 <= event.offset < len(data) for event in events(data, ENGINE))


@pytest.mark.parametrize(
    ("line", "rank", "pid"),
    [
        ("sglang-1  | [2026-11-29 12:00:01 TP1] Load weight begin.", {"tp": 1}, 0),
        ("2026-11-29T12:00:01.123456789Z stderr F [2026-11-29 12:00:01 TP1] Load weight begin.", {"tp": 1}, 0),
        ("[pod/llm-0/server] [2026-11-29 12:00:01 TP1] Load weight begin.", {"tp": 1}, 0),
        ("(WorkerDict pid=77, ip=10.0.0.1) [2026-11-29 12:00:01 TP1] Load weight begin.", {"tp": 1}, 77),
        ("12: [2026-11-29 12:00:01] Load weight begin.", {"tp": 12}, 0),
        ("Nov 29 12:00:01 host sglang[55]: [2026-11-29 12:00:01] Load weight begin.", {}, 0),
        ('{"log":"[2026-11-29 12:00:01 TP1] Load weight begin.\\n","stream":"stderr","time":"2026-11-29T12:00:01Z"}',
         {"tp": 1}, 0),
        ("2026-11-29 12:00:01,527 - __main__ - INFO - [2026-11-29 12:00:01 TP0] Load weight begin.", {"tp": 0}, 0),
        ("[gpu_id=3] Load weight begin.", {"tp": 3}, 0),
        ("2026-11-29 12:00:01 ERROR 125765 [ DP10 TP10 EP10 scheduler.py:2655] Load weight begin.",
         {"dp": 10, "tp": 10, "ep": 10}, 0),
        ("[default2]:[2026-11-29 12:00:01] Load weight begin.\r", {"tp": 2}, 0),
    ],
)  # fmt: skip
def test_wrappings(line: str, rank: dict[str, int], pid: int) -> None:
    """Containers, schedulers and loggers hide neither the line nor its rank, its process or its time."""
    event = read_line(line, ENGINE)
    assert event is not None
    assert (event.name, event.rank, event.numbers.get("pid", 0)) == ("load-weight-begin", rank, pid)
    assert event.stamp in ({"2026-11-29 12:00:01"} if "gpu_id" not in line else {""})


@pytest.mark.parametrize(
    ("line", "engine", "name", "stamp"),
    [
        ("(VllmWorker rank=1 pid=249) INFO 06-19 23:05:01 [loader.py:447] Loading weights took 0.69 seconds", "vllm",
         "weights-read", "06-19 23:05:01"),
        ("INFO 06-19 23:05:35 [gpu_model_runner.py:1608] Graph capturing finished in 17 secs, took 0.48 GiB", "vllm",
         "capture-end", "06-19 23:05:35"),
        ("(APIServer pid=1) INFO:     Application startup complete.", "vllm", "ready", ""),
        ("[rank3]:[E421 04:13:43.426 PG.cpp:632] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, ran",
         "generic", "nccl-watchdog", ""),
        ("NVRM: Xid (PCI:0000:41:00): 79, pid=1, GPU has fallen off the bus.", "generic", "xid", ""),
    ],
)  # fmt: skip
def test_other_engines(line: str, engine: str, name: str, stamp: str) -> None:
    """vLLM, torch, NCCL and the kernel are read through their own tables."""
    event = read_line(line, discovery.engine(engine))
    assert event is not None
    assert (event.name, event.stamp) == (name, stamp)


def test_numbers_of_a_bar() -> None:
    """A progress bar says how much is done, since when, and how long it will take at that pace."""
    event = read_line(
        "Loading safetensors checkpoint shards:  98% Completed | 159/163 [31:48<00:40, 10.19s/it]", ENGINE
    )
    assert event is not None
    assert event.numbers == {"percent": 98, "done": 159, "total": 163, "elapsed_s": 1908, "left_s": 40}


@pytest.mark.parametrize("name", ["sglang", "vllm", "torchrun", "generic"])
def test_texts_survive_redaction(name: str) -> None:
    """What a table says of a line stays readable in a recording."""
    for line in discovery.engine(name).log_lines:
        text = re.sub(r"\{\w+\}", "7", line.text)
        assert sentence(Tokens(), text) == text


@pytest.mark.parametrize("name", ["sglang", "vllm", "torchrun", "generic"])
def test_every_line_has_an_anchor(name: str) -> None:
    """A line of a table without a plain text to look for would be found without the multi-pattern engine only."""
    assert [one.name for one in discovery.engine(name).log_lines if not anchors_of(one.pattern.pattern)] == []


@pytest.mark.parametrize("name", ["sglang", "vllm", "torchrun", "generic"])
@given(data=st.data())
def test_anchors(name: str, data: st.DataObject) -> None:
    """Whatever a pattern of a table finds contains one of the plain texts that are looked for first."""
    engine = discovery.engine(name)
    pattern = data.draw(st.sampled_from([line.pattern for line in engine.log_lines]))
    line = data.draw(st.from_regex(pattern))
    assert may_be_known(line, engine)
    found = next(known for known in engine.log_lines if known.pattern.search(line))
    assert next(known for known in candidates(line, engine) if known.pattern.search(line)) is found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sglang", "vllm", "torchrun", "generic"])
def test_no_line_is_hidden_by_one_before_it(name: str) -> None:
    """Of lines that an entry of the table knows, some are not known to an entry before it: each can be reached."""
    table = discovery.engine(name).log_lines
    assert [line.name for line in table if not _is_reached(line, table)] == []


def _is_reached(line: LogLine, table: tuple[LogLine, ...]) -> bool:
    reached = False

    @settings(max_examples=25, database=None, derandomize=True, deadline=None, phases=[Phase.generate])
    @given(st.from_regex(line.pattern, fullmatch=True, alphabet=PRINTED))
    def search(text: str) -> None:
        nonlocal reached
        first = next(known for known in table if known.pattern.search(f"{text}x" if text.endswith(" ") else text))
        reached = reached or first is line

    search()
    return reached


PRINTED = st.characters(min_codepoint=32, max_codepoint=126)


def test_a_line_after_a_hole() -> None:
    """The first line after the hole that copytruncate leaves in a live log is read."""
    (found,) = events(b"\0" * 50_000 + b"[2026-11-29 12:00:01 TP1] Load weight begin.\n", ENGINE)
    assert (found.name, found.rank) == ("load-weight-begin", {"tp": 1})
