"""What it costs to tell who holds which lock at 2,000 waiting threads, the reading of their system calls included.

Run it with `python benchmarks/locks.py`.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from hangdoc import discovery
from hangdoc.model.locks import Locks
from hangdoc.model.process import Launch, Process, ProcessKey
from hangdoc.model.reading import Known
from hangdoc.procfs.stat import parse_stat
from hangdoc.sampling.probe import Context, Round

THREADS = 2000
STACK_BYTES = 1 << 18
STAY_S = 3600.0


def one_lock() -> Callable[[], object]:
    """Be threads that wait for one lock, which the main thread holds in a with block."""
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


def target(case: str) -> None:
    threading.stack_size(STACK_BYTES)
    wait = CASES[case]()
    for _ in range(THREADS):
        threading.Thread(target=wait, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


def process(pid: int) -> Process:
    line = parse_stat(Path(f"/proc/{pid}/stat").read_bytes())
    return Process(key=ProcessKey(pid, line.start_ticks), ppid=line.ppid, role="other")


def measure(case: str, rounds: int) -> None:
    command = [sys.executable, __file__, "--target", case]
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    try:
        print(f"{case:34}{row(process(child.pid), rounds)}")
    finally:
        child.kill()
        child.communicate()


def row(one: Process, rounds: int) -> str:
    probe = next(probe for probe in discovery.probes() if probe.name == "locks")
    context = Context(launch=Launch(root=one.key, engine="generic", processes=(one,)), intern=lambda _: 0)
    spent_ms, seen = [], (0, 0, 0)
    for index in range(rounds):
        session = probe.open(context)  # a fresh one each time: every reading is a first one
        before_ns = time.thread_time_ns()
        (sample,) = session.take(Round(index, 0, (one,), thorough=True))
        spent_ms.append((time.thread_time_ns() - before_ns) / 1e6)
        session.close()
        assert isinstance(sample.reading, Known)
        locks = sample.reading.value
        assert isinstance(locks, Locks)
        told = len(locks.python.value) if isinstance(locks.python, Known) else 0
        seen = (len(locks.futexes), len({wait.address for wait in locks.futexes}), told)
    waiting, addresses, told = seen
    return f"{statistics.median(spent_ms):10.1f}{min(spent_ms):10.1f}{waiting:10}{addresses:11}{told:9}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--target", help=argparse.SUPPRESS)
    options.add_argument("--rounds", type=int, default=9, help="readings of each case (default 9)")
    given = options.parse_args()
    if given.target:
        target(given.target)
        return
    print(f"{'CPU ms of a reading':34}{'median':>10}{'least':>10}{'waiting':>10}{'addresses':>11}{'holders':>9}")
    for case in CASES:
        measure(case, given.rounds)


if __name__ == "__main__":
    main()
