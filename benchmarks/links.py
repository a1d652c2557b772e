"""What it costs to see who could end each wait: 9 processes with 300 descriptors, as a server with 8 ranks has.

Run it with `python benchmarks/links.py`. Descriptors of the other processes on the host are read as well.
"""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from targets import context, process, timed

from hangdoc import discovery
from hangdoc.model.link import Links
from hangdoc.model.process import Process
from hangdoc.model.reading import Known
from hangdoc.sampling.probe import Round, Session

PROCESSES, DESCRIPTORS = 9, 300
WAITS = ("pipe", "socket", "tcp")


def target(kind: str) -> None:
    """Be one rank: some pipes and files, and a main thread that waits; its peer is the same process's child."""
    for _ in range((DESCRIPTORS // PROCESSES - 6) // 2):
        os.pipe()
    if kind == "pipe":
        ours, theirs = os.pipe()
    elif kind == "socket":
        ours, theirs = (end.detach() for end in socket.socketpair())
    else:
        server = socket.create_server(("127.0.0.1", 0))
        ours = socket.create_connection(server.getsockname()).detach()
        theirs = server.accept()[0].detach()
        server.close()
    if os.fork() == 0:
        os.close(ours)
        sys.stdin.read()
        os._exit(0)
    os.close(theirs)
    print("ready", flush=True)
    os.read(ours, 1)


@contextmanager
def targets() -> Iterator[tuple[Process, ...]]:
    commands = [[sys.executable, __file__, "--target", WAITS[number % len(WAITS)]] for number in range(PROCESSES)]
    children = [subprocess.Popen(one, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for one in commands]
    try:
        for child in children:
            assert child.stdout is not None
            child.stdout.readline()
        yield tuple(process(child.pid) for child in children)
    finally:
        for child in children:
            child.communicate()


def take(session: Session, processes: tuple[Process, ...], *, thorough: bool) -> tuple[float, int]:
    """Return the CPU time of one round in ms, and how many links it found."""
    now = Round(0, time.clock_gettime_ns(time.CLOCK_BOOTTIME), processes, thorough)
    spent_ms, samples = timed(lambda: list(session.take(now)))
    found = [one.reading.value for one in samples if isinstance(one.reading, Known)]
    return spent_ms, sum(len(one.links) for one in found if isinstance(one, Links))


def descriptors(pids: list[int]) -> int:
    count = 0
    for pid in pids:
        try:
            count += sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
        except OSError:
            continue
    return count


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--target", choices=WAITS, help=argparse.SUPPRESS)
    options.add_argument("--rounds", type=int, default=15, help="rounds of each kind (default 15)")
    given = options.parse_args()
    if given.target:
        target(given.target)
        return
    probe = next(probe for probe in discovery.probes() if probe.name == "links")
    with targets() as processes:
        session = probe.open(context(*processes))
        rounds = [
            (take(session, processes, thorough=True), take(session, processes, thorough=False))
            for _ in range(given.rounds)
        ]
        session.close()
        everybody = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
        own = descriptors([one.key.pid for one in processes])
        print(f"{len(processes)} processes with {own} descriptors, {rounds[-1][0][1]} links found")
        print(f"on the host: {len(everybody)} processes, {descriptors(everybody)} descriptors that may be read")
        for name, column in (("thorough", 0), ("ordinary", 1)):
            spent = [one[column][0] for one in rounds]
            median, least, most = statistics.median(spent), min(spent), max(spent)
            print(f"{name} round: median {median:.1f} ms CPU, least {least:.1f}, most {most:.1f}")


if __name__ == "__main__":
    main()
