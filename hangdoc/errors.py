"""The one error that reaches a user: what happened, and what to do."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes of every command; scripts rely on their meaning."""

    OK = 0
    """Looked, and nothing hangs."""
    HANG = 1
    """A confirmed or likely busy-wait, block, hang or crash."""
    USAGE = 2
    """Wrong use, an unreadable file, or a fault of hangdoc itself."""
    UNDETERMINED = 3
    """The readings do not suffice."""
    UNOBSERVABLE = 4
    """The target cannot be observed."""
    DIFFERS = 5
    """A replayed diagnosis differs from the expected one."""


class HangdocError(Exception):
    """A failure with a sentence for the user and a remedy.

    message: one clear line, without a full stop at the end needed; remedy: what to do about it ("" when there is
    nothing to do); exit_code: the process's exit code.
    """

    def __init__(self, message: str, remedy: str = "", exit_code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy
        self.exit_code = exit_code
