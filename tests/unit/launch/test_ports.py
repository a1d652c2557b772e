"""--port finds the launch that listens there, otherwise the one that was started with it."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.complaints import SeveralLaunchesError
from hangdoc.launch.find import find_launch
from tests.unit.launch.stage import TP2, Stage


def listener(family: socket.AddressFamily = socket.AF_INET) -> socket.socket:
    """A listening socket that the children of a plan inherit."""
    listening = socket.socket(family)
    listening.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", 0))
    listening.listen()
    listening.set_inheritable(True)
    return listening


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_the_launch_that_listens(stage: Stage, family: socket.AddressFamily) -> None:
    """The holder of the listening socket decides, over IPv4 and IPv6, whatever its command line says."""
    with listener(family) as listening:
        number = listening.fileno()
        children = {**TP2, "http": {"argv": ["http"], "inherit": [number]}}
        server = stage.run(stage.server("a", children, "--port 1"), "a", pass_fds=[number])
        port = listening.getsockname()[1]
    assert find_launch(port=port).root.pid == server.pid


@pytest.mark.parametrize("option", ["--port {}", "--port={}"])
def test_the_launch_that_was_started_with_it(stage: Stage, option: str) -> None:
    """As long as nobody listens the option of the launcher counts, in both spellings."""
    port = free_port()
    server = stage.run(stage.server("a", {}, option.format(port)), "a")
    stage.run(stage.server("b", {}, f"--port {port + 1}"), "b")
    assert find_launch(port=port).root.pid == server.pid


def test_two_launches_with_one_port(stage: Stage) -> None:
    """Both were started with it and nobody listens: exit code 2 and both listed."""
    port = free_port()
    roots = {stage.run(stage.server(name, {}, f"--port {port}"), name).pid for name in "ab"}
    with pytest.raises(SeveralLaunchesError) as caught:
        find_launch(port=port)
    assert {one.root.pid for one in caught.value.candidates} == roots


def test_a_port_of_nobody() -> None:
    """Nobody listens, nobody was started with it: exit code 4."""
    with pytest.raises(HangdocError, match="no launch listens on port") as caught:
        find_launch(port=free_port())
    assert caught.value.exit_code == ExitCode.UNOBSERVABLE


def test_a_port_of_somebody_else() -> None:
    """hangdoc's own process listens here: no launch, and its command line is named."""
    with listener() as listening, pytest.raises(HangdocError, match="which is no launch") as caught:
        find_launch(port=listening.getsockname()[1])
    assert caught.value.exit_code == ExitCode.UNOBSERVABLE


def test_a_port_in_a_network_namespace_of_its_own(stage: Stage) -> None:
    """A launch in a container listens in its own network namespace, where the same number may be taken here."""
    if subprocess.run(["unshare", "--net", "true"], check=False, capture_output=True).returncode:
        pytest.skip("needs the right to make a network namespace (unshare --net)")
    code = (
        "import fcntl, os, socket, struct, sys\n"
        "s = socket.socket(); fcntl.ioctl(s, 0x8914, struct.pack('16sh14x', b'lo', 1))\n"  # SIOCSIFFLAGS, IFF_UP
        "one = socket.socket(); one.bind(('127.0.0.1', 30999)); one.listen(); one.set_inheritable(True)\n"
        "os.execvp(sys.argv[1], sys.argv[1:])"
    )
    server = stage.run(["unshare", "--net", sys.executable, "-c", code, *stage.server("a", {}, "--port 2")], "a")
    assert find_launch(port=30999).root.pid == server.pid
