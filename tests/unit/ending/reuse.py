"""Two hundred rounds in a pid namespace of its own in which a member's pid goes to a bystander at the worst moment.

As pid 1 this program starts launches and bystanders and buries the dead; its child is hangdoc. Standard output: one
line of JSON with what happened. With the word "one-tick" all starts fall into one clock tick, and the bystander has a
member's title, too: a successor then differs from the member in nothing that is written in /proc.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hangdoc.ending import muster, plan, procedure
from hangdoc.ending.plan import prepared, targets
from hangdoc.ending.procedure import Procedure
from hangdoc.errors import HangdocError
from hangdoc.launch import pidfd, table
from hangdoc.launch.table import read_stat
from hangdoc.model.process import ProcessKey
from tests.unit.ending.patients import acts

PROC = Path("/proc")
CATCHABLE = set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}
MOMENTS = (
    "before holding",
    "while holding",
    "before the signal",
    "while looking again",
    "once found",
    "before the second roll",
    "late, before holding",
)
IN_ONE_TICK = "one-tick" in sys.argv


def key_of(pid: int) -> ProcessKey:
    line = read_stat(PROC, pid)
    return ProcessKey(pid, line.start_ticks if line is not None else 0)


# Pid 1: starts processes, hands pids on, buries.


def member() -> None:
    acts.title("sglang::scheduler_TP0")
    while True:
        signal.pause()


def root(ready: int, multiplies: bool) -> None:
    """An orphaned launch: a scheduler with two helpers; or one that, asked to end, starts two more in own sessions."""
    os.setsid()

    def asked(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for _ in range(2):
            if os.fork() == 0:
                os.setsid()
                member()

    if multiplies:
        signal.signal(signal.SIGTERM, asked)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # its children are buried at once
    acts.title("sglang::scheduler_TP0")
    pids = [os.getpid()]
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            member()
        pids.append(pid)
    os.write(ready, json.dumps(pids).encode())
    while True:
        signal.pause()


def bystander(ready: int, report: str) -> None:
    os.setsid()
    if IN_ONE_TICK:
        acts.title("sglang::scheduler_TP0")

    def hit(number: int, _: object) -> None:
        with Path(report).open("a") as file:
            file.write(f"{os.getpid()} got {number}\n")

    for number in CATCHABLE:
        signal.signal(number, hit)
    os.write(ready, b"1")
    while True:
        signal.pause()


def forked(act: Callable[..., None], *arguments: Any) -> tuple[int, bytes]:
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.closerange(3, writing)
        os.closerange(writing + 1, os.sysconf("SC_OPEN_MAX"))
        act(writing, *arguments)
    os.close(writing)
    told = os.read(reading, 4096)
    os.close(reading)
    return pid, told


def swap(pid: int, report: str) -> int:
    """Kill a process, have it buried, and give its pid to a bystander; with a leader its whole group ends."""
    listed = [int(entry.name) for entry in PROC.iterdir() if entry.name.isdigit()]
    group = [one for one in listed if os.getpgid(one) == pid]
    for one in group or [pid]:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)
    while any(Path(f"/proc/{one}").exists() for one in group or [pid]):
        for one in group or [pid]:
            with suppress(ChildProcessError):  # its parent's to bury, so far
                os.waitpid(one, os.WNOHANG)
    while True:
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(pid - 1))
        got = forked(bystander, report)[0]
        if got == pid:
            return got
        # The kernel lets go of a number a moment after the process is no longer listed.
        os.kill(got, signal.SIGKILL)
        os.waitpid(got, 0)


def serve(channel: socket.socket, hangdoc: int, report: str) -> None:
    """Do what the hangdoc side asks for, one line of JSON each."""
    while True:
        data = channel.recv(4096)
        if not data:
            return
        order, *rest = json.loads(data)
        if order == "launch":
            answer: Any = json.loads(forked(root, *rest)[1])
        elif order == "swap":
            answer = swap(rest[0], report)
        else:
            for pid in rest[0]:
                os.kill(pid, signal.SIGKILL)
            bury(hangdoc)
            answer = 0
        channel.send(json.dumps(answer).encode())


def bury(hangdoc: int) -> None:
    while True:
        try:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if found is None or found.si_pid == hangdoc:
            return
        os.waitpid(found.si_pid, 0)


# The child: hangdoc.


class Swapper:
    """Asks for the exchange once, when a hook says that the moment has come."""

    def __init__(self, ask: Callable[..., Any], victim: int) -> None:
        self._ask, self._victim = ask, victim
        self.key: ProcessKey | None = None

    def now(self, pid: int, *, late: bool = False) -> None:
        if self.key is None and (pid == self._victim or late):
            got = self._ask("swap", pid)
            assert got == pid, f"the kernel gave {got} for {pid}"
            self.key = key_of(pid)


HOLD, SAME, SEND, READ, ROLL = pidfd.hold, pidfd.is_same, pidfd.send, muster.read_forest, plan.call_roll


def arm(moment: str, swapper: Swapper, victim: int, numbers: dict[int, int]) -> None:
    """Put a hook where the moment is; none for "", or where this program calls the swapper itself."""
    muster.hold, pidfd.is_same, procedure.send, muster.read_forest = HOLD, SAME, SEND, READ
    plan.call_roll = ROLL

    def hold(key: ProcessKey, proc: Path = PROC) -> pidfd.Handle | None:
        swapper.now(key.pid)
        return HOLD(key, proc)

    def hold_late(key: ProcessKey, proc: Path = PROC) -> pidfd.Handle | None:
        if key.pid not in numbers.values():
            swapper.now(key.pid, late=bool(numbers))
        return HOLD(key, proc)

    def is_same(proc: Path, key: ProcessKey) -> bool:
        swapper.now(key.pid)
        return SAME(proc, key)

    def send(descriptor: int, number: int, *, whole_group: bool = False) -> bool:
        swapper.now(numbers.get(descriptor, 0))
        return SEND(descriptor, number, whole_group=whole_group)

    def read_forest(proc: Path, known: frozenset[int] = frozenset()) -> Any:
        swapper.now(victim)
        return READ(proc, known)

    def call_roll(*arguments: Any) -> Any:
        roll = ROLL(*arguments)
        swapper.now(victim)
        return roll

    hooks: dict[str, tuple[Any, str, Any]] = {
        "before holding": (muster, "hold", hold),
        "while holding": (pidfd, "is_same", is_same),
        "before the signal": (procedure, "send", send),
        "while looking again": (muster, "read_forest", read_forest),
        "before the second roll": (plan, "call_roll", call_roll),
        "late, before holding": (muster, "hold", hold_late),
    }
    if moment in hooks:
        module, name, hook = hooks[moment]
        setattr(module, name, hook)


def play(moment: str, ask: Callable[..., Any], index: int) -> tuple[ProcessKey | None, list[str]]:
    """One round; returns the bystander with a member's pid, and a complaint for each member that is left."""
    is_late = moment.startswith("late")
    pids = ask("launch", is_late)
    victim = pids[index % 3] if not is_late else 0
    swapper = Swapper(ask, victim)
    numbers: dict[int, int] = {}
    told: list[str] = []
    keys = [key_of(pid) for pid in pids]
    arm(moment, swapper, victim, numbers)
    try:
        # Where pids start over, a child may count as older than its parent: the root is for hangdoc to find.
        with prepared(partial(found, pids[0], moment, swapper, victim), [], [pids[0]]) as (one,):
            numbers.update({handle.descriptor: key.pid for key, handle in one.muster.handles.items()})
            Procedure(one.muster, PROC, one.traits.root, "", lambda _: None).run("")
    except HangdocError as error:
        told.append(error.message)  # the root was ended by the exchange: there is no launch any more
    arm("", swapper, 0, {})
    # Within one clock tick the bystander even has the member's start time: only holding tells the two apart.
    left = [key for key in keys if key != swapper.key and is_alive(key)]
    return swapper.key, [f"{moment}: {left} of {keys}, exchanged {swapper.key}, {told}"] if left else []


def found(pid: int, moment: str, swapper: Swapper, victim: int) -> tuple[ProcessKey, ...]:
    roots = targets(pid, None)
    if moment == "once found":
        swapper.now(victim)
    return roots


def is_alive(key: ProcessKey) -> bool:
    line = read_stat(PROC, key.pid)
    return line is not None and line.start_ticks == key.start_ticks and line.state not in "ZX"


def hangdoc(channel: socket.socket, rounds: int) -> dict[str, Any]:
    def ask(*order: Any) -> Any:
        channel.send(json.dumps(order).encode())
        return json.loads(channel.recv(4096))

    exchanged, hit, left = dict.fromkeys(MOMENTS, 0), [], []
    for index in range(rounds):
        moment = MOMENTS[index % len(MOMENTS)]
        key, complaints = play(moment, ask, index // len(MOMENTS))
        left += complaints
        if key is not None:
            exchanged[moment] += 1
            line = read_stat(PROC, key.pid)
            if line is None or line.start_ticks != key.start_ticks or line.state not in "RS":
                hit.append([index, moment, line.state if line else "gone"])
        ask("bury", [key.pid] if key is not None and (line := read_stat(PROC, key.pid)) is not None else [])
    return {"exchanged": exchanged, "hit": hit, "left": left}


def main() -> None:
    rounds, report = int(sys.argv[1]), sys.argv[2]
    procedure.GRACE_S = 0.1  # who multiplies does not follow SIGTERM, and there are many rounds
    if IN_ONE_TICK:
        parse = table.parse_stat
        table.parse_stat = lambda line: replace(parse(line), start_ticks=1)
    Path("/proc/sys/kernel/pid_max").write_text("500")
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        ours.close()
        print(json.dumps(hangdoc(theirs, rounds)), flush=True)
        os._exit(0)
    theirs.close()
    serve(ours, child, report)


if __name__ == "__main__":
    main()
