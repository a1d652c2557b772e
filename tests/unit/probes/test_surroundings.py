"""What stands around a launch, read of real processes: its port, its proxy, shared memory, orphans."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hangdoc.model.process import Launch, Process
from hangdoc.model.reading import Known
from hangdoc.model.surroundings import Room, Surroundings
from hangdoc.sampling.probe import Context
from hangdoc_probes import surroundings
from tests.conftest import NOT_TO_BE_HAD
from tests.unit.probes.targets import known, process_of, round_of, running

WAITS = 'say("ready"); sys.stdin.read()'


def look(process: Process, argv: tuple[str, ...] = (), **settings: str) -> Surroundings:
    root = msgspec.structs.replace(process, argv=argv)
    launch = Launch(root=root.key, engine="sglang", processes=(root,), settings=settings)
    session = surroundings.PROBE.open(Context(launch=launch, intern=lambda _: 0))
    (sample,) = session.take(round_of(root))
    return known(sample, Surroundings)


def test_shared_memory() -> None:
    """The room in /dev/shm is that of the file system the process sees there."""
    with running(WAITS) as target:
        room = look(target.process).shared_memory
    here = os.statvfs("/dev/shm")
    assert isinstance(room, Known)
    assert room.value.total_bytes == here.f_frsize * here.f_blocks
    assert 0 <= room.value.free_bytes <= room.value.total_bytes


def test_who_has_the_port() -> None:
    """Somebody outside the launch who listens on its port is told; of a member nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        with running(WAITS) as target:
            listeners = look(target.process, port=port).listeners
            assert isinstance(listeners, Known)
            assert os.getpid() in [end.process.pid for end in listeners.value]
            assert look(target.process, port=port).listening == Known(False)
            assert look(process_of(os.getpid()), port=port).listening == Known(True)
            own = look(process_of(os.getpid()), port=port).listeners
            assert isinstance(own, Known)
            assert os.getpid() not in [end.process.pid for end in own.value]


@pytest.mark.parametrize(
    ("variables", "argv", "proxied"),
    [
        ({"HTTP_PROXY": "http://127.0.0.1:9"}, (), True),
        ({"all_proxy": "http://127.0.0.1:9"}, (), True),
        ({"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "localhost,127.0.0.1"}, (), False),
        ({"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "localhost"}, ("--host", "localhost"), False),
        ({"HTTP_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}, ("--host", "0.0.0.0"), True),
        ({"HTTP_PROXY": "http://127.0.0.1:9", "http_proxy": ""}, (), False),
        ({}, (), False),
    ],
)
def test_proxy(variables: dict[str, str], argv: tuple[str, ...], proxied: bool) -> None:
    """A launcher whose own request would go to a proxy is told by its environment and the host it asks."""
    assignments = [f"{name}={value}" for name, value in variables.items()]
    with running(WAITS, "env", "-i", *assignments) as target:
        assert look(target.process, argv).proxied == Known(proxied)


ORPHANING = """
import os
if os.fork() == 0:
    os.setsid()
    os.execv("/bin/bash", ["sglang::scheduler_TP0", "-c", "echo $$; read word"])
"""


def test_orphans() -> None:
    """An engine's process whose launcher is gone is told; one whose parent is of the launch is none."""
    with subprocess.Popen([sys.executable, "-c", ORPHANING], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        parent.wait()  # the orphan is read only when its parent is gone
        assert Path(f"/proc/{pid}").exists()
        with running(WAITS) as target:
            orphans = look(target.process).orphans
            assert isinstance(orphans, Known)
            assert pid in [end.process.pid for end in orphans.value]


def test_twice_and_then_in_thorough_rounds() -> None:
    """A first look gets two readings; after that only thorough rounds pay for one."""
    process = process_of(os.getpid())
    context = Context(launch=Launch(root=process.key, engine="generic"), intern=lambda _: 0)
    session = surroundings.PROBE.open(context)
    rounds = [round_of(process, thorough=thorough) for thorough in (True, False, False, True)]
    assert [len(list(session.take(now))) for now in rounds] == [1, 1, 0, 1]


@pytest.mark.needs("unshare")
def test_shared_memory_of_a_container() -> None:
    """A launcher in a container of its own has its own /dev/shm: small, and full."""
    mount = "mount -t tmpfs -o size=64k none /dev/shm && dd if=/dev/zero of=/dev/shm/f bs=64k count=1 2>/dev/null"
    inside = ("unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh")
    if subprocess.run([*inside, "true"], check=False, capture_output=True).returncode:
        pytest.skip(f"{NOT_TO_BE_HAD}the right to mount")
    with running(WAITS, *inside) as target:
        assert look(target.process).shared_memory == Known(Room(65536, 0))
