"""What people read stays short: alike rows are one, and a long list says how much of it is not shown."""

from __future__ import annotations

import json
from pathlib import Path

from hangdoc.cli.output import to_terminal
from hangdoc.ending.records import Thing
from hangdoc.ending.words import MOST_ROWS, stray_parts
from tests.unit.ending.theatre import Theatre


def test_look_alikes_for_one_reason_are_one_row(theatre: Theatre) -> None:
    """Twenty Python programs of the user are one row that counts them; the document names each."""
    cast = theatre.launch("plain", "rank0", "rank1")
    others = {theatre.bystander().pid for _ in range(20)}
    text = theatre.kill_clean(str(cast["launcher"].pid), "--dry-run").out
    shown = [line for line in text.split("Not touched")[1].split("What it has")[0].splitlines() if " x " in line]
    document = json.loads(theatre.kill_clean(str(cast["launcher"].pid), "--dry-run", "--json").out)
    listed = {one["pid"]: one["because"] for one in document["launches"][0]["look_alikes"]}
    assert others <= set(listed)
    assert len(shown) <= min(MOST_ROWS, len(set(listed.values())))
    assert "more: " in text


def test_a_long_list_of_files_is_cut() -> None:
    """Of more files than fit, the first are named with their command, and the rest is counted."""
    strays = [Thing("shm", Path(f"/dev/shm/psm_{number}"), (1, number), 0, False) for number in range(MOST_ROWS + 5)]
    text = to_terminal(list(stray_parts(strays)), no_color=True)
    assert text.count("rm -- ") == MOST_ROWS
    assert "and 5 more (--json lists all)" in text
