"""One server on a GPU machine: started held before it touches a card, released, asked, stopped, ended."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.gpu.scenarios import Scenario
from tests.sglang import guard

HOOKS = Path(__file__).with_name("hooks")
POLL_S = 0.05
FLAGS = (
    *("--host", "127.0.0.1", "--attention-backend", "triton", "--sampling-backend", "pytorch"),
    *("--grammar-backend", "none", "--disable-custom-all-reduce", "--enforce-disable-flashinfer-allreduce-fusion"),
    *("--mem-fraction-static", "0.1", "--max-total-tokens", "100000", "--mm-feature-transport", "cpu"),
    *("--random-seed", "1"),
)
QUIET = {
    "NCCL_NVLS_ENABLE": "0",
    "TORCH_SYMM_MEM_DISABLE_MULTICAST": "1",
    "NVSHMEM_DISABLE_NVLS": "1",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}
"""NVLink multicast stays off: a process that dies with it can take the fabric of other jobs along."""

CACHES = ("TVM_FFI_CACHE_DIR", "TRITON_CACHE_DIR", "FLASHINFER_WORKSPACE_BASE")


@dataclass(frozen=True)
class Machine:
    """How servers are started here. program: up to the options; flags: for every server; environment: beyond ours.

    one_card: libnccl.so that lets two ranks share a card; None: every rank has a card of its own.
    """

    program: Sequence[str]
    model: Path
    flags: Sequence[str] = FLAGS
    environment: dict[str, str] = field(default_factory=dict)
    one_card: Path | None = None


class Server:
    """A launch of a scenario; its directory has the log and the marks."""

    def __init__(self, scenario: Scenario, machine: Machine, directory: Path, port: int) -> None:
        self.scenario, self.port, self.directory = scenario, port, directory
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        self.log = directory / "server.log"
        self.locks: list[object] = []
        self.began_s = time.monotonic()
        environment = environment_of(scenario, machine, directory, port)
        if scenario.locked:
            self.locks = hold_locks(environment, directory)
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                command_of(scenario, machine, port),
                env=environment,
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.pid = self.process.pid

    def release(self) -> None:
        """Let its schedulers begin."""
        (self.directory / "go").touch()

    def fall_ill(self) -> None:
        """From now on what goes wrong may."""
        (self.directory / "when").touch()

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def has(self, pattern: str) -> bool:
        return re.search(pattern, self.text()) is not None

    def is_ill(self) -> bool:
        return (self.directory / "mark.ill").exists()

    def wait(self, sign: Callable[[], bool], until_s: float) -> bool:
        """Wait for a sign, no longer than until a moment, nor for a server that has ended."""
        while time.monotonic() < until_s:
            if sign():
                return True
            if self.process.poll() is not None:
                return sign()
            time.sleep(POLL_S)
        return False

    def scheduler(self, rank: int) -> int | None:
        """Return the pid of a rank's scheduler."""
        for pid in guard.members(self.pid):
            with contextlib.suppress(OSError):
                title = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                match = re.match(r"sglang::scheduler(?:_TP(\d+))?", title)
                if match and int(match[1] or 0) == rank:
                    return pid
        return None

    def stop_rank(self) -> bool:
        """Stop the ill rank by a signal; it is this program's own child's child."""
        pid = self.scheduler(self.scenario.rank)
        if pid is not None:
            os.kill(pid, signal.SIGSTOP)
        return pid is not None

    def generate(self, tokens: int, timeout_s: float) -> int:
        """Return how many tokens came; OSError when none did."""
        sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
        body = json.dumps({"text": "hello world", "sampling_params": sampling}).encode()
        url = f"http://127.0.0.1:{self.port}/generate"
        request = urllib.request.Request(url, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=timeout_s) as answer:
            return int(json.load(answer)["meta_info"]["completion_tokens"])

    def load(self, clients: int, seconds: float, tokens: int = 256) -> float:
        """Ask from several sides for some seconds; return tokens a second."""
        until_s, counted, began_s = time.monotonic() + seconds, [0] * clients, time.monotonic()

        def ask(number: int) -> None:
            while time.monotonic() < until_s:
                try:
                    counted[number] += self.generate(tokens, seconds + 30)
                except (OSError, ValueError, KeyError):
                    return

        threads = [threading.Thread(target=ask, args=(number,), daemon=True) for number in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(seconds + 60)
        return sum(counted) / (time.monotonic() - began_s)

    def states(self) -> dict[int, str]:
        """Return the state letter of each member."""
        found = {pid: guard.stat_fields(pid) for pid in guard.members(self.pid)}
        return {pid: fields[0] for pid, fields in found.items() if fields}

    def end(self) -> None:
        """Kill whatever is left of it."""
        guard.kill_session(self.pid)
        self.process.wait()


def command_of(scenario: Scenario, machine: Machine, port: int) -> list[str]:
    shape = ("--model-path", str(machine.model), "--port", str(port), "--tp", str(scenario.ranks))
    return [*machine.program, *shape, *machine.flags, *scenario.flags]


def environment_of(scenario: Scenario, machine: Machine, directory: Path, port: int) -> dict[str, str]:
    """Return the environment of a server; RAS listens on a port of its own, next to the server's."""
    found = {
        **os.environ,
        **machine.environment,
        **QUIET,
        "PYTHONPATH": python_path(machine),
        "PYTHONUNBUFFERED": "1",
        "HANG_MODE": scenario.mode,
        "HANG_RANK": str(scenario.rank),
        "HANG_DIR": str(directory),
        "HANG_HOLD": str(directory / "go"),
        "HANG_WHEN": str(directory / "when") if scenario.serving else "",
        "NCCL_RAS_ADDR": f"localhost:{port + 1}",
    }
    if scenario.ranks > 1 and machine.one_card is not None:
        found |= {"HANG_ONE_GPU": "1", "NCCL_MULTI_RANK_GPU_ENABLE": "1", "LD_PRELOAD": str(machine.one_card)}
    if scenario.cold:
        found |= {name: str(directory / "cold" / name.lower()) for name in CACHES}
    return found


def python_path(machine: Machine) -> str:
    """Return the servers' PYTHONPATH: hooks first, then what they need on this machine."""
    own = machine.environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    return os.pathsep.join(filter(None, [str(HOOKS), own]))


def hold_locks(environment: dict[str, str], directory: Path) -> list[object]:
    """Copy the names of the compiled modules to an empty cache, and hold the lock of each as a builder would."""
    import fcntl  # noqa: PLC0415  only where a cache is locked

    source, cache = Path(environment.get("TVM_FFI_CACHE_DIR", "")), directory / "locked"
    held = []
    for module in sorted(source.iterdir()) if source.is_dir() else []:
        if module.is_dir():
            (cache / module.name).mkdir(parents=True)
            lock = (cache / module.name / "lock").open("w")
            fcntl.flock(lock, fcntl.LOCK_EX)
            held.append(lock)
    environment["TVM_FFI_CACHE_DIR"] = str(cache)
    return held
