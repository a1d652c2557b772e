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

NO_COMMANDS = re.compile(
    r"(?<!<)<<-?[ \t]*(?P<quote>['\"]?)(?P<end>\w+)(?P=quote)(?P<rest>[^\n]*)\n(?:.*\n)*?[ \t]*(?P=end)[ \t]*$"
    r"|(?<![^\s;&|(])#[^\n]*"
    r"|\\."
    r"|'[^']*'"
    r"|\"(?:\\.|[^\"\\])*\"",
    re.MULTILINE,
)
"""What a shell does not take for its own commands: texts for another program, comments, whatever is quoted."""

MOST_BYTES = 1 << 20
"""Of a script; what is larger carries an archive behind it. Arbitrary."""


def may_repeat(proc: Path, entry: Entry) -> bool | None:
    """Say whether a shell's commands hold a loop; None when they cannot be read. False for what is no shell.

    It does not parse the script: a loop anywhere in it may be around the launch; only one in quotes is another
    program's.
    """
    if not entry.argv or base_name(entry.argv[0]) not in SHELLS:
        return False
    text = _commands(proc, entry)
    return None if text is None else bool(LOOP.search(NO_COMMANDS.sub(_blank, text)))


def _blank(match: re.Match[str]) -> str:
    """Leave of what is no command that there was a word; the script's own name stays, also in quotes."""
    found = match.group()
    if found.startswith("#"):
        return ""
    if found.startswith("<<"):
        return f" {match['rest']}"
    return found if found == '"$0"' else '""'


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
