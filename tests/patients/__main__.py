"""Be one patient: python -m tests.patients NAME --parent PID --ready FD --folder DIR."""

from __future__ import annotations

import argparse

from tests.patients import deaths, idle, lock_files, locks, pipes, spins, starts, stops, waits
from tests.patients.stage import PATIENTS, Stage, tie_to_parent

WARDS = (deaths, idle, lock_files, locks, pipes, spins, starts, stops, waits)


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
