"""Keep what a test has recorded as a golden trace, with what a replay of it says.

HANGDOC_RECORD_GOLDEN=tests/golden pytest tests/patients     (their twins go to tests/golden/patients)
HANGDOC_RECORD_GOLDEN=tests/golden pytest -m sglang tests/sglang/test_diagnosis.py

Only what passes is kept. A new one replaces the old one of its name; look at the difference before committing it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hangdoc.diagnosis import diagnose
from hangdoc.regress.wanted import text_of, wanted
from hangdoc.report.document import document
from hangdoc.trace.reader import read

GOLDEN_VARIABLE = "HANGDOC_RECORD_GOLDEN"
"""A directory: what the tests record is kept there, each trace with what was said of it."""


def keep(trace: Path, name: str) -> None:
    """Keep a trace under a name ("blocked-fifo", "patients/stopped-rank") if the variable names a directory."""
    directory = os.environ.get(GOLDEN_VARIABLE)
    if not directory or not trace.exists():
        return
    golden = Path(directory, f"{name}.hangtrace")
    golden.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(trace, golden)
    said = document(diagnose(read(golden), "trace"))
    Path(directory, f"{name}.expect.toml").write_text(text_of(wanted(said)), encoding="utf-8")
