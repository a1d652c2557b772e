"""The cases of a directory: each trace with its expectation, and those where one of the two is absent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from hangdoc.errors import HangdocError

TRACE, EXPECTATION = ".hangtrace", ".expect.toml"
"""How the two files of a case end; what stands before is its name."""


@dataclass(frozen=True)
class Case:
    """One case. name: its path below the directory, without an ending; either file may be absent."""

    name: str
    directory: Path
    has_trace: bool
    has_expectation: bool

    @property
    def trace(self) -> Path:
        """Where its trace is, or would be."""
        return self.directory / f"{self.name}{TRACE}"

    @property
    def expectation(self) -> Path:
        """Where its expectation is, or would be."""
        return self.directory / f"{self.name}{EXPECTATION}"


def cases(directory: Path) -> list[Case]:
    """Return the cases below a directory in the order of their names; HangdocError when there is none."""
    if not directory.is_dir():
        what = "is no directory" if directory.exists() else "does not exist"
        raise HangdocError(f"{directory} {what}", "give the directory that the traces are in")
    traces, expectations = _names(directory, TRACE), _names(directory, EXPECTATION)
    if not traces | expectations:
        raise HangdocError(
            f"{directory} has no traces", f"hangdoc record PID -o {directory}/NAME{TRACE} makes one; see --help"
        )
    return [Case(name, directory, name in traces, name in expectations) for name in sorted(traces | expectations)]


def _names(directory: Path, ending: str) -> set[str]:
    below = (path.relative_to(directory) for path in directory.rglob(f"*{ending}"))
    return {path.as_posix().removesuffix(ending) for path in below if not any(part[0] == "." for part in path.parts)}
