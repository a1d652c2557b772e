"""pytest --hangdoc DIR, in a project of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.commands import LONGEST_S, REPOSITORY, environment

GOLDEN = REPOSITORY / "tests" / "golden"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with two recorded hangs and a test of its own."""
    (tmp_path / "hangs").mkdir()
    for name in ("absent-barrier", "slow-read"):
        for ending in (".hangtrace", ".expect.toml"):
            shutil.copy(GOLDEN / f"{name}{ending}", tmp_path / "hangs")
    (tmp_path / "test_own.py").write_text("def test_own():\n    pass\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def pytest_in(project: Path, *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    own = {name: value for name, value in environment().items() if name != "PYTEST_ADDOPTS"}
    done = subprocess.run(command, cwd=project, env=own, capture_output=True, text=True, timeout=LONGEST_S, check=False)
    return done.returncode, done.stdout + done.stderr


def test_each_trace_is_a_test_beside_the_others(project: Path) -> None:
    """Two traces and the project's own test: three pass; without the option it is one."""
    code, said = pytest_in(project, "--hangdoc", "hangs", "-v")
    assert code == 0, said
    assert "hangs::absent-barrier PASSED" in said
    assert "3 passed" in said
    assert "1 passed" in pytest_in(project)[1]


def test_a_difference_fails_in_words(project: Path) -> None:
    """The failure's text is the difference, without a traceback; -k chooses among traces."""
    (project / "hangs" / "slow-read.expect.toml").write_text('verdict = "hung"\n')
    code, said = pytest_in(project, "--hangdoc", "hangs")
    assert code == 1
    assert 'verdict: expected "hung", found "slow-start"' in said
    assert "DifferenceError" not in said.split("short test summary")[0]
    assert "1 failed, 2 passed" in said
    assert "1 passed, 2 deselected" in pytest_in(project, "--hangdoc", "hangs", "-k", "absent-barrier")[1]


def test_what_cannot_be_judged_fails(project: Path) -> None:
    """A trace without an expectation is no silent pass."""
    (project / "hangs" / "slow-read.expect.toml").unlink()
    code, said = pytest_in(project, "--hangdoc", "hangs")
    assert code == 1
    assert "has no .expect.toml beside it" in said


def test_a_directory_without_traces_is_wrong_use(project: Path) -> None:
    """pytest's own code for wrong use, and one line."""
    code, said = pytest_in(project, "--hangdoc", "absent")
    assert code == 4
    assert "--hangdoc: " in said
    assert "does not exist" in said
    assert "Traceback" not in said
