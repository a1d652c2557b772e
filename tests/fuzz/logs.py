"""Feeds odd bytes to everything that reads logs; coverage-guided with atheris where it is installed, else by mutation.

Run as a file: `python tests/fuzz/logs.py --inputs 1000000`. Whatever breaks one of the claims of one_input is a fault;
its input is kept beside this file as crash-*.
"""

from __future__ import annotations

import argparse
import importlib
import json
import pickle
import random
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

if not __package__:  # run as a file: the imports below need the repository's root, as pytest has it
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from hangdoc import discovery
from hangdoc.errors import HangdocError
from hangdoc.features.clock import seconds_between
from hangdoc.logs import flight, ras
from hangdoc.logs.encoding import text
from hangdoc.logs.evidence import evidence_kind
from hangdoc.logs.journal import Journal
from hangdoc.logs.lines import text_of
from hangdoc.logs.pyspy import parse_dump
from hangdoc.logs.recognise import kind_of
from hangdoc.logs.stamps import stamp_of
from hangdoc.logs.stream import LogText, Stream
from hangdoc.model.engine import Engine

HERE = Path(__file__).resolve().parent
ENGINES = tuple(discovery.engine(name) for name in ("sglang", "vllm", "torchrun", "generic"))
LONGEST_INPUT_BYTES = 512


def one_input(data: bytes) -> None:
    """Read bytes in every way that an input is read; the first byte says with which engine and in which pieces.

    Claims: nothing raises anything but HangdocError; as many bytes are told as were read; events lie in the log, in
    their order; the same events, dumps, tables and versions are found in pieces as in one piece, and with the
    multi-pattern engine as without it (every fourth input); no NUL is left in what is read as text.
    """
    choice = data[0] if data else 0
    engine = ENGINES[choice % len(ENGINES)]
    body = data[1:]
    step = 1 + choice // 8 * 16
    found, told = _read(engine, body, step, fast=bool(choice & 4))
    assert found.size_bytes == len(body)
    offsets = [event.offset for event in found.events]
    assert offsets == sorted(offsets)
    assert all(0 <= offset <= len(body) for offset in offsets)
    assert choice & 24 or (found, told) == _read(engine, body, len(body) or 1, fast=not choice & 4)
    seconds_between(found.last_stamp, found.last_stamp)
    clean = b"".join(text(body[at : at + step] for at in range(0, len(body), step)))
    assert b"\0" not in clean
    _small_parsers(engine, body)


def _read(engine: Engine, body: bytes, step: int, *, fast: bool) -> tuple[LogText, tuple[object, ...]]:
    stream = Stream(engine, fast=fast)
    for start in range(0, len(body), step):
        stream.feed(body[start : start + step])
    found, journal = stream.finish(), stream.journal
    return found, (journal.dumps.processes, journal.table.gpus(), journal.version, journal.settings, journal.launches)


def _small_parsers(engine: Engine, body: bytes) -> None:
    line = text_of(body)
    Journal(engine).line(line, 0)
    stamp_of(line)
    kind_of(body)
    evidence_kind(body)
    for parse in (parse_dump, flight.parse, ras.parse):
        with suppress(HangdocError):
            parse(body)


def seeds() -> list[bytes]:
    """Real launches and public reports, cut into a few lines each, and what stands beside logs."""
    logs = sorted((HERE.parent / "corpus" / "launches").glob("*.log"))
    texts = [log.read_bytes() for log in logs]
    cases = tomllib.loads((HERE.parent / "corpus" / "cases.toml").read_text())["case"]
    texts += [case["text"].encode() for case in cases]
    found = [bytes([32 + at // 350 % 64]) + text[at : at + 400] for text in texts for at in range(0, len(text), 350)]
    status = {"0": {"last_enqueued_collective": 17, "last_completed_collective": 16}}
    entry = {"collective_seq_id": 17, "pg_id": 0, "process_group": ["0", "default_pg"], "retired": False}
    recorder = {"entries": [entry], "pg_status": status}
    ranks = [{"rank": one, "pid": 7, "collective_counts": {"AllReduce": one}} for one in (0, 1)]
    answer = {"nccl_version": "2.30.7", "communicators": [{"ranks": ranks, "missing_ranks": [{"rank": 2}]}]}
    asked = (
        "NCCL version 2.28.9 compiled with CUDA 12.9\nDEAD\n  1 job process is considered dead (unreachable via\n"
        "  Process 7 on node ::1 managing GPU 3\n\n#0-0 (78db921d) INCOMPLETE\n"
        "  Missing communicator data from 1 rank\n  The missing rank: 2\n#0-1 (27a079b8) MISMATCH\n"
        "  Communicator ranks have different AllReduce operation counts\n  2 ranks have launched up to operation 17\n"
        "  Rank 1 has launched up to operation 7 -- GPU 1 managed by process 8 on node ::1\n"
        "  3 ranks reported Internal error\n  Rank 0 -- [process information not found]\n"
    )
    others = (
        asked.encode(),
        pickle.dumps(recorder, protocol=2),
        json.dumps(recorder).encode(),
        json.dumps(answer, indent=1).encode(),
    )
    return [
        *found,
        *(first + one for one in others for first in (b"\x25", b"\x2d")),
        b"\x25" + "[12:00:01] Killed\n".encode("utf-16"),
    ]


def mutated(dice: random.Random, known: list[bytes]) -> Iterator[bytes]:
    """Yield inputs without end: seeds with bytes flipped, cut out, doubled, or spliced with another seed."""
    while True:
        data = bytearray(dice.choice(known))
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(len(data) + 1)
            match dice.randrange(5):
                case 0:
                    data[at:at] = bytes(dice.randrange(256) for _ in range(dice.randrange(1, 5)))
                case 1:
                    del data[at : at + dice.randrange(1, 40)]
                case 2:
                    other = dice.choice(known)
                    begin = dice.randrange(len(other))
                    data[at:at] = other[begin : begin + dice.randrange(1, 200)]
                case 3:
                    data[at:at] = data[at : at + dice.randrange(1, 30)] * dice.randrange(1, 4)
                case _:
                    data[at:at] = dice.choice(
                        (b"\r", b"\n", b"\x1b[31m", b"\xff", b"\0", b"9" * 30, b'{"log":"', b"| ")
                    )
        yield bytes(data[:LONGEST_INPUT_BYTES])


def by_mutation(inputs: int, seed: int, check: Callable[[bytes], None] = one_input) -> None:
    """Feed this many mutated inputs; a fault raises, with its input kept."""
    dice = random.Random(seed)
    stream = mutated(dice, seeds())
    begin_s = time.monotonic()
    for number in range(inputs):
        data = next(stream)
        try:
            check(data)
        except Exception:
            (HERE / f"crash-{number}").write_bytes(data)
            raise
        if number % 50_000 == 49_999:
            print(f"{number + 1} inputs, {(number + 1) / (time.monotonic() - begin_s):,.0f} a second", flush=True)


def by_coverage(inputs: int, seed: int, directory: Path) -> None:
    """Hand over to atheris, which does not come back: it keeps what reaches new code, and mutates that."""
    import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415 - optional

    directory.mkdir(exist_ok=True)
    for number, one in enumerate(seeds()):
        (directory / f"seed-{number}").write_bytes(one)
    for name in [name for name in sys.modules if name.startswith(("hangdoc.logs", "tests.fuzz"))]:
        del sys.modules[name]
    with atheris.instrument_imports(include=["hangdoc.logs"]):  # once more, this time watched
        watched = importlib.import_module("tests.fuzz.logs")
    flags = [f"-runs={inputs}", f"-max_len={LONGEST_INPUT_BYTES}", f"-artifact_prefix={HERE}/", f"-seed={seed}"]
    atheris.Setup([sys.argv[0], *flags, "-print_final_stats=1", str(directory)], watched.one_input)
    atheris.Fuzz()


def side_by_side(inputs: int, jobs: int, *, mutate: bool) -> int:
    """Divide the inputs among processes, each with a dice of its own, all with one directory of finds."""
    share = -(-inputs // jobs)
    command = [sys.executable, __file__, "--inputs", str(share), *(["--mutate"] if mutate else [])]
    children = [subprocess.Popen([*command, "--seed", str(seed)]) for seed in range(1, jobs + 1)]
    return max(child.wait() != 0 for child in children)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side")
    parser.add_argument("--mutate", action="store_true", help="do not use atheris")
    arguments = parser.parse_args()
    if arguments.jobs > 1:
        return side_by_side(arguments.inputs, arguments.jobs, mutate=arguments.mutate)
    if not arguments.mutate:
        try:
            by_coverage(arguments.inputs, arguments.seed, HERE / "seeds")
        except ImportError:
            print("atheris is not installed: mutating instead", flush=True)
    by_mutation(arguments.inputs, arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
