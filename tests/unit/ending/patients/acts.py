"""What a stand-in launch does so that ending it is hard. Every process tells its name and pid on a FIFO when it is so.

All carry HANGDOC_TEST_TOKEN in their environment: by it the theatre finds and ends whatever a test leaves.
"""

import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_NAME, CLONE_NEWPID = 15, 0x20000000
ARG_START, ARG_END = 45, 46
TOLD = os.environ["HANGDOC_TEST_FIFO"]
FOLDER = Path(os.environ["HANGDOC_TEST_FOLDER"])
SEGMENT = os.environ.get("HANGDOC_TEST_SEGMENT", "")
PORT = int(os.environ.get("HANGDOC_TEST_PORT", "0"))


def tell(name, pid=None):
    number = pid or os.getpid()
    stat = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    descriptor = os.open(TOLD, os.O_WRONLY)
    os.write(descriptor, f"{name} {number} {stat[19]}\n".encode())
    os.close(descriptor)


def title(text):
    """As setproctitle does: over the own command line, and the short name."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[ARG_START]), int(fields[ARG_END])
    ctypes.memset(start, 0, end - start)
    ctypes.memmove(start, text.encode()[: end - start - 1], len(text))
    LIBC.prctl(PR_SET_NAME, text.encode())


def stay():
    while True:
        signal.pause()


def fork(act, *arguments):
    pid = os.fork()
    if pid:
        return pid
    try:
        act(*arguments)
    finally:
        os._exit(0)


def rank(number, act=stay):
    title(f"sglang::scheduler_TP{number}")
    tell(f"rank{number}")
    act()


def launcher(*ranks):
    for number, act in enumerate(ranks):
        fork(rank, number, act)
    tell("launcher")
    stay()


def deaf():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)


def plain():
    launcher(stay, stay)


def unknown():
    """A program of no engine, with a fork of its own."""

    def part():
        tell("part")
        stay()

    fork(part)
    tell("program")
    stay()


def forks():
    """A launcher whose two forks keep its command line."""

    def child(number):
        tell(f"child{number}")
        stay()

    for number in (0, 1):
        fork(child, number)
    tell("launcher")
    stay()


def answers():
    """A rank that another launch's rank connects to."""

    def serve():
        server.listen()
        globals()["KEPT"] = server.accept()
        stay()

    server = socket.socket(socket.AF_UNIX)
    server.bind(str(FOLDER / "transfer"))
    server.listen()
    launcher(serve)


def connects():
    """A rank that connects to another launch's, and tells so."""

    def connect():
        title("sglang::scheduler_TP0")
        client = socket.socket(socket.AF_UNIX)
        client.connect(str(FOLDER / "transfer"))
        tell("rank0")
        globals()["KEPT"] = client
        stay()

    fork(connect)
    tell("launcher")
    stay()


def ignores_sigterm():
    deaf()
    launcher(stay, stay)


def drains():
    """Hears SIGTERM and goes on, as a server that waits for its requests does."""
    signal.signal(signal.SIGTERM, lambda *_: None)
    launcher(stay, stay)


def tells_of_sigterm():
    """Says that it was asked to end, and goes on."""
    signal.signal(signal.SIGTERM, lambda *_: tell("asked"))
    launcher(stay, stay)


def stopped():
    def stop():
        os.kill(os.getpid(), signal.SIGSTOP)
        stay()

    pid = fork(rank, 0, stop)
    os.waitpid(pid, os.WUNTRACED)
    tell("stopped", pid)
    launcher()


def zombie():
    pid = fork(rank, 0, lambda: None)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    tell("dead", pid)
    fork(rank, 1)
    tell("launcher")
    stay()


def double_forked():
    """Without exec, in a session of its own, its parent gone: only its memory's addresses tell whose it is."""

    middle_one = []

    def middle():
        os.setsid()
        middle_one.append(os.getpid())
        fork(lost)
        os._exit(0)

    def lost():
        with contextlib.suppress(ProcessLookupError):  # its parent is gone already
            select.select([os.pidfd_open(middle_one[0])], [], [])
        tell("lost")
        stay()

    os.waitpid(fork(middle), 0)
    launcher(stay)


def leaves_a_listener():
    """A launcher whose fork in a session of its own has the port: it was forked when the launcher listened already."""
    pid = fork(rank, 0)
    while Path(f"/proc/{pid}/cmdline").read_bytes()[:17] != b"sglang::scheduler":
        time.sleep(0.01)
    globals()["KEPT"] = socket.create_server(("127.0.0.1", PORT))
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        title("helper")
        tell("lost")
        stay()
    tell("launcher")
    stay()


def leaves_a_fork():
    """A fork in a session of its own that keeps the command line."""

    def lost():
        os.setsid()
        tell("lost")
        stay()

    fork(lost)
    launcher(stay)


def two_engines():
    """Two ranks of the same name."""

    def other():
        title("sglang::scheduler_TP0")
        tell("other")
        stay()

    fork(other)
    launcher(stay, stay)


def private_pipe():
    """Executed by a double fork into a session of its own, with an end of a pipe that a rank made."""
    launcher(send_helper)


def send_helper():
    _, writer = os.pipe()
    os.set_inheritable(writer, True)
    told, tells = os.pipe()

    def middle():
        os.setsid()
        pid = os.fork()
        if pid:
            os.write(tells, str(pid).encode())
            os._exit(0)
        os.execvp("cat", ["helper", TOLD + ".lifeline"])

    os.waitpid(fork(middle), 0)
    pid = int(os.read(told, 64))
    while Path(f"/proc/{pid}/cmdline").read_bytes()[:6] != b"helper":
        time.sleep(0.01)
    tell("helper", pid)
    stay()


def other_session():
    def apart():
        os.setsid()
        stay()

    launcher(stay, apart)


def other_namespace():
    """A rank that runs below a pid namespace of its own."""
    pid = os.fork()
    if pid == 0:
        if LIBC.unshare(CLONE_NEWPID):
            os._exit(3)
        inner = os.fork()
        if inner == 0:
            title("sglang::scheduler_TP1")
            stay()
        tell("rank1", inner)
        stay()
    launcher(stay)


def belongings():
    """Holds what an engine holds: segments, a semaphore, sockets, a port, lock files, and a data file of the user."""
    kept = []
    for name in (f"psm_{SEGMENT}", f"sem.loky-1-{SEGMENT}", f"samples-{SEGMENT}"):
        path = Path("/dev/shm") / name
        path.write_bytes(bytes(4096))
        with path.open("r+b") as file:
            kept.append(mmap.mmap(file.fileno(), 4096))
    loads = os.open(f"/dev/shm/sglang_loads_{SEGMENT}_1.shm", os.O_CREAT | os.O_RDWR, 0o600)
    server = socket.create_server(("127.0.0.1", PORT))
    ipc = socket.socket(socket.AF_UNIX)
    ipc.bind(f"/tmp/tmp{SEGMENT}")
    ipc.listen()
    build = FOLDER / "torch_extensions" / "kernel"
    build.mkdir(parents=True)
    baton = os.open(build / "lock", os.O_CREAT | os.O_EXCL)
    lock = (FOLDER / "model.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    unheld = (FOLDER / "waited-for.lock").open("w")
    kept += [loads, server, ipc, baton, lock, unheld]
    globals()["KEPT"] = kept
    launcher(stay)


def calls_hangdoc():
    """A launcher that runs hangdoc on its own rank and writes down what came of it."""
    pid = fork(rank, 0)
    while Path(f"/proc/{pid}/cmdline").read_bytes()[:17] != b"sglang::scheduler":
        time.sleep(0.01)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    with (FOLDER / "said").open("w") as said:
        command = [sys.executable, "-m", "hangdoc", "kill-clean", str(pid), "--yes", "--no-snapshot"]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment, check=False)
    (FOLDER / "code").write_text(str(done.returncode))
    tell("answered")
    tell("launcher")
    stay()


def with_a_caller():
    """Pid 1: two ranks, and hangdoc run as if by `docker exec`; prints what it said and that the ranks go on."""
    ranks = [fork(rank, number) for number in (0, 1)]
    while [Path(f"/proc/{pid}/cmdline").read_bytes()[:17] for pid in ranks] != [b"sglang::scheduler"] * 2:
        time.sleep(0.01)
    command = json.loads((FOLDER / "command").read_text())
    words = [str(ranks[0]) if word == "RANK" else word for word in command]
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    states = [Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] for pid in ranks]
    print(json.dumps({"code": done.returncode, "err": done.stderr, "states": states}), flush=True)


def main(name):
    import relays  # noqa: PLC0415 - it takes from this file what every act has

    (globals().get(name) or getattr(relays, name))()


if __name__ == "__main__":
    main(sys.argv[1])
