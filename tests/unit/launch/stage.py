"""A stage on which tests put up real process trees that look like launches, and that all end with the test."""

from __future__ import annotations

import json
import os
import select
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PATIENTS = Path(__file__).parent / "patients"
DEADLINE_S = 60  # a safety net only: a test waits for a handshake, never for time to pass
TP2 = {
    "tp0": {"argv": ["sglang::scheduler_TP0"]},
    "tp1": {"argv": ["sglang::scheduler_TP1"]},
    "detokenizer": {"argv": ["sglang::detokenizer"]},
}


@dataclass
class Actor:
    """What a plan's program told when it was ready."""

    pid: int
    children: dict[str, int] = field(default_factory=dict)

    @property
    def pids(self) -> set[int]:
        return {self.pid, *self.children.values()}


class Stage:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ready, self.lifeline = directory / "ready", directory / "lifeline"
        os.mkfifo(self.ready)
        os.mkfifo(self.lifeline)
        self._told = os.open(self.ready, os.O_RDWR | os.O_NONBLOCK)
        self._alive = os.open(self.lifeline, os.O_RDWR)
        self._buffer = b""
        self._messages: dict[str, Actor] = {}
        self._started: list[subprocess.Popen[bytes]] = []

    def plan(self, name: str, children: dict[str, Any] | None = None) -> Path:
        path = self.directory / f"{name}.json"
        content = {"name": name, "ready": str(self.ready), "lifeline": str(self.lifeline)}
        path.write_text(json.dumps({**content, "children": TP2 if children is None else children}))
        return path

    def server(self, name: str, children: dict[str, Any] | None = None, options: str = "--tp 2") -> list[str]:
        """The command line of a stand-in server, behind env (which execs)."""
        return [*self._environment(name, children), sys.executable, "-m", "sglang.launch_server", *shlex.split(options)]

    def program(self, name: str, children: dict[str, Any] | None = None) -> list[str]:
        """The command line of a program of no known engine."""
        return [*self._environment(name, children or {}), sys.executable, str(PATIENTS / "program.py"), name]

    def driver(self, *commands: list[str]) -> list[str]:
        return [sys.executable, str(PATIENTS / "driver.py"), json.dumps(commands)]

    def _environment(self, name: str, children: dict[str, Any] | None) -> list[str]:
        return ["env", f"HANGDOC_PLAN={self.plan(name, children)}", f"PYTHONPATH={PATIENTS}"]

    def start(self, argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        options.setdefault("start_new_session", True)
        options.setdefault("stderr", subprocess.DEVNULL)
        process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, **options)
        self._started.append(process)
        return process

    def script(self, text: str, name: str = "run.sh", **options: Any) -> subprocess.Popen[bytes]:
        path = self.directory / name
        path.write_text(text)
        return self.start(["bash", str(path)], **options)

    def wait_for(self, name: str) -> Actor:
        """Wait until a program of this name said that it is ready."""
        while name not in self._messages:
            assert select.select([self._told], [], [], DEADLINE_S)[0], f"{name} never got ready"
            self._buffer += os.read(self._told, 65536)
            *lines, self._buffer = self._buffer.split(b"\n")
            for line in lines:
                told = json.loads(line)
                self._messages[told["name"]] = Actor(told["pid"], told.get("children", {}))
        return self._messages[name]

    def run(self, argv: list[str], name: str, **options: Any) -> Actor:
        self.start(argv, **options)
        return self.wait_for(name)

    def end(self, pid: int) -> None:
        """Kill a process of this test and wait until its children have a new parent."""
        handle = os.pidfd_open(pid)
        signal.pidfd_send_signal(handle, signal.SIGKILL)
        assert select.select([handle], [], [], DEADLINE_S)[0]
        os.close(handle)
        for process in self._started:
            if process.pid == pid:
                process.wait(DEADLINE_S)

    def proc_of(self, *pids: int) -> Path:
        """A proc directory that shows only these processes: other launches on this machine do not disturb."""
        proc = self.directory / "proc"
        proc.mkdir()
        for pid in {*pids, os.getpid()}:
            (proc / str(pid)).symlink_to(f"/proc/{pid}")
        (proc / "net").symlink_to("/proc/net")
        return proc

    def close(self) -> None:
        os.close(self._alive)  # every process of a plan reads the end of file now
        for process in self._started:
            process.kill()
            process.wait()
        os.close(self._told)
