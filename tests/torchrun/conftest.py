"""Plain torchrun jobs on the torch that the SGLang tests provision: started, ill, and removed whole."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.sglang.provision import ProvisionError, Rig, provision
from tests.unit.cli.commands import wait_until

JOB = Path(__file__).with_name("job.py")


@pytest.fixture(scope="session")
def rig() -> Rig:
    try:
        return provision()
    except ProvisionError as error:
        pytest.fail(str(error), pytrace=False)


@pytest.fixture
def start(rig: Rig, tmp_path: Path) -> Iterator[Callable[..., int]]:
    """Start a job; returns torchrun's pid once as many ranks as it says have come to where they stay."""
    with ExitStack() as stack:

        def started(act: str, *options: str, ranks: int = 2) -> int:
            command = [str(rig.python.with_name("torchrun")), *(options or ("--standalone",)), "--nproc-per-node", "2"]
            with (tmp_path / "job.log").open("wb") as log:
                job = subprocess.Popen(
                    [*command, str(JOB), act, str(tmp_path)],
                    env={**os.environ, "OMP_NUM_THREADS": "1"},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            stack.callback(remove, job)
            wait_until(lambda: job.poll() is not None or len(list(tmp_path.glob("rank?"))) == ranks)
            assert job.poll() is None, (tmp_path / "job.log").read_text()
            return job.pid

        yield started


def remove(job: subprocess.Popen[bytes]) -> None:
    """Kill torchrun, whose workers die with it; it is reaped last, so that the group's number is its own until then."""
    os.killpg(job.pid, signal.SIGKILL)
    job.communicate()
