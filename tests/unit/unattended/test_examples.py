"""The examples are what they say: their commands exist, their probes agree with hangdoc's, their files parse."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from hangdoc.cli.main import app
from hangdoc.unattended.health import judge
from hangdoc.unattended.state import StateFile
from tests.unit.report.diagnoses import a_diagnosis

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
MANIFESTS = sorted((EXAMPLES / "kubernetes").glob("*.yaml"))
SERVICE = EXAMPLES / "systemd" / "sglang.service"
STATE = "/run/hangdoc/state.json"


def containers(path: Path) -> list[dict[str, Any]]:
    (pod,) = yaml.safe_load_all(path.read_text())
    assert (pod["apiVersion"], pod["kind"]) == ("v1", "Pod")
    found: list[dict[str, Any]] = pod["spec"]["containers"]
    return found


def words_of(command: list[str]) -> Iterator[list[str]]:
    """The command lines of hangdoc in a command, a shell's included."""
    if command[:2] == ["sh", "-c"]:
        for part in re.split(r"[;&]|\bdo\b", command[2]):
            yield from words_of(shlex.split(part)) if part.strip() else ()
    elif "hangdoc" in command:
        yield command[command.index("hangdoc") + 1 :]


def commands(path: Path) -> list[list[str]]:
    found = []
    for one in containers(path):
        found += list(words_of([*one.get("command", []), *one.get("args", [])]))
        probes = (one[name]["exec"]["command"] for name in one if name.endswith("Probe") and "exec" in one[name])
        found += [words for probe in probes for words in words_of(probe)]
    return found


def check(words: list[str]) -> None:
    """hangdoc's own parser takes the command line."""
    command = get_command(app).commands[words[0]]  # type: ignore[attr-defined]
    command.make_context(words[0], list(words[1:]))


def test_there_are_examples() -> None:
    """The checks below look at something."""
    assert len(MANIFESTS) >= 2
    assert SERVICE.is_file()


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_commands_of_manifests(path: Path) -> None:
    """Every hangdoc command of a manifest is one that hangdoc takes, with the right to trace."""
    found = commands(path)
    assert any(words[0] == "watch" for words in found)
    for words in found:
        check(words)
    watching = [
        one
        for one in containers(path)
        if any("hangdoc watch" in " ".join(one.get(k, [])) or "hangdoc" in one.get(k, []) for k in ("command", "args"))
    ]
    assert watching
    assert all(one["securityContext"]["capabilities"]["add"] == ["SYS_PTRACE"] for one in watching)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_mounts_have_volumes(path: Path) -> None:
    """What a container mounts is a volume of the pod, and the folders of state and evidence are mounted."""
    (pod,) = yaml.safe_load_all(path.read_text())
    volumes = {volume["name"] for volume in pod["spec"]["volumes"]}
    mounts = [mount for one in containers(path) for mount in one["volumeMounts"]]
    assert {mount["name"] for mount in mounts} == volumes
    assert {"/run/hangdoc", "/var/lib/hangdoc", "/var/log/sglang"} <= {mount["mountPath"] for mount in mounts}


@pytest.mark.parametrize(
    ("verdict", "grade", "age_s"),
    [
        ("blocked", "confirmed", 0),
        ("crashed", "confirmed", 0),
        ("blocked", "confirmed", 300),
        ("blocked", "likely", 0),
        ("slow-start", "confirmed", 0),
        ("undetermined", "undetermined", 0),
        (None, None, 0),
    ],
)
def test_the_shells_probe_says_what_healthcheck_says(verdict: Any, grade: Any, age_s: int, tmp_path: Path) -> None:
    """The probe for images without hangdoc is red exactly where healthcheck is."""
    state = tmp_path / "state.json"
    if verdict is not None:
        StateFile(state).tell(a_diagnosis(verdict=verdict, grade=grade))
        told = json.loads(state.read_text())
        told["written_at"] -= age_s
        state.write_text(json.dumps(told))
        subprocess.run(["touch", "-d", f"{age_s} seconds ago", str(state)], check=True)
    server = containers(EXAMPLES / "kubernetes" / "sidecar.yaml")[0]
    for probe in ("startupProbe", "livenessProbe"):
        command = [word.replace(STATE, str(state)) for word in server[probe]["exec"]["command"]]
        assert bool(subprocess.run(command, check=False).returncode) == judge(state)[0]


def settings_of(path: Path) -> dict[str, str]:
    text = path.read_text().replace("\\\n", " ")
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))


def test_the_unit() -> None:
    """The unit's command is one that hangdoc takes, and systemd signals hangdoc alone."""
    settings = settings_of(SERVICE)
    words = shlex.split(settings["ExecStart"])
    assert Path(words[0]).name == "hangdoc"
    check(words[1:])
    assert settings["KillMode"] == "mixed"


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    """Where systemd-analyze is at hand, it has nothing to say of the unit but that the programs are not here."""
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("cannot be had here: systemd-analyze, for the unit")
    unit = tmp_path / "sglang.service"
    unit.write_text(SERVICE.read_text().replace("/usr/local/bin/hangdoc", "/bin/true"))
    done = subprocess.run([verify, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False)
    assert "sglang.service" not in done.stderr, done.stderr
