"""How a member ended: its exit status, while it is a zombie and after its parent has waited for it."""

from __future__ import annotations

import errno
import fcntl
import os
import select
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from hangdoc.model.ending import Ended
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.procfs.pidfd import GET_INFO, exit_request, exit_status
from hangdoc.procfs.stat import parse_exit_status, parse_stat
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes._reading import attempt, missing, read

NAME = "exits"

MOST_HELD = 1024
"""Members whose ending is waited for, each with a descriptor of hangdoc's; arbitrary."""

OLD_KERNEL = Missing(
    NAME, "unsupported", "it was waited for before it could be read, and this kernel (before 6.15) keeps no status"
)


class ExitsSession:
    """Holds a pidfd of every member, which tells its end even when the number has been given to another."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._held: dict[ProcessKey, int] = {}
        self._told: set[ProcessKey] = set()

    def take(self, now: Round) -> Iterable[Sample]:
        """Say how each member ended that did so since the last round; nothing of those that live."""
        present = {process.key for process in now.processes}
        for key in present - self._held.keys() - self._told:
            self._hold(key)
        ended = self._ended()
        for key in sorted(self._held):
            if key in ended or key not in present:
                reading = attempt(NAME, lambda: self._reading(key))  # noqa: B023
                if isinstance(reading, Known) or key not in present:
                    self._let_go(key)
                yield Sample(
                    probe=NAME, process=key, taken_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME), reading=reading
                )

    def close(self) -> None:
        """Close all descriptors."""
        for key in list(self._held):
            self._let_go(key)

    def _hold(self, key: ProcessKey) -> None:
        if len(self._held) >= MOST_HELD:
            return
        with suppress(OSError):
            self._held[key] = os.pidfd_open(key.pid)
            if parse_stat(read(f"{self._proc}/{key.pid}/stat")).start_ticks != key.start_ticks:
                self._let_go(key)  # the descriptor is of another process, which has the number now

    def _let_go(self, key: ProcessKey) -> None:
        os.close(self._held.pop(key))
        self._told.add(key)

    def _ended(self) -> set[ProcessKey]:
        poll = select.poll()
        keys = {}
        for key, descriptor in self._held.items():
            keys[descriptor] = key
            poll.register(descriptor, select.POLLIN)
        return {keys[descriptor] for descriptor, _ in poll.poll(0)}

    def _reading(self, key: ProcessKey) -> Reading[Payload]:
        status = self._by_descriptor(self._held[key])
        return Known(Ended(status)) if status is not None else self._of_zombie(key)

    def _by_descriptor(self, descriptor: int) -> int | None:
        try:
            return exit_status(fcntl.ioctl(descriptor, GET_INFO, exit_request()))
        except OSError as error:
            if error.errno in {errno.ENOTTY, errno.EINVAL, errno.ESRCH}:
                return None  # an older kernel, or one that has nothing to tell of it
            raise

    def _of_zombie(self, key: ProcessKey) -> Reading[Payload]:
        """Read the status of a process that nobody has waited for; the kernel shows 0 to whoever may not know it."""
        try:
            read(f"{self._proc}/{key.pid}/io")  # asks for the same right
            line = read(f"{self._proc}/{key.pid}/stat")
        except FileNotFoundError:
            return OLD_KERNEL
        except PermissionError as error:
            return missing(NAME, error)
        stat = parse_stat(line)
        if stat.start_ticks != key.start_ticks or stat.state != "Z":
            return OLD_KERNEL
        return Known(Ended(parse_exit_status(line)))


def open_session(context: Context) -> Session:
    """Start waiting for the ends of a launch's members."""
    return ExitsSession(context.proc)


def check(proc: Path) -> Reading[str]:
    """Say how much this kernel tells."""
    del proc
    child = os.fork()
    if not child:
        os._exit(0)
    descriptor = os.pidfd_open(child)
    try:
        os.waitpid(child, 0)
        told = exit_status(fcntl.ioctl(descriptor, GET_INFO, exit_request()))
    except OSError:
        told = None
    finally:
        os.close(descriptor)
    if told is None:
        return Known("exit status of members that nobody has waited for; a kernel from 6.15 on tells it later, too")
    return Known("exit status of every member that ends while it is watched")


PROBE = Probe(
    name=NAME,
    title="how members ended",
    open=open_session,
    check=check,
    after_end=True,
    reads=("pidfd_open(2)", "PIDFD_GET_INFO", "/proc/PID/stat", "/proc/PID/io"),
)
