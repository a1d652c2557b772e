"""Past typer, which has its own ways with Ctrl-C, a closed pipe and help, to the one place for results and failures."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup

from hangdoc.cli.output import emit


class _EscapedError(Exception):
    """Carries an exception past typer."""


class _Helpful:
    """Prints help as any other result, so that one that cannot be written is told in the same way."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option --help."""
        option = super().get_help_option(ctx)  # type: ignore[misc] # of the command that this is mixed into
        if option is not None:
            option.callback = _show_help
        return option


def _show_help(ctx: Any, option: Any, wanted: bool) -> None:
    del option
    if wanted and not ctx.resilient_parsing:
        emit(ctx.get_help() + "\n")
        ctx.exit()


class OneCommand(_Helpful, TyperCommand):
    """One command."""


class Commands(_Helpful, TyperGroup):
    """The commands; a failure that typer would make an exit code of its own from leaves them in disguise."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse what stands before the command; typer makes of Ctrl-C here an exit of its own without a word."""
        try:
            return super().make_context(*args, **extra)
        except KeyboardInterrupt as error:
            raise _EscapedError from error

    def invoke(self, ctx: Any) -> Any:
        """Run the command that was asked for."""
        try:
            return super().invoke(ctx)
        except (OSError, KeyboardInterrupt, EOFError) as error:
            raise _EscapedError from error


def escaped(error: BaseException) -> BaseException:
    """Return what a command raised, without the disguise."""
    return error.__cause__ or error if isinstance(error, _EscapedError) else error
