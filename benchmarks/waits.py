"""What the graph of waits costs at 2,000 waiting threads, and what a whole observation does to the process observed.

Run it with `python benchmarks/waits.py`. Figures are printed, never asserted. First the CPU time of a first thorough
round of the probes that see waits and of the graph that is drawn from two such rounds. Then the gaps between the beats
of a thread that sleeps 0.5 ms again and again in a target with 200 waiting threads and unwritten text: nobody observed,
another process observed (the same work on the same processors), and the target itself, with every probe at 1 Hz.
Phases alternate, so that whatever else the machine does falls on each.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue

from targets import context, launch_of, process, timed

from hangdoc import discovery
from hangdoc.features.features import Features, features
from hangdoc.features.index import window_of
from hangdoc.features.launch_waits import deadlocks, latest_edges, standing_graph
from hangdoc.model.process import Process
from hangdoc.model.reading import Known
from hangdoc.model.snapshot import Sample, Snapshot
from hangdoc.sampling.collect import Observer
from hangdoc.sampling.probe import Probe, Round
from hangdoc.trace.records import Header, Trace

THREADS, CROWD = 2000, 200
STACK_BYTES = 1 << 18
STAY_S = 3600.0
BEAT_S = 0.0005
PROBES = ("futex", "locks", "links")


def one_lock() -> Callable[[], object]:
    """Be threads that wait for one lock, which another thread holds in a with block."""
    lock = threading.Lock()
    threading.Thread(target=keep, args=(lock, taken := threading.Event()), daemon=True).start()
    taken.wait()
    return lock.acquire


def keep(lock: threading.Lock, taken: threading.Event) -> None:
    with lock:
        taken.set()
        time.sleep(STAY_S)


def pool() -> Callable[[], object]:
    """Be an idle pool: each thread waits in Condition.wait for a lock of its own."""
    condition = threading.Condition()

    def wait() -> None:
        with condition:
            condition.wait()

    return wait


def queue() -> Callable[[], object]:
    """Be an idle pool that waits in C: all threads for one semaphore, in no Python frame of their own."""
    waiting: SimpleQueue[object] = SimpleQueue()
    return waiting.get


CASES = {"one Lock, held in a with block": one_lock, "idle pool, a lock each": pool, "SimpleQueue": queue}


def crowd(case: str, threads: int) -> None:
    """Be a target: threads that wait, until the input ends."""
    threading.stack_size(STACK_BYTES)
    wait = CASES[case]()
    for _ in range(threads):
        threading.Thread(target=wait, daemon=True).start()
    os.write(2, b"ready\n")
    sys.stdin.read()


def heart() -> None:
    """Be a target with a beating thread: each line of the input is answered with the gaps since the last one, in ms."""
    gaps: list[float] = []

    def beat() -> None:
        last = time.perf_counter()
        while True:
            time.sleep(BEAT_S)
            now = time.perf_counter()
            gaps.append((now - last) * 1e3)
            last = now

    for number in range(700):
        print("line", number)  # text that stays in the buffer, because standard output is no terminal
    wait = one_lock()
    for work in (beat, *(wait for _ in range(CROWD))):
        threading.Thread(target=work, daemon=True).start()
    os.write(2, b"ready\n")
    while sys.stdin.readline():
        taken, gaps[:] = list(gaps), []
        os.write(2, json.dumps(taken).encode() + b"\n")


@contextmanager
def target(*options: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    pipe = subprocess.PIPE
    command = [sys.executable, __file__, "--target", *options]
    child = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment)
    assert child.stderr is not None
    assert child.stderr.readline() == b"ready\n"
    try:
        yield child
    finally:
        child.kill()
        child.communicate()


def measure(case: str, rounds: int) -> None:
    probes = [probe for probe in discovery.probes() if probe.name in PROBES]
    spent: dict[str, list[float]] = {name: [] for name in (*PROBES, "graph")}
    with target(case) as child:
        one = process(child.pid)
        for _ in range(rounds):
            looks: list[tuple[Sample, ...]] = []
            for number in range(2):
                samples: tuple[Sample, ...] = ()
                now = Round(0, time.clock_gettime_ns(time.CLOCK_BOOTTIME), (one,), thorough=True)
                for probe in probes:  # what all three need, the first one reads
                    cost_ms, found = timed(lambda: first_take(probe, one, now))  # noqa: B023
                    samples += found
                    if number:
                        spent[probe.name].append(cost_ms)
                looks.append(samples)
            cost_ms, edges = timed(lambda: graph(one, looks))  # noqa: B023
            spent["graph"].append(cost_ms)
    medians = [statistics.median(spent[name]) for name in (*PROBES, "graph")]
    print(f"{case:34}" + "".join(f"{ms:9.1f}" for ms in (*medians, sum(medians))) + f"{edges:9}")


def first_take(probe: Probe, one: Process, now: Round) -> tuple[Sample, ...]:
    session = probe.open(context(one))  # a fresh one each time: every reading is a first one
    try:
        samples = tuple(session.take(now))
    finally:
        session.close()
    assert all(isinstance(sample.reading, Known) for sample in samples), samples
    return samples


def graph(one: Process, looks: list[tuple[Sample, ...]]) -> int:
    """Draw everything about waits that a diagnosis asks for; return how many edges there are."""
    seen = seen_in(one, looks)
    deadlocks(seen)
    latest_edges(seen)
    return len(standing_graph(seen).edges)


def seen_in(one: Process, looks: list[tuple[Sample, ...]]) -> Features:
    header = Header(
        hangdoc="0",
        host="host",
        machine=os.uname().machine,
        cpus=1,
        clock_ticks_per_s=100,
        started_wall_ns=0,
        interval_s=1.0,
        launch=launch_of(one),
    )
    snapshots = tuple(
        Snapshot(index=index, at_ns=samples[0].taken_ns, wall_ns=samples[0].taken_ns, processes=(one,), samples=samples)
        for index, samples in enumerate(looks)
    )
    trace = Trace(header=header, stacks=(), snapshots=snapshots)
    return features(trace, discovery.engine("generic"), window_of(trace, 0, len(looks) - 1), steady=True)


def gaps_of(child: subprocess.Popen[bytes]) -> list[float]:
    """Return the gaps since the last question."""
    assert child.stdin is not None
    assert child.stderr is not None
    child.stdin.write(b"?\n")
    child.stdin.flush()
    found: list[float] = json.loads(child.stderr.readline())
    return found


def heartbeat(phases: int, phase_s: float) -> None:
    gaps: dict[str, list[float]] = {name: [] for name in ("nobody observed", "another observed", "it is observed")}
    with target("heart") as child, target("heart") as another:
        subjects = dict(zip(gaps, (None, process(another.pid), process(child.pid)), strict=True))
        for _ in range(phases):
            for name, subject in subjects.items():
                gaps_of(child)
                observe(subject, phase_s)
                gaps[name] += gaps_of(child)
    print(f"\ngaps of a heartbeat of {BEAT_S * 1e3:g} ms, in ms; {phases} phases of {phase_s:g} s each, alternating")
    print(f"{'':20}{'beats':>9}{'median':>9}{'p90':>9}{'p99':>9}{'p99.9':>9}{'largest':>9}")
    for name, found in gaps.items():
        found.sort()
        shares = (found[int(share * (len(found) - 1))] for share in (0.5, 0.9, 0.99, 0.999, 1))
        print(f"{name:20}{len(found):9}" + "".join(f"{gap:9.2f}" for gap in shares))


def observe(subject: Process | None, phase_s: float) -> None:
    """Observe a process with every probe at 1 Hz for a phase, or nobody."""
    end_s = time.monotonic() + phase_s
    if subject is not None:
        with Observer(context(subject), discovery.probes(), lambda: (subject,)) as observer:
            for _ in observer.rounds():
                if time.monotonic() > end_s - 1:
                    break
            time.sleep(max(0.0, end_s - time.monotonic()))
    else:
        time.sleep(phase_s)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--target", help=argparse.SUPPRESS)
    options.add_argument("--rounds", type=int, default=9, help="readings of each case (default 9)")
    options.add_argument("--phases", type=int, default=5, help="phases of each kind (default 5)")
    options.add_argument("--phase-s", type=float, default=5.0, help="length of a phase (default 5)")
    given = options.parse_args()
    if given.target == "heart":
        heart()
    elif given.target:
        crowd(given.target, THREADS)
    else:
        columns = "".join(f"{name:>9}" for name in (*PROBES, "graph", "together", "edges"))
        print(f"{f'CPU ms, {THREADS:,} waiting threads':34}{columns}")
        for case in CASES:
            measure(case, given.rounds)
        heartbeat(given.phases, given.phase_s)


if __name__ == "__main__":
    main()
