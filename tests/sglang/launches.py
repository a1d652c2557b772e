"""Start a scenario on the real SGLang, wait for its signs, ask it, remove all of it; a command line for one launch."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

if not __package__:  # run as a file: the imports below need the repository's root, as pytest has it
    sys.path[0] = str(Path(__file__).resolve().parents[2])

from tests.sglang import guard
from tests.sglang.provision import HERE, NEWEST, Rig, provision
from tests.sglang.scenarios import READY, SCENARIOS, Log, Mark, Scenario, Sign

# Only a safety net: an idle machine needs a quarter of it, a loaded one has needed two minutes.
DEADLINE_S = 300.0
POLL_MS = 50
TAIL_LINES = 25
SCHEDULER = re.compile(r"sglang::scheduler(?:_TP(\d+))?")
CPU_FLAGS = (
    *("--device", "cpu", "--attention-backend", "torch_native", "--sampling-backend", "pytorch"),
    *("--mem-fraction-static", "0.5", "--max-total-tokens", "4096", "--max-running-requests", "4"),
    *("--context-length", "512", "--disable-cuda-graph", "--disable-radix-cache"),
)


class LaunchError(Exception):
    """The launch died, or showed no sign in time; carries the log's tail."""


@dataclass(frozen=True)
class Launch:
    """A running launch: `pid` is the launcher, which leads a session of its own."""

    scenario: Scenario
    version: str
    pid: int
    port: int
    log: Path
    directory: Path
    process: subprocess.Popen[bytes] = field(repr=False)
    keeper: subprocess.Popen[bytes] = field(repr=False)

    def __enter__(self) -> Launch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def seen(self, sign: Sign) -> bool:
        if isinstance(sign, Mark):
            return self.mark_path(sign).exists()
        return re.search(sign.pattern, self.text()) is not None

    def mark_path(self, sign: Mark) -> Path:
        return self.directory / f"mark.{sign.name}"

    def text(self) -> str:
        return self.log.read_text(errors="replace")

    def tail(self) -> str:
        return "\n".join(self.text().splitlines()[-TAIL_LINES:])

    def dead(self) -> bool:
        """Without reaping: while the zombie is there, its number (the session's) can't be given to another process."""
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return self.process.returncode is not None or os.waitid(os.P_PID, self.pid, flags) is not None

    def wait_for(self, sign: Sign | str, deadline_s: float = DEADLINE_S) -> None:
        """A string is a regular expression for the log."""
        wanted = Log(sign) if isinstance(sign, str) else sign
        until = time.monotonic() + deadline_s
        while not self.seen(wanted):
            # Looked for again after the death was seen: the last words may be the sign.
            if self.dead() and not self.seen(wanted):
                raise LaunchError(f"{self.scenario.name} died before {wanted}; its log ends:\n{self.tail()}")
            if time.monotonic() > until:
                raise LaunchError(f"{self.scenario.name}: no {wanted} in {deadline_s:g} s; log ends:\n{self.tail()}")
            self.pause()

    def pause(self) -> None:
        """For a moment, cut short by the launcher's death."""
        handle = os.pidfd_open(self.pid)
        try:
            poller = select.poll()
            poller.register(handle, select.POLLIN)
            poller.poll(POLL_MS)
        finally:
            os.close(handle)

    def wait_until_ill(self, deadline_s: float = DEADLINE_S) -> Launch:
        for sign in self.scenario.ill_when:
            self.wait_for(sign, deadline_s)
        return self

    def members(self) -> list[int]:
        """All live processes of the launch."""
        return guard.members(self.pid)

    def named(self, pattern: re.Pattern[str]) -> dict[int, re.Match[str]]:
        found = {pid: pattern.match(command_line(pid)) for pid in self.members()}
        return {pid: match for pid, match in found.items() if match}

    def scheduler_pids(self) -> dict[int, int]:
        """Rank to process id; a scheduler has no name, and so is not here, until its imports are over."""
        return {int(match[1] or 0): pid for pid, match in sorted(self.named(SCHEDULER).items())}

    def detokenizer_pid(self) -> int | None:
        return next(iter(self.named(re.compile("sglang::detokenizer"))), None)

    def spawned_pids(self) -> list[int]:
        """Children that are still importing, so that no one can say yet what they will be."""
        return list(self.named(re.compile(r".*multiprocessing\.spawn import spawn_main")))

    def generate(self, text: str = "hello", tokens: int = 8) -> dict[str, object]:
        sampling = {"max_new_tokens": tokens, "temperature": 0, "ignore_eos": True}
        body = json.dumps({"text": text, "sampling_params": sampling}).encode()
        url = f"http://127.0.0.1:{self.port}/generate"
        request = urllib.request.Request(url, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as answer:
            value: dict[str, object] = json.load(answer)
        return value

    def prefer(self, nice: int) -> None:
        """The priority of all its threads; raising it again is the superuser's right, and others go on without."""
        with contextlib.suppress(PermissionError, ProcessLookupError):
            os.setpriority(os.PRIO_PGRP, self.pid, nice)

    def close(self) -> None:
        """Kill the session, wait until each member is gone; reap the launcher last (see dead)."""
        if self.process.returncode is not None:
            return
        guard.kill_session(self.pid)
        self.process.wait()
        self.keeper.communicate(b"done\n")


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def free_port() -> int:
    """Below the ports that the kernel gives to clients, so that none of those takes it before the server does."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def cpu_binding(tp: int) -> str:
    """One core per rank; SGLang on CPU refuses more ranks than NUMA nodes without this."""
    cores = sorted(os.sched_getaffinity(0))
    return "|".join(str(cores[rank % len(cores)]) for rank in range(tp))


def search_path(rig: Rig, version: str) -> str:
    overlay = [] if version == NEWEST else [HERE / "shim_058", rig.overlay]
    return os.pathsep.join(map(str, [HERE / "shim", *overlay]))


def environment(scenario: Scenario, rig: Rig, version: str, directory: Path) -> dict[str, str]:
    """The caller's, less what steers his own Python."""
    env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "HANG_", "SGLANG_"))}
    env |= {
        "PYTHONPATH": search_path(rig, version),
        "PYTHONUNBUFFERED": "1",
        "SGLANG_USE_CPU_ENGINE": "1",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        # The compiled expert selection needs a real triton.
        "TORCHDYNAMO_DISABLE": "1",
        "HANG_DIR": str(directory),
        "HANG_RANK": str(scenario.ill_rank),
    }
    if scenario.tp > 1:
        env["SGLANG_CPU_OMP_THREADS_BIND"] = cpu_binding(scenario.tp)
    env |= dict(scenario.environment)
    if scenario.inject:
        env["HANG_INJECT"] = str(HERE / "inject" / scenario.inject)
    return env


def command(scenario: Scenario, rig: Rig, port: int) -> list[str]:
    flags = [flag.format(dist_port=free_port()) if "{" in flag else flag for flag in scenario.flags]
    return [
        *(str(rig.python), "-m", "sglang.launch_server", "--model-path", str(rig.model), *CPU_FLAGS),
        *("--host", "127.0.0.1", "--port", str(port), "--tp", str(scenario.tp), *flags),
    ]


def clear(directory: Path) -> None:
    """The signs of an earlier launch must not be taken for this one's."""
    for pattern in ("mark.*", "fifo.*"):
        for path in directory.glob(pattern):
            path.unlink()


def start_keeper() -> subprocess.Popen[bytes]:
    """Its input closes however this process ends, and then it kills the session that it was told."""
    program = [sys.executable, "-I", "-S", str(HERE / "guard.py")]
    return subprocess.Popen(program, stdin=subprocess.PIPE, start_new_session=True)


def start(
    scenario: Scenario | str,
    *,
    directory: Path,
    version: str = NEWEST,
    rig: Rig | None = None,
    port: int | None = None,
) -> Launch:
    """Returns at once: wait with wait_until_ill or wait_for. `directory` gets the log, marks and FIFOs."""
    known = SCENARIOS[scenario] if isinstance(scenario, str) else scenario
    parts = rig or provision((version,))
    directory.mkdir(parents=True, exist_ok=True)
    clear(directory)
    log, port, keeper = directory / "server.log", port or free_port(), start_keeper()
    with log.open("wb") as out:
        process = subprocess.Popen(
            command(known, parts, port),
            env=environment(known, parts, version, directory),
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    assert keeper.stdin is not None
    keeper.stdin.write(b"%d\n" % process.pid)
    keeper.stdin.flush()
    return Launch(known, version, process.pid, port, log, directory, process, keeper)


def wait_for_the_end() -> None:
    """Of the input where someone holds it (a terminal, a pipe), else of patience: a signal."""
    if sys.stdin.isatty() or stat.S_ISFIFO(os.fstat(0).st_mode):
        sys.stdin.read()
    else:
        signal.pause()


def report(launch: Launch) -> Iterable[str]:
    for pid in launch.members():
        fields = guard.stat_fields(pid)
        if fields:
            yield f"{pid} {fields[0]} cpu {int(fields[11]) + int(fields[12])} ticks: {command_line(pid)[:70]}"


def hold(launch: Launch, once: bool) -> None:
    began = time.monotonic()
    print(
        f"{launch.scenario.name} {launch.version}: launcher {launch.pid} port {launch.port} log {launch.log}",
        flush=True,
    )
    launch.wait_until_ill()
    print(
        f"{'ready' if READY in launch.scenario.ill_when else 'ill'} after {time.monotonic() - began:.1f} s", flush=True
    )
    print("\n".join(report(launch)), flush=True)
    if not once:
        wait_for_the_end()


def stop(signum: int, frame: object) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenario", choices=sorted(SCENARIOS))
    parser.add_argument("--version", default=NEWEST)
    parser.add_argument("--directory", type=Path, help="for log and marks; kept (default: a temporary one, removed)")
    parser.add_argument("--once", action="store_true", help="stop as soon as the signs are there")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, stop)
    directory = arguments.directory or Path(tempfile.mkdtemp(prefix="hangdoc-launch-"))
    try:
        with start(arguments.scenario, directory=directory, version=arguments.version) as launch:
            hold(launch, arguments.once)
    except KeyboardInterrupt:
        return 130
    finally:
        if not arguments.directory:
            shutil.rmtree(directory, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
