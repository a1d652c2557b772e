"""The provisioned server environment (its Python has torch), and SpecForge's own reader in it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.sglang.provision import ProvisionError, Rig, provision

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SPECFORGE = "specforge==0.2.0"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What needs the server's environment is left out where servers are."""
    for item in items:
        if HERE in item.path.parents and "rig" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.sglang)


@pytest.fixture(scope="session")
def rig() -> Rig:
    try:
        return provision()
    except ProvisionError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture(scope="session")
def torch_python(rig: Rig) -> Any:
    """Run a module of this repository with the server's Python, with more directories on its path; its output."""

    def run(module: str, *arguments: object, path: tuple[Path, ...] = ()) -> str:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {"OMP_NUM_THREADS": "1", "TORCHDYNAMO_DISABLE": "1", "HF_HUB_OFFLINE": "1"}
        environment["PYTHONPATH"] = os.pathsep.join(map(str, (ROOT, *path)))
        done = subprocess.run(
            [rig.python, "-m", module, *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture(scope="session")
def specforge(rig: Rig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SpecForge's package from PyPI, without what it requires: its reader needs torch alone."""
    target = tmp_path_factory.mktemp("specforge")
    pip = [rig.python, "-m", "pip", "install", "--quiet", "--no-deps", "--disable-pip-version-check"]
    subprocess.run([*pip, "--target", target, SPECFORGE], check=True, stdout=sys.stderr)
    return target
