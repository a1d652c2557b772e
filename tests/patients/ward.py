"""Start patients, look at each as `hangdoc watch --once` does, and leave nothing behind."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from hangdoc.trace.reader import read
from hangdoc.trace.records import Trace
from tests.patients.__main__ import WARDS
from tests.patients.companions import SPEAKERS, companions, dismiss
from tests.patients.stage import PATIENTS, PULSE_BYTES, PULSE_FILE, Patient, Waiting
from tests.patients.vitals import chart, not_seen

ROOT = Path(__file__).parents[2]
ALL_CORES = sorted(os.sched_getaffinity(0))
CORES, FULL_CORES = len(ALL_CORES), 2
"""Cores of this machine, and of one on which every core is busy."""

QUIET_BEDS, BUSY_BEDS = 4 * CORES, CORES
"""Patients looked at at a time, of those that sleep and of those that burn CPU. Arbitrary: some competition is wanted,
a crowd on two cores is the illness of one patient alone."""

START_S, LOOK_S = 60.0, 120.0
"""Safety nets, far above what a start (0.3 s) and a look (10 s) take."""

SURE_S, UNSURE_S = 30, 8
"""Longest windows: of a patient that must be told what it is, which takes 5 s or what a full machine needs; and of one
for which "undetermined" will do, which takes all of it."""

TRACE_FILE = "look.hangtrace"
HANGDOC = (sys.executable, "-c", "from hangdoc.cli.main import main; main()")

BUSY_WARDS = frozenset({"computations", "spins", "starts", "unseen_busy", "unseen_spins"})
"""Modules all of whose patients burn CPU; others say so of each (Patient.burns)."""

assert WARDS  # importing them has entered their patients


class NoDocumentError(AssertionError):
    """hangdoc said nothing of a patient: its fault, whatever the patient does."""


@dataclass(frozen=True)
class Seen:
    """What was said of a patient. parts: name by pid; document: of the contract; trace: the file of what it rests on.

    took_s: how long the look took; not_seen: what of the patient's truth did not show meanwhile, "" when all did.
    """

    patient: Patient
    parts: dict[int, str]
    document: dict[str, object]
    file: Path
    took_s: float
    not_seen: str

    @property
    def trace(self) -> Trace:
        return read(self.file)

    @property
    def verdict(self) -> str:
        return str(self.document["verdict"])

    @property
    def culprits(self) -> list[str]:
        found = self.document["culprits"]
        assert isinstance(found, list)
        return sorted({self.parts.get(one["pid"], str(one["pid"])) for one in found})

    @property
    def edges(self) -> frozenset[Waiting]:
        """Who waits for whom through what, by name; whoever is no part by its pid."""
        found = self.document["waits"]
        assert isinstance(found, list)

        def name(pid: int) -> str:
            return self.parts.get(pid, str(pid))

        return frozenset((name(one["from"]["pid"]), name(one["to"]["pid"]), one["through"]) for one in found)

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
    return bool(patient.burns) or patient.act.__module__.rpartition(".")[2] in BUSY_WARDS


class Ward:
    """Every patient that is asked for, looked at in the background from the start."""

    def __init__(self, names: Iterable[str], folder: Path, beds: int = QUIET_BEDS, unsure_s: float = UNSURE_S) -> None:
        self._quiet = ThreadPoolExecutor(beds)
        self._busy = ThreadPoolExecutor(max(1, beds * BUSY_BEDS // QUIET_BEDS))
        self._folder, self._unsure_s = folder, unsure_s
        self._looks: dict[str, Future[Seen]] = {name: self._admit(PATIENTS[name]) for name in names}

    def look(self, name: str) -> Seen:
        """Return what was seen of a patient."""
        return self._looks[name].result()

    def as_they_end(self) -> Iterator[str]:
        """Yield the patients as soon as each has been looked at."""
        names = {future: name for name, future in self._looks.items()}
        for future in as_completed(names):
            yield names[future]

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
            return look(patient, parts, folder, self._unsure_s)


def look(patient: Patient, parts: dict[int, str], folder: Path, unsure_s: float = UNSURE_S) -> Seen:
    """Look once at a running patient. unsure_s: the longest window where "undetermined" will do."""
    root, trace = next(pid for pid, name in parts.items() if name == "launcher"), folder / TRACE_FILE
    before = chart(parts, folder)
    command = [*HANGDOC, "watch", str(root), "--once", "--json"]
    most_s = unsure_s if "undetermined" in patient.truth.accepted else SURE_S
    command += ["--max-window", str(most_s), "--record", str(trace)]
    try:
        run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=LOOK_S, cwd=ROOT)
    except subprocess.TimeoutExpired as late:
        raise NoDocumentError(f"{patient.name}: hangdoc did not end within {LOOK_S:.0f} s") from late
    if not run.stdout:
        raise NoDocumentError(f"{patient.name}: {run.stderr}")
    took_s = time.monotonic() - before.at_s
    lacks = not_seen(patient, parts, before, folder)
    return Seen(patient, parts, json.loads(run.stdout), trace, took_s, lacks)


@contextmanager
def running(patient: Patient, folder: Path) -> Iterator[dict[int, str]]:
    """Run a patient in a session of its own until it is ill; yield its parts; on the way out all of it is killed."""
    ready, word = os.pipe()
    hearing, output = os.pipe()
    silence, standing_input = os.pipe()
    command = [sys.executable, "-S", "-m", "tests.patients", patient.name, "--parent", str(os.getpid())]
    command += ["--ready", str(word), "--folder", str(folder)]
    (folder / PULSE_FILE).write_bytes(bytes(PULSE_BYTES))
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
        if patient.companion == "burners":  # a full machine of few cores: the others are for the other patients
            os.sched_setaffinity(process.pid, random.sample(ALL_CORES, min(FULL_CORES, CORES)))
        for descriptor in (word, output, silence):
            os.close(descriptor)
        outside = {os.getpid(): "starter"}
        for companion in companions(patient.companion, hearing, folder, process.pid):
            stack.callback(dismiss, companion)
            outside[companion.pid] = patient.companion
        yield {**arrivals(ready, patient, process), **outside}


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
