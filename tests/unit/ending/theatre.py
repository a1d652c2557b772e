"""Put up launches that are hard to end, and bystanders; whatever a test leaves is ended by its token."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from hangdoc.launch.pidfd import hold, send
from hangdoc.launch.table import listed_pids, read_stat
from hangdoc.model.process import ProcessKey
from tests.unit.cli.commands import LONGEST_S, Ended, argv, environment

PATIENTS = Path(__file__).parent / "patients"
PROC = Path("/proc")
ENTER = 'echo $$ > "$0/cgroup.procs"; exec "$@"'
LOST = "import os\nif os.fork(): os._exit(0)\nos.setsid()\nimport acts; acts.tell('lost'); acts.stay()"
STAYS = "import acts; acts.tell('own'); acts.stay()"
BYSTANDER = "import os, signal, sys; os.write(1, b'x'); signal.pause()"


class Theatre:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.token = uuid.uuid4().hex
        self.segment = uuid.uuid4().hex[:8]
        self.port = free_port()
        self.fifo = folder / "told"
        os.mkfifo(self.fifo)
        os.mkfifo(f"{self.fifo}.lifeline")
        self._heard = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK)
        self._lifeline = os.open(f"{self.fifo}.lifeline", os.O_RDWR)
        self._buffer = b""
        self.cast: dict[str, ProcessKey] = {}
        self._programs: list[subprocess.Popen[bytes]] = []
        self._leaders: list[int] = []

    def environment(self, act: str) -> dict[str, str]:
        own = {
            "HANGDOC_TEST_ACT": act,
            "HANGDOC_TEST_TOKEN": self.token,
            "HANGDOC_TEST_FIFO": str(self.fifo),
            "HANGDOC_TEST_FOLDER": str(self.folder),
            "HANGDOC_TEST_SEGMENT": self.segment,
            "HANGDOC_TEST_PORT": str(self.port),
            "PYTHONPATH": str(PATIENTS),
        }
        return {**environment(), **own}

    def server(self) -> list[str]:
        """The command line of a stand-in server."""
        return [sys.executable, "-S", "-m", "sglang.launch_server", "--port", str(self.port)]

    def launch(self, act: str, *names: str, **options: Any) -> dict[str, ProcessKey]:
        """Start a launch and wait until every part has told that it is where it will stay."""
        self.start(self.server(), act, **options)
        return self.wait_for("launcher", *names)

    def start(self, command: list[str], act: str = "plain", **options: Any) -> subprocess.Popen[bytes]:
        options.setdefault("start_new_session", True)
        options.setdefault("stdin", subprocess.DEVNULL)
        program = subprocess.Popen(command, env=self.environment(act), **options)
        self._programs.append(program)
        if options["start_new_session"]:
            self._leaders.append(os.pidfd_open(program.pid))
        return program

    def wait_for(self, *names: str) -> dict[str, ProcessKey]:
        while not set(names) <= set(self.cast):
            assert select.select([self._heard], [], [], LONGEST_S)[0], f"only {sorted(self.cast)} of {names} came"
            self._buffer += os.read(self._heard, 65536)
            *lines, self._buffer = self._buffer.split(b"\n")
            for line in lines:
                name, pid, start = line.decode().split()
                self.cast[name] = ProcessKey(int(pid), int(start))
        return dict(self.cast)

    def hears(self) -> bool:
        """Whether somebody has told something that nobody has waited for yet."""
        return bool(select.select([self._heard], [], [], 0)[0])

    def forget(self, *names: str) -> None:
        for name in names:
            self.cast.pop(name, None)

    def bystander(self, **options: Any) -> ProcessKey:
        """A Python program of the user that has nothing to do with any launch; alive when this returns."""
        command = [sys.executable, "-S", "-c", BYSTANDER, "sglang"]
        program = self.start(command, stdout=subprocess.PIPE, **options)
        assert program.stdout is not None
        assert select.select([program.stdout], [], [], LONGEST_S)[0]
        os.read(program.stdout.fileno(), 1)
        return key_of(program.pid)

    def left(self) -> set[int]:
        """Every living process that carries the token."""
        wanted = f"HANGDOC_TEST_TOKEN={self.token}".encode()
        return {
            pid for pid in listed_pids(PROC) if pid != os.getpid() and wanted in environ(pid) and lives(key_of(pid))
        }

    def close_launches(self) -> None:
        """End everything that carries the token."""
        for _ in range(1000):
            pids = self.left()
            if not pids:
                break
            for pid in pids:
                handle = hold(key_of(pid))
                if handle is not None:
                    send(handle.descriptor, signal.SIGKILL)
                    handle.close()

    def bury(self, pid: int) -> None:
        """Wait for a program that was started and has ended: its pid is free then."""
        next(one for one in self._programs if one.pid == pid).wait(LONGEST_S)

    def group_is_empty(self, leader: ProcessKey) -> bool:
        """Reap what was started, and ask the kernel whether anybody is in the group: also who is never seen."""
        for program in self._programs:
            program.poll()
        try:
            os.killpg(leader.pid, 0)
        except ProcessLookupError:
            return True
        return False

    def close(self) -> None:
        os.close(self._lifeline)
        for leader in self._leaders:
            # The whole group, and by the leader's descriptor: also those that no list ever shows.
            with suppress(OSError):
                send(leader, signal.SIGKILL, whole_group=True)
            os.close(leader)
        self.close_launches()
        for program in self._programs:
            program.wait()
            if program.stdout is not None:
                program.stdout.close()
        os.close(self._heard)
        for path in (*Path("/dev/shm").glob(f"*{self.segment}*"), *Path("/tmp").glob(f"tmp{self.segment}")):
            path.unlink()

    def kill_clean(self, *arguments: str, prefix: tuple[str, ...] = (), **env: str) -> Ended:
        """Run the command without a terminal, in the folder of the test."""
        done = subprocess.run(
            [*prefix, *argv("kill-clean", *arguments)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=LONGEST_S,
            cwd=self.folder,
            env={**environment(), **env},
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def environ(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return b""


def key_of(pid: int) -> ProcessKey:
    line = read_stat(PROC, pid)
    return ProcessKey(pid, line.start_ticks if line is not None else 0)


def lives(key: ProcessKey) -> bool:
    """Alive, the same process, and no zombie."""
    line = read_stat(PROC, key.pid)
    return line is not None and line.start_ticks == key.start_ticks and line.state not in "ZX"


def state(key: ProcessKey) -> str:
    line = read_stat(PROC, key.pid)
    return line.state if line is not None and line.start_ticks == key.start_ticks else ""
