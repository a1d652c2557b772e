"""What a sweep over 10 processes with 200 threads each costs: hangdoc, psutil, a bare C loop; one run, one table.

Run it with `python benchmarks/snapshot.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from targets import context, process, timed

from hangdoc import discovery
from hangdoc.model.process import Process
from hangdoc.sampling.collect import Observer
from hangdoc.sampling.probe import Probe, Round

PROCESSES, THREADS = 10, 200
AWAKE_EVERY = 20
"""One thread in twenty polls ten times a second, as the helper threads of a server do; the others sleep."""
SPIN, SERVE = "spin\n", "serve\n"
CHEAP = ("cpu", "progress", "fds", "futex")


@dataclass
class Row:
    """One method: what it reads of a thread, and the CPU time of each of its sweeps."""

    name: str
    fields: str
    sweep: Callable[[], float]
    spent_ms: list[float] = field(default_factory=list)


def target(threads: int) -> None:
    """Be the target: one process with this many threads."""
    awake = threading.Event()

    def poll() -> None:
        while not awake.wait(0.1):
            pass

    for number in range(threads - 1):
        work = poll if number % AWAKE_EVERY == 0 else awake.wait
        threading.Thread(target=work, daemon=True).start()
    print("ready", flush=True)
    order = sys.stdin.readline()
    if order == SERVE:
        event_loop_normal()
    if order == SPIN:
        loop_for_ever()


def event_loop_normal() -> None:
    """Be well: poll for requests as SGLang's scheduler does, under its name."""
    while True:
        time.sleep(0.005)


def loop_for_ever() -> None:
    """Be ill: go round without getting anywhere, as the busy-wait that the observation is to find."""
    turns = 0
    while turns >= 0:
        turns += 1
        turns -= 1


def start_rank(number: int) -> subprocess.Popen[str]:
    """Start a target under the title of one of SGLang's schedulers: of such a launch a verdict is due after 5 s."""
    return subprocess.Popen(
        [f"sglang::scheduler_TP{number}", __file__, "--target", str(THREADS)],
        executable=sys.executable,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},  # by this title Python does not find its packages
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def launcher() -> None:
    """Be the launch: start the targets, have the first one spin or all of them serve, end them with the input."""
    children = [start_rank(number) for number in range(PROCESSES)]
    for child in children:
        assert child.stdout is not None
        child.stdout.readline()
    print(*(child.pid for child in children), flush=True)
    for order in sys.stdin:
        for child in children[:1] if order == SPIN else children:
            assert child.stdin is not None
            child.stdin.write(order)
            child.stdin.flush()
    for child in children:
        child.kill()


@contextmanager
def launch() -> Iterator[tuple[subprocess.Popen[str], tuple[Process, ...]]]:
    command = [sys.executable, __file__, "--launcher"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as started:
        assert started.stdout is not None
        yield started, tuple(process(int(pid)) for pid in started.stdout.readline().split())
        started.communicate()


def hangdoc_warm(stack: ExitStack, cpu: Probe, processes: tuple[Process, ...]) -> Callable[[], float]:
    session = cpu.open(context(*processes))
    stack.callback(session.close)
    now = Round(1, time.clock_gettime_ns(time.CLOCK_BOOTTIME), processes, thorough=False)
    list(session.take(now))
    return lambda: timed(lambda: list(session.take(now)))[0]


def hangdoc_cold(cpu: Probe, processes: tuple[Process, ...], *, thorough: bool) -> float:
    session = cpu.open(context(*processes))
    try:
        now = Round(0, time.clock_gettime_ns(time.CLOCK_BOOTTIME), processes, thorough)
        return timed(lambda: list(session.take(now)))[0]
    finally:
        session.close()


def psutil_objects(tids: list[int]) -> None:
    for tid in tids:
        thread = psutil.Process(tid)
        with thread.oneshot():
            thread.num_ctx_switches(), thread.cpu_times(), thread.status()


def bare_loop(stack: ExitStack, program: Path, how: str, pids: list[int]) -> Callable[[], float]:
    command = [str(program), how, *map(str, pids)]
    child = stack.enter_context(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    requests, answers = child.stdin, child.stdout
    assert requests is not None
    assert answers is not None
    stack.callback(requests.close)

    def sweep() -> float:
        print(file=requests, flush=True)
        spent_ns, threads, _ = map(int, answers.readline().split())
        assert threads == PROCESSES * THREADS, threads
        return spent_ns / 1e6

    sweep()
    return sweep


def compiled(directory: Path) -> Path | None:
    compiler = shutil.which("cc")
    if compiler is None:
        print("no C compiler (cc): the bare loops are left out")
        return None
    program = directory / "sweep"
    subprocess.run([compiler, "-O2", "-o", str(program), str(Path(__file__).with_name("sweep.c"))], check=True)
    return program


def rows(stack: ExitStack, processes: tuple[Process, ...]) -> Iterator[Row]:
    cpu = next(probe for probe in discovery.probes() if probe.name == "cpu")
    pids = [one.key.pid for one in processes]
    whole = [psutil.Process(pid) for pid in pids]
    tids = [thread.id for one in whole for thread in one.threads()]
    states = "state, faults, switches"
    yield Row(
        "hangdoc warm (held)",
        f"run_ns, wait_ns, slices; stat a process; {states} of main and moved threads",
        hangdoc_warm(stack, cpu, processes),
    )
    yield Row("hangdoc cold", "the same, descriptors opened", lambda: hangdoc_cold(cpu, processes, thorough=False))
    yield Row(
        "hangdoc cold, thorough",
        f"the same, and name, {states}, ticks of all",
        lambda: hangdoc_cold(cpu, processes, thorough=True),
    )
    yield Row(
        "psutil Process.threads()",
        "utime, stime (ticks)",
        lambda: timed(lambda: [one.threads() for one in whole])[0],
    )
    yield Row(
        "psutil object a thread",
        "switches, cpu_times, status (oneshot)",
        lambda: timed(lambda: psutil_objects(tids))[0],
    )
    program = compiled(Path(stack.enter_context(tempfile.TemporaryDirectory())))
    if program:
        yield Row("C loop, held", "run_ns, wait_ns, slices", bare_loop(stack, program, "held", pids))
        yield Row("C loop, opened", "run_ns, wait_ns, slices", bare_loop(stack, program, "opened", pids))


def table(processes: tuple[Process, ...], rounds: int) -> None:
    with ExitStack() as stack:
        measured = list(rows(stack, processes))
        for number in range(rounds):
            # Once a second and in turn, so that every method meets the caches as a sampler at 1 Hz does.
            for row in measured[number % len(measured) :] + measured[: number % len(measured)]:
                row.spent_ms.append(row.sweep())
                time.sleep(1 / len(measured))
    ours = statistics.median(measured[0].spent_ms)
    print(f"{'':26}{'ms CPU a sweep':>16}{'us a thread':>13}{'x warm':>8}   fields of each thread")
    for row in measured:
        median = statistics.median(row.spent_ms)
        each = median * 1000 / (PROCESSES * THREADS)
        print(f"{row.name:26}{median:16.2f}{each:13.2f}{median / ours:8.1f}   {row.fields}")


def own_share(processes: tuple[Process, ...], seconds: int) -> None:
    """Print what following the target costs: the cheap probes at 1 Hz, then a whole first observation."""
    cheap = [probe for probe in discovery.probes() if probe.name in CHEAP]
    for names, probes, rounds in (("+".join(CHEAP), cheap, seconds), ("all probes, first 5 s", discovery.probes(), 6)):
        with Observer(context(*processes), probes, lambda: processes) as observer:
            if probes is cheap:
                observer.pace.calm_down()
            for snapshot in observer.rounds():
                if snapshot.index == 0 and probes is cheap:
                    observer.restart_meter()
                if snapshot.index == rounds - 1 + (probes is cheap):
                    break
            observer.finish()
            used = observer.overhead()
        print(
            f"own CPU at 1 Hz, {names}: {used.own_cpu_s / used.wall_s:.2%} of a core"
            f" and {used.children_cpu_s / used.wall_s:.2%} in programs it ran"
        )


def watch_once(patient: subprocess.Popen[str]) -> None:
    """Print how long the verdict takes, once one of the processes spins and the others wait."""
    assert patient.stdin is not None
    patient.stdin.write(SPIN)
    patient.stdin.flush()
    command = [str(Path(sys.executable).with_name("hangdoc")), "watch", str(patient.pid), "--once", "--json"]
    begun_s = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    wall_s = time.monotonic() - begun_s
    if not done.stdout.lstrip().startswith("{"):
        print("hangdoc watch PID --once: left out, the command gives no diagnosis yet")
        return
    document = json.loads(done.stdout)
    told = f"{document['verdict']} ({document['grade']}) of {len(document['processes'])} processes"
    print(f"hangdoc watch PID --once: {told} after {wall_s:.1f} s wall, {document['window_s']:.1f} s of them observed")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--target", type=int, help=argparse.SUPPRESS)
    options.add_argument("--launcher", action="store_true", help=argparse.SUPPRESS)
    options.add_argument("--rounds", type=int, default=9, help="sweeps of each method (default 9)")
    options.add_argument("--seconds", type=int, default=20, help="length of the 1 Hz measurement (default 20)")
    given = options.parse_args()
    if given.target:
        target(given.target)
        return
    if given.launcher:
        launcher()
        return
    with launch() as (started, processes):
        print(f"target: {PROCESSES} processes x {THREADS} threads; medians of {given.rounds} sweeps, taken in turn")
        table(processes, given.rounds)
        own_share(processes, given.seconds)
        watch_once(started)


if __name__ == "__main__":
    main()
