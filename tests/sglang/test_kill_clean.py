"""Real SGLang launches on the CPU, ended: every member gone, nothing left, and the port serves the next one at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import urllib.error
from pathlib import Path
from typing import Any

from hangdoc.ending.namespaces import sees_everybody, sharers
from hangdoc.launch.table import listed_pids
from tests.sglang.cases import on
from tests.sglang.launches import Launch, start
from tests.sglang.provision import Rig
from tests.unit.cli.commands import argv, environment

PROC, SHM = Path("/proc"), Path("/dev/shm")


def kill_clean(launch: Launch, pid: int) -> dict[str, Any]:
    """End a launch by the pid of a member; its document."""
    command = argv("kill-clean", str(pid), "--yes", "--json", "--record", str(launch.directory / "end.hangtrace"))
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, env=environment(), check=False
    )
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def owned(launch: Launch) -> set[str]:
    """Segments and sockets with a name that the launch's processes have open."""
    found: set[str] = set()
    for pid in launch.members():
        for link in (PROC / str(pid) / "fd").iterdir():
            target = str(link.readlink())
            found |= {target} if target.startswith(f"{SHM}/") else set()
        maps = (PROC / str(pid) / "maps").read_text().split()
        found |= {word for word in maps if word.startswith(f"{SHM}/")}
    return {path for path in found if Path(path).exists()}


def is_ended(launch: Launch, pid: int) -> dict[str, Any]:
    """End it and check that it is gone whole; the pieces that others could share are told instead of removed."""
    members, segments = set(launch.members()), owned(launch)
    document = kill_clean(launch, pid)
    ending = document["launches"][0]
    print(
        f"{launch.scenario.name}: {len(members)} processes in {ending['done']['seconds']} s, {ending['done']['steps']}"
    )
    assert {one["pid"] for one in ending["members"]} >= members
    assert launch.members() == []
    assert ending["done"]["survivors"] == []
    assert all(port["free"] for port in ending["after"]["ports"])
    assert launch.port in {port["port"] for port in ending["after"]["ports"]}
    left = [one for one in ending["after"]["things"] if not one["removed"]]
    if sees_everybody(PROC) and not sharers(PROC, listed_pids(PROC), SHM.stat().st_dev):
        assert (document["exit_code"], left) == (0, [])
        assert [path for path in segments if Path(path).exists()] == []
    else:
        assert all("pid namespace" in one["because"] or "container" in one["because"] for one in left)
    return ending


def keep_busy(launch: Launch) -> threading.Thread:
    """Ask for a long answer, and return once the server works on it."""

    def ask() -> None:
        try:
            launch.generate("hello", tokens=400)
        except (urllib.error.URLError, OSError):
            return  # the server was ended, as it should be

    asking = threading.Thread(target=ask)
    before = launch.text().count("Prefill batch")
    asking.start()
    while launch.text().count("Prefill batch") == before:
        launch.pause()
    return asking


@on("busy-warmup", "absent-warmup")
def test_a_launch_that_hangs_in_its_warm_up(launch: Launch) -> None:
    """TP1 in an endless loop, TP2 in a collective that nobody joins: gone, from a scheduler's pid."""
    is_ended(launch, next(iter(launch.scheduler_pids().values())))


@on("healthy-tp2")
def test_a_launch_in_mid_load_and_the_next_one_on_its_port(launch: Launch, rig: Rig, tmp_path: Path) -> None:
    """TP2 is ended while it answers; the same port serves a new launch at once; that is ended with a stopped rank."""
    asking = keep_busy(launch)
    is_ended(launch, launch.pid)
    asking.join()
    with start("healthy-tp1", directory=tmp_path, rig=rig, port=launch.port) as following:
        following.wait_until_ill()
        assert len(following.generate(tokens=4)["output_ids"]) == 4  # type: ignore[arg-type]
        rank = next(iter(following.scheduler_pids().values()))
        os.kill(rank, signal.SIGSTOP)
        ending = is_ended(following, following.pid)
    assert ending["done"]["steps"][0].startswith("no SIGTERM:")


@on("healthy-tp1")
def test_a_healthy_launch(launch: Launch) -> None:
    """TP1, idle, is ended from its detokenizer's pid; the evidence was written before."""
    pid = launch.detokenizer_pid()
    assert pid is not None
    ending = is_ended(launch, pid)
    assert Path(ending["snapshot"]).stat().st_size > 0
