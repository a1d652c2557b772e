"""The engine's version is read from the files that the target loaded, without importing them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from hangdoc.launch.find import find_launch
from hangdoc.launch.interpreter import resolve_in
from hangdoc.model.reading import Known, Missing, Reading
from tests.unit.launch.stage import PATIENTS, Stage


def install(directory: Path, version: str, *, literal: str = "") -> Path:
    """A package as `pip install --target` leaves it."""
    package = directory / "sglang"
    package.mkdir(parents=True, exist_ok=True)
    for name in ("sglang/__init__.py", "sglang/launch_server.py", "actor.py"):
        (directory / name).write_text((PATIENTS / name).read_text())
    if literal:
        (package / "version.py").write_text(f'__version__ = "{literal}"\n')
    if version:
        metadata = directory / f"sglang-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: sglang\nVersion: {version}\n\nVersion: 9\n")
    return directory


def version_of(stage: Stage, *path: Path, interpreter: str = sys.executable, cwd: Path | None = None) -> Reading[str]:
    argv = ["env", f"HANGDOC_PLAN={stage.plan('a', {})}", f"PYTHONPATH={':'.join(map(str, path))}"]
    server = stage.run([*argv, interpreter, "-m", "sglang.launch_server"], "a", cwd=cwd or "/")
    return find_launch(server.pid).engine_version


def test_a_package_on_pythonpath(stage: Stage, tmp_path: Path) -> None:
    """A `pip --target` directory with its dist-info beside the package."""
    assert version_of(stage, install(tmp_path / "one", "0.5.8")) == Known("0.5.8")


def test_the_first_on_the_path_is_the_one_that_is_loaded(stage: Stage, tmp_path: Path) -> None:
    """Of two installations the one that the target imports counts."""
    newer, older = install(tmp_path / "new", "0.5.23"), install(tmp_path / "old", "0.5.8")
    assert version_of(stage, older, newer) == Known("0.5.8")


def test_a_virtual_environment(stage: Stage, tmp_path: Path) -> None:
    """The environment of the interpreter as it was called, not of the one that its link leads to."""
    venv = tmp_path / "venv"
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    (venv / "bin").mkdir(parents=True)
    (venv / "bin" / "python").symlink_to(Path(sys.executable).resolve())
    (venv / "pyvenv.cfg").write_text(f"home = {Path(sys.executable).resolve().parent}\n")
    install(venv / "lib" / name / "site-packages", "0.4.1")
    assert version_of(stage, interpreter=str(venv / "bin" / "python")) == Known("0.4.1")


def test_a_directory_of_the_same_name_is_no_package(stage: Stage, tmp_path: Path) -> None:
    """A folder called sglang in the working directory is passed over, as by the import itself."""
    (tmp_path / "work" / "sglang").mkdir(parents=True)
    assert version_of(stage, install(tmp_path / "one", "0.5.8"), cwd=tmp_path / "work") == Known("0.5.8")


def test_a_source_checkout(stage: Stage, tmp_path: Path) -> None:
    """No dist-info: the literal in version.py."""
    assert version_of(stage, install(tmp_path / "src", "", literal="0.5.9.dev1")) == Known("0.5.9.dev1")


def test_two_dist_infos_beside_one_package(stage: Stage, tmp_path: Path) -> None:
    """An overwritten --target directory keeps both dist-infos: the package's own word decides."""
    install(tmp_path / "one", "0.5.8")
    assert version_of(stage, install(tmp_path / "one", "0.5.23", literal="0.5.23")) == Known("0.5.23")


def test_no_version_to_be_found(stage: Stage, tmp_path: Path) -> None:
    """Neither dist-info nor a literal: missing, and it says so."""
    found = version_of(stage, install(tmp_path / "one", ""))
    assert isinstance(found, Missing)
    assert found.reason == "failed"


def test_an_unknown_engine_has_no_version(stage: Stage) -> None:
    """A program of no known engine: missing because unsupported."""
    found = find_launch(stage.run(stage.program("p"), "p").pid).engine_version
    assert isinstance(found, Missing)
    assert found.reason == "unsupported"


@pytest.mark.parametrize("target", ["/real/lib", "../real/lib"])
def test_links_of_a_container_stay_inside_it(tmp_path: Path, target: str) -> None:
    """An absolute link of the target leads into the target's root, not into ours."""
    (tmp_path / "real" / "lib").mkdir(parents=True)
    (tmp_path / "venv").mkdir()
    (tmp_path / "venv" / "lib").symlink_to(target)
    assert resolve_in(tmp_path, "/venv/lib/x") == tmp_path / "real" / "lib" / "x"
    assert resolve_in(tmp_path, "/../../venv/lib") == tmp_path / "real" / "lib"


def test_a_link_that_leads_to_itself_ends(tmp_path: Path) -> None:
    """Links in a circle are not followed for ever."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert resolve_in(tmp_path, "/a/x").name == "x"
