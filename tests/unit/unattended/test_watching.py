"""A real sick launch, watched unattended: evidence, command, state, metrics."""

from __future__ import annotations

import json
import os
import re
import socket
import sys
import urllib.request
from pathlib import Path

import pytest

from hangdoc.model.diagnosis import LimitState
from hangdoc.model.limit import LimitName
from hangdoc.report.document import encode
from hangdoc.unattended.command import OnHang, variables
from tests.unit.cli.commands import (
    LONGEST_S,
    SPINS,
    WAITS,
    complaint,
    environment,
    program,
    python,
    run,
    start,
    wait_until,
)
from tests.unit.report.diagnoses import a_diagnosis
from tests.unit.unattended.launches import DIES_WITH_HANGDOC, executed, files_in, free_port

TELL = "env | grep ^HANGDOC_ >>%(at)s; echo -- >>%(at)s; cat >%(at)s.json; echo told"


def test_until_hang_leaves_everything(tmp_path: Path) -> None:
    """At a hang the evidence is whole on the disk, the command has run once and knows all, the state is told."""
    folder, told, state = tmp_path / "evidence", tmp_path / "told", tmp_path / "state"
    options = ("--record", str(folder), "--on-hang", TELL % {"at": told}, "--state", str(state))
    with program(*python(SPINS)) as patient:
        ended = run("watch", str(patient.pid), "--until", "hang", "--timeout", "100", *options)
    assert ended.code == 1
    assert "told" in ended.err.splitlines()
    (trace,) = files_in(folder, "hang-*.hangtrace")
    lines, _, rest = told.read_text().partition("--\n")
    assert rest == ""
    given = dict(line.split("=", 1) for line in lines.splitlines())
    assert given["HANGDOC_TRACE"] == str(trace)
    assert (given["HANGDOC_VERDICT"], given["HANGDOC_PID"]) == ("busy-wait", str(patient.pid))
    document = json.loads(Path(given["HANGDOC_DOCUMENT"]).read_text())
    heard = json.loads((tmp_path / "told.json").read_text())
    replayed = json.loads(run("replay", str(trace), "--json").out)
    assert document == replayed
    for field in ("verdict", "grade", "phase", "culprits"):
        assert document[field] == heard[field]
    assert json.loads(state.read_text())["verdict"] == "busy-wait"
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def test_evidence_of_the_end(tmp_path: Path) -> None:
    """A launch that is killed while it is watched leaves its last rounds and what they say."""
    with program(*python(WAITS)) as patient:
        watching = start("watch", str(patient.pid), "--until", "exit", "--record", str(tmp_path))
        wait_until(lambda: bool(files_in(tmp_path, "window-*")))
        patient.kill()
        patient.wait()
        watching.communicate(timeout=LONGEST_S)
    (trace,) = files_in(tmp_path, "end-*.hangtrace")
    assert run("replay", str(trace)).code in (1, 3)


def test_a_file_is_still_a_file(tmp_path: Path) -> None:
    """Following records to a trace when --record names one, as before."""
    trace = tmp_path / "a.hangtrace"
    with program(*python(WAITS)) as patient:
        run("watch", str(patient.pid), "--timeout", "2", "--record", str(trace))
    assert trace.is_file()
    assert run("replay", str(trace)).code in (1, 3)


def on_hang(command: str, deadline_s: float = LONGEST_S) -> tuple[OnHang, list[str]]:
    complaints: list[str] = []
    return OnHang(command, complaints.append, deadline_s), complaints


def nobody_writes(reading: int) -> bool:
    """Tell whether a FIFO is open for writing nowhere; one that was killed a moment ago may still have it."""
    try:
        return os.read(reading, 1) == b""
    except BlockingIOError:
        return False


def test_a_command_that_never_ends_is_killed(tmp_path: Path) -> None:
    """It and what it started are killed at the deadline, and that is complained of; the watch did not wait."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    running, complaints = on_hang(f"sleep 1000 >{fifo} & wait", deadline_s=1.0)
    diagnosis = a_diagnosis()
    running.run(diagnosis, encode(diagnosis), None)
    running.run(diagnosis, encode(diagnosis), None)
    assert complaints == ["the command of --on-hang still runs for an earlier hang: it is not run again"]
    running.wait()
    assert complaints[1:] == ["the command of --on-hang was killed after 1 s"]
    wait_until(lambda: nobody_writes(reading))
    os.close(reading)


def test_a_command_that_fails(capfd: pytest.CaptureFixture[str]) -> None:
    """Its exit code is told; its output goes to standard error."""
    running, complaints = on_hang("echo out; echo $HANGDOC_TRACE; exit 3")
    diagnosis = a_diagnosis()
    running.run(diagnosis, encode(diagnosis), None)
    running.wait()
    assert complaints == ["the command of --on-hang ended with 3"]
    assert capfd.readouterr() == ("", "out\n\n")


def limit(name: LimitName, left_s: float | None) -> LimitState:
    return LimitState(name=name, seconds=300, left_s=left_s, latest_s=left_s, ends="ends")


def test_the_time_left_is_that_of_what_ends_the_launch() -> None:
    """The command is told the next timer that ends the launch: not one that only prints, nor one that was not read."""
    limits = (limit("soft-watchdog", 10), limit("nccl-monitor", None), limit("watchdog", 50), limit("collective", 400))
    assert variables(a_diagnosis(limits=limits), None)["HANGDOC_LEFT_S"] == "50"
    assert variables(a_diagnosis(), None)["HANGDOC_LEFT_S"] == ""


def scrape(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=LONGEST_S) as answer:
            return str(answer.read().decode())
    except OSError:
        return ""


def test_metrics_are_scraped(tmp_path: Path) -> None:
    """A scrape has verdict, phase, time since progress, probe errors, hangs, and what the launch wants."""
    port = free_port()
    with program(*python(SPINS)) as patient:
        watching = start("watch", str(patient.pid), "--metrics-port", str(port))
        wait_until(lambda: 'hangdoc_verdict{grade="likely",verdict="busy-wait"} 1.0' in scrape(port))
        text = scrape(port)
        watching.terminate()
        watching.communicate(timeout=LONGEST_S)
    assert watching.returncode == 1
    assert re.search(r"^hangdoc_seconds_since_progress (\d|NaN)", text, re.MULTILINE)
    assert re.search(r'^hangdoc_phase\{phase="\w+"\} 1.0$', text, re.MULTILINE)
    assert re.search(r"^hangdoc_hangs_total 1.0$", text, re.MULTILINE)
    assert re.search(r"^hangdoc_processes 3.0$", text, re.MULTILINE)
    assert "# TYPE hangdoc_probe_errors_total counter" in text


def test_a_port_that_is_taken() -> None:
    """It is one line and 2, before anything is watched or started."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        ended = run("watch", "--exec", "--metrics-port", port, "--", "echo", "started")
    assert ended.code == 2
    assert port in complaint(ended)


def test_without_the_library(tmp_path: Path) -> None:
    """Where prometheus-client is not installed, the line says what to install."""
    (tmp_path / "prometheus_client.py").write_text("raise ImportError\n")
    ended = run("watch", "1", "--metrics-port", "9400", PYTHONPATH=str(tmp_path))
    assert ended.code == 2
    assert "hangdoc[metrics]" in complaint(ended)


HANGS_AT_ONCE = DIES_WITH_HANGDOC + SPINS


def test_a_launch_of_its_own_that_hangs(tmp_path: Path) -> None:
    """A launch that hangdoc started and that hangs is told of on standard error; its own output is untouched."""
    told = tmp_path / "told"
    options = ("--record", str(tmp_path / "evidence"), "--on-hang", f"touch {told}")
    with executed(*options, launch=list(python(HANGS_AT_ONCE))) as hangdoc:
        wait_until(told.exists)
        hangdoc.terminate()
        out, err = hangdoc.communicate(timeout=LONGEST_S)
    assert (hangdoc.returncode, out) == (128 + 15, b"x\n")
    assert b"BUSY-WAIT" in err
    assert files_in(tmp_path / "evidence", "hang-*.json")


def test_a_command_of_a_started_launch_can_be_ended(tmp_path: Path) -> None:
    """The command has no blocked signals, though hangdoc's own threads have."""
    told = tmp_path / "told"
    show = f"{sys.executable} -ISc 'import signal; print(signal.pthread_sigmask(0, ()))' >{told}"
    with executed("--on-hang", f"{show}; mv {told} {told}.done", launch=list(python(HANGS_AT_ONCE))) as hangdoc:
        wait_until((tmp_path / "told.done").exists)
        hangdoc.terminate()
        hangdoc.communicate(timeout=LONGEST_S)
    assert (tmp_path / "told.done").read_text() == "set()\n"
    assert "HANGDOC_TRACE" not in environment()
