"""The inputs of `hangdoc diagnose`: packed, rotated, one for each rank, dumps, traces, standard input."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from jsonschema import Draft202012Validator

from hangdoc.diagnosis import diagnose, hypotheses
from hangdoc.logs.moment import End, ending, moment
from hangdoc.logs.read import Wishes, read
from hangdoc.logs.rotation import rank_in_name, together
from hangdoc.logs.sources import Source
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.reading import Missing
from hangdoc.report.document import document

ROOT = Path(__file__).resolve().parents[3]
LAUNCHES = ROOT / "tests" / "corpus" / "launches"
GOLDEN = ROOT / "tests" / "golden"
LOG = (LAUNCHES / "absent-barrier.log").read_bytes()


def diagnosed(*paths: Path, now: str | None = None, launch: int | None = None) -> Diagnosis:
    wishes = Wishes(now=None if now is None else moment(now), launch=launch)
    return diagnose(read(list(paths), wishes), "log")


def reached(found: Diagnosis) -> list[str]:
    assert found.log is not None
    return [step.name for step in found.log.steps]


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        ("gz", gzip.compress),
        ("bz2", bz2.compress),
        ("xz", lzma.compress),
        ("zst", lambda data: zstandard.ZstdCompressor().compress(data)),
        ("log", lambda data: data),
        ("txt", lambda data: data.replace(b"\n", b"\r\n")),
        ("ansi", lambda data: data.replace(b"[2026", b"\x1b[32m[2026")),
        ("gz", lambda data: gzip.compress(data[:1000]) + gzip.compress(data[1000:])),
    ],
)
def test_packed_or_not(ending: str, pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """A log says the same, packed with anything, with Windows line ends, or coloured."""
    log = tmp_path / f"server.{ending}"
    log.write_bytes(pack(LOG))
    plain = tmp_path / "plain.log"
    plain.write_bytes(LOG)
    assert reached(diagnosed(log)) == reached(diagnosed(plain))
    assert diagnosed(log).phase == "weight-load"


def test_a_cut_archive(tmp_path: Path) -> None:
    """A packed file that was cut is read up to the cut."""
    log = tmp_path / "server.log.gz"
    log.write_bytes(gzip.compress(LOG)[:-300])
    assert reached(diagnosed(log))[:2] == ["server-args", "rendezvous-begin"]


def test_rotated_pieces(tmp_path: Path) -> None:
    """Pieces of one log are read in their order, the highest number first, packed or not."""
    third = len(LOG) // 3
    (tmp_path / "server.log.2.gz").write_bytes(gzip.compress(LOG[:third]))
    (tmp_path / "server.log.1").write_bytes(LOG[third : 2 * third])
    (tmp_path / "server.log").write_bytes(LOG[2 * third :])
    found = diagnosed(tmp_path)
    assert reached(found) == reached(diagnosed(LAUNCHES / "absent-barrier.log"))
    assert found.log is not None
    assert found.log.absent == ({"tp": 1},)


def test_which_files_belong_together() -> None:
    """A number at the end is a piece where the log itself is there, a rank where it is not."""
    names = ["a.log", "a.log.1", "a.log.10.gz", "rank.0", "rank.1", "b.log-20260101", "b.log"]
    groups = together(Source(Path(name), 1, 0) for name in names)
    assert [[str(one.path) for one in group] for group in groups] == [
        ["a.log.10.gz", "a.log.1", "a.log"],
        ["rank.0"],
        ["rank.1"],
        ["b.log-20260101", "b.log"],
    ]


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("rank3.log", {"tp": 3}),
        ("node1_rank_12.txt.gz", {"tp": 12}),
        ("worker-2.out", {"tp": 2}),
        ("dp1.log", {"dp": 1}),
        ("attempt_0/3/stderr.log", {"tp": 3}),
        ("server.log", {}),
        ("frank3.log", {}),
    ],
)
def test_rank_in_a_name(name: str, rank: dict[str, int]) -> None:
    """The rank stands in a file's name, or in torchrun's directory."""
    assert rank_in_name(Source(Path(name), 1, 0), "tp") == rank


def test_one_log_for_each_rank(tmp_path: Path) -> None:
    """Logs of the ranks are put together by time; the rank that is behind is named."""
    (tmp_path / "rank0.log").write_bytes(
        b"[2026-11-29 12:00:00] Load weight begin.\n[2026-11-29 12:00:09] Load weight end.\n"
    )
    (tmp_path / "rank1.log").write_bytes(b"[2026-11-29 12:00:01] Load weight begin.\n")
    found = diagnosed(tmp_path)
    assert found.log is not None
    assert found.log.absent == ({"tp": 1},)
    ranks = sorted(tuple(one.rank.items()) for one in found.processes if one.role == "scheduler")
    assert ranks == [(("tp", 0),), (("tp", 1),)]


def test_how_far_ranks_are_apart(tmp_path: Path) -> None:
    """Of each step is known which rank said it last, and how long after the first one."""
    log = tmp_path / "server.log"
    log.write_bytes(
        b"[2026-11-29 12:00:00 TP1] Load weight end. x\n[2026-11-29 12:00:40 TP0] Load weight end. x\n"
        b"[2026-11-29 12:00:50 TP0] Memory pool end. x\n"
    )
    found = diagnosed(log)
    assert found.log is not None
    step = found.log.steps[0]
    assert (step.ranks, step.last_rank, step.spread_s, step.took_s) == (2, {"tp": 0}, 40.0, 50.0)


def test_processes_without_a_pid() -> None:
    """Who is known by rank only has no pid in the document, and every reading of it is not in the input."""
    found = diagnosed(LAUNCHES / "healthy-tp2.log")
    assert {one.pid for one in found.processes if one.role == "scheduler"} == {None}
    assert {lack.reason for lack in found.missing} == {"not-in-input"}
    assert found.target.kind == "log"
    assert found.target.host is None


def test_ranks_that_the_settings_call_for(tmp_path: Path) -> None:
    """Ranks that never printed a line are members as well."""
    log = tmp_path / "server.log"
    log.write_bytes(
        b"[2026-11-29 12:00:00] server_args=ServerArgs(tp_size=4)\n[2026-11-29 12:00:01 TP2] Init parallel begin.\n"
    )
    ranks = [one.rank for one in diagnosed(log).processes if one.role == "scheduler"]
    assert sorted(rank["tp"] for rank in ranks) == [0, 1, 2, 3]


def test_a_saved_dump(tmp_path: Path) -> None:
    """A JSON dump of py-spy is an input of its own: its stacks are readings, all else is missing."""
    frames = [{"name": "acquire", "filename": "site-packages/filelock/_api.py", "line": 344}]
    thread = {"pid": 77, "thread_id": 1, "thread_name": "MainThread", "os_thread_id": 77, "active": False}
    dump = tmp_path / "dump.json"
    dump.write_text(json.dumps([{**thread, "owns_gil": False, "frames": frames}]))
    found = diagnosed(dump)
    assert found.verdict == "undetermined"
    assert [one.pid for one in found.processes] == [77]
    assert "stacks" not in {lack.probe for lack in found.missing}
    text = tmp_path / "dump.txt"
    text.write_text(
        'Process 77: sglang::scheduler_TP1\nThread 77 (idle): "MainThread"\n    acquire (filelock/_api.py:344)\n'
    )
    assert [(one.pid, one.rank) for one in diagnosed(text).processes if one.role == "scheduler"] == [(77, {"tp": 1})]


def test_a_trace() -> None:
    """A trace is diagnosed as replay does it."""
    trace = read([GOLDEN / "absent-barrier.hangtrace"], Wishes())
    assert diagnose(trace, "trace").verdict == "blocked"
    assert trace.header.launch.known_from == "live"


def test_several_launches(tmp_path: Path) -> None:
    """The last launch in a file is the patient; another one on request."""
    log = tmp_path / "nohup.out"
    log.write_bytes((LAUNCHES / "killed-scheduler.log").read_bytes() + b"\n" + LOG)
    assert diagnosed(log).verdict == "undetermined"
    assert diagnosed(log, launch=1).verdict == "crashed"


def test_no_time_without_now(tmp_path: Path) -> None:
    """Without --now nothing tells until when the log stayed so, and the diagnosis says that this is missing."""
    log = tmp_path / "server.log"
    log.write_bytes(LOG)
    found = diagnosed(log)
    assert found.log is not None
    assert found.log.silent_s is None
    assert any("until when" in lack.detail for lack in found.missing)
    told = diagnosed(log, now="2026-11-29 19:22:30")
    assert told.log is not None
    assert told.log.silent_s == 600.0


def test_moments() -> None:
    """A time on the log's clock is measured from its last line, an absolute one from the file's last change."""
    second_ns = 10**9
    assert ending(End("2026-11-29 12:00:00"), 5, moment("2026-11-29 12:01")).silent_ns == 60 * second_ns
    assert ending(End("23:59:00"), 5, moment("00:01:00")).silent_ns == 120 * second_ns
    assert ending(End("11-29 12:00:00"), 5, moment("2026-11-29 12:00:07")).silent_ns == 7 * second_ns
    absolute = moment("2026-11-29T12:00:00+00:00")
    assert ending(End(""), absolute.wall_ns - 3 * second_ns, absolute).silent_ns == 3 * second_ns
    assert not ending(End(""), 0, moment("12:00:00")).known
    assert not ending(End("2026-11-29 12:00:00"), 5, None).known


def test_what_a_log_cannot_give_is_missing() -> None:
    """Every probe of processes is missing with the reason not-in-input, never zero."""
    trace = read([LAUNCHES / "healthy-tp1.log"], Wishes())
    readings = {sample.probe: sample.reading for sample in trace.snapshots[0].samples}
    for probe in ("cpu", "progress", "futex", "locks", "links", "buffers", "gpu"):
        reading = readings[probe]
        assert isinstance(reading, Missing)
        assert reading.reason == "not-in-input"


@pytest.mark.parametrize("log", sorted(LAUNCHES.glob("*.log")), ids=lambda log: log.stem)
def test_the_document(log: Path) -> None:
    """The document of a log is valid by the committed schema, and every null in it is accounted for."""
    schema = json.loads((ROOT / "docs" / "schema.json").read_text())
    found = document(diagnosed(log))
    Draft202012Validator(schema).validate(found)
    lacks = {lack["probe"] for lack in found["missing"]}
    assert {"launch", "cpu", "gpu", "log"} <= lacks
    assert found["gpus"] is None
    assert sorted(one["id"] for one in found["hypotheses"]) == [one.id for one in hypotheses()]


def test_the_end_is_answered_for_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a long file the end is diagnosed before the rest is read."""
    monkeypatch.setattr("hangdoc.logs.read.LONG_BYTES", 10_000)
    monkeypatch.setattr("hangdoc.logs.read.FIRST_LOOK_BYTES", 2_000)
    log = tmp_path / "server.log"
    watchdog = b"[2026-11-29 20:00:00 TP1] Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)\n"
    log.write_bytes(LOG * 20 + watchdog)
    first: list[Diagnosis] = []
    whole = read([log], Wishes(first_answer=lambda trace: first.append(diagnose(trace, "log"))))
    assert [one.verdict for one in first] == ["hung"]
    assert first[0].log is not None
    assert first[0].log.size_bytes < 2_000 < log.stat().st_size // 20
    assert diagnose(whole, "log").verdict == "hung"


def test_dumps_named_after_their_ranks(tmp_path: Path) -> None:
    """Saved dumps of ranks, text and JSON, are of the ranks that their names tell."""
    frame = {"name": "all_reduce", "filename": "torch/distributed/distributed_c10d.py", "line": 3}
    thread = {"os_thread_id": 8, "thread_name": "MainThread", "active": False, "owns_gil": False, "frames": [frame]}
    (tmp_path / "rank1.json").write_text(json.dumps([{"pid": 8, **thread}]))
    (tmp_path / "rank0.txt").write_text(
        'Process 7: python train.py\nThread 7 (idle): "MainThread"\n    wait (threading.py:324)\n'
    )
    (tmp_path / "rank2.txt").write_text('Thread 9 (idle): "MainThread"\n    wait (threading.py:324)\n')
    found = diagnosed(tmp_path)
    assert [(one.pid, one.rank) for one in found.processes] == [(7, {"rank": 0}), (8, {"rank": 1}), (9, {"rank": 2})]
