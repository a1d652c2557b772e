"""--patience: what is wrong with it is said in one line, and what it sets is in the recording."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from hangdoc.cli.options import patience_of
from hangdoc.diagnosis import diagnose
from hangdoc.observe.replay import read_trace
from hangdoc.trace import writer
from hangdoc.trace.reader import read
from tests.unit.cli.commands import complaint, run

GOLDEN = Path(__file__).parents[2] / "golden" / "blocked-fifo.hangtrace"


@pytest.mark.parametrize(
    "given", ["warmup", "warmup=", "warmup=0", "warmup=-1", "warmup=nan", "warmup=inf", "lunch=5", "=5"]
)
def test_wrong_patience(given: str) -> None:
    """Anything but PHASE=SECONDS is wrong use, and the line names what was given."""
    with pytest.raises(typer.BadParameter, match=given):
        patience_of([given])


def test_one_line() -> None:
    """Wrong use is one line and exit code 2, before any launch is looked for."""
    ended = run("replay", str(GOLDEN), "--patience", "lunch=5")
    assert ended.code == 2
    assert "lunch=5" in complaint(ended)


def test_the_last_one_counts() -> None:
    """Given twice for a phase, the last one counts."""
    assert patience_of(["warmup=5", "import=7.5", "warmup=6"]) == {"warmup": 6.0, "import": 7.5}


def test_a_recording_keeps_it(tmp_path: Path) -> None:
    """What was set stands in the header after redaction, and a replay may set something else."""
    trace = read_trace(GOLDEN, {"warmup": 5.0})
    writer.write(tmp_path / "a.hangtrace", trace)
    assert read(tmp_path / "a.hangtrace").header.patience_s == {"warmup": 5.0}
    assert read_trace(tmp_path / "a.hangtrace", {"import": 1.0}).header.patience_s == {"warmup": 5.0, "import": 1.0}
    assert diagnose(read(tmp_path / "a.hangtrace")).verdict == diagnose(read(GOLDEN)).verdict
