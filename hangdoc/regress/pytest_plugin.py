"""pytest --hangdoc DIR: each recorded trace is one test; what fails says the difference in words."""

# ruff: noqa: PLC0415 - every pytest run imports this module, few of them replay traces

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from hangdoc.regress.cases import Case


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --hangdoc."""
    group = parser.getgroup("hangdoc", "recorded hangs")
    group.addoption(
        "--hangdoc",
        action="append",
        default=[],
        metavar="DIR",
        help="also test every NAME.hangtrace below DIR against its NAME.expect.toml; repeatable",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """Add a test for each trace, before -k, -m and --lf choose."""
    for directory in config.getoption("--hangdoc"):
        items += Traces.from_parent(session, name=directory, directory=Path(directory)).collect()


class Traces(pytest.Collector):
    """The traces of one directory."""

    def __init__(self, *, directory: Path, **known: Any) -> None:
        super().__init__(**known)
        self.directory = directory

    def collect(self) -> Iterator[pytest.Item]:
        """Yield a test for each trace; a directory without any is wrong use."""
        from hangdoc.errors import HangdocError
        from hangdoc.regress.cases import cases

        try:
            found = cases(self.config.invocation_params.dir / self.directory)
        except HangdocError as error:
            raise pytest.UsageError(f"--hangdoc: {error.message}; {error.remedy}") from error
        return iter([Replay.from_parent(self, name=case.name, case=case) for case in found])


class DifferenceError(Exception):
    """The diagnosis of a trace is not the expected one, or it cannot be judged; one line for each reason."""


class Replay(pytest.Item):
    """One trace."""

    def __init__(self, *, case: Case, **known: Any) -> None:
        super().__init__(**known)
        self.case = case

    def runtest(self) -> None:
        """Replay it."""
        from hangdoc.regress.judge import judge

        result = judge(self.case)
        if result.state != "same":
            raise DifferenceError("\n".join(result.lines))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return the difference in words; anything else with its traceback."""
        if isinstance(excinfo.value, DifferenceError):
            return f"{self.case.trace}:\n{excinfo.value}"
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where it is: the trace."""
        return self.case.trace, None, self.case.name
