"""The log probe on real files: what is new in each round, whoever writes, rotates or truncates them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hangdoc.model.log import LogTail
from hangdoc.model.process import Launch, Process, ProcessKey
from hangdoc.model.reading import Known, Missing
from hangdoc.sampling.probe import Context, Round, Session
from hangdoc_probes.log import PROBE

BEGIN = b"[2999-01-01 00:00:01] Load weight begin.\n"
END = b"[2999-01-01 00:00:02] Load weight end.\n"


@contextmanager
def writer(log: Path, mode: str = "ab") -> Iterator[Process]:
    """A process whose standard output is the log; it says when it runs, on its standard error."""
    program = "import sys; sys.stderr.write('up\\n'); sys.stderr.flush(); sys.stdin.read()"
    with log.open(mode) as stdout:
        process = subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=stdout, stderr=subprocess.PIPE
        )
    assert process.stderr is not None
    process.stderr.readline()
    ticks = int(Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19])
    try:
        yield Process(key=ProcessKey(process.pid, ticks), ppid=1, role="launcher")
    finally:
        process.communicate(b"")


def opened(process: Process) -> Session:
    return PROBE.open(Context(launch=Launch(root=process.key, engine="sglang"), intern=hash))


def take(session: Session, process: Process) -> Known[LogTail] | Missing:
    (sample,) = session.take(Round(index=0, at_ns=0, processes=(process,), thorough=True))
    return sample.reading  # type: ignore[return-value]


def names(session: Session, process: Process) -> list[str]:
    reading = take(session, process)
    assert isinstance(reading, Known)
    return [event.name for event in reading.value.events]


def append(log: Path, data: bytes) -> None:
    with log.open("ab") as file:
        file.write(data)


def test_only_what_is_new(tmp_path: Path) -> None:
    """The first round reads what is there, each later one only what was added; an unfinished line waits."""
    log = tmp_path / "server.log"
    log.write_bytes(BEGIN)
    with writer(log) as process:
        session = opened(process)
        assert names(session, process) == ["load-weight-begin"]
        append(log, END[:20])
        assert names(session, process) == []
        append(log, END[20:])
        assert names(session, process) == ["load-weight-end"]
        session.close()


def test_a_truncated_log(tmp_path: Path) -> None:
    """A log that became shorter was rotated in place: it is read from its beginning again."""
    log = tmp_path / "server.log"
    log.write_bytes(BEGIN * 3)
    with writer(log) as process:
        session = opened(process)
        names(session, process)
        log.write_bytes(END)
        assert names(session, process) == ["load-weight-end"]
        session.close()


def test_size_and_writers(tmp_path: Path) -> None:
    """The reading names the file, its size and who writes to it."""
    log = tmp_path / "server.log"
    log.write_bytes(BEGIN)
    with writer(log) as process:
        session = opened(process)
        reading = take(session, process)
        session.close()
    assert isinstance(reading, Known)
    assert (reading.value.path, reading.value.size_bytes) == (str(log), len(BEGIN))
    assert reading.value.writers == (process.key.pid,)


@pytest.mark.parametrize("target", ["/dev/null"])
def test_no_file(target: str) -> None:
    """A launch that writes to no file has no log to read: missing, with the remedy, never an empty log."""
    with writer(Path(target)) as process:
        session = opened(process)
        reading = take(session, process)
        session.close()
    assert isinstance(reading, Missing)
    assert reading.reason == "unsupported"
    assert reading.remedy


def test_lines_before_this_launch(tmp_path: Path) -> None:
    """What an older launch appended to the same file is not this launch's."""
    log = tmp_path / "server.log"
    log.write_bytes(b"[2001-01-01 00:00:00] Scheduler hit an exception: x\n" + BEGIN)
    with writer(log) as process:
        session = opened(process)
        assert names(session, process) == ["load-weight-begin"]
        session.close()


def test_a_pipe_is_not_opened(tmp_path: Path) -> None:
    """Whoever waits for a reader of the launch's output is not woken by a look: a pipe is no log, and stays shut."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with writer(pipe, "wb") as process:
        os.close(reader)
        waiting = subprocess.Popen([sys.executable, "-c", f"open({str(pipe)!r}, 'wb')"])
        while b"wait_for_partner" not in Path(f"/proc/{waiting.pid}/wchan").read_bytes():
            assert waiting.poll() is None
        assert isinstance(take(opened(process), process), Missing)
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
        waiting.kill()
        waiting.wait()
