"""Bad input of `hangdoc diagnose`: one clear line, the contract's code, bounded time and memory, never a traceback."""

from __future__ import annotations

import gzip
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.unit.cli.commands import LONGEST_S, argv, complaint, environment, run, wait_until

GOOD = b"[2026-11-29 12:00:00] Load weight begin.\n"


def a_fifo(path: Path) -> None:
    os.mkfifo(path)


def a_directory_without_logs(path: Path) -> None:
    path.mkdir()
    (path / "picture.png").write_bytes(b"\x89PNG")


def a_directory_of_empty_logs(path: Path) -> None:
    path.mkdir()
    (path / "server.log").write_bytes(b"")
    (path / "core.log").write_bytes(bytes(range(256)) * 9)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(b" \n\n"), id="blank"),
        pytest.param(lambda path: path.write_bytes(bytes(range(256)) * 100), id="binary"),
        pytest.param(a_fifo, id="a FIFO"),
        pytest.param(a_directory_without_logs, id="a directory without logs"),
        pytest.param(a_directory_of_empty_logs, id="a directory of empty logs"),
        pytest.param(lambda _: None, id="not there"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), id="a device"),
        pytest.param(lambda path: path.write_bytes(b"\x1f\x8b broken"), id="a broken archive"),
        pytest.param(lambda path: path.write_bytes(gzip.compress(b"")), id="an empty archive"),
        pytest.param(lambda path: path.write_bytes(b'[{"thread_name": 1}]'), id="no dump"),
        pytest.param(lambda path: path.write_bytes(b'{"type":"header"}'), id="no trace"),
    ],
)
def test_no_log(make: Callable[[Path], object], tmp_path: Path) -> None:
    """What is no log is 2, with one line that says what it is."""
    path = tmp_path / "given"
    make(path)
    ended = run("diagnose", str(path))
    assert ended.code == 2
    assert "given" in complaint(ended)


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--now", "yesterday"),
        ("--now", ""),
        ("--engine", "tgi"),
        ("--launch", "0"),
        ("--launch", "7"),
        ("--baseline", "absent.log"),
        ("--baseline", "server.log"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """Wrong use is 2; a start that never became ready is no baseline."""
    log = tmp_path / "server.log"
    log.write_bytes(GOOD)
    given = [str(log)] if arguments else []
    spelled = [str(tmp_path / one) if one.endswith(".log") else one for one in arguments]
    ended = run("diagnose", *given, *spelled)
    assert ended.code == 2
    complaint(ended)


def test_a_trace_and_a_log(tmp_path: Path) -> None:
    """A trace is diagnosed alone."""
    golden = Path(__file__).resolve().parents[2] / "golden" / "blocked-lock.hangtrace"
    log = tmp_path / "server.log"
    log.write_bytes(GOOD)
    ended = run("diagnose", str(golden), str(log))
    assert ended.code == 2
    assert "alone" in complaint(ended)
    assert run("diagnose", str(golden), "--json").code == 1


def test_an_unreadable_file() -> None:
    """A file that cannot be read, not even by root, is 2, with the reason."""
    ended = run("diagnose", "/proc/self/mem")
    assert ended.code == 2
    assert "cannot be read" in complaint(ended)


def test_one_line_of_100_mb(tmp_path: Path) -> None:
    """A line of 100 MB costs no memory: the command stays below 200 MB."""
    log = tmp_path / "server.log"
    with log.open("wb") as file:
        file.write(GOOD)
        for _ in range(100):
            file.write(b"x" * 1_000_000)
    command = [sys.executable, "-c", MEASURING, *argv("diagnose", str(log), "--json")]
    found = subprocess.run(command, capture_output=True, env=environment(), check=True)
    code, most_kib = map(int, found.stderr.split()[-2:])
    assert code == 3
    assert b'"weight-load"' in found.stdout
    assert most_kib < 200 << 10


MEASURING = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stderr=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss, file=sys.stderr)
"""
"""Starts a command from a small process: what a child uses at most counts from the size of whoever forked it."""


def test_a_log_that_grows_and_one_that_shrinks(tmp_path: Path) -> None:
    """A log that is written or truncated while it is read ends, with a verdict on what was there."""
    log = tmp_path / "server.log"
    log.write_bytes(GOOD * 20_000)
    over = threading.Event()

    def disturb() -> None:
        while not over.is_set():
            with log.open("ab") as file:
                file.write(GOOD * 1000)
            os.truncate(log, 40_000)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        ended = run("diagnose", str(log))
    finally:
        over.set()
        thread.join()
    assert ended.code == 3
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("data", "code"),
    [(b"", 2), (GOOD, 3), (bytes(range(256)) * 50, 2), (gzip.compress(GOOD), 3)],
    ids=["nothing", "a log", "bytes of every value", "a packed log"],
)
def test_standard_input(data: bytes, code: int) -> None:
    """Standard input is read like a file, packed as well."""
    done = subprocess.run(
        argv("diagnose", "-"), input=data, capture_output=True, timeout=LONGEST_S, env=environment(), check=False
    )
    assert done.returncode == code
    assert b"Traceback" not in done.stderr


def test_control_sequences_of_a_log(tmp_path: Path) -> None:
    """What a log holds cannot steer the terminal."""
    log = tmp_path / "server.log"
    log.write_bytes(b"\x1b]0;owned\x07\x1b[2J" + GOOD + b"Process 7: sglang::scheduler_TP0\x1b[2J\n")
    ended = run("diagnose", str(log))
    assert ended.code == 3
    assert "\x1b" not in ended.out


@contextmanager
def following(log: Path, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """A `hangdoc diagnose -` whose input has no end, and which has read all of a log."""
    reading, writing = os.pipe()
    child = subprocess.Popen(
        argv("diagnose", "-", *arguments),
        stdin=reading,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    )
    try:
        os.write(writing, log.read_bytes())
        wait_until(lambda: not select.select([reading], [], [], 0)[0])  # it is the only reader
        yield child
    finally:
        child.kill()
        child.wait()
        os.close(reading)
        os.close(writing)


LOG = Path(__file__).resolve().parents[2] / "corpus" / "launches" / "absent-barrier.log"


def test_interrupted_input(tmp_path: Path) -> None:
    """Ctrl-C ends an input without an end: what came is diagnosed, and standard error says why no more was read."""
    short = tmp_path / "short.log"
    short.write_bytes(LOG.read_bytes()[:30_000])
    with following(short, "--json") as child:
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=LONGEST_S)
    assert child.returncode == 3
    assert b'"weight-load"' in out
    assert err == b"hangdoc: standard input was interrupted and has not ended: what came until then was read.\n"


def test_a_cut_archive(tmp_path: Path) -> None:
    """That a packed log was cut is said on standard error and under "Not read"."""
    log = tmp_path / "server.log.gz"
    log.write_bytes(gzip.compress(LOG.read_bytes())[:-300])
    ended = run("diagnose", str(log))
    assert ended.code == 3
    assert ended.err == f"hangdoc: {log} is cut: what follows in it was not read.\n"
    assert "is cut: what follows in it was not read" in " ".join(ended.out.split())
