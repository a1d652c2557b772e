"""Who has to do with a patient from outside its launch: readers, senders, holders of locks, loads and observers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Set
from pathlib import Path

FREEZER, UNIFIED = Path("/sys/fs/cgroup/freezer"), Path("/sys/fs/cgroup")
"""Where the freezer of control groups version 1 is mounted, and version 2 as a whole."""

SLOW_READER = "import os,time\nwhile True:\n if not os.read(0, 6000): break\n time.sleep(0.5)"
BURNER = "while True: pass"
TIED = """
import ctypes, os, signal, sys
ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
"""
"""How each of them begins: with the end of whoever started it, it ends too."""

LOCK_HOLDER = """
import fcntl
lock = open(sys.argv[1] + "/lock", "w")
fcntl.{call}(lock, fcntl.LOCK_EX)
open(sys.argv[1] + "/word", "w").close()
while True: os.kill(os.getpid(), signal.SIGSTOP)
"""
"""Takes the lock, says so, and is stopped: one that only rests might let go of it."""
SENDER = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
with open(sys.argv[1] + "/word", "w") as word: print(server.getsockname()[1], file=word)
receiver, _ = server.accept()
while True:
    receiver.sendall(bytes({size}))
    time.sleep({pace})
"""
SILENT_SERVER = """
import socket
server = socket.create_server(("127.0.0.1", 0))
with open(sys.argv[1] + "/word", "w") as word: print(server.getsockname()[1], file=word)
receiver, _ = server.accept()
while True: signal.pause()
"""
KEEPER = """
import os, signal, sys, time
name = "hangdoc-patient-%d" % os.getpid()
old = "/sys/fs/cgroup/freezer"
cell = old + "/" + name if os.path.isdir(old) else "/sys/fs/cgroup/" + name
frozen, thawed = (("freezer.state", b"FROZEN"), ("freezer.state", b"THAWED")) if os.path.isdir(old) else (
    ("cgroup.freeze", b"1"), ("cgroup.freeze", b"0"))
os.mkdir(cell)
with open(sys.argv[1] + "/word", "w") as word: print(cell, *frozen[:1], frozen[1].decode(), file=word)
sys.stdin.buffer.read()
with open(cell + "/" + thawed[0], "wb") as state: state.write(thawed[1])
members = lambda: open(cell + "/cgroup.procs").read().split()
while members():
    for pid in members():
        try: os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError: pass
    time.sleep(0.01)
os.rmdir(cell)
"""
"""Makes a control group for the patient, and when its input ends, however that comes, thaws, kills and removes it."""

NEIGHBOUR = """
for _ in range(2):
    if os.fork() == 0:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
        break
while True: pass
"""
OBSERVER = """
os.execv(sys.executable, [sys.executable, "-c", "from hangdoc.cli.main import main; main()",
    "watch", sys.argv[2], "--timeout", "120", "--json"])
"""

SPEAKERS = {
    "lock-holder": LOCK_HOLDER.format(call="flock"),
    "record-lock-holder": LOCK_HOLDER.format(call="lockf"),
    "slow-sender": SENDER.format(size=5_000, pace=0.1),
    "trickling-sender": SENDER.format(size=100, pace=0.5),
    "silent-server": SILENT_SERVER,
    "freezer": KEEPER,
}
"""Companions that do something in the patient's folder, and then say so through the FIFO "word" in it."""

LOADS = {"neighbour": NEIGHBOUR, "observer": OBSERVER}
"""Companions that are only there."""


CLEAN_S = 20.0
"""Safety net for a keeper that cleans up, which takes milliseconds."""


def companions(kind: str, output: int, folder: Path, launcher: int) -> Iterator[subprocess.Popen[bytes]]:
    """Start a patient's companions. output: the reading end of its output; launcher: its first process."""
    if kind == "slow-reader":
        yield _start(TIED + SLOW_READER, stdin=output)
    elif kind == "burners":
        yield from burners(os.sched_getaffinity(launcher))
    elif kind == "freezer":
        yield _start(KEEPER, str(folder), stdin=subprocess.PIPE)
    elif kind in SPEAKERS:
        yield _start(TIED + SPEAKERS[kind], str(folder))
    elif kind in LOADS:
        yield _start(TIED + LOADS[kind], str(folder), str(launcher))


def burners(cores: Set[int]) -> Iterator[subprocess.Popen[bytes]]:
    """Keep these cores busy."""
    for _ in cores:
        burner = _start(TIED + BURNER)
        os.sched_setaffinity(burner.pid, cores)
        yield burner


def _start(program: str, *words: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", program, *words]
    return subprocess.Popen(
        command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )


def dismiss(companion: subprocess.Popen[bytes]) -> None:
    """End a companion and its group; one that has to clean up does so when its input ends."""
    if companion.stdin is not None:
        companion.stdin.close()
        companion.wait(CLEAN_S)
        return
    os.killpg(companion.pid, signal.SIGKILL)
    companion.wait()
