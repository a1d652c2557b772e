"""Hold processes by descriptor, not by number, and signal them: the one place of hangdoc that sends a signal."""

from __future__ import annotations

import errno
import os
import select
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hangdoc.launch.table import is_same
from hangdoc.model.process import ProcessKey

PROBE = 0
"""The signal that only asks whether a signal would be allowed (kill(2))."""

WHOLE_GROUP = 4
"""PIDFD_SIGNAL_PROCESS_GROUP (include/uapi/linux/pidfd.h, since Linux 6.9)."""


@dataclass(frozen=True, slots=True)
class Handle:
    """A process that is held: the descriptor means this process and never its pid's next owner."""

    key: ProcessKey
    descriptor: int

    @property
    def has_ended(self) -> bool:
        """Whether it is gone, or a zombie that nobody has waited for yet: both hold nothing any more."""
        return bool(_poll([self.descriptor], 0.0))

    @property
    def is_there(self) -> bool:
        """Whether its pid is still its own: it lives, or is a zombie that nobody has waited for.

        Then whatever was read under that pid since it was held is of this process, and of no successor.
        """
        return _exists(self.descriptor)

    @property
    def leads_somebody(self) -> bool:
        """Whether somebody is in the process group it leads or led: the group's number is then not another group's.

        On kernels older than 6.9, which cannot be asked, only as long as it is there itself.
        """
        try:
            return send(self.descriptor, PROBE, whole_group=True)
        except PermissionError:
            return True
        except OSError:
            return self.is_there

    def close(self) -> None:
        """Let go of it."""
        os.close(self.descriptor)


def hold(key: ProcessKey, proc: Path = Path("/proc")) -> Handle | None:
    """Open a process by pid and make sure that it is the one meant; None when it has ended or the pid is another's.

    The start time is read after the opening, and the process still lives after that: so the pid was not given to
    anybody else in between, and what was read is of the process that the descriptor means. Within one clock tick a
    successor has the same start time: whatever else was read before the opening may be of another process.
    """
    handle = anchor(key, proc)
    if handle is None or not handle.has_ended:
        return handle
    handle.close()
    return None


def anchor(key: ProcessKey, proc: Path = Path("/proc")) -> Handle | None:
    """Open a process as hold does, a zombie that nobody has waited for included: so is a dead launcher."""
    handle = pin(key.pid)
    if handle is None:
        return None
    handle = Handle(key, handle.descriptor)
    if is_same(proc, key) and handle.is_there:
        return handle
    handle.close()
    return None


def pin(pid: int) -> Handle | None:
    """Open whoever has this pid now; None when nobody has. Its start time is not known, and counts as 0."""
    try:
        return Handle(ProcessKey(pid, 0), os.pidfd_open(pid))
    except OSError:
        return None


def send(descriptor: int, number: int, *, whole_group: bool = False) -> bool:
    """Send a signal to the process behind a pidfd; False when it has ended already.

    whole_group: to the process group that it leads, all at once, so that nobody in it can fork past the signal; OSError
    (EINVAL) where the kernel is older than 6.9. PermissionError when it is another user's.
    """
    try:
        signal.pidfd_send_signal(descriptor, number, None, WHOLE_GROUP if whole_group else 0)
    except ProcessLookupError:
        return False
    return True


def may_signal(handle: Handle) -> bool:
    """Say whether a signal would be allowed; nothing is sent."""
    try:
        send(handle.descriptor, PROBE)
    except OSError as error:
        if error.errno != errno.EPERM:
            raise
        return False
    return True


def ended(handles: Iterable[Handle], timeout_s: float) -> bool:
    """Wait until all of them have ended; False when the time is over first."""
    left = {handle.descriptor for handle in handles}
    until_s = time.monotonic() + timeout_s
    while left:
        left -= _poll(left, max(0.0, until_s - time.monotonic()))
        if left and time.monotonic() >= until_s:
            return False
    return True


def _exists(descriptor: int) -> bool:
    try:
        return send(descriptor, PROBE)
    except OSError:
        return True  # not allowed to be signalled, but there


def _poll(descriptors: Iterable[int], timeout_s: float) -> set[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(timeout_s * 1000)}
