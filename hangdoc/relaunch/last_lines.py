"""The last lines of a launch's log, without what must not be shown."""

from __future__ import annotations

import os
from pathlib import Path

from hangdoc.relaunch.secrets import veiled
from hangdoc.trace.log_text import LogRedactor

LAST_LINES = 5
"""Lines of the log that are shown when the launch ended. Arbitrary."""

MOST_BYTES, LONGEST_LINE = 1 << 16, 4096
"""Of the log's end, and of each line, that are redacted for them. Arbitrary."""


def last_lines(log: Path, hidden: frozenset[str]) -> list[str]:
    """Return them; none where the log cannot be read. hidden: values of the command that are not shown anywhere.

    All that is read is redacted, because names are learned from lines before: by what is hidden, and by shape.
    """
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - MOST_BYTES))
            lines = veiled(file.read().decode(errors="replace"), hidden).splitlines()
    except OSError:
        return []
    redactor = LogRedactor()
    return [redactor.line(one[:LONGEST_LINE]) for one in lines][-LAST_LINES:]
