"""Logs of real SGLang launches, whole and cut after every line that says something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.engines.sglang import ENGINE
from hangdoc.logs.lines import events
from hangdoc.logs.moment import moment
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import HANG_VERDICTS, Diagnosis

LOGS = sorted(Path(__file__).with_name("launches").glob("*.log"))
HEALTHY = [log for log in LOGS if log.name.startswith(("healthy", "slow"))]
HUNG = [log for log in LOGS if log.name.startswith(("absent", "busy", "missing"))]


def diagnosed(log: Path, now: str | None = None) -> Diagnosis:
    return diagnose(read([log], Wishes(now=None if now is None else moment(now))), "log")


def cuts(log: Path) -> list[int]:
    """The end of every line that is an event."""
    data = log.read_bytes()
    ends = [data.find(b"\n", event.offset) + 1 or len(data) for event in events(data + b"\n", ENGINE)]
    return sorted(set(ends))


def later(stamp: str, seconds: int) -> str:
    clock = int(stamp[11:13]) * 3600 + int(stamp[14:16]) * 60 + int(stamp[17:19]) + seconds
    return f"{stamp[:10]} {clock // 3600:02}:{clock // 60 % 60:02}:{clock % 60:02}"


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_no_cut_of_any_launch_is_a_hang(log: Path, tmp_path: Path) -> None:
    """Cut after any line, with no word on until when it stayed so, no log is a hang, and one that ends well is well."""
    cut = tmp_path / "cut.log"
    for end in cuts(log):
        cut.write_bytes(log.read_bytes()[:end])
        found = diagnosed(cut)
        assert found.verdict not in HANG_VERDICTS or found.verdict == "crashed"
        assert found.verdict != "crashed" or log.stem == "killed-scheduler"


@pytest.mark.parametrize("log", HEALTHY, ids=lambda log: log.stem)
@pytest.mark.parametrize("seconds", [0, 5, 119])
def test_a_healthy_prefix_is_no_hang(log: Path, seconds: int, tmp_path: Path) -> None:
    """Cut after any milestone, and silent for up to two minutes, a good start is no hang."""
    cut = tmp_path / "cut.log"
    for end in cuts(log):
        cut.write_bytes(log.read_bytes()[:end])
        last = diagnosed(cut).log
        assert last is not None
        found = diagnosed(cut, later(last.last_at, seconds))
        assert found.verdict not in HANG_VERDICTS, (end, found.headline)


@pytest.mark.parametrize("log", LOGS, ids=lambda log: log.stem)
def test_silence_alone_confirms_nothing(log: Path, tmp_path: Path) -> None:
    """However long it is silent, a log that names no watchdog is never a confirmed hang."""
    cut = tmp_path / "cut.log"
    for end in cuts(log):
        cut.write_bytes(log.read_bytes()[:end])
        found = diagnosed(cut, "2027-01-01 00:00:00")
        assert (found.verdict, found.grade) != ("hung", "confirmed")


def test_graph_capture_may_be_silent_for_595_s(tmp_path: Path) -> None:
    """A start that is silent in graph capture for as long as a healthy one was is not called hung."""
    whole = (Path(__file__).with_name("launches") / "healthy-h200.log").read_bytes()
    cut = tmp_path / "cut.log"
    cut.write_bytes(whole[: whole.find(b"\n", whole.find(b"Capture target decode CUDA graph begin")) + 1])
    found = diagnosed(cut, later("2026-11-29 14:04:33", 595))
    assert (found.verdict, found.phase) == ("undetermined", "graph-capture")


@pytest.mark.parametrize("log", HUNG, ids=lambda log: log.stem)
def test_a_hung_launch_with_a_baseline(log: Path, tmp_path: Path) -> None:
    """Silent for much longer than good starts were at that step, it is likely hung; the report says the difference."""
    from hangdoc.logs.good import read_baseline  # noqa: PLC0415 - beside what it tests

    good = read_baseline(_of_its_size(log, tmp_path))
    alone = diagnosed(log)
    assert alone.verdict == "undetermined"
    assert alone.log is not None
    trace = read([log], Wishes(now=moment(later(alone.log.last_at, 1900))))
    found = diagnose(trace, "log", good)
    assert (found.verdict, found.grade) == ("hung", "likely")
    assert found.log is not None
    assert any("silent for 31.7 min" in line for line in found.log.baseline)
    assert [one.rank for one in found.culprits] == ([{"tp": 1}] if log.stem == "absent-barrier" else [])
    assert found.next_steps[0].action.startswith("Silence says that something may be wrong")
    assert "hangdoc watch --port" in found.next_steps[0].action


def _of_its_size(log: Path, directory: Path) -> Path:
    """Return the log of a good start with a log's own arguments."""
    own = next(line for line in log.read_text().splitlines() if "server_args=" in line).split("server_args=")[1]
    good = Path(__file__).with_name("launches") / "healthy-tp2.log"
    made = directory / "good.log"
    made.write_text(re.sub(r"(?<=server_args=).*", lambda _: own, good.read_text()))
    return made


def test_an_error_that_was_survived_explains_no_silence(tmp_path: Path) -> None:
    """A traceback after which the start went on is no reason for the silence that came later."""
    from hangdoc.logs.good import read_baseline  # noqa: PLC0415 - beside what it tests

    whole = (Path(__file__).with_name("launches") / "absent-barrier.log").read_text().splitlines(keepends=True)
    at = next(number for number, line in enumerate(whole) if "server_args=" in line)
    log = tmp_path / "server.log"
    log.write_text(
        "".join([*whole[: at + 1], "Traceback (most recent call last):\nImportError: x\n", *whole[at + 1 :]])
    )
    good = read_baseline(Path(__file__).with_name("launches") / "healthy-tp2.log")
    alone = diagnosed(log)
    assert alone.log is not None
    assert alone.log.failures == (f"line {at + 2}: a module cannot be imported",)
    trace = read([log], Wishes(now=moment(later(alone.log.last_at, 1900))))
    assert diagnose(trace, "log", good).verdict == "hung"


@pytest.mark.parametrize("log", HUNG, ids=lambda log: log.stem)
def test_silence_without_a_baseline(log: Path) -> None:
    """Silence alone is no hang, however long it is: nothing tells what is usual for this server."""
    assert diagnosed(log, "2026-12-24 00:00:00").verdict == "undetermined"


def test_a_cold_cache_may_be_silent(tmp_path: Path) -> None:
    """Where kernels may be compiled, 20 min of silence are no hang, however fast good starts with a warm cache were."""
    from hangdoc.logs.good import read_baseline  # noqa: PLC0415 - beside what it tests

    log = Path(__file__).with_name("launches") / "absent-barrier.log"
    trace = read([log], Wishes(now=moment(later("2026-11-29 19:12:30", 1200))))
    good = read_baseline(Path(__file__).with_name("launches") / "healthy-tp2.log")
    assert diagnose(trace, "log", good).verdict == "undetermined"


def test_ranks_that_did_not_come() -> None:
    """Two ranks print, one says that it has loaded: the other one is named."""
    found = diagnosed(Path(__file__).with_name("launches") / "absent-barrier.log")
    assert found.log is not None
    assert found.log.absent == ({"tp": 1},)
    assert found.phase == "weight-load"


def test_a_scheduler_that_was_killed() -> None:
    """The first failure is named and the launcher's own end is a victim."""
    found = diagnosed(Path(__file__).with_name("launches") / "killed-scheduler.log")
    assert (found.verdict, found.grade) == ("crashed", "confirmed")
    assert "crashed with exit code -9" in found.headline
