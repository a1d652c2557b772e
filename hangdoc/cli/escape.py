"""Past typer, which has exit codes of its own for Ctrl-C and a closed pipe, to the one place that explains failures."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class _EscapedError(Exception):
    """Carries an exception past typer."""


class Commands(TyperGroup):
    """The commands; a failure that typer would make an exit code of its own from leaves them in disguise."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except (OSError, KeyboardInterrupt, EOFError) as error:
            raise _EscapedError from error


def escaped(error: Exception) -> BaseException:
    """Return what a command raised, without the disguise."""
    return error.__cause__ or error if isinstance(error, _EscapedError) else error
