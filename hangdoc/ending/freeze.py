"""Stop members that multiply faster than they are killed; whatever becomes of hangdoc, nobody stays stopped."""

from __future__ import annotations

import array
import signal
import socket
import subprocess
import sys
from collections.abc import Iterable

from hangdoc.ending.guardian import ACKNOWLEDGED, MOST_AT_ONCE
from hangdoc.launch.pidfd import Handle, send

ANSWER_S = 5.0
"""How long the guardian may take to start (0.1 s here) and to answer. Arbitrary; without it nobody is stopped."""


class Freezer:
    """Stops processes under a guardian, who lets them go on as soon as this side is gone.

    A context manager; the guardian is started when it is first needed. On the way out whoever still lives goes on.
    """

    def __init__(self) -> None:
        self._channel: socket.socket | None = None
        self._guardian: subprocess.Popen[bytes] | None = None
        self._failed = False

    def __enter__(self) -> Freezer:
        return self

    def __exit__(self, *_: object) -> None:
        if self._channel is not None:
            self._channel.close()
        if self._guardian is not None:
            try:
                self._guardian.wait(ANSWER_S)
            except subprocess.TimeoutExpired:
                return  # it goes on by itself: it needs nobody

    def stop(self, handles: Iterable[Handle]) -> bool:
        """Stop these; False when the guardian could not be had, and then nobody was stopped."""
        wanted = list(handles)
        for begin in range(0, len(wanted), MOST_AT_ONCE):
            if not self._entrust(wanted[begin : begin + MOST_AT_ONCE]):
                return False
            for handle in wanted[begin : begin + MOST_AT_ONCE]:
                send(handle.descriptor, signal.SIGSTOP)
        return True

    def _entrust(self, handles: list[Handle]) -> bool:
        """Give descriptors to the guardian, and wait until it has them: only then may they be stopped."""
        channel = self._open()
        if channel is None:
            return False
        numbers = array.array("i", [one.descriptor for one in handles])
        try:
            channel.sendmsg([b"h"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])
            has_them = channel.recv(1) == ACKNOWLEDGED
        except OSError:
            has_them = False
        self._failed = self._failed or not has_them
        return has_them

    def _open(self) -> socket.socket | None:
        if self._channel is None and not self._failed:
            try:
                self._start()
            except OSError:  # whoever multiplies may have used up all processes that this user can have
                self._failed = True
        return None if self._failed else self._channel

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        ours.settimeout(ANSWER_S)
        with theirs:
            try:
                # -P: a file called signal.py in the directory hangdoc was started in is not for this program.
                self._guardian = subprocess.Popen(
                    [sys.executable, "-P", "-m", "hangdoc.ending.guardian"],
                    stdin=theirs.fileno(),
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
            except OSError:
                ours.close()
                raise
        self._channel = ours
