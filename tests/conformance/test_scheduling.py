"""Tests in several workers: who must not run beside whom does not."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from tests.scheduling import Act, places
from tests.unit.cli.commands import LONGEST_S, REPOSITORY, environment

CONFTEST = """
import os, pytest
from tests.conftest import pytest_xdist_make_scheduler

@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    log = os.open(os.environ["TOLD"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(log, f"begins {os.environ['PYTEST_XDIST_WORKER']} {item.path.parent.name}\\n".encode())
    yield
    os.write(log, f"ends {os.environ['PYTEST_XDIST_WORKER']} {item.path.parent.name}\\n".encode())
    os.close(log)
"""
TESTS = """
import os, pytest

@pytest.mark.parametrize("number", range({count}))
def test_a(number):
    if str(number) == os.environ.get("LETHAL"):
        os._exit(1)
"""
FILES = {"tests/unit/cli/test_a.py": 12, "tests/patients/test_patients.py": 8, "tests/sglang/test_rig.py": 6}


def run(project: Path, **env: str) -> tuple[list[tuple[str, str, str]], str]:
    """Run a small project with tests of every act in three workers; who began and ended where, and what pytest said."""
    for path, count in FILES.items():
        (project / path).parent.mkdir(parents=True)
        (project / path).write_text(TESTS.format(count=count))
    (project / "conftest.py").write_text(CONFTEST)
    (project / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "3", str(project)]
    own = {"PYTHONPATH": str(REPOSITORY), "TOLD": str(project / "told"), **env}
    kept = {name: value for name, value in environment().items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=project, env={**kept, **own}, capture_output=True, text=True, timeout=LONGEST_S, check=False
    )
    lines = (line.split() for line in (project / "told").read_text().splitlines())
    return [(word, worker, folder) for word, worker, folder in lines], done.stdout


def test_acts_follow_each_other(tmp_path: Path) -> None:
    """Small tests run in several workers; patients in one, alone, until only the last is left; only then servers do."""
    told, said = run(tmp_path)
    assert f"{sum(FILES.values())} passed" in said
    workers: dict[str, set[str]] = defaultdict(set)
    for _, worker, folder in told:
        workers[folder].add(worker)
    assert len(workers["cli"]) > 1
    assert len(workers["patients"]) == len(workers["sglang"]) == 1
    folders = [folder for _, _, folder in told]
    first, alone = folders.index("patients"), 2 * (FILES["tests/patients/test_patients.py"] - 1)
    assert set(folders[first : first + alone]) == {"patients"}
    assert "sglang" not in folders[:first]


def test_a_worker_that_dies_costs_the_test_that_it_was_at(tmp_path: Path) -> None:
    """One test in each file kills its worker: these three fail, and all others run."""
    _, said = run(tmp_path, LETHAL="5")
    assert f"3 failed, {sum(FILES.values()) - 3} passed" in said


def test_what_shares_something_dear_goes_together() -> None:
    """The launches of a case, what ends launches and what a file has made are one unit; a launch of capture, too."""
    tests = [
        "tests/sglang/test_rig.py::test_a[busy-init@0.5.8]",
        "tests/sglang/test_kill_clean.py::test_b[busy-init@0.5.8]",
        "tests/capture/test_launches.py::test_a[llama-0.5.23-tp1]",
        "tests/capture/test_launches.py::test_b[llama-0.5.23-tp1]",
        "tests/capture/test_launches.py::test_a[deepseek_v2-0.5.8-tp2]",
        "tests/capture/test_faults.py::test_a[1]",
        "tests/capture/test_faults.py::test_a[2]",
        "tests/unit/ending/test_remains.py::test_a",
        "tests/unit/locks/test_kinds.py::test_a_process_of_another_pid_namespace",
        "tests/unit/ending/test_namespaces.py::test_a_reused_pid_is_never_signalled[one-tick]",
        "tests/unit/features/test_ranks.py::test_a",
        "tests/unit/features/test_ranks.py::test_b",
    ]
    found = places(tests)
    units = [list(found.values()).index(found[test]) for test in tests]
    assert units == [0, 0, 2, 2, 4, 5, 6, 7, 8, 9, 10, 10]
    assert {found[test].act for test in tests[:7]} == {Act.SERVERS}
