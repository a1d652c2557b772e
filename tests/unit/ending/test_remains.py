"""What a launch leaves outside its processes: removed where that is certain to be nobody else's, else listed."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hangdoc.ending.inventory import leftovers
from hangdoc.ending.namespaces import sees_everybody, sharers
from hangdoc.ending.plan import stray_files
from hangdoc.ending.records import Thing
from hangdoc.ending.remains import Surroundings, clear, keeps
from hangdoc.launch.table import listed_pids
from tests.conftest import NOT_TO_BE_HAD
from tests.unit.ending.theatre import Theatre

SHM = Path("/dev/shm")
FAST = ("--yes", "--no-snapshot", "--json")


def surroundings(**changed: Any) -> Surroundings:
    known: dict[str, Any] = {"held": {}, "untold": (), "shared": (), "hidden": False, "bound": frozenset()}
    return Surroundings(Path("/proc"), frozenset({os.getuid()}), **{**known, **changed})


def thing(kind: str, path: Path, *, held: bool = True) -> Thing:
    found = path.lstat()
    return Thing(kind, path, (found.st_dev, found.st_ino), found.st_uid, held)


@pytest.fixture
def segment(theatre: Theatre) -> Path:
    path = SHM / f"psm_{theatre.segment}"
    path.write_bytes(b"x")
    return path


def things(launch: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["path"]: one for one in launch["after"]["things"]}


def skip_where_others_share() -> None:
    if not sees_everybody(Path("/proc")) or sharers(Path("/proc"), listed_pids(Path("/proc")), SHM.stat().st_dev):
        pytest.skip(f"{NOT_TO_BE_HAD}nothing in /dev/shm is certain to be nobody else's: another pid namespace has it")


def test_what_members_held_comes_back(theatre: Theatre) -> None:
    """Segments, semaphore, zmq socket, baton and lock file that a member held are removed, and the port is free."""
    skip_where_others_share()
    cast = theatre.launch("belongings", "rank0")
    ended = theatre.kill_clean(str(cast["rank0"].pid), *FAST)
    assert ended.code == 0, ended.out
    launch = json.loads(ended.out)["launches"][0]
    removed = {path for path, one in things(launch).items() if one["removed"]}
    shm = {f"psm_{theatre.segment}", f"sem.loky-1-{theatre.segment}", f"sglang_loads_{theatre.segment}_1.shm"}
    expected = {str(SHM / name) for name in shm} | {f"/tmp/tmp{theatre.segment}"}
    expected |= {str(theatre.folder / "torch_extensions/kernel/lock"), str(theatre.folder / "model.lock")}
    assert removed == expected
    assert not [path for path in expected if Path(path).exists()]
    assert launch["after"]["ports"] == [{"port": theatre.port, "free": True, "listened": True, "says": "free"}]


def test_a_port_that_the_launch_never_had_is_told_and_does_not_count(theatre: Theatre) -> None:
    """The port of the command line, on which somebody else listens: said who, and the launch is gone all the same."""
    with socket.create_server(("127.0.0.1", theatre.port)):
        cast = theatre.launch("plain", "rank0", "rank1")
        ended = theatre.kill_clean(str(cast["launcher"].pid), *FAST)
    (port,) = json.loads(ended.out)["launches"][0]["after"]["ports"]
    assert ended.code == 0, ended.out
    assert (port["port"], port["free"], port["listened"]) == (theatre.port, False, False)
    assert f"taken by pid {os.getpid()}" in port["says"]


def test_data_of_the_user_stays(theatre: Theatre) -> None:
    """A file in /dev/shm with a name of its own is data: listed with its rm line, never removed; no directory is."""
    cast = theatre.launch("belongings", "rank0")
    ended = theatre.kill_clean(str(cast["rank0"].pid), *FAST)
    listed = things(json.loads(ended.out)["launches"][0])[str(SHM / f"samples-{theatre.segment}")]
    assert listed["command"] == f"rm -- {SHM}/samples-{theatre.segment}"
    assert (SHM / f"samples-{theatre.segment}").exists()
    assert (theatre.folder / "torch_extensions" / "kernel").is_dir()


def test_a_lock_file_that_nobody_held_stays(theatre: Theatre) -> None:
    """A lock file that a member had open without the lock is listed, and stops nobody: the code is that of the rest."""
    cast = theatre.launch("belongings", "rank0")
    ended = theatre.kill_clean(str(cast["rank0"].pid), *FAST)
    listed = things(json.loads(ended.out)["launches"][0])[str(theatre.folder / "waited-for.lock")]
    assert listed["because"] == "no member held it when the launch was looked at"
    assert (theatre.folder / "waited-for.lock").exists()


HOLDER = "import os, sys; f = open(sys.argv[1]); os.write(1, b'x'); sys.stdin.read()"


def test_what_somebody_else_has_open_stays(theatre: Theatre) -> None:
    """A segment and a lock that a process outside has open are left, with who it is, and the exit code says so."""
    cast = theatre.launch("belongings", "rank0")
    path = SHM / f"psm_{theatre.segment}"
    holder = subprocess.Popen(
        [sys.executable, "-S", "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder.stdin, holder.stdout:
        holder.stdout.read(1)
        ended = theatre.kill_clean(str(cast["rank0"].pid), *FAST)
    holder.wait()
    listed = things(json.loads(ended.out)["launches"][0])[str(path)]
    assert ended.code == 1
    assert listed["because"] == f"process {holder.pid} has it open"
    assert path.exists()


def test_a_file_of_the_same_name_but_another_inode_stays(segment: Path) -> None:
    """What was made anew under the name since the look is somebody else's."""
    seen = thing("shm", segment)
    other = segment.with_name(f"{segment.name}.new")
    other.write_bytes(b"new")
    other.rename(segment)
    assert clear([seen], surroundings()) == ()
    assert segment.read_bytes() == b"new"


def test_a_link_is_not_followed(theatre: Theatre, segment: Path) -> None:
    """A link that took a segment's name is left, and so is what it leads to."""
    seen = thing("shm", segment)
    precious = theatre.folder / "precious"
    precious.write_bytes(b"precious")
    segment.unlink()
    segment.symlink_to(precious)
    assert clear([seen], surroundings()) == ()
    assert precious.exists()
    assert segment.is_symlink()


@pytest.mark.parametrize(
    ("changed", "because"),
    [
        ({"hidden": True}, "hangdoc is in a container"),
        ({"shared": (77,)}, "process 77 of another pid namespace"),
        ({"untold": (78,)}, "whether process 78 uses it"),
    ],
)
def test_a_segment_stays_unless_everything_is_known(segment: Path, changed: dict[str, Any], because: str) -> None:
    """In a container, beside another pid namespace, or beside somebody who may not be looked at, segments stay."""
    assert keeps(thing("shm", segment), surroundings()) == ""
    assert keeps(thing("shm", segment), surroundings(**changed)).startswith(because)


def test_another_users_segment_stays(segment: Path) -> None:
    """A segment of another user is left whatever its name."""
    seen = thing("shm", segment)
    other = Thing(seen.kind, seen.path, seen.identity, seen.user_id + 1, seen.held)
    assert keeps(other, surroundings()) == "it belongs to another user"


def test_a_process_of_another_pid_namespace_that_shares_the_memory_is_seen(theatre: Theatre) -> None:
    """While somebody in an inner pid namespace has this /dev/shm mounted, segments are listed and not removed."""
    if os.geteuid() != 0:
        pytest.skip(f"{NOT_TO_BE_HAD}a pid namespace needs root")
    cast = theatre.launch("belongings", "rank0")
    inner = theatre.start(
        [
            "unshare",
            "--pid",
            "--fork",
            sys.executable,
            "-S",
            "-c",
            "import os; os.write(1, b'x'); import time; time.sleep(600)",
        ],
        stdout=subprocess.PIPE,
    )
    assert inner.stdout is not None
    inner.stdout.read(1)
    ended = theatre.kill_clean(str(cast["rank0"].pid), *FAST)
    listed = things(json.loads(ended.out)["launches"][0])[str(SHM / f"psm_{theatre.segment}")]
    assert ended.code == 1
    assert "of another pid namespace shares /dev/shm" in listed["because"]
    inner.send_signal(signal.SIGKILL)


def test_leftovers_are_those_of_a_user_with_an_engines_name(theatre: Theatre, segment: Path) -> None:
    """Without a launch, an engine's names of this user are listed, and nothing else."""
    (SHM / f"samples-{theatre.segment}").write_bytes(b"x")
    found = {one.path for one in leftovers(os.getuid())}
    assert segment in found
    assert SHM / f"samples-{theatre.segment}" not in found
    assert leftovers(os.getuid() + 12345) == []


def test_what_somebody_has_open_is_no_leftover(theatre: Theatre, segment: Path) -> None:
    """A live launch's segments are never offered for removal."""
    with segment.open():
        assert segment not in {one.path for one in stray_files({os.getuid()})}
    assert segment in {one.path for one in stray_files({os.getuid()})}
