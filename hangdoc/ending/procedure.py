"""End the members: politely where that can work, then by SIGKILL, until nobody is left or it is known who is."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hangdoc.ending.control import kill_control_group, kill_process_groups
from hangdoc.ending.freeze import Freezer
from hangdoc.ending.frozen import frozen_group
from hangdoc.ending.muster import Muster
from hangdoc.ending.records import Ended, LookAlike, Member, Survivor
from hangdoc.ending.wrappers import Wrapped, look_below
from hangdoc.errors import HangdocError
from hangdoc.launch.age import by_age
from hangdoc.launch.pidfd import ended, send
from hangdoc.launch.table import read_stat
from hangdoc.model.process import ProcessKey
from hangdoc.procfs.numbers import text
from hangdoc.procfs.signals import parse_signal_masks

GRACE_S = 1.5
"""How long SIGTERM may take: an idle SGLang needs 0.2 to 1 s; one that drains a request would take as long as that
(more than 12 s were seen), and one that hangs for ever. Arbitrary in between."""

AFTERWARDS_S = 0.5
"""How long the others may take once the launcher has ended: an orderly one has waited for them. Arbitrary."""

KILL_S = 10.0
"""How long SIGKILL may take altogether. An H200's spinning kernels were gone within 0.5 s; a process in the kernel's
hands (state D) may never go: it is reported then. Arbitrary."""

STUCK_S = 3.0
"""How long members may stay in state D after SIGKILL before the others' time is not spent on them. Arbitrary."""

CATCHES = 300
"""Short looks for who was missed by a whole one: each takes about a millisecond. Arbitrary."""

QUIET_LOOKS = 3
"""Looks in a row that find nobody before all are taken to be gone: one look misses a process that lives for less than
it takes. Arbitrary."""

STEP_S = 0.25
"""From one look for new members to the next while killed ones go. Arbitrary."""

WRAPPER_S = 0.5
"""How long a wrapper whose program has ended may take to end, too. Arbitrary: they wait for just that."""

SETTLE_S, SETTLE_STEP_S = 2.0, 0.02
"""How long a script's fork may take to become the next command, and from one look to the next. Arbitrary."""

CONTROL_LOOKS = 3
"""Looks for new members before their control group is taken to hold somebody else. Arbitrary."""

FREEZE_ROUNDS = 20
"""Looks for further members while all known ones stand still: each new one was started before the last stop."""

WATCH_S, WATCH_STEP_S = 0.4, 0.02
"""How long nobody may come after the last kill before all are gone, and from one look to the next: who hands over every
50 ms is seen several times. Arbitrary."""

WATCH_LOOKS = 10
"""Looks of that watch at least: on a full machine few fit into its time, and one look may miss who hands over. Half of
what fits into it on a quiet one."""

WATCHES = 3
"""How often the watch begins anew because somebody was ended in it. Arbitrary."""

RETURNS = {
    True: "the launch may come back, for this script has a loop",
    None: "whether it starts the launch again is not known, for its script cannot be read",
}
"""What is said of a script that goes on, by whether it repeats itself."""

Say = Callable[[str], None]


class Procedure:
    """One ending. say: told each step as it is taken."""

    def __init__(self, muster: Muster, proc: Path, root: ProcessKey, cgroup: str, say: Say) -> None:
        self._muster = muster
        self._proc = proc
        self._root = root
        self._cgroup = cgroup
        self._tell = say
        self._steps: list[str] = []
        self._going_on: list[LookAlike] = []
        self._restless = False
        self._newcomers: dict[ProcessKey, LookAlike] = {}
        self._began_s = time.monotonic()

    def run(self, futile: str) -> Ended:
        """End everybody. futile: why SIGTERM cannot work, "" when it can."""
        self._began_s = time.monotonic()
        with Freezer() as freezer:
            self._ask(futile)
            self._kill("program", freezer)
            self._wrappers(freezer)
            self._watch(freezer)
        return self.so_far()

    def so_far(self, *, interrupted: bool = False) -> Ended:
        """Return what was done until now, and who lives. interrupted: by Ctrl-C, before it was over."""
        survivors = [one for one in self._muster.living() if one.key not in {left.key for left in self._going_on}]
        gone = [one for key, one in self._muster.members.items() if self._muster.handles[key].has_ended]
        return Ended(
            steps=tuple(self._steps),
            gone=(*self._muster.gone_before, *gone),
            joined=tuple(self._muster.joined),
            survivors=tuple(survivor(one, self._proc, interrupted=interrupted) for one in survivors),
            going_on=tuple(self._going_on),
            restless=self._restless and not survivors and not interrupted,
            seconds=time.monotonic() - self._began_s,
            interrupted=interrupted,
            # Who was found to be a member at the next look was ended as one.
            newcomers=tuple(one for key, one in self._newcomers.items() if key not in self._muster.members),
        )

    def _ask(self, futile: str) -> None:
        """Send SIGTERM to the launcher, or to all where nobody launches any more."""
        if futile:
            self._say(f"no SIGTERM: {futile}")
            return
        living = self._muster.living("program")
        asked = [one for one in living if one.key == self._root and one.process.role == "launcher"] or living
        if not asked:
            return
        self._say(f"SIGTERM to {_named(asked)}, {GRACE_S:g} s to end")
        for handle in self._muster.handles_of(asked):
            send(handle.descriptor, signal.SIGTERM)
        began_s = time.monotonic()
        ended(self._muster.handles_of(asked), GRACE_S)
        left_s = min(AFTERWARDS_S, GRACE_S - (time.monotonic() - began_s))
        if ended(self._muster.handles_of(living), max(0.0, left_s)):
            self._say("they ended by themselves")

    def _kill(self, fate: str, freezer: Freezer) -> None:
        """Kill ranks first, look for new members, and go on until a look finds nobody new and nobody alive."""
        until_s = time.monotonic() + KILL_S
        stuck_s = time.monotonic() + STUCK_S
        rounds_with_new = quiet = 0
        announced = False
        self._restless = True
        while time.monotonic() < until_s:
            new = self._muster.refresh()
            restless = bool(new or self._muster.missed)
            rounds_with_new += restless
            living = self._muster.living(fate)
            quiet = 0 if living or restless else quiet + 1
            if self._muster.missed:
                living += self._caught()
            if quiet == 1:
                kill_process_groups(self._proc, self._muster)  # whoever hands over to a child too fast to be seen
            if quiet == QUIET_LOOKS:
                self._restless = False
                return
            if rounds_with_new > 1:
                self._stop_multiplying(freezer)
                living = self._muster.living(fate)
            if living and not announced:
                self._say(f"SIGKILL to {_named(living)}")
                announced = True
            for handle in self._muster.handles_of(living):
                send(handle.descriptor, signal.SIGKILL)
            if not living:
                continue
            ended(self._muster.handles_of(living), STEP_S)
            if time.monotonic() >= stuck_s and all(_state(self._proc, one.key) == "D" for one in living):
                return

    def _watch(self, freezer: Freezer) -> None:
        """Look again for a while: end who is of the launch and came late, and note who may be."""
        for _ in range(WATCHES):
            until_s, looks = time.monotonic() + WATCH_S, 0
            while not (late := self._muster.refresh() or self._muster.missed) and (
                time.monotonic() < until_s or looks < WATCH_LOOKS
            ):
                looks += 1
                self._newcomers.update(self._muster.newcomers())
                time.sleep(WATCH_STEP_S)
            if not late:
                return
            self._say_once("somebody came after the last kill: ended, too")
            self._kill("program", freezer)
        self._restless = True

    def _caught(self) -> list[Member]:
        """Catch those that end before a whole look is over, and kill each before it has handed over."""
        found: list[Member] = []
        for _ in range(CATCHES):
            caught = self._muster.catch()
            for handle in self._muster.handles_of(caught):
                send(handle.descriptor, signal.SIGKILL)
            found += caught
        if found:
            self._say_once("they hand over to each other: caught between two looks")
        return found

    def _stop_multiplying(self, freezer: Freezer) -> None:
        """End or stop all at once who start others faster than one kill follows another."""
        for _ in range(CONTROL_LOOKS if self._cgroup else 0):
            if kill_control_group(self._proc, self._cgroup, self._muster):
                self._say_once("they multiply: cgroup.kill, their control group holds nobody else")
                if ended(self._muster.handles_of(self._muster.living("program")), STEP_S):
                    return
                break  # somebody is outside of it
            self._muster.refresh()  # who was started since the last look, and lost its parent, is no member yet
        if kill_process_groups(self._proc, self._muster):
            self._say_once("they multiply: SIGKILL to whole process groups that hold nobody else")
        standing: set[ProcessKey] = set()
        for _ in range(FREEZE_ROUNDS):
            moving = [one for one in self._muster.living("program") if one.key not in standing]
            running = [one for one in moving if _state(self._proc, one.key) not in {"T", "t"}]
            if not moving or not freezer.stop(self._muster.handles_of(running)):
                return
            self._say_once("they multiply: all of them stopped before they are killed")
            standing.update(one.key for one in moving)
            self._muster.refresh()

    def _wrappers(self, freezer: Freezer) -> None:
        """Let the wrappers end by themselves; end those that have nothing else to do, leave those that have."""
        wrappers = self._muster.living("wrapper")
        if not wrappers or ended(self._muster.handles_of(wrappers), WRAPPER_S):
            return
        # The innermost first: who waits for one that is left stays, too.
        youngest_first = sorted(self._muster.living("wrapper"), key=lambda one: by_age(one.key), reverse=True)
        for one in youngest_first:
            self._wrapper(one, self._settled(one), freezer)

    def _settled(self, member: Member) -> Wrapped:
        """Look what a wrapper does now, again while it is about to start something."""
        until_s = time.monotonic() + SETTLE_S
        while True:
            left = {one.key for one in self._going_on}
            below = look_below(self._proc, self._muster, left).get(member.key, Wrapped())
            if not below.unsettled or time.monotonic() >= until_s:
                return below
            ended([self._muster.handles[member.key]], SETTLE_STEP_S)

    def _wrapper(self, member: Member, wrapped: Wrapped, freezer: Freezer) -> None:
        handle = self._muster.handles[member.key]
        if not wrapped.again and (wrapped.other or wrapped.tool):
            because = f"it went on to {wrapped.other or wrapped.tool}"
            because += f"; to end it, too: kill {member.key.pid}" if member.key.pid != 1 else ""
            if wrapped.repeats is not False:
                because = f"{RETURNS[wrapped.repeats]}; {because}"
            is_left = wrapped.repeats is not False
            self._going_on.append(LookAlike(member.key, member.process.title, because, is_left, is_left))
            return
        if wrapped.again:
            self._muster.adopt_children_of(member.key)
            # The script first, so that it does not start a third one.
            send(handle.descriptor, signal.SIGKILL)
            self._say(f"SIGKILL to {member.key.pid} (wrapper): it started the launch again")
            self._kill("program", freezer)
            return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(PermissionError):  # sudo's, which ends when its program has
                if send(handle.descriptor, number):
                    self._say(f"{number.name} to {member.key.pid} (wrapper)")
            if ended([handle], WRAPPER_S):
                return

    def _say(self, step: str) -> None:
        self._steps.append(step)
        self._tell(step)

    def _say_once(self, step: str) -> None:
        if step not in self._steps:
            self._say(step)


def futile(proc: Path, muster: Muster, root: ProcessKey, hang: str) -> str:
    """Say why SIGTERM cannot end the launch; hang: what the diagnosis found, "" when it found no hang."""
    if hang:
        return f"the launch hangs ({hang})"
    for one in muster.living("program"):
        state = _state(proc, one.key)
        if state in {"T", "t"}:
            return f"process {one.key.pid} is stopped and would not hear it"
        if state == "D" and frozen_group(proc, one.key):
            return f"process {one.key.pid} is frozen by its control group"
        if state == "D":
            return f"process {one.key.pid} is in the kernel's hands (state D)"
    try:
        masks = parse_signal_masks((proc / str(root.pid) / "status").read_bytes())
    except (OSError, HangdocError):
        return ""
    return f"process {root.pid} ignores or blocks it" if masks.holds_off(signal.SIGTERM) else ""


def _state(proc: Path, key: ProcessKey) -> str:
    try:
        line = read_stat(proc, key.pid)
    except PermissionError:
        return "?"
    return line.state if line is not None and line.start_ticks == key.start_ticks else ""


def survivor(member: Member, proc: Path, *, interrupted: bool = False) -> Survivor:
    """Describe a member that lives. interrupted: nobody waited for its end."""
    state = _state(proc, member.key)
    try:
        waits_in = text((proc / str(member.key.pid) / "wchan").read_bytes().strip())
    except OSError:
        waits_in = ""
    because = "it lived when hangdoc was interrupted" if interrupted else "SIGKILL did not end it in time"
    if state == "D" and (group := frozen_group(proc, member.key)):
        because = f"its control group {group} is frozen (docker pause); SIGKILL takes effect when that is thawed"
    elif state == "D":
        because = "it is in a system call that nothing interrupts; SIGKILL takes effect when that returns"
    elif member.key.pid == 1:
        because = "it is pid 1 of this namespace: no signal from inside ends it"
    return Survivor(member.key, member.process.title, state, "" if waits_in == "0" else waits_in, because)


def _named(members: list[Member]) -> str:
    if len(members) == 1:
        return f"{members[0].key.pid} ({members[0].process.role})"
    return (
        f"{len(members)} processes, ranks first"
        if len(members) > 4
        else ", ".join(f"{one.key.pid} ({one.process.role})" for one in members)
    )
