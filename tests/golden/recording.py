"""Keep what a test has recorded as a golden trace, with what a replay of it says.

HANGDOC_RECORD_GOLDEN=tests/golden pytest tests/patients     (their twins go to tests/golden/patients)
HANGDOC_RECORD_GOLDEN=tests/golden pytest -m sglang tests/sglang/test_diagnosis.py

Only what passes is kept. A new one replaces the old one of its name; look at the difference before committing it.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

from hangdoc.diagnosis import diagnose
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
    Path(directory, f"{name}.expect.toml").write_text(expectation(said), encoding="utf-8")


def expectation(said: dict[str, object]) -> str:
    """Return what a replay of this document's trace has to say again, in TOML."""
    lines = [f"{key} = {json.dumps(said[key])}" for key in ("verdict", "grade", "phase")]
    culprits = said["culprits"]
    assert isinstance(culprits, list)
    told = ", ".join(_culprit(one) for one in culprits)
    return "\n".join([*lines, f"culprits = [{told}]", ""])


def _culprit(one: dict[str, object]) -> str:
    rank = one["rank"]
    assert isinstance(rank, dict)
    numbers = ", ".join(f"{axis} = {number}" for axis, number in rank.items())
    return f"{{ pid = {one['pid']}, role = {json.dumps(one['role'])}, rank = {{ {numbers} }} }}"
