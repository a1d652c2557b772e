"""Acts of stand-in launches whose processes hand over, multiply or revive each other: nobody stays to be looked at."""

import os
import select
import signal
import subprocess
import time

from acts import FOLDER, deaf, fork, launcher, stay, tell, title


def multiplies():
    """Ranks that start another process every few milliseconds, each in a session of its own, as long as they live."""

    def breed():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for _ in range(2000):
            fork(leaf)
            time.sleep(0.005)
        stay()

    def leaf():
        os.setsid()
        time.sleep(0.3)

    deaf()
    launcher(breed, breed)


def relay():
    """A process that hands over to a child and ends, again and again: whoever is looked at is gone already."""

    def run():
        title("sglang::scheduler_TP0")
        while True:
            if os.fork():
                os._exit(0)
            time.sleep(0.002)

    fork(run)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    launcher()


def relay_apart():
    """The same, each time into a session of its own: no group holds it."""

    def run():
        title("sglang::scheduler_TP0")
        while True:
            if os.fork():
                os._exit(0)
            os.setsid()
            (FOLDER / "at").write_text(str(os.getpid()))
            time.sleep(0.005)

    fork(run)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    launcher()


def relay_untitled():
    """The same with the launcher's command line."""
    if os.fork() == 0:
        while True:
            if os.fork():
                os._exit(0)
            os.setsid()
            (FOLDER / "at").write_text(str(os.getpid()))
            time.sleep(0.003)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    launcher()


def relay_slowly():
    """The same every 30 ms."""

    def run():
        title("sglang::scheduler_TP0")
        while not (FOLDER / "stop").exists():
            if os.fork():
                os._exit(0)
            os.setsid()
            (FOLDER / "at").write_text(str(os.getpid()))
            time.sleep(0.03)

    fork(run)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    launcher()


def relay_by_exec():
    """Every 30 ms another program in a session of its own: only the launch's log ties it to the launch."""
    script = FOLDER / "relay.sh"
    script.write_text("[ -e stop ] && exit\necho $$ > at\nsleep 0.03\nsetsid sh relay.sh &\n")
    subprocess.run(["setsid", "sh", script.name], cwd=FOLDER, check=True)
    launcher(stay)


def relay_in_group():
    """Every 30 ms another program in the launch's own session, without its log."""
    script = FOLDER / "relay.sh"
    script.write_text("[ -e stop ] && exit\necho $$ > at\nsleep 0.03\nsh relay.sh &\n")
    null = subprocess.DEVNULL
    subprocess.run(["sh", script.name], cwd=FOLDER, stdout=null, stderr=null, check=True)
    launcher(stay)


def revive_each_other():
    """Two ranks, each of which starts the other anew, in a session of its own, as soon as that has died."""

    def watch(handle, generation):
        title(f"sglang::scheduler_TP{generation % 2}")
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        while True:
            select.select([handle], [], [])
            me = os.pidfd_open(os.getpid())
            pid = os.fork()
            if pid == 0:
                os.setsid()
                watch(me, generation + 1)
            handle = os.pidfd_open(pid)

    deaf()
    go, went = os.pipe()

    def first():
        other = int(os.read(go, 64))
        watch(os.pidfd_open(other), 0)

    one = fork(first)
    two = fork(watch, os.pidfd_open(one), 1)
    os.write(went, str(two).encode())
    tell("rank0", one)
    tell("rank1", two)
    tell("launcher")
    stay()
