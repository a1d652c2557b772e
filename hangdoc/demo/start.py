"""Start the sick launch, wait until it is ill, and end exactly its processes afterwards."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from hangdoc.errors import HangdocError
from hangdoc.launch.pidfd import send

Illness: TypeAlias = Literal["busy-wait", "blocked", "slow-start"]

PROGRAM = Path(__file__).with_name("patient.py")
"""Run as a script of its own, because it stands for a server: the server is no part of hangdoc."""

PARTS = 4
"""Processes of the launch."""

START_S = 20.0
"""Longest wait for it to fall ill. Arbitrary: it takes 0.3 s on an idle machine."""

END_S = 5.0
"""Longest wait for it to be gone after SIGKILL. Arbitrary."""


@dataclass(frozen=True)
class Patient:
    """A running sick launch. pidfds: one for each of its processes, by pid."""

    pid: int
    log: Path
    pidfds: dict[int, int]


@contextmanager
def sick_launch(illness: Illness) -> Iterator[Patient]:
    """Run the launch in a session of its own; on the way out all of it is gone, or HangdocError says what is left."""
    with tempfile.TemporaryDirectory(prefix="hangdoc-demo-") as folder:
        log = Path(folder) / "server.log"
        reading, writing = os.pipe()
        with log.open("wb") as out:
            argv = [sys.executable, "-IS", str(PROGRAM), "launcher", illness]
            argv += ["--parent", str(os.getpid()), "--ready", str(writing)]
            launcher = subprocess.Popen(
                argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, pass_fds=(writing,), start_new_session=True
            )
        os.close(writing)
        patient = Patient(launcher.pid, log, {launcher.pid: os.pidfd_open(launcher.pid)})
        try:
            _wait_until_ill(reading, patient)
            yield patient
        finally:
            os.close(reading)
            _end(patient, launcher)


def _wait_until_ill(reading: int, patient: Patient) -> None:
    deadline_s = time.monotonic() + START_S
    heard = b""
    while heard.count(b"\n") < PARTS:
        left_s = deadline_s - time.monotonic()
        if left_s <= 0 or not select.select([reading], [], [], left_s)[0]:
            raise HangdocError(f"the demo did not start within {START_S:.0f} s", "try again on a less busy machine")
        piece = os.read(reading, 4096)
        if not piece:
            raise HangdocError(f"the demo ended at once: {patient.log.read_text(errors='replace')[-200:]}")
        heard += piece
    for line in heard.decode().splitlines():
        pid = int(line.split()[1])
        if pid not in patient.pidfds:
            patient.pidfds[pid] = os.pidfd_open(pid)


def _end(patient: Patient, launcher: subprocess.Popen[bytes]) -> None:
    """Kill by pidfd: a pid may belong to somebody else by now. The children also die with their launcher."""
    left = dict(patient.pidfds)
    for descriptor in left.values():
        send(descriptor, signal.SIGKILL)
    deadline_s = time.monotonic() + END_S
    for pid, descriptor in patient.pidfds.items():
        if select.select([descriptor], [], [], max(0.0, deadline_s - time.monotonic()))[0]:
            del left[pid]
        os.close(descriptor)
    if left:
        raise HangdocError(f"of the demo's processes {sorted(left)} did not end", "end them with kill -9")
    launcher.wait()
