"""Ask who the members are, without waiting for ever: reading a command line can block on a stuck target."""

from __future__ import annotations

import threading
from collections.abc import Callable

from hangdoc.errors import HangdocError
from hangdoc.model.process import Process

Members = tuple[Process, ...]


class PatientRoster:
    """Calls refresh in a thread; while a call has not returned, the members are those of the last one that did."""

    def __init__(self, refresh: Callable[[], Members], known: Members, deadline_s: float) -> None:
        self._refresh = refresh
        self._known = known
        self._deadline_s = deadline_s
        self._thread: threading.Thread | None = None
        self._error: OSError | HangdocError | None = None

    def members(self) -> Members:
        """Return the members now, or the last known ones."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._ask, name="hangdoc-roster", daemon=True)
            self._thread.start()
        self._thread.join(self._deadline_s)
        if self._thread.is_alive():
            return self._known
        self._thread = None
        error, self._error = self._error, None
        if error is not None:
            raise error
        return self._known

    def _ask(self) -> None:
        try:
            self._known = tuple(sorted(self._refresh(), key=lambda process: process.key))
        except (OSError, HangdocError) as error:
            self._error = error
