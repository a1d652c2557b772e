"""Several launches in one file: which one was read is said, and how to cut a file into which logs were glued."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

import pytest

from hangdoc.logs.read import Wishes, read


def log(node: int, nodes: int, steps: int, at: str = "2026-11-29 10:00") -> str:
    texts = ("Init torch distributed begin.", "Load weight begin. avail mem=139.13 GB", "Load weight end. type=X")[
        :steps
    ]
    lines = [
        f"[{at}:00] server_args=ServerArgs(model_path='M', tp_size=4, nnodes={nodes}, node_rank={node}, port=30000)"
    ]
    lines += [f"[{at}:1{step} TP{2 * node + tp}] {text}" for step, text in enumerate(texts) for tp in (0, 1)]
    return "\n".join(lines) + "\n"


def said_of(*paths: Path) -> list[str]:
    said: list[str] = []
    read(list(paths), Wishes(tell=said.append))
    return said


def test_glued_logs_are_cut_by_the_command_that_is_told(tmp_path: Path) -> None:
    """The command makes files of the nodes' logs again, whose diagnosis has the ranks of both."""
    parts = [log(0, 2, 3), log(1, 2, 1)]
    file = tmp_path / "all of them.log"
    file.write_text("".join(parts))
    (told,) = said_of(file)
    cut, _, diagnose = told.partition("Cut it: ")[2].removesuffix(".").rpartition("; ")
    subprocess.run(["sh", "-c", cut], cwd=tmp_path, check=True)
    files = [tmp_path / name for name in shlex.split(diagnose)[2:]]
    assert [one.read_text() for one in files] == parts
    ranks = [one.rank for one in read(files, Wishes()).header.launch.processes if "tp" in one.rank]
    assert sorted(rank["tp"] for rank in ranks) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("second", "is_glued"),
    [
        pytest.param(log(0, 1, 1, at="2026-11-29 10:05"), False, id="after it"),
        pytest.param(log(0, 1, 1, at="2026-11-29 09:59"), True, id="before it ended"),
        pytest.param(log(0, 2, 1, at="2026-11-29 10:05"), False, id="the same node"),
    ],
)
def test_launches_that_followed_each_other(second: str, is_glued: bool, tmp_path: Path) -> None:
    """Launches after one another are no glued logs: the last one is said to be read, and where it begins."""
    file = tmp_path / "server.log"
    file.write_text(log(0, 1, 3) + second)
    (told,) = said_of(file)
    assert ("Cut it" in told) is is_glued
    assert is_glued or "from line 8 on: --launch N" in told


def test_a_clock_without_a_date_goes_back_at_midnight(tmp_path: Path) -> None:
    """Without dates no time is before another one."""
    file = tmp_path / "server.log"
    file.write_text(log(0, 1, 3, at="23:59") + log(0, 1, 1, at="00:01"))
    assert ["Cut it" in one for one in said_of(file)] == [False]


def test_one_launch_says_nothing(tmp_path: Path) -> None:
    """A file with one launch needs no word, nor does a launch that was asked for."""
    file = tmp_path / "server.log"
    file.write_text(log(0, 1, 3))
    assert said_of(file) == []
    file.write_text(log(0, 1, 3) + log(0, 1, 1, at="2026-11-29 10:05"))
    said: list[str] = []
    read([file], Wishes(launch=1, tell=said.append))
    assert said == []


def test_files_are_told_with_their_numbers(tmp_path: Path) -> None:
    """SERVER0 in a report is a file: which one is said."""
    for name in ("decode.log", "prefill.log"):
        (tmp_path / name).write_text(log(0, 1, 3))
    assert said_of(tmp_path) == [f"hangdoc: SERVER0 is {tmp_path}/decode.log, SERVER1 is {tmp_path}/prefill.log."]
