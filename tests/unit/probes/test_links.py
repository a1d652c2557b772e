"""The links probe on real processes: one kind of wait each, and who could end it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from hangdoc.model.link import Links
from hangdoc.model.reading import Known, Missing
from hangdoc.procfs.stat import parse_stat
from hangdoc_probes import _holders, links
from hangdoc_probes._network import tcp_table
from tests.unit.probes.link_patients import (
    IDLE,
    RECEIVES,
    STRONG,
    TRACER,
    WEAK,
    ends_of,
    links_of,
    own_ends_of,
    patient,
)
from tests.unit.probes.targets import (
    as_somebody_else,
    become_nobody,
    context,
    known,
    process_of,
    round_of,
    take,
)


def state_of(pid: int) -> str:
    return parse_stat(Path(f"/proc/{pid}/stat").read_bytes()).state


MANY_LOOKS = 200
THROUGH = ("pipe", "socket", "tcp", "child", "file-lock", "eventfd")


@pytest.mark.parametrize("kind", sorted(STRONG))
def test_one_process_could_end_the_wait(kind: str, tmp_path: Path) -> None:
    """Whoever holds the other end, is the child or holds the lock is named, alone, and the edge is strong."""
    with patient(STRONG[kind], str(tmp_path)) as (target, other):
        for _ in range(MANY_LOOKS):  # the other one may not have closed yet what it inherited
            (link,) = links_of(target.process, *THROUGH)
            if own_ends_of(link) == [other]:
                break
        assert own_ends_of(link) == [other]
        assert ends_of(link)[0] == other
        assert (link.tid, link.weak) == (target.pid, False)


@pytest.mark.parametrize("kind", sorted(WEAK))
def test_several_could_end_the_wait(kind: str, tmp_path: Path) -> None:
    """Where nobody in particular is waited for, the other process is among those named, and the edge is weak."""
    with patient(WEAK[kind], str(tmp_path)) as (target, other):
        found = links_of(target.process, *THROUGH)
        assert other in {pid for link in found for pid in ends_of(link)}
        assert all(link.weak for link in found)


@pytest.mark.parametrize("kind", sorted(IDLE))
def test_an_idle_server_waits_for_nobody_in_particular(kind: str, tmp_path: Path) -> None:
    """A server that waits for connections or requests has no strong edge: it looks the same when nothing is wrong."""
    with patient(IDLE[kind], str(tmp_path)) as (target, _):
        assert all(link.weak for link in links_of(target.process, *THROUGH))


def test_a_reader_that_holds_the_write_end_is_told_so() -> None:
    """A reader that itself holds the write end never sees the end of the pipe; the link says so and names it last."""
    with patient("r, w = os.pipe()\npid = other(lambda: (os.close(r), rest()))\nready(pid); os.read(r, 1)") as (
        target,
        other,
    ):
        (link,) = links_of(target.process, "pipe")
        assert ends_of(link) == [other, target.pid]
        assert "the process itself also holds the write end" in link.detail


def test_a_holder_outside_the_launch_is_named() -> None:
    """The launch is the waiting process alone; the holder is no member of it, and has its short name."""
    with patient(STRONG["pipe"]) as (target, other):
        (link,) = links_of(target.process, "pipe")
        assert isinstance(link.ends, Known)
        (end,) = link.ends.value
        assert (end.process, end.member) == (process_of(other).key, False)
        assert end.command == parse_stat(Path(f"/proc/{other}/stat").read_bytes()).name


def test_a_stop_is_a_cause_of_its_own() -> None:
    """A stopped process waits for nobody but a signal, whatever its threads are in."""
    with patient(STRONG["pipe"]) as (target, _):
        os.kill(target.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, target.pid, os.WSTOPPED | os.WNOWAIT)
        (sample,) = take(links.PROBE, target.process)
        (link,) = known(sample, Links).links
        assert (link.through, link.ends) == ("signal", Known(()))


def test_a_tracer_is_a_cause_of_its_own() -> None:
    """A process in a tracing stop waits for its tracer."""
    with patient(TRACER) as (target, other):
        (link,) = links_of(process_of(other), "tracer")
        assert ends_of(link) == [target.pid]


def test_zmq_speaks_through_its_io_thread() -> None:
    """A thread that waits for an eventfd of its own has weak edges to the peers of the process's zmq I/O threads."""
    code = """
import ctypes
heard, word = os.pipe()
server = socket.create_server(("127.0.0.1", 0))
def act(): mine, _ = server.accept(); os.write(word, b"x"); rest()
pid = other(act)
client = socket.create_connection(server.getsockname()); server.close(); os.read(heard, 1)
def io_thread():
    ctypes.CDLL(None).prctl(15, b"ZMQbg/IO/0", 0, 0, 0)  # PR_SET_NAME
    poller = select.epoll(); poller.register(client, select.EPOLLIN); poller.poll()
threading.Thread(target=io_thread, daemon=True).start()
event = os.eventfd(0); poller = select.poll(); poller.register(event, select.POLLIN)
ready(pid); poller.poll()"""
    with patient(code) as (target, other):
        (link,) = links_of(target.process, "zmq")
        assert (ends_of(link), link.weak) == ([other], True)


@pytest.mark.parametrize("thorough", [True, False], ids=["thorough", "ordinary"])
def test_received_bytes_are_counted(thorough: bool) -> None:
    """What came in by recv, which no file of /proc counts, shows in every round."""
    with patient(RECEIVES) as (target, _):
        session = links.PROBE.open(context())
        totals = []
        for deep in (True, thorough):
            assert target.tell() == "received"
            (sample,) = session.take(round_of(target.process, thorough=deep))
            found = known(sample, Links)
            assert isinstance(found.tcp, Known)
            assert found.thorough == deep
            totals.append(sum(flow.received_bytes for flow in found.tcp.value))
        session.close()
        assert totals[1] - totals[0] >= 50_000


def test_without_connections_nothing_flows() -> None:
    """A process without TCP has none: known, not missing."""
    with patient("ready(0); rest()") as (target, _):
        (sample,) = take(links.PROBE, target.process)
        assert known(sample, Links).tcp == Known(())


def test_a_process_that_is_gone_is_gone() -> None:
    """A zombie waits for nobody."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    process = process_of(child.pid)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    (sample,) = take(links.PROBE, process)
    child.wait()
    assert isinstance(sample.reading, Missing)
    assert sample.reading.reason == "gone"


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give rights up")
def test_another_users_waits_are_denied_with_a_remedy() -> None:
    """Without rights system calls and descriptors are denied; a stop may be seen by anybody."""

    def look(pid: int) -> list[str]:
        (sample,) = take(links.PROBE, process_of(pid))
        found = known(sample, Links)
        assert isinstance(found.unread, Missing)
        assert isinstance(found.tcp, Missing)
        return [found.unread.reason, found.unread.remedy, found.tcp.reason, found.tcp.remedy]

    with patient(STRONG["pipe"]) as (target, _):
        links_of(target.process, "pipe")
        found = as_somebody_else(become_nobody, lambda: look(target.pid))
    assert (found[0], found[2]) == ("denied", "denied")
    assert "run hangdoc as root" in found[1]
    assert "run hangdoc as root" in found[3]


def test_looking_leaves_the_target_alone() -> None:
    """No reading stops the target or makes it run: it sleeps on in the same call, untraced, with the same count."""
    with patient(STRONG["tcp"]) as (target, _):
        links_of(target.process, "tcp")
        before = Path(f"/proc/{target.pid}/schedstat").read_text()
        links_of(target.process, "tcp")
        assert Path(f"/proc/{target.pid}/schedstat").read_text() == before
        assert state_of(target.pid) == "S"


ELSEWHERE = """
import ctypes
assert ctypes.CDLL(None).setns(os.open(f"/run/netns/{sys.argv[1]}", os.O_RDONLY), 0x40000000) == 0  # CLONE_NEWNET
def listener(address):
    heard, word = os.pipe()
    def act():
        if len(sys.argv) > 3: ctypes.CDLL(None).setns(os.open(f"/run/netns/{sys.argv[3]}", os.O_RDONLY), 0x40000000)
        server = socket.create_server((address, 0))
        os.write(word, str(server.getsockname()[1]).encode())
        mine, _ = server.accept(); server.close(); os.write(word, b"x"); rest()
    pid = other(act); port = int(os.read(heard, 9))
    client = socket.create_connection((address, port)); os.read(heard, 1); os.close(heard); os.close(word)
    return pid, client
pid, client = listener(sys.argv[2])
ready(pid); client.recv(1)
"""


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str]]:
    """Two network namespaces with one cable between them."""
    if os.geteuid() != 0:
        pytest.skip("needs root, to make network namespaces")
    names = (f"hangdoc{os.getpid()}a", f"hangdoc{os.getpid()}b")
    with ExitStack() as stack:
        for name in names:
            made = subprocess.run(["ip", "netns", "add", name], check=False, capture_output=True, text=True)
            if made.returncode:
                pytest.skip(f"cannot be had here: network namespaces ({made.stderr.strip()})")
            stack.callback(subprocess.run, ["ip", "netns", "delete", name], check=False)
            ip(name, "link set lo up")
        ip(names[0], f"link add cable type veth peer name cable netns {names[1]}")
        for name, host in zip(names, ("10.231.7.1", "10.231.7.2"), strict=True):
            ip(name, f"address add {host}/24 dev cable")
            ip(name, "link set cable up")
        yield names


def ip(namespace: str, what: str) -> None:
    done = subprocess.run(["ip", "-n", namespace, *what.split()], check=False, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"cannot be had here: ip {what} ({done.stderr.strip()})")


@pytest.mark.needs("ip")
def test_both_ends_in_another_namespace(namespaces: tuple[str, str]) -> None:
    """A connection within a network namespace that is not hangdoc's is followed, and its bytes are read."""
    with patient(ELSEWHERE, namespaces[0], "127.0.0.1") as (target, other):
        (link,) = links_of(target.process, "tcp")
        assert (ends_of(link), link.weak) == ([other], False)
        (sample,) = take(links.PROBE, target.process)
        tcp = known(sample, Links).tcp
        assert isinstance(tcp, Known)
        assert len(tcp.value) == 1


@pytest.mark.needs("ip")
def test_the_other_end_in_another_namespace(namespaces: tuple[str, str]) -> None:
    """A connection between two network namespaces of this host is followed across the cable."""
    with patient(ELSEWHERE, namespaces[0], "10.231.7.2", namespaces[1]) as (target, other):
        (link,) = links_of(target.process, "tcp")
        assert (ends_of(link), link.weak) == ([other], False)


@pytest.fixture
def freezer() -> Iterator[Path]:
    """A control group that can be frozen, of whichever version this host has."""
    for place in (Path("/sys/fs/cgroup/freezer"), Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")):
        group = place / f"hangdoc{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        if (group / "freezer.state").exists() or (group / "cgroup.freeze").exists():
            yield group
            group.rmdir()
            return
        group.rmdir()
    pytest.skip("cannot be had here: a freezer cgroup that may be written")


def test_a_freezer_is_a_cause_of_its_own(freezer: Path) -> None:
    """A frozen control group is named as what keeps the process from running."""
    version_1 = (freezer / "freezer.state").exists()
    switch = freezer / ("freezer.state" if version_1 else "cgroup.freeze")
    with patient(STRONG["pipe"]) as (target, _):
        (freezer / "cgroup.procs").write_text(str(target.pid))
        try:
            switch.write_text("FROZEN" if version_1 else "1")
            (link,) = links_of(target.process, "freezer")
            assert link.detail.endswith(f"echo {'THAWED' if version_1 else '0'} > {switch}")
        finally:
            switch.write_text("THAWED" if version_1 else "0")
            (freezer.parent / "cgroup.procs").write_text(str(target.pid))


def test_a_group_that_one_above_it_froze_is_thawed_there(freezer: Path) -> None:
    """A group whose parent was frozen is frozen, too, and only the parent's file thaws it."""
    version_1 = (freezer / "freezer.state").exists()
    switch, below = freezer / ("freezer.state" if version_1 else "cgroup.freeze"), freezer / "below"
    below.mkdir()
    try:
        with patient(STRONG["pipe"]) as (target, _):
            (below / "cgroup.procs").write_text(str(target.pid))
            try:
                switch.write_text("FROZEN" if version_1 else "1")
                (link,) = links_of(target.process, "freezer")
                assert link.detail.endswith(f" > {switch}")
            finally:
                switch.write_text("THAWED" if version_1 else "0")
                (freezer.parent / "cgroup.procs").write_text(str(target.pid))
    finally:
        below.rmdir()


def test_a_table_is_read_to_its_end() -> None:
    """A table longer than a page, of which the kernel gives less than a page at a time, is read whole."""
    with ExitStack() as stack:
        server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        ports = {
            stack.enter_context(socket.create_connection(server.getsockname())).getsockname()[1] for _ in range(99)
        }
        found = {one.local_port for one in tcp_table(Path("/proc"), os.getpid())}
    assert ports <= found


def test_on_a_host_too_large_to_search_no_edge_is_strong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not everybody could be looked at, somebody else may hold the end: the edge is weak."""
    monkeypatch.setattr(_holders, "MOST_OUTSIDE", -1)
    with patient(STRONG["pipe"]) as (target, _):
        (link,) = links_of(target.process, "pipe")
        assert link.weak
