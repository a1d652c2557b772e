"""Read a shell's script: whether it may come to its launch a second time."""

from __future__ import annotations

import re
from pathlib import Path

from hangdoc.launch.commands import SHELLS, base_name
from hangdoc.launch.table import Entry

LOOP = re.compile(
    r"(?:^|[;&|(){}`]|\b(?:do|then|else)\b)[ \t]*(?:while|until|for)\b"
    r"|(?:^|[;&|]|\b(?:do|then|else|exec|bash|sh)\b)[ \t]*[\"']?\$0\b",
    re.MULTILINE,
)
"""A loop where a command may begin, or the script's own name there, by which it starts itself anew."""

COMMENT = re.compile(r"^[ \t]*#.*$", re.MULTILINE)

MOST_BYTES = 1 << 20
"""Of a script; what is larger carries an archive behind it. Arbitrary."""


def may_repeat(proc: Path, entry: Entry) -> bool | None:
    """Say whether a shell's commands hold a loop; None when they cannot be read. False for what is no shell.

    It does not parse the script: a loop anywhere in it may be around the launch.
    """
    if not entry.argv or base_name(entry.argv[0]) not in SHELLS:
        return False
    text = _commands(proc, entry)
    return None if text is None else bool(LOOP.search(COMMENT.sub("", text)))


def _commands(proc: Path, entry: Entry) -> str | None:
    words = list(entry.argv[1:])
    while words and words[0].startswith(("-", "+")):
        option = words.pop(0)
        if not option.startswith("--") and "c" in option:
            return next((one for one in words if not one.startswith("-")), None)
        if option in {"-o", "+o", "-O", "+O", "--rcfile", "--init-file"} and words:
            words.pop(0)
    if not words:
        return None  # from standard input
    try:
        with (proc / str(entry.pid) / "cwd" / words[0]).open("rb") as script:
            return script.read(MOST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
