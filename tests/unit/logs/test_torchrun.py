"""What torchrun says of its workers: which one failed first, and that it started them again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis

CLOSED = "[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]:4411"


def traceback(rank: int, ending: str) -> str:
    return (
        f"[rank{rank}]: Traceback (most recent call last):\n"
        f'[rank{rank}]:   File "train.py", line 7, in <module>\n[rank{rank}]:     main()\n[rank{rank}]: {ending}\n'
    )


def report(rank: int = 3, code: int = 1, error_file: str = "<N/A>") -> str:
    return f"""E1129 12:05:00.000000 1 torch/distributed/elastic/multiprocessing/api.py:869] failed
Traceback (most recent call last):
  File "/usr/local/bin/torchrun", line 8, in <module>
    sys.exit(main())
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-29_12:05:00
  host      : node1
  rank      : 0 (local_rank: 0)
  exitcode  : -6 (pid: 4710)
  error_file: <N/A>
  traceback : Signal 6 (SIGABRT) received by PID 4710
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-29_12:04:59
  host      : node1
  rank      : {rank} (local_rank: {rank})
  exitcode  : {code} (pid: 4713)
  error_file: {error_file}
  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html
============================================================
"""


def of(*paths: Path) -> Diagnosis:
    return diagnose(read(list(paths), Wishes()), "log")


def text(directory: Path, content: str) -> Diagnosis:
    log = directory / "train.log"
    log.write_text(content)
    return of(log)


def test_the_root_cause_names_the_culprit(tmp_path: Path) -> None:
    """The rank, the exit code and the pid of torchrun's block are told, and nobody else is blamed."""
    found = text(tmp_path, "torchrun starts\n" + report())
    assert (found.verdict, found.target.engine) == ("crashed", "torchrun")
    assert [(one.rank, one.pid) for one in found.culprits] == [({"rank": 3}, 4713)]
    assert "rank 3 first, exited with code 1" in found.headline
    assert "(line 19)" in found.headline


def test_its_own_traceback_says_more(tmp_path: Path) -> None:
    """Where the rank that torchrun names printed a traceback, that is the cause, and the block gives its pid."""
    found = text(tmp_path, "torchrun starts\n" + traceback(3, "FileNotFoundError: x") + report())
    assert "RANK3: an exception: FileNotFoundError; torchrun names it first (line 2)" in found.headline
    assert [(one.rank, one.pid) for one in found.culprits] == [({"rank": 3}, 4713)]


def test_its_error_file(tmp_path: Path) -> None:
    """That the worker wrote an error file is told; the block, whose line is told, has its path."""
    found = text(tmp_path, "torchrun starts\n" + report(error_file="/tmp/none/attempt_0/3/error.json"))
    assert "error file" in found.headline


def test_first_seen_is_not_first_failed(tmp_path: Path) -> None:
    """A rank that only says that its peer is gone did not begin it, whatever torchrun happened to see first."""
    both = traceback(0, CLOSED.removeprefix("[rank0]: ")) + traceback(2, "RuntimeError: CUDA error: misaligned address")
    found = text(tmp_path, "torchrun starts\n" + both + report(rank=0, code=1))
    assert [one.rank for one in found.culprits] == [{"rank": 2}]


@pytest.mark.parametrize(
    "told", ["Worker group FAILED. 2/3 attempts left; will restart worker group", "restart_count=1"]
)
def test_an_attempt_that_was_started_again(told: str, tmp_path: Path) -> None:
    """What happened in an attempt that another one followed is no failure of the last one."""
    first = "torchrun starts\n" + traceback(1, "KeyError: 1") + f"I1129 12:06:00 agent.py:1] [default] {told}\n"
    found = text(tmp_path, first)
    assert found.verdict == "undetermined"
    assert found.log is None or found.log.failures == ()
    again = text(tmp_path, first + traceback(2, "ValueError: 1"))
    assert [one.rank for one in again.culprits] == [{"rank": 2}]


def test_directories_of_attempts(tmp_path: Path) -> None:
    """Of torchrun's directories the last attempt is the patient; an older one is read when it is named."""
    for attempt, rank in ((0, 1), (1, 0), (10, 2)):
        for one in range(3):
            log = tmp_path / "run" / f"attempt_{attempt}" / str(one) / "stderr.log"
            log.parent.mkdir(parents=True)
            log.write_text("torchrun\n" + (traceback(one, "KeyError: 1") if one == rank else "waits\n"))
    assert [one.rank for one in of(tmp_path).culprits] == [{"rank": 2}]
    named = of(tmp_path / "run" / "attempt_0" / "1" / "stderr.log")
    assert [one.rank for one in named.culprits] == [{"rank": 1}]


def test_an_error_file(tmp_path: Path) -> None:
    """torch's error file says what its rank raised."""
    told = {"message": {"message": "RuntimeError: CUDA error: misaligned", "extraInfo": {"py_callstack": "x"}}}
    error = tmp_path / "attempt_0" / "2" / "error.json"
    error.parent.mkdir(parents=True)
    error.write_text(json.dumps(told))
    (tmp_path / "attempt_0" / "0").mkdir()
    (tmp_path / "attempt_0" / "0" / "stderr.log").write_text("torchrun\n" + traceback(0, "BrokenPipeError: x"))
    found = of(tmp_path)
    assert (found.verdict, [one.rank for one in found.culprits]) == ("crashed", [{"rank": 2}])
