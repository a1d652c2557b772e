"""Patients that poll for a lock file, as torch does: left behind, held by who does nothing, and by a build."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.patients.stage import Stage, get_on, patient

POLL_S = 0.1
"""How long FileBaton sleeps between two looks."""

BATON = """
import os, time

class FileBaton:
    def __init__(self, lock_file_path):
        self.lock_file_path, self.fd = lock_file_path, None

    def try_acquire(self):
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self):
        while os.path.exists(self.lock_file_path):
            time.sleep(POLL_S)
"""


def baton(folder: str) -> Any:
    """Make a FileBaton whose frames lie where torch's do: the names of its file and functions are what counts."""
    names: dict[str, Any] = {"POLL_S": POLL_S}
    exec(compile(BATON, "/opt/torch/utils/file_baton.py", "exec"), names)
    return names["FileBaton"](f"{folder}/lock")


def wait_for_build(stage: Stage, build_directory: str) -> None:
    """Be rank 1, which needs what another builds; the directory is a variable of the caller, as in torch."""
    waiting = baton(build_directory)
    stage.arrive("rank1")
    waiting.wait()


@patient("blocked", culprit="rank1")
def lock_file_left_behind(stage: Stage) -> None:
    """Rank 1 polls for a lock file whose maker was killed; rank 0 waits for rank 1."""
    (Path(stage.folder) / "lock").touch()
    stage.two_ranks(lambda _: wait_for_build(stage, stage.folder))


@patient("blocked", parts=("launcher", "rank0", "rank1", "builder"), culprit="builder")
def lock_file_held_by_who_is_stopped(stage: Stage) -> None:
    """A builder of the launch holds the lock file and is stopped; rank 1 polls for it, rank 0 waits for rank 1."""

    def build(stage: Stage) -> None:
        held = baton(stage.folder)
        held.try_acquire()
        stage.arrive("builder")
        os.kill(os.getpid(), signal.SIGSTOP)

    _with_builder(stage, build)


@patient("slow-start", "undetermined", parts=("launcher", "rank0", "rank1", "builder"))
def lock_file_held_by_a_build(stage: Stage) -> None:
    """The builder gets on, slowly."""

    def build(stage: Stage) -> None:
        held = baton(stage.folder)
        held.try_acquire()
        stage.arrive("builder")
        get_on()

    _with_builder(stage, build)


def _with_builder(stage: Stage, build: Any) -> None:
    """Start the builder first, so that the lock is its own."""
    word = stage.waiting_rank()
    stage.fork(build, stage)
    while not (Path(stage.folder) / "lock").exists():
        time.sleep(POLL_S)
    stage.fork(wait_for_build, stage, stage.folder)
    word.close()
    stage.wait()
