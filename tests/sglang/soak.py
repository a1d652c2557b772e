"""Watch a healthy real server for long, idle and loaded: nothing may be called a hang, and hangdoc may not grow.

Run it with `make soak`, or `python -m tests.sglang.soak --seconds 3600`.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from hangdoc.model.diagnosis import HANG_VERDICTS
from tests.sglang.launches import Launch, start
from tests.sglang.provision import provision
from tests.unit.cli.commands import argv, environment

SAMPLE_S = 2.0
SPELL_S = 60.0
"""How long the server is left idle, or loaded, before that changes; a short soak has four spells."""
WARM_UP_RATIO = 0.25
"""Share of the samples that are hangdoc's own start."""
MOST_BYTES_PER_SAMPLE, LEAST_BYTES = 256 << 10, 24 << 20
"""Growth that counts as none: generous, because Python's allocator takes memory in steps."""
MOST_DESCRIPTORS = 24
"""How many descriptors may come and go: pipes of stack dumps, a log that is opened again."""
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Sample:
    """hangdoc at one moment. cpu_s: its own and that of the programs it ran and that ended."""

    at_s: float
    loaded: bool
    memory_bytes: int
    descriptors: int
    cpu_s: float


@dataclass
class Soak:
    """What came of it. documents: every one that was printed."""

    samples: list[Sample] = field(default_factory=list)
    documents: list[dict[str, object]] = field(default_factory=list)
    code: int | None = None
    complaints: str = ""

    @property
    def settled(self) -> list[Sample]:
        return self.samples[int(len(self.samples) * WARM_UP_RATIO) :]

    def false_hangs(self) -> list[str]:
        sure = [one for one in self.documents if one["grade"] in ("confirmed", "likely")]
        return [str(one["headline"]) for one in sure if one["verdict"] in HANG_VERDICTS]

    def slope(self, name: str) -> float:
        """Growth of a figure, per second, as a line through the settled samples."""
        times = [one.at_s for one in self.settled]
        return statistics.linear_regression(times, [float(getattr(one, name)) for one in self.settled]).slope

    def cpu_ratio(self, *, loaded: bool) -> float:
        """hangdoc's share of one core while the server was idle or loaded."""
        pairs = [(a, b) for a, b in zip(self.settled, self.settled[1:], strict=False) if a.loaded == b.loaded == loaded]
        wall_s = sum(later.at_s - earlier.at_s for earlier, later in pairs)
        return sum(later.cpu_s - earlier.cpu_s for earlier, later in pairs) / wall_s if wall_s else float("nan")

    def growth_is_flat(self) -> bool:
        span_s = self.settled[-1].at_s - self.settled[0].at_s
        allowed = max(LEAST_BYTES, MOST_BYTES_PER_SAMPLE * span_s / SPELL_S)
        counts = [one.descriptors for one in self.settled]
        return self.slope("memory_bytes") * span_s <= allowed and max(counts) - min(counts) <= MOST_DESCRIPTORS

    def lines(self) -> Iterator[str]:
        span_s = self.samples[-1].at_s - self.samples[0].at_s
        counts = [one.descriptors for one in self.settled]
        yield f"{span_s:.0f} s, {len(self.documents)} documents, false hangs: {self.false_hangs() or 0}"
        yield (
            f"memory {self.settled[0].memory_bytes / 2**20:.1f} to {self.settled[-1].memory_bytes / 2**20:.1f} MiB, "
            f"{self.slope('memory_bytes') * 3600 / 2**20:+.1f} MiB an hour"
        )
        yield f"descriptors {min(counts)} to {max(counts)}, {self.slope('descriptors') * 3600:+.1f} an hour"
        yield f"own CPU {self.cpu_ratio(loaded=False):.1%} of a core idle, {self.cpu_ratio(loaded=True):.1%} loaded"


def soak(launch: Launch, seconds: float, directory: Path) -> Soak:
    """Watch a launch that is ready, for so many seconds."""
    out = directory / "documents"
    options = ("--json", "--record", str(directory / "evidence"), "--state", str(directory / "state"))
    done = Soak()
    with out.open("wb") as documents:
        hangdoc = subprocess.Popen(
            argv("watch", str(launch.pid), *options),
            stdin=subprocess.DEVNULL,
            stdout=documents,
            stderr=subprocess.PIPE,
            env=environment(),
        )
    try:
        sample_while(hangdoc, launch, seconds, done)
    finally:
        hangdoc.send_signal(signal.SIGTERM)
        _, complaints = hangdoc.communicate(timeout=seconds + 60)
    done.code, done.complaints = hangdoc.returncode, complaints.decode()
    done.documents = [json.loads(line) for line in out.read_text().splitlines()]
    return done


def sample_while(hangdoc: subprocess.Popen[bytes], launch: Launch, seconds: float, into: Soak) -> None:
    handle = os.pidfd_open(hangdoc.pid)
    spell_s = min(SPELL_S, seconds / 4)
    begin_s = time.monotonic()
    try:
        while (at_s := time.monotonic() - begin_s) < seconds:
            loaded = int(at_s / spell_s) % 2 == 1
            with load(launch) if loaded else idle():
                until_s = min(seconds, (int(at_s / spell_s) + 1) * spell_s)
                while time.monotonic() - begin_s < until_s:
                    if select.select([handle], [], [], SAMPLE_S)[0]:
                        return
                    into.samples.append(sample_of(hangdoc.pid, time.monotonic() - begin_s, loaded))
    finally:
        os.close(handle)


def sample_of(pid: int, at_s: float, loaded: bool) -> Sample:
    home = Path(f"/proc/{pid}")
    fields = (home / "stat").read_text().rpartition(") ")[2].split()
    memory = int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    cpu_s = sum(map(int, fields[11:15])) / TICKS_PER_S
    return Sample(at_s, loaded, memory, len(list((home / "fd").iterdir())), cpu_s)


@contextmanager
def idle() -> Iterator[None]:
    yield


@contextmanager
def load(launch: Launch) -> Iterator[None]:
    """One request after the other, until the end of the spell."""
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            launch.generate(tokens=32)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield
    finally:
        over.set()
        asking.join()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3600.0)
    seconds = parser.parse_args().seconds
    with (
        tempfile.TemporaryDirectory(prefix="hangdoc-soak-") as folder,
        start("healthy-tp1", directory=Path(folder) / "server", rig=provision()) as launch,
    ):
        done = soak(launch.wait_until_ill(), seconds, Path(folder))
    print("\n".join(done.lines()))
    print(done.complaints, end="")
    return int(bool(done.false_hangs()) or not done.growth_is_flat() or done.code not in (0, 3))


if __name__ == "__main__":
    sys.exit(main())
