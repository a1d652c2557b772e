"""Run the user's command at a hang: once for each, beside the watch, with a deadline."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from hangdoc.launch.pidfd import send
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.limit import GOES_ON
from hangdoc.unattended.folder import EVIDENCE_S, Kept
from hangdoc.unattended.shelf import Evidence

DEADLINE_S = 300.0
"""How long the command may take before it and its process group are killed. Arbitrary: uploading a trace takes less."""

SHELL = "/bin/sh"

UNBLOCK = "import os,signal,sys;signal.pthread_sigmask(2,());os.execv(sys.argv[1],sys.argv[1:])"
"""What becomes the shell: it takes back the blocked signals that a thread of a supervising hangdoc hands down."""


class OnHang:
    """Starts the command, one at a time; a hang that begins while it still runs is not told, which is complained of."""

    def __init__(self, command: str, complain: Callable[[str], None], deadline_s: float = DEADLINE_S) -> None:
        self._command = command
        self._complain = complain
        self._deadline_s = deadline_s
        self._thread: threading.Thread | None = None

    def run(self, diagnosis: Diagnosis, document: str, kept: Kept | None) -> None:
        """Have the command started; returns at once. It gets the document on standard input.

        kept: the evidence that it finds on the disk; a disk that does not take it in time is not waited for.
        """
        if self._thread is not None and self._thread.is_alive():
            self._complain("the command of --on-hang still runs for an earlier hang: it is not run again")
            return
        self._thread = threading.Thread(
            target=self._begin, args=(diagnosis, document, kept), name="hangdoc-on-hang", daemon=True
        )
        self._thread.start()

    def wait(self) -> None:
        """Wait for a command that still runs; it has its deadline."""
        if self._thread is not None:
            self._thread.join(EVIDENCE_S + self._deadline_s + 1)

    def _begin(self, diagnosis: Diagnosis, document: str, kept: Kept | None) -> None:
        evidence = None
        try:
            evidence = None if kept is None else kept.result(EVIDENCE_S)
        except TimeoutError:
            self._complain(f"no evidence on the disk after {EVIDENCE_S:g} s: --on-hang runs without")
        self._run(variables(diagnosis, evidence), document)

    def _run(self, given: dict[str, str], document: str) -> None:
        try:
            with os.fdopen(os.memfd_create("document"), "w+", encoding="ascii") as source:
                source.write(document)
                source.seek(0)
                child = subprocess.Popen(
                    [sys.executable, "-ISc", UNBLOCK, SHELL, "-c", self._command],
                    stdin=source,
                    stdout=2,  # standard output belongs to results, or to the launch
                    env={**os.environ, **given},
                    start_new_session=True,
                )
        except OSError as error:
            self._complain(f"the command of --on-hang cannot be started: {error.strerror}")
            return
        self._tell(self._ended(child))

    def _ended(self, child: subprocess.Popen[bytes]) -> str:
        try:
            code = child.wait(self._deadline_s)
        except subprocess.TimeoutExpired:
            _kill(child)
            return f"was killed after {self._deadline_s:g} s"
        return "" if code == 0 else f"ended with {code}"

    def _tell(self, how: str) -> None:
        if how:
            self._complain(f"the command of --on-hang {how}")


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the command and all that it started; where the kernel is too old for that (before 6.9), itself alone."""
    descriptor = os.pidfd_open(child.pid)
    try:
        try:
            send(descriptor, signal.SIGKILL, whole_group=True)
        except OSError:
            send(descriptor, signal.SIGKILL)
    finally:
        os.close(descriptor)
    child.wait()


def variables(diagnosis: Diagnosis, evidence: Evidence | None) -> dict[str, str]:
    """Return what the command finds in its environment; without --record there are no files."""
    files: dict[str, Path] = {} if evidence is None else {"TRACE": evidence.trace, "DOCUMENT": evidence.document}
    texts = {
        "VERDICT": diagnosis.verdict,
        "GRADE": diagnosis.grade,
        "PHASE": diagnosis.phase,
        "HEADLINE": diagnosis.headline,
        "PID": "" if diagnosis.target.pid is None else str(diagnosis.target.pid),
        "CULPRITS": " ".join(str(one.pid) for one in diagnosis.culprits if one.pid is not None),
        "LEFT_S": next((f"{left_s:.0f}" for left_s in _until_its_end(diagnosis)), ""),
    }
    texts |= {name: str(path.absolute()) for name, path in files.items()}
    return {f"HANGDOC_{name}": text.replace("\0", "") for name, text in texts.items()}


def _until_its_end(diagnosis: Diagnosis) -> list[float]:
    """Return the seconds until each timer that ends the launch, the next one first."""
    return [one.left_s for one in diagnosis.limits if one.left_s is not None and one.name not in GOES_ON]
