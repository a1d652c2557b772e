"""Which process is older is told within one clock tick, too, or said to be unknown; a tie makes nobody a member."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from hangdoc.launch import age
from hangdoc.launch.age import by_age, is_older, may_be_older
from hangdoc.launch.forest import Forest
from hangdoc.launch.table import read_entry, read_table
from hangdoc.model.process import ProcessKey
from tests.unit.cli.commands import wait_until

PROC = Path("/proc")
ROUNDS = 25
LEADER = """
import ctypes, os, signal, sys
def run(file, argv, held, lifeline=None):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL if lifeline is None else 0, 0, 0, 0)
    if lifeline is not None: os.dup2(lifeline, 0)
    os.set_inheritable(held, True)
    os.execvp(file, argv)
for line in sys.stdin:
    ours, held = os.pipe()  # a pipe that the script has: both inherit it
    lifeline, alive = os.pipe()
    told, tell = os.pipe()
    between = os.fork()
    if not between:
        orphan = os.fork()
        if not orphan: run("cat", ["VLLM::EngineCore"], held, lifeline)
        os.write(tell, str(orphan).encode())
        os._exit(0)
    os.waitpid(between, 0)
    root = os.fork()
    if not root: run("tail", ["vllm", "serve", "-f"], held)
    print(os.read(told, 20).decode(), root, flush=True)
    sys.stdin.readline()
    for end in (ours, held, lifeline, alive, told, tell): os.close(end)
    os.kill(root, signal.SIGKILL)
    os.waitpid(root, 0)
"""


def pids_start_over_at(monkeypatch: pytest.MonkeyPatch, number: int, folder: Path) -> None:
    (folder / "pid_max").write_text(f"{number}\n")
    monkeypatch.setattr(age, "PID_MAX", folder / "pid_max")
    monkeypatch.setattr(age, "_pids", age._pids.__wrapped__)


@pytest.mark.parametrize(
    ("older", "younger"),
    [
        (ProcessKey(900, 7), ProcessKey(20, 8)),  # another tick: the pid says nothing
        (ProcessKey(900, 7), ProcessKey(901, 7)),
        (ProcessKey(32_700, 7), ProcessKey(310, 7)),  # pids started over between the two
    ],
)
def test_within_a_tick_the_pids_decide(
    older: ProcessKey, younger: ProcessKey, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The pid that was given away a little earlier is the older process, also where pids start over."""
    pids_start_over_at(monkeypatch, 32_768, tmp_path)
    assert is_older(older, younger)
    assert not is_older(younger, older)
    assert not may_be_older(younger, older)
    assert sorted([younger, older], key=by_age) == [older, younger]


@pytest.mark.parametrize(("pid_max", "one", "other"), [(32_768, 2_000, 20_000), (400, 320, 380)])
def test_what_cannot_be_decided_is_not_decided(
    pid_max: int, one: int, other: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """So many pids apart within one tick, or where few pids go round: neither is called older, either may be."""
    pids_start_over_at(monkeypatch, pid_max, tmp_path)
    first, second = ProcessKey(one, 7), ProcessKey(other, 7)
    assert not is_older(first, second)
    assert not is_older(second, first)
    assert may_be_older(first, second)
    assert may_be_older(second, first)


def test_nobody_is_older_than_himself() -> None:
    """A process is neither its own elder nor possibly so."""
    one = ProcessKey(900, 7)
    assert not is_older(one, one)
    assert not may_be_older(one, one)


def test_an_orphan_of_the_same_tick_stays_out_of_the_next_launch(tmp_path: Path) -> None:
    """Whoever started just before a launch is never its member, however short the time and whatever both inherited."""
    (tmp_path / "serve").touch()
    ties = 0
    pipe = subprocess.PIPE
    command = [sys.executable, "-S", "-c", LEADER]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, cwd=tmp_path, text=True, start_new_session=True) as leader:
        assert leader.stdin is not None
        assert leader.stdout is not None
        for _ in range(ROUNDS):
            print(file=leader.stdin, flush=True)
            orphan, root = map(int, leader.stdout.readline().split())
            wait_until(lambda pids=(orphan, root): all(_has_its_title(pid) for pid in pids))
            forest = Forest(read_table(PROC, [1, leader.pid, orphan, root]), PROC)
            ties += forest.table[orphan].key.start_ticks == forest.table[root].key.start_ticks
            assert set(forest.members(root)) == {root}
            assert set(forest.members(orphan)) == {orphan}
            print(file=leader.stdin, flush=True)
        leader.stdin.close()
    assert ties


def _has_its_title(pid: int) -> bool:
    entry = read_entry(PROC, pid)
    return entry is not None and (entry.sighting.is_titled or entry.sighting.is_launcher)
