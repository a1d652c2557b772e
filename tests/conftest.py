"""What all tests share: an absent tool skips by name, under CI nothing may skip, and the slow tests come last."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

UNDER_CI = bool(os.environ.get("HANGDOC_CI") or os.environ.get("CI"))

HERE = Path(__file__).parent

NOT_TO_BE_HAD = "cannot be had here: "
"""How the reason of a skip begins that may stand under CI too: the kernel or container lacks it, no tool would help."""

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    # A shell's background job ignores it, and so would every program that a test starts and interrupts.
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("hangdoc", deadline=None, derandomize=UNDER_CI)
settings.load_profile("hangdoc")


LIVE = ("capture", "packaging", "unit/cli", "unit/ending", "unit/observe", "unit/relaunch", "unit/unattended")
"""Folders whose tests look at real processes for seconds each: `make test-fast` leaves them out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A mistake that a fast test finds should not come after half an hour of servers."""
    for item in items:
        if any(item.path.is_relative_to(HERE / folder) for folder in LIVE):
            item.add_marker("slow")
    items.sort(key=lambda item: item.get_closest_marker("sglang") is not None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    absent = [tool for marker in item.iter_markers("needs") for tool in marker.args if shutil.which(tool) is None]
    if absent:
        pytest.skip(f"needs {', '.join(absent)}, which is not on PATH")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report = yield
    if UNDER_CI and report.skipped and not hasattr(report, "wasxfail") and NOT_TO_BE_HAD not in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped, which fails under CI: {report.longrepr}"
    return report


@pytest.hookimpl(optionalhook=True)  # xdist's: without it nothing runs beside anything
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    """Tests in several workers: what must not run beside each other does not, unless `--dist` asks for another way."""
    if config.getvalue("dist") != "load":
        return None
    from tests.scheduling import Scheduling  # noqa: PLC0415

    return Scheduling(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    report = yield
    if UNDER_CI and report.skipped:
        report.outcome = "failed"
        report.longrepr = f"not collected, which fails under CI: {report.longrepr}"
    return report
