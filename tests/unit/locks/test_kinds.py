"""Every kind of lock of glibc, on real processes in C and C++: what it is and who holds it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from hangdoc.features.locks import lock_edges
from hangdoc.features.waits import WaitGraph, circles
from hangdoc.model.locks import Locks
from hangdoc.model.reading import Known, Missing
from hangdoc_probes._sharers import sees_all
from tests.unit.locks.targets import Target, compiled, look, running, until, wait_of, waiting

KINDS = {
    "normal": ("mutex", "holder"),
    "recursive": ("mutex", "holder"),
    "errorcheck": ("mutex", "holder"),
    "adaptive": ("mutex", "holder"),
    "timed": ("mutex", "holder"),
    "shared": ("mutex", "holder"),
    "robust": ("robust-mutex", "holder"),
    "pi": ("pi-mutex", "holder"),
    "twice": ("mutex", "twice"),
    "first": ("mutex", "second"),
    "second": ("mutex", "first"),
    "reader": ("rwlock", "holder"),
    "writer": ("rwlock", "holder"),
    "joiner": ("join", "holder"),
    "kept-out": ("rwlock", None),
    "semaphore": ("semaphore", None),
    "barrier": ("barrier", None),
    "condition": ("condition", None),
    "timed-condition": ("condition", None),
}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> str:
    return compiled("kinds.c", tmp_path_factory.mktemp("kinds"), "cc")


@pytest.fixture(scope="module")
def scene(kinds: str) -> Iterator[tuple[Target, Locks]]:
    with running(kinds) as target:
        target.hear("ready")
        named = {tid for name, tid in target.tids.items() if name not in {"ready", "holder"}}
        yield target, until(target.pid, lambda seen: named <= waiting(seen) and all_told(seen))


def all_told(seen: Locks) -> bool:
    return not any(one.kind == "unknown" for one in seen.futexes)


@pytest.mark.needs("cc")
@pytest.mark.parametrize("name", KINDS)
def test_a_lock_of_glibc(name: str, scene: tuple[Target, Locks]) -> None:
    """The kind is told and the owner is the thread that holds it; where none is recorded, that is known too."""
    target, seen = scene
    wait = wait_of(seen, target.tids[name])
    kind, holder = KINDS[name]
    assert (wait.kind, wait.owner_tid) == (kind, Known(target.tids[holder] if holder else None))
    assert (wait.owner_alive, wait.owner_pid, wait.shared_key) == (True, 0, "")


@pytest.mark.needs("cc")
def test_a_mutex_whose_holder_ended(scene: tuple[Target, Locks]) -> None:
    """The owner is named, and that it is no more."""
    target, seen = scene
    wait = wait_of(seen, target.tids["dead"])
    assert isinstance(wait.owner_tid, Known)
    assert wait.owner_tid.value not in target.tids.values()
    assert (wait.kind, wait.owner_alive) == ("mutex", False)


@pytest.mark.needs("cc")
def test_two_threads_in_c_that_wait_for_each_other(scene: tuple[Target, Locks]) -> None:
    """Exactly two deadlocks: the two crosswise, and the one that waits for itself; nothing without an owner is in."""
    target, seen = scene
    edges = lock_edges({target.pid: (seen, look(target.pid))})
    found = {frozenset(tid for _, tid in circle) for circle in circles(WaitGraph(edges))}
    assert found == {
        frozenset({target.tids["first"], target.tids["second"]}),
        frozenset({target.tids["twice"]}),
    }
    ownerless = {target.tids[name] for name, (_, holder) in KINDS.items() if holder is None}
    assert not ownerless & {edge.from_tid for edge in edges}
    (dead,) = [edge for edge in edges if edge.from_tid == target.tids["dead"]]
    assert (dead.to_pid, dead.to_tid) == (target.pid, None)
    assert "it ended without releasing it" in dead.detail


@pytest.mark.needs("cc")
def test_two_processes_that_wait_for_each_other(kinds: str) -> None:
    """A lock they share has the same key in both, its owner is in the other process, and the cycle spans both."""
    with running(kinds, "pair") as target:
        target.hear("parent", "child")
        parent, child = target.tids["parent"], target.tids["child"]
        seen = {pid: until(pid, lambda one: bool(one.futexes) and all_told(one)) for pid in (parent, child)}
        waits = {pid: wait_of(one, pid) for pid, one in seen.items()}
        assert waits[parent].owner_tid == Known(child)
        assert waits[parent].owner_pid == child
        keys = {pid: wait.shared_key.rsplit(":", 1) for pid, wait in waits.items()}
        assert keys[parent][0] == keys[child][0] != ""
        assert keys[parent][1] != keys[child][1]
        edges = lock_edges({pid: (one, one) for pid, one in seen.items()})
        assert circles(WaitGraph(edges)) == (frozenset({(parent, parent), (child, child)}),)


@pytest.mark.needs("c++")
def test_cpp(tmp_path: Path) -> None:
    """Two std::mutex crosswise are a deadlock, a join names its thread; a condition and a future have no owner."""
    program = compiled("pair.cpp", tmp_path, "c++", "-std=c++17")
    with running(program) as target:
        target.hear("first", "second", "main", "condition", "future", "shared")
        tids = target.tids
        seen = until(target.pid, lambda one: set(tids.values()) <= waiting(one))
        (circle,) = circles(WaitGraph(lock_edges({target.pid: (seen, seen)})))
        assert circle == {(target.pid, tids["first"]), (target.pid, tids["second"])}
        assert wait_of(seen, tids["main"]).kind == "join"
        assert wait_of(seen, tids["shared"]).owner_tid == Known(tids["main"])
        assert wait_of(seen, tids["condition"]).owner_tid == Known(None)
        future = wait_of(seen, tids["future"])
        assert isinstance(future.owner_tid, Missing) or future.owner_tid == Known(None)


@pytest.mark.needs("cc", "unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a PID namespace")
def test_a_process_of_another_pid_namespace(kinds: str) -> None:
    """Locks record the numbers that threads have inside; the owner is told by the number it has outside."""
    with running("unshare", "--pid", "--fork", "--kill-child", kinds) as target:
        target.hear("ready")
        (pid,) = map(int, Path(f"/proc/{target.pid}/task/{target.pid}/children").read_text().split())
        count = len(KINDS) + 1
        seen = until(pid, lambda one: len(one.futexes) >= count and all_told(one))
        inside = {target.tids[name]: name for name in target.tids}
        outside = {inside.get(inner_number(tid, pid)): tid for tid in tids_of(pid)}
        for name, (kind, holder) in KINDS.items():
            wait = wait_of(seen, outside[name])
            assert (name, wait.kind, wait.owner_tid) == (name, kind, Known(outside[holder] if holder else None))


@pytest.mark.needs("cc")
def test_a_lock_that_is_not_the_c_library_s_has_no_owner(kinds: str) -> None:
    """A word 2 with plausible numbers behind it, as in Rust's Mutex, is no mutex, however it is waited for."""
    with running(kinds, "foreign") as target:
        target.hear("bitset", "plain")
        seen = until(target.pid, lambda one: set(target.tids.values()) <= waiting(one))
        for tid in target.tids.values():
            wait = wait_of(seen, tid)
            assert wait.kind == "unknown"
            assert isinstance(wait.owner_tid, Missing)
        assert lock_edges({target.pid: (seen, seen)}) == ()


@pytest.mark.needs("cc")
def test_a_mutex_that_a_thread_of_the_parent_held_at_the_fork(kinds: str) -> None:
    """The child has no such thread: it is said that it ended, or that the process was forked."""
    with running(kinds, "forked") as target:
        target.hear("parent", "child")
        child = target.tids["child"]
        seen = until(child, lambda one: bool(one.futexes))
        wait = wait_of(seen, child)
        assert (wait.owner_tid, wait.owner_alive) == (Known(target.tids["parent"]), False)
        (edge,) = lock_edges({child: (seen, seen)})
        assert "held it when the process was forked" in edge.detail


def wanting(kinds: str, path: Path, *before: str) -> AbstractContextManager[Target]:
    return running(*before, kinds, "want", str(path))


@pytest.mark.needs("cc")
def test_a_shared_mutex_whose_holder_s_process_ended(kinds: str, tmp_path: Path) -> None:
    """It is in no process any more, where every process can be seen; nobody says that it was the waiter's thread."""
    with running(kinds, "die", str(tmp_path / "lock")) as dead:
        dead.hear("die")
        dead.child.wait()
        with wanting(kinds, tmp_path / "lock") as target:
            target.hear("want")
            seen = until(target.pid, lambda one: bool(one.futexes))
            wait = wait_of(seen, target.tids["want"])
            if not sees_all(Path("/proc")):
                assert isinstance(wait.owner_tid, Missing)
                return
            assert (wait.owner_tid, wait.owner_alive) == (Known(dead.tids["die"]), False)
            (edge,) = lock_edges({target.pid: (seen, seen)})
            assert "which is in no process any more" in edge.detail


INSIDE = ("unshare", "--pid", "--fork", "--kill-child")
AS_NUMBER = ("sh", "-c", 'echo $(($0 - 1)) > /proc/sys/kernel/ns_last_pid; "$@" & wait')


def child_of(target: Target, path: Path) -> int:
    """Return the process below an unshare that has the file mapped."""
    return next(pid for pid in map(int, tids_below(target.pid)) if str(path) in Path(f"/proc/{pid}/maps").read_text())


def tids_below(pid: int) -> list[str]:
    own = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return own + [one for child in own for one in tids_below(int(child))]


@pytest.mark.needs("cc", "unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a PID namespace")
def test_a_shared_mutex_whose_holder_lives_in_another_pid_namespace(kinds: str, tmp_path: Path) -> None:
    """Its own number is no thread's out here, and still it is alive: the owner is told by the number it has here."""
    path = tmp_path / "lock"
    with running(
        *INSIDE, "sh", "-c", 'echo 100000 > /proc/sys/kernel/ns_last_pid; "$@" & wait', "sh", kinds, "hold", str(path)
    ) as holder:
        holder.hear("hold")
        assert not Path(f"/proc/{holder.tids['hold']}").exists()
        with wanting(kinds, path) as target:
            target.hear("want")
            wait = wait_of(until(target.pid, lambda one: bool(one.futexes)), target.tids["want"])
            outside = child_of(holder, path)
            assert (wait.owner_tid, wait.owner_pid, wait.owner_alive) == (Known(outside), outside, True)


@pytest.mark.needs("cc", "unshare")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to make a PID namespace")
def test_a_waiter_that_has_inside_the_number_of_the_holder_outside(kinds: str, tmp_path: Path) -> None:
    """The number in the lock is the waiter's own as well: nobody is called the owner."""
    path = tmp_path / "lock"
    with running(kinds, "hold", str(path)) as holder:
        holder.hear("hold")
        number = holder.tids["hold"]
        with wanting(kinds, path, *INSIDE, *AS_NUMBER, str(number)) as target:
            target.hear("want")
            assert target.tids["want"] == number
            pid = child_of(target, path)
            seen = until(pid, lambda one: bool(one.futexes))
            assert isinstance(wait_of(seen, pid).owner_tid, Missing)
            assert lock_edges({pid: (seen, seen)}) == ()


def tids_of(pid: int) -> list[int]:
    return [int(path.name) for path in Path(f"/proc/{pid}/task").iterdir()]


def inner_number(tid: int, pid: int) -> int:
    lines = Path(f"/proc/{pid}/task/{tid}/status").read_text().splitlines()
    return next(int(line.split()[-1]) for line in lines if line.startswith("NSpid:"))
