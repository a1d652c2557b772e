"""The built wheel in an environment of its own, as pipx or uvx installs it: complete, without a server's packages."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
TOP_LEVEL = {"hangdoc", "hangdoc_probes", "hangdoc_playbooks"}
SERVER_PACKAGES = ("sglang", "torch", "vllm")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", str(folder), str(ROOT)], check=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of a fresh environment that has the wheel and what it asks for, nothing else."""
    venv = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", str(venv)], check=True)
    subprocess.run([str(venv / "bin" / "python"), *PIP, "install", str(wheel)], check=True)
    return venv / "bin"


def test_contents(wheel: Path) -> None:
    """The wheel holds three packages, their type markers, the playbooks and the demo's patient; no tests."""
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == TOP_LEVEL
    assert all(f"{package}/py.typed" in names for package in TOP_LEVEL)
    assert "hangdoc/demo/patient.py" in names
    playbooks = {path.name for path in (ROOT / "playbooks" / "hangdoc_playbooks").glob("*.md")}
    assert {f"hangdoc_playbooks/{name}" for name in playbooks} <= set(names)
    assert [name for name in names if name.endswith("licenses/LICENSE")]


def test_asks_for_no_server_package(wheel: Path) -> None:
    """sglang and torch are an extra, never a dependency."""
    (metadata,) = [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith("METADATA")]
    lines = zipfile.ZipFile(wheel).read(metadata).decode().splitlines()
    required = [line for line in lines if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert required
    assert not [line for line in required if any(name in line for name in SERVER_PACKAGES)]


def test_works(installed: Path) -> None:
    """--version, probes, explain and the demo work from the wheel alone."""
    hangdoc = str(installed / "hangdoc")
    assert b"hangdoc " in output(hangdoc, "--version")
    assert json.loads(output(hangdoc, "probes", "--json"))
    assert b"HD101" in output(hangdoc, "explain", "HD101")
    assert json.loads(output(hangdoc, "demo", "--json"))["verdict"] == "busy-wait"


def test_imports_no_server_package(installed: Path) -> None:
    """Importing all of hangdoc imports none of a server's packages, even where they could be found."""
    walk = (
        "import hangdoc, hangdoc_probes, hangdoc_playbooks, importlib, pkgutil, sys\n"
        "for top in (hangdoc, hangdoc_probes, hangdoc_playbooks):\n"
        "    for item in pkgutil.walk_packages(top.__path__, top.__name__ + '.'):\n"
        "        if '.capture' not in item.name and not item.name.endswith(('_child', '.pytest_plugin')):\n"
        "            importlib.import_module(item.name)\n"
        f"print(sorted(set({SERVER_PACKAGES!r}) & set(sys.modules)))\n"
    )
    assert output(str(installed / "python"), "-c", walk).strip() == b"[]"


def output(*command: str) -> bytes:
    done = subprocess.run(command, capture_output=True, stdin=subprocess.DEVNULL, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout
