"""Feeds odd bytes to everything that reads logs; coverage-guided with atheris where it is installed, else by mutation.

Run as a file: `python tests/fuzz/logs.py --inputs 1000000`. Whatever raises anything but HangdocError is a fault; its
input is kept beside this file as crash-*.
"""

from __future__ import annotations

import argparse
import importlib
import random
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

if not __package__:  # run as a file: the imports below need the repository's root, as pytest has it
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from hangdoc import discovery
from hangdoc.errors import HangdocError
from hangdoc.features.clock import seconds_between
from hangdoc.logs.journal import Journal
from hangdoc.logs.lines import text_of
from hangdoc.logs.pyspy import parse_dump
from hangdoc.logs.recognise import kind_of
from hangdoc.logs.stamps import stamp_of
from hangdoc.logs.stream import Stream

HERE = Path(__file__).resolve().parent
ENGINES = tuple(discovery.engine(name) for name in ("sglang", "vllm", "torchrun", "generic"))
LONGEST_INPUT_BYTES = 4096


def one_input(data: bytes) -> None:
    """Read bytes in every way that a log is read; the first byte says with which engine and in which pieces."""
    choice = data[0] if data else 0
    engine = ENGINES[choice % len(ENGINES)]
    body = data[1:]
    stream = Stream(engine, fast=bool(choice & 4))
    step = 1 + choice // 8 * 7
    for start in range(0, len(body), step):
        stream.feed(body[start : start + step])
    text = stream.finish()
    assert text.size_bytes == len(body)
    seconds_between(text.last_stamp, text.last_stamp)
    stream.journal.table.gpus()
    line = text_of(body)
    Journal(engine).line(line, 0)
    stamp_of(line)
    kind_of(body)
    try:
        parse_dump(body)
    except HangdocError:
        return


def seeds() -> list[bytes]:
    """Real launches and public reports, cut into a few lines each."""
    logs = sorted((HERE.parent / "corpus" / "launches").glob("*.log"))
    texts = [log.read_bytes() for log in logs]
    cases = tomllib.loads((HERE.parent / "corpus" / "cases.toml").read_text())["case"]
    texts += [case["text"].encode() for case in cases]
    return [b"\x25" + text[at : at + 900] for text in texts for at in range(0, len(text), 700)]


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
    for number in range(inputs):
        data = next(stream)
        try:
            check(data)
        except Exception:
            (HERE / f"crash-{number}").write_bytes(data)
            raise
        if number % 50_000 == 49_999:
            print(f"{number + 1} inputs", flush=True)


def by_coverage(inputs: int) -> None:
    """Hand over to atheris, which does not come back."""
    import atheris  # type: ignore[import-not-found,import-untyped,unused-ignore]  # noqa: PLC0415 - optional

    directory = HERE / "seeds"
    directory.mkdir(exist_ok=True)
    for number, seed in enumerate(seeds()):
        (directory / str(number)).write_bytes(seed)
    for name in [name for name in sys.modules if name.startswith(("hangdoc.logs", "tests.fuzz"))]:
        del sys.modules[name]
    with atheris.instrument_imports(include=["hangdoc.logs"]):  # once more, this time watched
        watched = importlib.import_module("tests.fuzz.logs")
    flags = [f"-runs={inputs}", f"-max_len={LONGEST_INPUT_BYTES}", f"-artifact_prefix={HERE}/", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *flags, str(directory)], watched.one_input)
    atheris.Fuzz()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--mutate", action="store_true", help="do not use atheris")
    arguments = parser.parse_args()
    if not arguments.mutate:
        try:
            by_coverage(arguments.inputs)
        except ImportError:
            print("atheris is not installed: mutating instead", flush=True)
    by_mutation(arguments.inputs, arguments.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
