"""A thread that writes, so that a disk which is slow, or does not answer at all, holds up nobody else."""

from __future__ import annotations

import errno
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import TypeAlias, TypeVar

from hangdoc.errors import HangdocError

T = TypeVar("T")

ANSWER_S = 10.0
"""How long a disk may take to open a file, or to take the last rounds. Arbitrary: ten rounds."""

HURRIED_S = 2.0
"""The same where a server waits to be started, which it must not do for a disk. Arbitrary."""

Job: TypeAlias = Callable[[], None]


class Scribe:
    """Does jobs one after the other, in a thread of its own; most: how many may wait, beside the urgent ones.

    Its thread is a daemon: one that is stuck in a disk is left behind, and ends with hangdoc. A job deals with what the
    disk says itself; whatever else it raises is raised to who comes with the next job, or closes.
    """

    def __init__(self, name: str, most: int) -> None:
        self._most = most
        self._urgent: deque[Job] = deque()
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._fault: BaseException | None = None
        self._begun_s: float | None = None
        self._thread = threading.Thread(target=self._work, name=f"hangdoc-{name}", daemon=True)
        self._thread.start()

    @property
    def stalled_s(self) -> float:
        """Return for how long the present job has been going on; 0 when there is none."""
        begun_s = self._begun_s
        return 0.0 if begun_s is None else time.monotonic() - begun_s

    def put(self, job: Job, *, urgent: bool = False, in_place: bool = False, must: bool = False) -> bool:
        """Hand over a job; False when too many wait already, and it is not taken.

        urgent: before all that are not, however many wait; in_place: instead of those; must: however many wait.
        """
        with self._changed:
            self._raise_fault()
            if in_place:
                self._jobs.clear()
            if len(self._jobs) >= self._most and not (urgent or must):
                return False
            (self._urgent if urgent else self._jobs).append(job)
            self._changed.notify_all()
            return True

    def do(self, job: Callable[[], T], seconds: float) -> T:
        """Have a job done and return what it returns; its OSError or HangdocError is raised, TimeoutError when late."""
        done = threading.Event()
        found: list[T] = []
        errors: list[OSError | HangdocError] = []

        def attempt() -> None:
            try:
                found.append(job())
            except (OSError, HangdocError) as error:
                errors.append(error)
            finally:
                done.set()

        self.put(attempt, urgent=True)
        if not done.wait(seconds):
            raise TimeoutError(errno.ETIMEDOUT, f"no answer within {seconds:g} s")
        if errors:
            raise errors[0]
        return found[0]

    def close(self, seconds: float, last: Job | None = None) -> bool:
        """Wait for what was handed over, for so long at most; whether it is done. last: comes after all the others."""
        with self._changed:
            if last is not None:
                self._jobs.append(last)
            self._closed = True
            self._changed.notify_all()
        self._thread.join(seconds)
        with self._changed:
            self._raise_fault()
            self._forget()
        return not self._thread.is_alive()

    def _work(self) -> None:
        while (job := self._next()) is not None:
            try:
                job()
            except BaseException as error:  # noqa: BLE001 - handed on, see _raise_fault
                self._fault = self._fault or error
            self._begun_s = None

    def _next(self) -> Job | None:
        with self._changed:
            while not (self._urgent or self._jobs):
                if self._closed:
                    return None
                self._changed.wait()
            self._begun_s = time.monotonic()
            return (self._urgent or self._jobs).popleft()

    def _forget(self) -> None:
        self._urgent.clear()
        self._jobs.clear()

    def _raise_fault(self) -> None:
        fault, self._fault = self._fault, None
        if fault is not None:
            raise fault
