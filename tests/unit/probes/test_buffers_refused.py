"""The buffers probe where memory is denied, gone, or goes while it is read."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hangdoc.memory import process as reading
from hangdoc.memory.process import ProcessMemory
from hangdoc.model.buffer import Buffers
from hangdoc.model.reading import Known
from hangdoc_probes import _reading, buffers
from tests.conftest import NOT_TO_BE_HAD
from tests.unit.probes.printers import Printer, buffers_of, printing, program, python_texts
from tests.unit.probes.targets import as_somebody_else, become_nobody, known, missing, process_of, take
from tests.unit.probes.test_rights import lose_ptrace

ROOT = Path(__file__).resolve().parents[3]
PRINTS = [sys.executable, "-c", program("print('x' * 61)")]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason=f"{NOT_TO_BE_HAD}only root can give rights up")


def told(printer: Printer) -> list[str]:
    _reading.permission_remedy.cache_clear()
    (sample,) = take(buffers.PROBE, process_of(printer.pid))
    return [missing(sample).reason, missing(sample).remedy]


@needs_root
def test_another_users_process(tmp_path: Path) -> None:
    """Without rights the reading is denied, with the remedy that fits."""
    with printing(PRINTS, tmp_path) as printer:
        reason, remedy = as_somebody_else(become_nobody, lambda: told(printer))
    assert reason == "denied"
    assert "run hangdoc as root" in remedy


@needs_root
@pytest.mark.skipif(os.uname().machine not in {"x86_64", "aarch64"}, reason="the number of capset is not known here")
def test_root_in_a_container(tmp_path: Path) -> None:
    """Root without CAP_SYS_PTRACE is told which option gives it."""
    with printing(PRINTS, tmp_path) as printer:
        reason, remedy = as_somebody_else(lose_ptrace, lambda: told(printer))
    assert reason == "denied"
    assert "--cap-add SYS_PTRACE" in remedy


def test_a_zombie() -> None:
    """A zombie has no memory: gone."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    try:
        (sample,) = take(buffers.PROBE, process_of(child))
        assert missing(sample).reason == "gone"
    finally:
        os.waitpid(child, 0)


def test_a_pid_that_another_process_got(tmp_path: Path) -> None:
    """What was read of a process with the same number and another start is not believed."""
    with printing(PRINTS, tmp_path) as printer:
        (sample,) = take(buffers.PROBE, process_of(printer.pid, start_ticks=1))
        assert missing(sample).reason == "gone"


@pytest.mark.parametrize("reads", [0, 1, 10, 40, 100, 200])
def test_a_process_that_ends_while_it_is_read(reads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever in the reading the process ends, the outcome is gone, and nothing else happens."""
    with printing(PRINTS, tmp_path) as printer:

        class Mortal(ProcessMemory):
            left = reads

            def read(self, address: int, size: int) -> bytes:
                if Mortal.left == 0:
                    printer.child.kill()
                    printer.child.wait()
                Mortal.left -= 1
                return super().read(address, size)

        monkeypatch.setattr(buffers, "ProcessMemory", Mortal)
        (sample,) = take(buffers.PROBE, process_of(printer.pid))
        assert Mortal.left < 0, "it was read to the end"
        assert missing(sample).reason == "gone"


def test_an_exec_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that becomes another program in mid-read gives no text of the one it was."""
    becomes = "\nos.execv('/bin/sleep', ['sleep', '1000'])"
    with printing([sys.executable, "-c", program("print('x' * 61)") + becomes], tmp_path) as printer:

        class Changing(ProcessMemory):
            left = 100

            def read(self, address: int, size: int) -> bytes:
                Changing.left -= 1
                if Changing.left == 0:
                    printer.let_go()
                    while Path(f"/proc/{printer.pid}/comm").read_text() != "sleep\n":
                        pass
                return super().read(address, size)

        monkeypatch.setattr(buffers, "ProcessMemory", Changing)
        (sample,) = take(buffers.PROBE, process_of(printer.pid))
        assert Changing.left < 0
        assert not [text for text in texts(known(sample, Buffers)) if text]


def texts(found: Buffers) -> list[str]:
    return [text.tail for one in (found.python, found.c) if isinstance(one, Known) for text in one.value]


def test_the_file_of_the_memory_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where process_vm_readv is refused, /proc/PID/mem gives the same."""

    def refused(*_: Any) -> int:
        ctypes.set_errno(errno.EPERM)
        return -1

    with printing(PRINTS, tmp_path) as printer:
        before = buffers_of(printer.pid)
        monkeypatch.setattr(reading, "_call", lambda: refused)
        assert buffers_of(printer.pid) == before
        assert python_texts(printer.pid)[1].size_bytes == 62


LOOKS = """
from hangdoc_probes import buffers
from tests.unit.probes.targets import process_of, take
import sys
(sample,) = take(buffers.PROBE, process_of(int(sys.argv[1])))
print(sample.reading)
"""


@pytest.mark.needs("strace")
def test_the_process_is_neither_traced_nor_signalled(tmp_path: Path) -> None:
    """A reading makes no call that could stop anybody; the one it makes is process_vm_readv."""
    calls = tmp_path / "calls"
    command = ["strace", "-f", "-qq", "-o", str(calls), "-e", "trace=ptrace,/kill,/signal,/sigqueue,process_vm_readv"]
    with printing(PRINTS, tmp_path) as printer:
        looking = [*command, sys.executable, "-c", LOOKS, str(printer.pid)]
        done = subprocess.run(looking, capture_output=True, text=True, cwd=ROOT, check=True)
    assert "size_bytes=62" in done.stdout
    made = {line.split()[1].partition("(")[0] for line in calls.read_text().splitlines()}
    assert made == {"process_vm_readv"}


def test_check_says_what_can_be_read() -> None:
    """The probe's own check reads a byte of hangdoc's memory."""
    assert isinstance(buffers.PROBE.check(Path("/proc")), Known)
