"""Commands that take a whole command line after `--`, which is nobody's option."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

_KEY = "hangdoc.command"


class TakesCommand(TyperCommand):
    """Keeps what follows the first `--` away from the parser; command_of returns it."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what is in front of it."""
        if "--" in args:
            position = args.index("--")
            ctx.meta[_KEY] = tuple(args[position + 1 :])
            args = args[:position]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Show it in the usage."""
        return [*super().collect_usage_pieces(ctx), "[-- ARGV...]"]


def command_of(context: typer.Context) -> tuple[str, ...]:
    """Return the command line that was given after `--`; empty without one."""
    found: tuple[str, ...] = context.meta.get(_KEY, ())
    return found
