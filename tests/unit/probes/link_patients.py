"""Programs that wait for another process, one kind of wait each."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from hangdoc.model.link import Link, Links
from hangdoc.model.process import Process
from hangdoc.model.reading import Known
from hangdoc_probes import links
from tests.unit.probes.targets import OBEDIENT, Target, known, take

TWO = """
import fcntl, multiprocessing, select, signal, socket, time, threading
def rest():
    while True: signal.pause()
def other(act):
    pid = os.fork()
    if pid == 0:
        try: act()
        finally: os._exit(0)
    return pid
def ready(pid): say(f"ready {pid}")
"""
"""What the targets share: a second process that does one thing; the word "ready" names the one that matters."""


STRONG = {
    "pipe": """
r, w = os.pipe()
def act(): os.close(r); rest()
pid = other(act); os.close(w)
ready(pid); os.read(r, 1)""",
    "fifo": """
path = sys.argv[1] + "/fifo"; os.mkfifo(path)
pid = other(lambda: (os.open(path, os.O_WRONLY), rest()))
r = os.open(path, os.O_RDONLY)
ready(pid); os.read(r, 1)""",
    "full pipe": """
r, w = os.pipe()
def act(): os.close(w); rest()
pid = other(act); os.close(r)
ready(pid); os.write(w, bytes(1 << 20))""",
    "mp connection": """
ours, theirs = multiprocessing.Pipe()
def act(): ours.close(); rest()
pid = other(act); theirs.close()
ready(pid); ours.recv()""",
    "mp connection polled": """
ours, theirs = multiprocessing.Pipe(duplex=False)
def act(): ours.close(); rest()
pid = other(act); theirs.close()
ready(pid); ours.poll(None)""",
    "unix socket": """
path = sys.argv[1] + "/socket"
server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()
heard, word = os.pipe()
def act(): mine, _ = server.accept(); os.write(word, b"x"); rest()
pid = other(act); server.close()
client = socket.socket(socket.AF_UNIX); client.connect(path)
os.read(heard, 1); os.close(heard); os.close(word)
ready(pid); client.recv(1)""",
    "unix socket not accepted": """
path = sys.argv[1] + "/socket"
server = socket.socket(socket.AF_UNIX); server.bind(path); server.listen()
pid = other(rest); server.close()
client = socket.socket(socket.AF_UNIX); client.connect(path)
ready(pid); client.recv(1)""",
    "tcp not accepted": """
server = socket.create_server(("127.0.0.1", 0)); pid = other(rest)
client = socket.create_connection(server.getsockname()); server.close()
ready(pid); client.recv(1)""",
    "tcp": """
server = socket.create_server(("127.0.0.1", 0))
heard, word = os.pipe()
def act(): mine, _ = server.accept(); os.write(word, b"x"); rest()
pid = other(act)
client = socket.create_connection(server.getsockname()); server.close()
os.read(heard, 1); os.close(heard); os.close(word)
ready(pid); client.recv(1)""",
    "tcp over ipv6": """
server = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True)
heard, word = os.pipe()
def act(): mine, _ = server.accept(); os.write(word, b"x"); rest()
pid = other(act)
client = socket.create_connection(("127.0.0.1", server.getsockname()[1])); server.close()
os.read(heard, 1); os.close(heard); os.close(word)
ready(pid); client.recv(1)""",
    "epoll": """
r, w = os.pipe()
def act(): os.close(r); rest()
pid = other(act); os.close(w)
poller = select.epoll(); poller.register(r, select.EPOLLIN)
ready(pid); poller.poll()""",
    "poll": """
r, w = os.pipe()
def act(): os.close(r); rest()
pid = other(act); os.close(w)
poller = select.poll(); poller.register(r, select.POLLIN)
ready(pid); poller.poll()""",
    "select": """
r, w = os.pipe()
def act(): os.close(r); rest()
pid = other(act); os.close(w)
ready(pid); select.select([r], [], [])""",
    "wait4": """
pid = other(rest); other(rest)
ready(pid); os.waitpid(pid, 0)""",
    "waitid": """
pid = other(rest); other(rest)
ready(pid); os.waitid(os.P_PID, pid, os.WEXITED)""",
    "pidfd": """
pid = other(rest); poller = select.poll(); poller.register(os.pidfd_open(pid))
ready(pid); poller.poll()""",
    "flock": """
heard, word = os.pipe()
def act():
    mine = open(sys.argv[1] + "/lock", "w"); fcntl.flock(mine, fcntl.LOCK_EX); os.write(word, b"x"); rest()
pid = other(act); os.read(heard, 1); lock = open(sys.argv[1] + "/lock", "w")
ready(pid); fcntl.flock(lock, fcntl.LOCK_EX)""",
    "fcntl": """
heard, word = os.pipe()
def act():
    mine = open(sys.argv[1] + "/lock", "w"); fcntl.lockf(mine, fcntl.LOCK_EX); os.write(word, b"x"); rest()
pid = other(act); os.read(heard, 1); lock = open(sys.argv[1] + "/lock", "w")
ready(pid); fcntl.lockf(lock, fcntl.LOCK_EX)""",
    "ofd lock": """
import struct
heard, word = os.pipe()
F_OFD_SETLKW, everything = 38, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0)
def act():
    mine = open(sys.argv[1] + "/lock", "w"); fcntl.fcntl(mine, F_OFD_SETLKW, everything); os.write(word, b"x"); rest()
pid = other(act); os.read(heard, 1); lock = open(sys.argv[1] + "/lock", "w")
ready(pid); fcntl.fcntl(lock, F_OFD_SETLKW, everything)""",
}

WEAK = {
    "mp connection polled for an hour": """
ours, theirs = multiprocessing.Pipe(duplex=False)
def act(): ours.close(); rest()
pid = other(act); theirs.close()
ready(pid); ours.poll(3600)""",
    "mp queue": """
queue = multiprocessing.get_context("fork").Queue()
pid = other(rest)
ready(pid); queue.get()""",
    "eventfd": """
event = os.eventfd(0)
pid = other(rest)
ready(pid); os.eventfd_read(event)""",
    "eventfd in epoll": """
event = os.eventfd(0); poller = select.epoll(); poller.register(event, select.EPOLLIN)
pid = other(rest)
ready(pid); poller.poll()""",
    "pipe that everybody inherited": """
r, w = os.pipe()
other(rest); pid = other(rest)
ready(pid); os.read(r, 1)""",
    "two pipes in one set": """
r, w = os.pipe(); r2, w2 = os.pipe()
def act(): os.close(r); os.close(r2); os.close(w2); rest()
def act2(): os.close(r); os.close(r2); os.close(w); rest()
pid = other(act); other(act2); os.close(w); os.close(w2)
ready(pid); select.select([r, r2], [], [])""",
    "any child": """
pid = other(rest); other(rest)
ready(pid); os.wait()""",
}

IDLE = {
    "accept": "server = socket.create_server(('127.0.0.1', 0)); ready(0); server.accept()",
    "accept unix": """
server = socket.socket(socket.AF_UNIX); server.bind(sys.argv[1] + "/s"); server.listen(); ready(0); server.accept()""",
    "epoll": """
server = socket.create_server(("127.0.0.1", 0)); poller = select.epoll(); poller.register(server)
event = os.eventfd(0); poller.register(event, select.EPOLLIN)
ready(0); poller.poll()""",
    "asyncio": """
import asyncio
async def main():
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0); ready(0)
    await server.serve_forever()
asyncio.run(main())""",
    "keep-alive": """
server = socket.create_server(("127.0.0.1", 0))
pid = other(lambda: (socket.create_connection(server.getsockname()), rest()))
mine, _ = server.accept()
ready(pid); mine.recv(1)""",
}


TRACER = """
import ctypes
libc = ctypes.CDLL(None)
pid = other(rest)
assert libc.ptrace(16, pid, None, None) == 0  # PTRACE_ATTACH
os.waitpid(pid, 0)
ready(pid); rest()
"""


RECEIVES = """
server = socket.create_server(("127.0.0.1", 0))
def act():
    mine, _ = server.accept()
    while mine.recv(1): mine.sendall(bytes(50_000))
pid = other(act); client = socket.create_connection(server.getsockname())
say(f"ready {pid}")
for _ in sys.stdin:
    client.sendall(b"x"); client.recv(50_000, socket.MSG_WAITALL); say("received")
"""


@contextmanager
def patient(code: str, *arguments: str) -> Iterator[tuple[Target, int]]:
    """Run a program that says "ready PID" before it waits; yield it, asleep, and the other process."""
    argv = [sys.executable, "-c", OBEDIENT + TWO + code, *arguments]
    child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        target = Target(child)
        word, _, pid = target.hear().partition(" ")
        assert word == "ready"
        yield target, int(pid)
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def links_of(process: Process, *through: str) -> tuple[Link, ...]:
    """Look until the process waits in what the test is about."""
    while True:
        (sample,) = take(links.PROBE, process)
        found = known(sample, Links)
        assert found.unread is None
        if any(link.through in through for link in found.links):
            return tuple(link for link in found.links if link.through in through)


def ends_of(link: Link) -> list[int]:
    assert isinstance(link.ends, Known)
    return [end.process.pid for end in link.ends.value]


def own_ends_of(link: Link) -> list[int]:
    assert isinstance(link.ends, Known)
    return [end.process.pid for end in link.ends.value if not end.inherited]
