"""Start patients, look at each as `hangdoc watch --once` does, and leave nothing behind."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hangdoc.trace.reader import read
from hangdoc.trace.records import Trace
from tests.patients import spins, starts
from tests.patients.__main__ import WARDS
from tests.patients.stage import PATIENTS, Patient

ROOT = Path(__file__).parents[2]
QUIET_BEDS, BUSY_BEDS = 8, 2
"""Patients looked at at a time, of those that sleep and of those that burn CPU. Arbitrary: some competition is wanted,
a crowd on two cores is the illness of one patient alone."""

START_S, LOOK_S = 60.0, 120.0
"""Safety nets, far above what a start (0.3 s) and a look (10 s) take."""

SURE_S, UNSURE_S = 30, 8
"""Longest windows: of a patient that must be told what it is, which takes 5 s or what a full machine needs; and of one
for which "undetermined" will do, which takes all of it."""

SLOW_READER = "import os,time\nwhile True:\n if not os.read(0, 6000): break\n time.sleep(0.5)"
HANGDOC = (sys.executable, "-c", "from hangdoc.cli.main import main; main()")
BURNER = "while True: pass"
LOCK_HOLDER = """
import fcntl, signal, sys
lock = open(sys.argv[1] + "/lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX)
open(sys.argv[1] + "/word", "w").close()
while True: signal.pause()
"""
SLOW_SENDER = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", 0))
with open(sys.argv[1] + "/word", "w") as word: print(server.getsockname()[1], file=word)
receiver, _ = server.accept()
while True:
    receiver.sendall(bytes(5_000))
    time.sleep(0.1)
"""
SPEAKERS = {"lock-holder": LOCK_HOLDER, "slow-sender": SLOW_SENDER}
"""Companions that do something in the patient's folder, and then say so through its FIFO."""

BUSY_WARDS = frozenset({spins.__name__, starts.__name__})

assert WARDS  # importing them has entered their patients


@dataclass(frozen=True)
class Seen:
    """What was said of a patient. parts: name by pid; document: of the contract; trace: what it rests on."""

    patient: Patient
    parts: dict[int, str]
    document: dict[str, object]
    trace: Trace

    @property
    def verdict(self) -> str:
        return str(self.document["verdict"])

    @property
    def culprits(self) -> list[str]:
        found = self.document["culprits"]
        assert isinstance(found, list)
        return sorted({self.parts.get(one["pid"], str(one["pid"])) for one in found})

    def told(self) -> str:
        """The row of the confusion table, and why, for whoever reads a failure."""
        hypotheses = self.document["hypotheses"]
        assert isinstance(hypotheses, list)
        rows = [
            f"{one['id']} {one['grade']}: for {one['for']} against {one['against']} missing {one['missing']}"
            for one in hypotheses
            if one["grade"] != "ruled-out"
        ]
        head = f"{self.patient.name}: {self.verdict} {self.document['grade']} {self.culprits}"
        return "\n".join((head, str(self.document["headline"]), *rows))


def is_busy(patient: Patient) -> bool:
    """Say whether a patient burns CPU."""
    return patient.act.__module__ in BUSY_WARDS


class Ward:
    """Every patient that is asked for, looked at in the background from the start."""

    def __init__(self, names: Iterable[str], folder: Path) -> None:
        self._quiet, self._busy = ThreadPoolExecutor(QUIET_BEDS), ThreadPoolExecutor(BUSY_BEDS)
        self._folder = folder
        self._looks: dict[str, Future[Seen]] = {name: self._admit(PATIENTS[name]) for name in names}

    def look(self, name: str) -> Seen:
        """Return what was seen of a patient."""
        return self._looks[name].result()

    def close(self) -> None:
        """End every look that has not begun, and wait for the others."""
        self._quiet.shutdown(cancel_futures=True)
        self._busy.shutdown(cancel_futures=True)

    def _admit(self, patient: Patient) -> Future[Seen]:
        pool = self._busy if is_busy(patient) else self._quiet
        return pool.submit(self._look, patient)

    def _look(self, patient: Patient) -> Seen:
        folder = self._folder / patient.name
        folder.mkdir()
        with running(patient, folder) as parts:
            root = next(pid for pid, name in parts.items() if name == "launcher")
            return look(patient, parts, root, folder / "look.hangtrace")


def look(patient: Patient, parts: dict[int, str], root: int, trace: Path) -> Seen:
    """Look once at a running patient."""
    command = [*HANGDOC, "watch", str(root), "--once", "--json"]
    most_s = UNSURE_S if "undetermined" in patient.truth.accepted else SURE_S
    command += ["--max-window", str(most_s), "--record", str(trace)]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LOOK_S, cwd=ROOT)
    assert run.stdout, f"{patient.name}: {run.stderr}"
    return Seen(patient, parts, json.loads(run.stdout), read(trace))


@contextmanager
def running(patient: Patient, folder: Path) -> Iterator[dict[int, str]]:
    """Run a patient in a session of its own until it is ill; yield its parts; on the way out all of it is killed."""
    ready, word = os.pipe()
    hearing, output = os.pipe()
    silence, standing_input = os.pipe()
    command = [sys.executable, "-S", "-m", "tests.patients", patient.name, "--parent", str(os.getpid())]
    command += ["--ready", str(word), "--folder", str(folder)]
    if patient.companion in SPEAKERS:
        os.mkfifo(folder / "word")
    with ExitStack() as stack:
        for descriptor in (ready, hearing, standing_input):
            stack.callback(os.close, descriptor)
        wants_input = patient.name == "commands-from-standard-input"
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=silence if wants_input else subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            pass_fds=(word,),
            start_new_session=True,
        )
        stack.callback(end, process)
        for descriptor in (word, output, silence):
            os.close(descriptor)
        outside = {os.getpid(): "starter"}
        for companion in companions(patient, hearing, folder):
            stack.callback(end, companion)
            outside[companion.pid] = patient.companion
        yield {**arrivals(ready, patient, process), **outside}


def companions(patient: Patient, output: int, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start what a patient has to do with outside its launch."""
    if patient.companion == "slow-reader":
        yield subprocess.Popen([sys.executable, "-c", SLOW_READER], stdin=output, start_new_session=True)
    if patient.companion in SPEAKERS:
        command = [sys.executable, "-c", SPEAKERS[patient.companion], str(folder)]
        yield subprocess.Popen(command, start_new_session=True)
    if patient.companion == "burners":
        for _ in range(len(os.sched_getaffinity(0))):
            yield subprocess.Popen([sys.executable, "-c", BURNER], start_new_session=True)


def arrivals(ready: int, patient: Patient, process: subprocess.Popen[bytes]) -> dict[int, str]:
    """Wait until every part has said that it is where it will stay."""
    deadline_s = time.monotonic() + START_S
    parts: dict[int, str] = {}
    heard = b""
    while set(parts.values()) != set(patient.parts):
        left_s = deadline_s - time.monotonic()
        if left_s <= 0 or not select.select([ready], [], [], left_s)[0]:
            raise TimeoutError(f"{patient.name}: only {parts} fell ill within {START_S:.0f} s")
        piece = os.read(ready, 4096)
        if not piece:
            assert process.stderr is not None
            raise RuntimeError(f"{patient.name} ended at once: {process.stderr.read().decode()}")
        heard += piece
        parts = {int(pid): name for name, pid in (line.split() for line in heard.decode().splitlines())}
    return parts


def end(process: subprocess.Popen[bytes]) -> None:
    """Kill the group that the process leads; it is not reaped before, so that the number is still its own."""
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
