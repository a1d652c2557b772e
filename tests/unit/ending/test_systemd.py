"""Under the real systemd: its service is named with what stops it, what it starts again is told, it gets no signal."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import NOT_TO_BE_HAD
from tests.unit.cli.commands import LONGEST_S, argv, environment, wait_until
from tests.unit.ending.theatre import LOST, Theatre

SYSTEMD = next((one for one in map(Path, ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")) if one.exists()), None)
TOOLS = ("unshare", "nsenter", "mount", "umount", "systemctl")
UNIT = "hangdoc-test.service"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        os.geteuid() != 0 or SYSTEMD is None or not all(map(shutil.which, TOOLS)),
        reason=f"{NOT_TO_BE_HAD}a systemd of its own needs root, systemd and unshare",
    ),
]

BOOT = """set -e
mount --make-rprivate /
mount -t proc proc /proc
umount -R /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system
cp "$1"/*.service "$1"/*.target /run/systemd/system
container=other exec "$2" --system --unit=hangdoc-test.target --log-target=console --log-level=info
"""
"""The first process of a pid, mount and cgroup namespace: systemd with one service and nothing else."""

SERVICE = """[Unit]
DefaultDependencies=no
StartLimitIntervalSec=0
[Service]
EnvironmentFile={environment}
ExecStart={server}
ExecStartPost={python} -S {lost}
StandardOutput=null
StandardError=null
Restart=always
RestartSec=10ms
"""

TARGET = f"[Unit]\nDefaultDependencies=no\nWants={UNIT}\n"


class Booted:
    """A systemd in namespaces of its own, that runs a launch as its service."""

    def __init__(self, theatre: Theatre, control_group: Path) -> None:
        self.theatre, folder = theatre, theatre.folder
        own = {name: value for name, value in theatre.environment("plain").items() if name not in os.environ}
        own |= {"PYTHONPATH": theatre.environment("plain")["PYTHONPATH"]}
        (folder / "own.env").write_text("".join(f"{name}={value}\n" for name, value in own.items()))
        (folder / "lost.py").write_text(LOST)
        text = SERVICE.format(
            environment=folder / "own.env",
            server=shlex.join(theatre.server()),
            python=sys.executable,
            lost=folder / "lost.py",
        )
        (folder / UNIT).write_text(text)
        (folder / "hangdoc-test.target").write_text(TARGET)
        spaces = shlex.join(["unshare", "--pid", "--mount", "--cgroup", "--fork", "--kill-child"])
        enter = f'echo $$ > "$0/cgroup.procs"; exec {spaces} sh -c "$1" sh "$2" "$3"'
        self.log = folder / "systemd.log"
        with self.log.open("w") as log:
            command = ["sh", "-c", enter, str(control_group), BOOT, str(folder), str(SYSTEMD)]
            self.outside = theatre.start(command, stdout=log, stderr=log)

    def has_given_up(self) -> bool:
        return self.outside.poll() is not None or "Freezing execution" in self.log.read_text()

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command where systemd is pid 1."""
        below = Path(f"/proc/{self.outside.pid}/task/{self.outside.pid}/children").read_text().split()
        return subprocess.run(
            ["nsenter", f"--target={below[0]}", "--pid", "--mount", "--cgroup", *command],
            env=environment(),
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=LONGEST_S,
            cwd=self.theatre.folder,
            check=False,
        )


@pytest.fixture
def booted(theatre: Theatre, control_group: Path) -> Iterator[Booted]:
    booted = Booted(theatre, control_group)
    try:
        wait_until(lambda: theatre.hears() or booted.has_given_up())
        if booted.has_given_up():
            pytest.skip(f"{NOT_TO_BE_HAD}systemd does not start here: {booted.log.read_text()[-300:]}")
        yield booted
    finally:
        booted.outside.kill()
        booted.outside.wait()
        theatre.close_launches()
        wait_until(lambda: "populated 0" in (control_group / "cgroup.events").read_text())
        for folder in sorted((one for one in control_group.rglob("*") if one.is_dir()), reverse=True):
            folder.rmdir()


def test_a_service_that_systemd_starts_again(theatre: Theatre, booted: Booted) -> None:
    """The service is named with its command; all of its control group ends, who lost every other tie included; that
    systemd starts it again is told (1); with the command nothing comes back; systemd itself is sent no signal."""
    cast = theatre.wait_for("launcher", "rank0", "rank1", "lost")
    planned = _launch(booted.run(*argv("kill-clean", str(cast["launcher"].pid), "--dry-run", "--json")))
    assert [(one["name"], one["command"]) for one in planned["supervisors"]] == [
        (f"systemd service {UNIT}", f"systemctl stop {UNIT}")
    ]
    reasons = {one["pid"]: one["because"] for one in planned["members"]}
    assert reasons.keys() == {one.pid for one in cast.values()}
    assert reasons[cast["lost"].pid][0].startswith("in the control group that was made for this launch")
    theatre.forget(*cast)
    done = booted.run(*argv("kill-clean", str(cast["rank0"].pid), "--yes", "--no-snapshot", "--json"))
    launch = _launch(done)
    assert done.returncode == 1, launch
    assert {one["pid"] for one in launch["done"]["ended"]} == reasons.keys()
    again = theatre.wait_for("launcher", "rank0", "rank1", "lost")
    assert [(one["pid"], one["because"]) for one in launch["after"]["returned"]] == [
        (again["launcher"].pid, "started again by 1")
    ]
    assert booted.run(*shlex.split(planned["supervisors"][0]["command"])).returncode == 0
    assert booted.run(*argv("kill-clean", str(again["launcher"].pid), "--dry-run")).returncode == 4
    assert "Received SIG" not in booted.log.read_text().replace("Received SIGCHLD", "")


def _launch(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout, done.stderr
    launch: dict[str, Any] = json.loads(done.stdout)["launches"][0]
    return launch
