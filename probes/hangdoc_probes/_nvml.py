"""Hold the program that asks NVML, and let it go when it does not answer."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import Any

from hangdoc.launch.pidfd import send
from hangdoc.procfs.errors import ProcParseError
from hangdoc.procfs.thread import parse_schedstat
from hangdoc_probes._reading import read

KILLED_S = 0.2
"""How long a killed program may take to go before it is left to the kernel; arbitrary."""


class NvmlSilentError(Exception):
    """NVML did not answer in time, or its program ended. call: the NVML function that was asked last."""

    def __init__(self, call: str, *, ended: bool) -> None:
        super().__init__(call)
        self.call = call
        self.ended = ended


class NvmlChild:
    """One running program."""

    def __init__(self, *options: str) -> None:
        self._child = subprocess.Popen(
            # -P: a file called json.py in the directory hangdoc was started in is not for this program.
            [sys.executable, "-P", "-m", "hangdoc_probes._nvml_child", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._requests, self._answers = self._child.stdin.fileno(), self._child.stdout.fileno()
        self._exit = os.pidfd_open(self._child.pid)
        self._pending = b""
        self._call = "nvmlInit"

    def ask(self, timeout_s: float) -> Any:
        """Poll NVML once and return the answer as the program wrote it."""
        deadline_s = time.monotonic() + timeout_s
        with suppress(BrokenPipeError):  # it has ended: reading says so
            os.write(self._requests, b"\n")
        while True:
            line = self._line(deadline_s)
            if not line.startswith(b"call "):
                return json.loads(line)
            self._call = line.decode().split()[1]

    def cpu_s(self) -> float:
        """Return the CPU time it has used."""
        try:
            return parse_schedstat(0, read(f"/proc/{self._child.pid}/schedstat")).run_ns / 1e9
        except (OSError, ProcParseError):
            return 0.0

    def kill(self) -> None:
        """End it, from any thread."""
        with suppress(OSError):
            send(self._exit, signal.SIGKILL)

    def close(self) -> bool:
        """End it and let go; False when the kernel still holds it, in a call into the driver."""
        self.kill()
        try:
            self._child.wait(KILLED_S)
        except subprocess.TimeoutExpired:
            self._child.returncode = -signal.SIGKILL  # nobody waits for it any more
            return False
        finally:
            os.close(self._exit)
            for pipe in (self._child.stdin, self._child.stdout):
                assert pipe is not None
                pipe.close()
        return True

    def _line(self, deadline_s: float) -> bytes:
        poll = select.poll()
        poll.register(self._answers, select.POLLIN)
        while b"\n" not in self._pending:
            if not poll.poll(max(0.0, deadline_s - time.monotonic()) * 1000):
                raise NvmlSilentError(self._call, ended=False)
            arrived = os.read(self._answers, 1 << 16)
            if not arrived:
                raise NvmlSilentError(self._call, ended=True)
            self._pending += arrived
        line, _, self._pending = self._pending.partition(b"\n")
        return line
