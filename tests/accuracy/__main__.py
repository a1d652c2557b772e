"""Look at all patients, and at real SGLang launches, again and again, and say how often hangdoc was right.

python -m tests.accuracy --rounds 3 --load both --sglang --healthy 50 --table docs/accuracy.md
"""

from __future__ import annotations

import argparse
import shlex
import sys
from fnmatch import fnmatch
from pathlib import Path

from tests.accuracy.beds import look_at_patients
from tests.accuracy.records import Book, Load, Round
from tests.accuracy.servers import CASES, look_at_healthy_servers, look_at_scenarios
from tests.accuracy.table import table
from tests.patients.stage import PATIENTS
from tests.patients.ward import QUIET_BEDS
from tests.sglang.provision import ProvisionError, provision

LOADS: dict[str, tuple[Load, ...]] = {"none": ("none",), "busy": ("busy",), "both": ("none", "busy")}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.accuracy", description=__doc__)
    parser.add_argument("--rounds", type=int, default=1, help="looks at each launch under each load; 0: only the table")
    parser.add_argument("--load", choices=sorted(LOADS), default="none", help="what else the machine does")
    parser.add_argument(
        "--only", default="*", help="patients, scenarios and conditions of healthy servers whose name fits this"
    )
    parser.add_argument("--parallel", type=int, default=QUIET_BEDS, help="patients at a time, a quarter of them busy")
    parser.add_argument("--sglang", action=argparse.BooleanOptionalAction, default=False, help="ill SGLang launches")
    parser.add_argument("--healthy", type=int, default=0, metavar="N", help="look N times at healthy SGLang servers")
    parser.add_argument("--out", type=Path, default=Path(".cache/accuracy.jsonl"), help="records; what is there stays")
    parser.add_argument("--table", type=Path, help="write the table to this file as well")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    book, kept = Book(given.out), given.out.with_suffix(".traces")
    names = sorted(name for name in PATIENTS if fnmatch(name, given.only))
    cases = {case for case in CASES if fnmatch(case, given.only)}
    try:
        rig = provision() if given.sglang or given.healthy else None
    except ProvisionError as error:
        print(f"accuracy: SGLang launches are left out: {error}", file=sys.stderr)
        rig = None
    for number in range(given.rounds):
        for load in LOADS[given.load]:
            now = Round(number, load, book, kept)
            look_at_patients(names, given.parallel, now)
            if rig is not None and given.sglang:
                look_at_scenarios(cases, rig, now)
    if rig is not None:
        look_at_healthy_servers(given.healthy, given.only, rig, book, kept)
    text = table(list(book.records.values()), shlex.join(["python", "-m", "tests.accuracy", *sys.argv[1:]]))
    if given.table is not None:
        given.table.write_text(text, encoding="utf-8")
    print(text)
    return int(any(one.false_hang for one in book.records.values()))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)  # what has been seen is written down; the same command goes on from there
