"""Bad input through the real command line: one clear line, the contract's code, never a traceback."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from hangdoc.trace.codec import Packer
from hangdoc.trace.reader import read
from tests.conftest import NOT_TO_BE_HAD
from tests.unit.cli.commands import (
    LONGEST_S,
    REPOSITORY,
    SPINS,
    WAITS,
    argv,
    complaint,
    environment,
    program,
    python,
    rounds_in,
    run,
    start,
    wait_until,
)
from tests.unit.observe.rounds import HEADER

SHORT = ("--once", "--window", "3", "--max-window", "3", "--json")


@pytest.mark.parametrize(
    "arguments",
    [
        ("watch", "0"),
        ("watch", "-5"),
        ("watch", "x"),
        ("watch", "1", "--bogus"),
        ("watch", "1", "--until", "never"),
        ("watch", "1", "--once", "--until", "hang"),
        ("watch", "1", "--window", "0"),
        ("watch", "1", "--port", "99999"),
        ("watch", "1", "--port", "30000"),
        ("record", "1"),
        ("replay",),
        ("bogus",),
        ("explain", "HD999"),
        ("demo", "measles"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...]) -> None:
    """Wrong use is 2, with a line that says what was wrong."""
    ended = run(*arguments)
    assert ended.code == 2
    complaint(ended)


def test_no_command() -> None:
    """hangdoc alone shows how to use it, and is 2."""
    ended = run()
    assert (ended.code, ended.err) == (2, "")
    assert "Usage: hangdoc" in ended.out


@pytest.mark.parametrize("command", ["watch", "record"])
def test_no_such_process(command: str, tmp_path: Path) -> None:
    """A pid that does not exist is 4, and nothing is recorded."""
    path = tmp_path / "a.hangtrace"
    arguments = ("--once",) if command == "watch" else ("-o", str(path))
    ended = run(command, "4194304", *arguments)
    assert ended.code == 4
    assert "4194304" in complaint(ended)
    assert not path.exists()


def test_nobody_on_the_port() -> None:
    """A port that no launch listens on is 4."""
    ended = run("watch", "--port", "1", "--once")
    assert ended.code == 4
    complaint(ended)


def test_kernel_thread() -> None:
    """A kernel thread is 4."""
    if not Path("/proc/2/comm").exists() or Path("/proc/2/comm").read_text().strip() != "kthreadd":
        pytest.skip(f"{NOT_TO_BE_HAD}kernel threads are not visible in this container")
    ended = run("watch", "2", "--once")
    assert ended.code == 4
    assert "kernel thread" in complaint(ended)


def test_dies_while_watched(tmp_path: Path) -> None:
    """A launch that ends after the first round gives the verdict of what was seen: 1 for a crash, else 3."""
    trace = tmp_path / "a.hangtrace"
    with program(*python(WAITS)) as patient:
        arguments = ("watch", str(patient.pid), "--once", "--window", "60", "--max-window", "60", "--json")
        watching = start(*arguments, "--record", str(trace))
        wait_until(lambda: rounds_in(trace) > 0)
        patient.kill()
        patient.wait()
        out, err = watching.communicate(timeout=LONGEST_S)
    assert watching.returncode in (1, 3)
    assert err == b""
    verdict = json.loads(out)["verdict"]
    assert (watching.returncode == 1) == (verdict == "crashed")
    assert read(trace).complete


def test_other_user() -> None:
    """Another user's launch: what the world may read is used, the rest is missing, and the code is the verdict's."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip(f"{NOT_TO_BE_HAD}only root can become somebody else")
    # Reading this environment's files may need rights that have nothing to do with the target.
    nobody = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
    may_read = ("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search", "--")
    with program(*python(SPINS)) as patient:
        ended = run("watch", str(patient.pid), *SHORT, prefix=(*nobody, *may_read))
    assert ended.err == ""
    document = json.loads(ended.out)
    assert ended.code == 3, document["headline"]
    assert document["verdict"] == "undetermined"
    denied = {lack["probe"] for lack in document["missing"] if lack["reason"] == "denied"}
    assert {"stacks", "futex"} <= denied
    assert all(lack["remedy"] for lack in document["missing"] if lack["reason"] == "denied")
    assert max(process["demand_ratio"] for process in document["processes"]) > 0.5


@pytest.mark.needs("tail")
def test_not_python() -> None:
    """A program that is not Python is the generic engine, and is diagnosed all the same."""
    with program("sh", "-c", "echo x; exec tail -f /dev/null") as patient:
        ended = run("watch", str(patient.pid), *SHORT)
    document = json.loads(ended.out)
    assert document["target"]["engine"] == "generic"
    assert ended.code in (0, 1, 3)
    assert ended.err == ""


@pytest.fixture
def bare_python(tmp_path: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """An interpreter without anything beside it, and the environment that lets it find hangdoc."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "python").symlink_to(sys.executable)
    paths = [sysconfig.get_path("purelib"), str(REPOSITORY), str(REPOSITORY / "probes"), str(REPOSITORY / "playbooks")]
    return str(folder / "python"), {"PYTHONPATH": os.pathsep.join(paths), "PATH": "/usr/bin:/bin"}


def test_no_py_spy(bare_python: tuple[str, dict[str, str]]) -> None:
    """Without py-spy stacks are missing, with a remedy; the other readings are there."""
    interpreter, env = bare_python
    with program(*python(SPINS)) as patient:
        ended = run("watch", str(patient.pid), *SHORT, python=interpreter, **env)
    assert ended.err == ""
    document = json.loads(ended.out)
    lacks = [lack for lack in document["missing"] if lack["probe"] == "stacks"]
    assert {lack["reason"] for lack in lacks} == {"not-installed"}
    assert all("py-spy" in lack["detail"] + lack["remedy"] for lack in lacks)
    assert max(process["demand_ratio"] for process in document["processes"]) > 0.5


def test_py_spy_that_hangs(bare_python: tuple[str, dict[str, str]]) -> None:
    """A py-spy that never answers is given up; its readings are missing, and it is not left running."""
    interpreter, env = bare_python
    marker = Path(interpreter).with_name("pid")
    fake = Path(interpreter).with_name("py-spy")
    fake.write_text(f"#!/bin/sh\necho $$ >> {marker}\nexec tail -f /dev/null\n")
    fake.chmod(0o755)
    with program(*python(SPINS)) as patient:
        ended = run("watch", str(patient.pid), *SHORT, python=interpreter, **env)
    assert ended.err == ""
    document = json.loads(ended.out)
    assert {lack["reason"] for lack in document["missing"] if lack["probe"] == "stacks"} == {"timeout"}
    pids = [int(line) for line in marker.read_text().split()]
    assert pids
    wait_until(lambda: not any(is_running(pid, "tail") for pid in pids))


def test_no_nvml() -> None:
    """Without NVIDIA devices "no GPU" is a reading; with devices and no NVML the GPUs are null and missing."""
    with program(*python(WAITS)) as patient:
        document = json.loads(run("watch", str(patient.pid), *SHORT).out)
    lacks = [lack for lack in document["missing"] if lack["probe"] == "gpu"]
    assert (document["gpus"] is None) == bool(lacks)
    if not list(Path("/dev").glob("nvidia*")):
        assert document["gpus"] == []


def newer_trace() -> bytes:
    return Packer().pack(replace(HEADER, schema=999))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("empty", b""),
        ("text", b"not a trace\n"),
        ("binary", bytes(range(256))),
        ("cut in the header", newer_trace()[:7]),
        ("without a round", Packer().pack(HEADER)),
        ("newer", newer_trace()),
    ],
)
def test_no_trace(name: str, content: bytes, tmp_path: Path) -> None:
    """A file that is no trace, or a newer one, is 2 and says which."""
    path = tmp_path / "a.hangtrace"
    path.write_bytes(content)
    ended = run("replay", str(path))
    assert ended.code == 2
    assert "a.hangtrace" in complaint(ended)
    assert ("newer" in ended.err) == (name == "newer")


def test_a_cut_trace_says_so(tmp_path: Path) -> None:
    """Replay of a trace without its end names the cut and its rounds, in the report and the document."""
    whole = (REPOSITORY / "tests" / "golden" / "absent-allreduce.hangtrace").read_bytes()
    path = tmp_path / "cut.hangtrace"
    path.write_bytes(whole[: len(whole) * 8 // 10])
    rounds = len(read(path).snapshots)
    document = json.loads(run("replay", str(path), "--json").out)
    cut = [lack["detail"] for lack in document["missing"] if lack["probe"] == "trace"]
    assert [f"the trace was cut after {rounds} round" in detail for detail in cut] == [True]
    shown = run("replay", str(path)).out
    assert "the trace was cut after" in shown.lower()
    assert "look again" not in shown.lower()


@pytest.mark.parametrize("path", ["/nowhere/a.hangtrace", "/", "/dev/null"])
def test_unreadable_trace(path: str) -> None:
    """A path that cannot be read as a trace is 2."""
    ended = run("replay", path)
    assert ended.code == 2
    complaint(ended)


@pytest.mark.needs("bash")
def test_full_disk_while_recording(tmp_path: Path) -> None:
    """When the disk is full the recording ends with 2, and what was written stays readable."""
    path = tmp_path / "a.hangtrace"
    limited = ("bash", "-c", 'ulimit -f 2; exec "$@"', "bash")
    with program(*python(WAITS)) as patient:
        arguments = ("record", str(patient.pid), "-o", str(path), "--duration", "300", "--interval", "0.1")
        ended = run(*arguments, prefix=limited)
    assert ended.code == 2
    assert "a.hangtrace cannot be written" in complaint(ended)
    assert not read(path).complete
    assert read(path).snapshots
    assert run("replay", str(path), "--json").code in (0, 1, 3)


def test_a_log_is_not_overwritten(tmp_path: Path) -> None:
    """A slip in -o never costs a file that is no trace."""
    path = tmp_path / "server.log"
    path.write_text("precious\n")
    with program(*python(WAITS)) as patient:
        ended = run("record", str(patient.pid), "-o", str(path))
    assert ended.code == 2
    complaint(ended)
    assert path.read_text() == "precious\n"


def test_nobody_reads(tmp_path: Path) -> None:
    """Output into a closed pipe is no error of its own: no message, the verdict's code."""
    path = tmp_path / "a.hangtrace"
    with program(*python(WAITS)) as patient:
        assert run("record", str(patient.pid), "-o", str(path), "--duration", "1").code == 0
    code = run("replay", str(path), "--json").code
    assert closed_pipe("replay", str(path)) == (code, "")


def test_full_standard_output() -> None:
    """A result that cannot be written is 2, with the reason, buffered as it is by default."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(argv("probes"), stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=buffered)
    assert done.returncode == 2
    assert done.stderr.startswith("hangdoc: the result cannot be written: ")
    assert len(done.stderr.splitlines()) == 1


def closed_pipe(*arguments: str) -> tuple[int, str]:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        argv(*arguments), stdout=writing, stderr=subprocess.PIPE, text=True, env=environment(), check=False
    )
    os.close(writing)
    return done.returncode, done.stderr


def is_running(pid: int, name: str) -> bool:
    try:
        return name in Path(f"/proc/{pid}/cmdline").read_bytes().decode()
    except OSError:
        return False


PRINTING = [
    (),
    ("--help",),
    ("--version",),
    ("diagnose", "--help"),
    ("probes",),
    ("probes", "--json"),
    ("explain", "HD101"),
    ("diagnose", str(REPOSITORY / "tests" / "corpus" / "launches" / "absent-barrier.log")),
    ("diagnose", "--json", str(REPOSITORY / "tests" / "corpus" / "launches" / "absent-barrier.log")),
    ("replay", str(REPOSITORY / "tests" / "golden" / "blocked-lock.hangtrace")),
    ("redact", str(REPOSITORY / "tests" / "corpus" / "launches" / "absent-barrier.log"), "-o", "-"),
]


@pytest.mark.parametrize("unbuffered", ["", "1"], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("to", [">&-", ">/dev/full"])
@pytest.mark.parametrize("arguments", PRINTING, ids=lambda given: " ".join(given)[:20])
def test_a_result_that_nobody_gets(arguments: tuple[str, ...], to: str, unbuffered: str) -> None:
    """A closed or full standard output is 2 with one line, whatever is printed: a lost verdict must not pass for 0."""
    ended = run(*arguments, prefix=["sh", "-c", f'exec "$@" {to}', "sh"], PYTHONUNBUFFERED=unbuffered)
    assert ended.code == 2
    assert "cannot be written" in complaint(ended)
