"""From a real process to the document: held back, flushed, and what a recording keeps of it."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.hypotheses.log_held_back import HYPOTHESIS
from hangdoc.model.diagnosis import Diagnosis, Output
from hangdoc.model.process import Launch
from hangdoc.model.snapshot import Snapshot
from hangdoc.trace.codec import unpack
from hangdoc.trace.reader import read
from hangdoc.trace.records import Header, Trace
from hangdoc.trace.writer import write
from hangdoc_probes import buffers, cpu, fds, futex
from tests.unit.probes.printers import Printer, printing, program
from tests.unit.probes.targets import process_of, take

SECRET = "prompt of alice " * 4


def observed(printer: Printer) -> Trace:
    """Two rounds of the probes that tell where output is."""
    process = process_of(printer.pid)
    snapshots = []
    for index in range(2):
        at_ns, wall_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME), time.time_ns()
        samples = [sample for probe in (cpu, fds, futex, buffers) for sample in take(probe.PROBE, process)]
        snapshots.append(
            Snapshot(index=index, at_ns=at_ns, wall_ns=wall_ns, processes=(process,), samples=tuple(samples))
        )
    launch = Launch(root=process.key, engine="generic", processes=(process,))
    clocks = {"clock_ticks_per_s": 100, "started_wall_ns": snapshots[0].wall_ns, "interval_s": 1.0}
    header = Header(hangdoc="0.1.0", host="h", machine="x86_64", cpus=2, launch=launch, **clocks)
    return Trace(header=header, stacks=(), snapshots=tuple(snapshots))


def diagnosed(code: str, folder: Path, *, old: bool = False) -> tuple[Trace, Diagnosis]:
    with printing([sys.executable, "-c", program(code)], folder) as printer:
        if old:
            for path in filter(Path.is_file, folder.iterdir()):
                _age(path)
        trace = observed(printer)
    return trace, diagnose(trace)


def _age(path: Path) -> None:
    """Let the file's last write be an hour ago: a test has no time to wait until it is."""
    os.utime(path, (time.time() - 3600,) * 2)


def output(diagnosis: Diagnosis, fd: int = 1) -> Output:
    (found,) = (one for one in diagnosis.outputs if one.fd == fd)
    return found


def test_text_that_is_held_back(tmp_path: Path) -> None:
    """Hidden bytes, their text and their state are in the document, and nothing is missing about them."""
    _, found = diagnosed(f"print({SECRET!r})", tmp_path, old=True)
    one = output(found)
    assert (one.state, one.hidden_bytes, one.hidden_tail) == ("held-back", len(SECRET) + 1, f"{SECRET}\n")
    assert [lack for lack in found.missing if lack.probe == "buffers"] == []


def test_everything_has_arrived(tmp_path: Path) -> None:
    """With nothing in either buffer a file is flushed; one that is empty says that nothing was written."""
    _, found = diagnosed("print('x', flush=True)", tmp_path, old=True)
    assert (output(found).state, output(found).hidden_bytes, output(found).hidden_tail) == ("flushed", 0, "")
    assert output(found, 2).state == "nothing-written"


def test_a_tee_is_not_called_flushed(tmp_path: Path) -> None:
    """Where another object stands in sys.stdout, an empty buffer below it proves nothing, and the reason is given."""
    _, found = diagnosed("print('x', flush=True); sys.stdout = io.StringIO()", tmp_path, old=True)
    one = output(found)
    assert (one.state, one.hidden_bytes, one.hidden_tail) == ("unknown", None, None)
    assert any("sys.stdout is a _io.StringIO" in lack.detail for lack in found.missing)


def test_a_recording_has_the_size_and_not_the_text(tmp_path: Path) -> None:
    """The text reaches no file; replay says how much it was and why it is not there."""
    trace, live = diagnosed(f"print({SECRET!r})", tmp_path, old=True)
    path = tmp_path / "a.hangtrace"
    write(path, trace)
    assert b"alice" not in b"".join(unpack([path.read_bytes()]))
    replayed = diagnose(read(path), "trace")
    one = output(replayed)
    assert (one.state, one.hidden_bytes, one.hidden_tail) == ("held-back", output(live).hidden_bytes, None)
    assert [lack.reason for lack in replayed.missing if lack.probe == "buffers"] == ["not-in-input"]
    assert replayed.hypotheses == live.hypotheses


@pytest.mark.parametrize(
    ("code", "says"), [(f"print({SECRET!r})", "for_"), ("print('x', flush=True)", None), ("os.close(1)", "missing")]
)
def test_hidden_bytes_are_evidence_for_a_log_that_is_held_back(code: str, says: str | None, tmp_path: Path) -> None:
    """Text in the process supports it, none does not, and an unread buffer is named as missing."""
    if "close" in code:
        code = "sys.stdout = sys.stderr = sys.__stdout__ = sys.__stderr__ = None"
    _, found = diagnosed(code, tmp_path, old=True)
    (finding,) = (one for one in found.hypotheses if one.id == HYPOTHESIS.id)
    told = {part: [line for line in getattr(finding, part) if "text" in line] for part in ("for_", "missing")}
    assert [part for part, lines in told.items() if lines] == ([] if says is None else [says])


def test_a_file_that_text_waits_for_is_an_output_too(tmp_path: Path) -> None:
    """Text for another descriptor than 1 and 2 has a row of its own."""
    code = f"sys.stdout = open({str(tmp_path / 'own.log')!r}, 'w'); print('x' * 61)"
    _, found = diagnosed(code, tmp_path, old=True)
    (one,) = (one for one in found.outputs if one.fd not in (1, 2))
    assert (one.path, one.hidden_bytes, one.hidden_tail) == (str(tmp_path / "own.log"), 62, "x" * 61 + "\n")
