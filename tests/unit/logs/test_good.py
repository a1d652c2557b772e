"""Good starts to compare with: from a log, a trace, a directory; and what is said of the difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.engines.sglang import STEPS
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.features.baseline import TYPICAL_S
from hangdoc.logs.good import read_baseline
from hangdoc.logs.moment import moment
from hangdoc.logs.read import Wishes, read
from hangdoc.trace.redact import redact
from hangdoc.trace.writer import encode

LAUNCHES = Path(__file__).resolve().parents[2] / "corpus" / "launches"
GOOD = LAUNCHES / "healthy-tp2.log"
HUNG = LAUNCHES / "absent-barrier.log"


def said(baseline: Path) -> tuple[str, ...]:
    found = diagnose(read([HUNG], Wishes(now=moment("2026-11-29 19:26:30"))), "log", read_baseline(baseline))
    assert found.log is not None
    return found.log.baseline


def test_a_log() -> None:
    """A log of a good start says how many lines it wrote, when it reached the missing step, and how long that took."""
    assert said(GOOD) == (
        "line 26 of 51",
        "good launches say KV Cache is allocated 11 s after their start",
        "this one has been silent for 14.0 min since Load weight end",
        "good launches went on 1 s after that at the latest",
    )


def test_a_trace(tmp_path: Path) -> None:
    """A trace of a good start says the same as its log, redacted as it is."""
    trace = tmp_path / "good.hangtrace"
    trace.write_bytes(encode(redact(read([GOOD], Wishes()))))
    assert said(trace) == said(GOOD)
    assert diagnose(read([trace], Wishes()), "log").verdict == "healthy"


def test_a_directory() -> None:
    """Of a directory every start counts that became ready and is of the same size; the others are left out."""
    assert len(read_baseline(LAUNCHES).starts) == 5
    assert said(LAUNCHES) == said(GOOD)


@pytest.mark.parametrize("name", ["absent-barrier.log", "missing-node.log", "nothing.log"])
def test_no_good_start(name: str) -> None:
    """A start that did not become ready is nothing to compare with: exit 2, with a word on what is."""
    with pytest.raises(HangdocError) as refused:
        read_baseline(LAUNCHES / name)
    assert refused.value.exit_code == ExitCode.USAGE


def test_slower_steps_are_told(tmp_path: Path) -> None:
    """A step that took much longer than in good starts is told, even where the start went on."""
    slow = tmp_path / "slow.log"
    slow.write_bytes(HUNG.read_bytes().replace(b"[2026-11-29 19:12:30 TP1] Load", b"[2026-11-29 19:22:30 TP1] Load")
                     .replace(b"[2026-11-29 19:12:30 TP0] Load", b"[2026-11-29 19:22:30 TP0] Load"))  # fmt: skip
    found = diagnose(read([slow], Wishes()), "log", read_baseline(GOOD))
    assert found.log is not None
    assert any(line.startswith("after Init parallel ends it took 10.0 min") for line in found.log.baseline)


def test_every_step_has_its_usual_time() -> None:
    """The table has every step of a start but the last ones, each with its bounds and a source."""
    assert set(TYPICAL_S) <= {step.name for step in STEPS}
    assert {step.name for step in STEPS if not step.optional} - set(TYPICAL_S) <= {
        "ready",
        "rendezvous-end",
        "http-started",
    }
    assert all(least < most and source for least, most, source in TYPICAL_S.values())


def test_versions(tmp_path: Path) -> None:
    """Good starts of the same version count alone; without any of it all count, and that is said."""
    old = tmp_path / "old.log"
    old.write_bytes(b"sglang version: 0.5.8\n" + GOOD.read_bytes())
    slow = tmp_path / "slow.log"
    slow.write_bytes(b"sglang version: 0.5.23\n" + GOOD.read_bytes().replace(b":11 TP", b":59 TP"))
    good = read_baseline(tmp_path)
    assert {one.version for one in good.starts} == {"0.5.8", "0.5.23"}
    assert [one.version for one in good.like("0.5.8").starts] == ["0.5.8"]
    assert good.like("0.5.8").other == ()
    assert len(good.like("").starts) == 2
    assert good.like("0.4.1").other == ("0.5.23", "0.5.8")
    patient = tmp_path / "patient.txt"
    patient.write_bytes(b"sglang version: 0.4.1\n" + HUNG.read_bytes())
    found = diagnose(read([patient], Wishes()), "log", good)
    assert found.log is not None
    assert "none of these good launches is of its version: they are of 0.5.23, 0.5.8" in found.log.baseline


def test_durations_stand_beside_those_of_good_starts() -> None:
    """Each step says how long it took and how long good starts took for it."""
    found = diagnose(read([HUNG], Wishes()), "log", read_baseline(LAUNCHES))
    assert found.log is not None
    usual = {step.name: step.usual_s for step in found.log.steps}
    assert usual["load-weight-end"] is not None
    assert usual["load-weight-end"][0] <= usual["load-weight-end"][1]
    without = diagnose(read([HUNG], Wishes()), "log")
    assert without.log is not None
    assert all(step.usual_s is None for step in without.log.steps)


LONG_AFTER = moment("2026-11-29 21:00:00")


def with_args(log: Path, directory: Path, model: str = "/models/a", size: int = 2) -> Path:
    made = directory / log.name
    named = log.read_text().replace("'model_path': 'MODEL'", f"'model_path': '{model}'")
    made.write_text(named.replace("'tp_size': 2", f"'tp_size': {size}"))
    return made


@pytest.mark.parametrize(
    ("model", "size", "unlike"),
    [("/models/a", 2, ()), ("/models/b", 2, ("model_path",)), ("/models/b", 1, ("model_path", "tp_size"))],
)
def test_another_size_proves_no_hang(model: str, size: int, unlike: tuple[str, ...], tmp_path: Path) -> None:
    """A good start of another model, or of another size, does not say how long this one may be silent."""
    good = read_baseline(with_args(GOOD, tmp_path, model, size))
    hung = read([with_args(HUNG, tmp_path)], Wishes(now=LONG_AFTER))
    found = diagnose(hung, "log", good)
    assert found.verdict == ("undetermined" if unlike else "hung")
    assert found.log is not None
    assert all(any(name in line for line in found.log.baseline) for name in unlike)


def test_a_step_that_good_starts_lack(tmp_path: Path) -> None:
    """What good starts never did, such as compiling kernels, has no good duration."""
    compiles = tmp_path / "compiles.log"
    line = "[2026-11-29 19:13:00 TP0] Entering DeepGEMM JIT Pre-Compile session. It may take a long time\n"
    compiles.write_text(HUNG.read_text() + line)
    assert diagnose(read([HUNG], Wishes(now=LONG_AFTER)), "log", read_baseline(GOOD)).verdict == "hung"
    assert diagnose(read([compiles], Wishes(now=LONG_AFTER)), "log", read_baseline(GOOD)).verdict == "undetermined"


def test_another_engine_is_not_compared(tmp_path: Path) -> None:
    """Good starts of another engine are left out, and that is told."""
    vllm = Path(__file__).with_name("vllm-0.11.log")
    found = diagnose(read([vllm], Wishes()), "log", read_baseline(GOOD))
    assert found.log is not None
    assert not any("good launches" in line for line in found.log.baseline)
    assert [one.probe for one in found.missing if "are not compared" in one.detail] == ["baseline"]
