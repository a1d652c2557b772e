"""What takes the place of a standard output that the caller closed, so that no result is lost without a word."""

from __future__ import annotations

from errno import EBADF
from io import StringIO
from os import strerror


class Closed(StringIO):
    """Refuses to be written to; a command that has no result may go without."""

    def write(self, text: str, /) -> int:
        """Refuse; OSError, as writing to its descriptor would give."""
        del text
        raise OSError(EBADF, strerror(EBADF))
