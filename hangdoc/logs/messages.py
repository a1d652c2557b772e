"""Lines that belong to one message: only its first one has the rank and the time of whoever wrote it."""

from __future__ import annotations

from msgspec.structs import replace

from hangdoc.model.log import LogEvent

HEAD = "debug-info"
BODY = frozenset({"held-batch", "held-request"})
"""Names of the lines of SGLang's watchdog that say what its scheduler holds, and of the line above them."""

FARTHEST_BYTES = 1024
"""From the first line of a message to one that belongs to it: both are written at once, and lines of other ranks may
still come between them. Arbitrary: the lines that are looked for are the next two."""


class Messages:
    """Takes the events of a log in their order, and gives those that follow a message's first line its rank."""

    def __init__(self) -> None:
        self._head: LogEvent | None = None

    def told(self, event: LogEvent) -> LogEvent:
        """Return an event with the rank and the time of the message that it belongs to.

        Fails where two ranks' messages are mixed line by line: a logger writes one as a whole.
        """
        if event.name == HEAD:
            self._head = event
        head = self._head
        if head is None or event.name not in BODY or event.rank or event.offset - head.offset > FARTHEST_BYTES:
            return event
        return replace(event, rank=head.rank, stamp=event.stamp or head.stamp)
