"""Ask before something is done that cannot be taken back."""

from __future__ import annotations

import sys

from hangdoc.errors import HangdocError


def consent(question: str, *, yes: bool) -> None:
    """Return when the user agrees, with --yes or at a terminal; HangdocError (2) otherwise, and at Ctrl-C."""
    if yes:
        return
    if sys.stdin is None or not sys.stdin.isatty() or sys.stderr is None or not sys.stderr.isatty():
        raise HangdocError("nobody can be asked: this is no terminal", "nothing was touched; add --yes to go ahead")
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    try:
        answer = sys.stdin.readline()
    except KeyboardInterrupt:
        answer = ""
    if answer.strip().lower() not in {"y", "yes"}:
        raise HangdocError("declined", "nothing was touched")
