"""Which reports are asked for that are handed on, and whether they get in each other's way."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import typer

STDOUT = Path("-")


@dataclass(frozen=True)
class Handed:
    """What is asked for. html: where the page goes; markdown, as_json: what standard output has instead of text."""

    html: Path | None
    markdown: bool
    as_json: bool

    @property
    def is_any(self) -> bool:
        """Whether a report beside the one for the terminal is asked for."""
        return self.html is not None or self.markdown

    @property
    def has_standard_output(self) -> bool:
        """Whether standard output is taken by one of these reports."""
        return self.markdown or self.html == STDOUT

    def check(self) -> None:
        """Raise BadParameter when two things are to go to standard output."""
        if self.markdown + self.as_json + (self.html == STDOUT) > 1:
            raise typer.BadParameter("--markdown, --json and --html - all go to standard output: choose one")

    def check_redaction(self, *, no_redact: bool, is_recorded: bool) -> None:
        """Raise BadParameter when names are to stay as they are and nothing is kept that could hold them."""
        if no_redact and not is_recorded and not self.is_any:
            raise typer.BadParameter("--no-redact is about --record, --html and --markdown: nothing else is kept")


def handed_of(html: Path | None, *, markdown: bool, as_json: bool, once: bool) -> Handed:
    """Return the reports that are handed on; BadParameter when it is not one look, or two want one output."""
    handed = Handed(html, markdown=markdown, as_json=as_json)
    if handed.is_any and not once:
        raise typer.BadParameter("--html and --markdown go with --once: following has a report at its end")
    handed.check()
    return handed
