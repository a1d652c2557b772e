"""Be one patient: python -m tests.patients NAME --parent PID --ready FD --folder DIR."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from tests.patients.stage import PATIENTS, Stage, tie_to_parent

THE_HOUSE = frozenset({"__main__", "build", "companions", "conftest", "needs", "stage", "vitals", "ward"})
"""Modules that have no patients; a new file beside them is found without registration."""

WARDS = tuple(
    importlib.import_module(f"tests.patients.{path.stem}")
    for path in sorted(Path(__file__).parent.glob("*.py"))
    if path.stem not in THE_HOUSE and not path.stem.startswith("test_")
)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("name", choices=sorted(PATIENTS))
    parser.add_argument("--parent", type=int, required=True)
    parser.add_argument("--ready", type=int, required=True)
    parser.add_argument("--folder", required=True)
    given = parser.parse_args()
    tie_to_parent(given.parent)
    PATIENTS[given.name].act(Stage(given.ready, given.folder))


if __name__ == "__main__":
    main()
