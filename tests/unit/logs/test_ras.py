"""What NCCL's RAS answers as text becomes the records of its JSON, in the wordings of NCCL 2.24 to 2.30."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.logs import ras
from hangdoc.logs.evidence import evidence_kind
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.log import LogEvent
from hangdoc.trace import wording
from hangdoc.trace.tokens import Tokens

HEAD = """NCCL version 2.28.9+cuda12.9 compiled with CUDA 12.9
CUDA runtime version 12090, driver version 13000

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      2          4            1          8        8

Communicators... (2.05s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         2       3-4         8         7   RUNNING  INCOMPLETE

"""
DEAD = """DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 1650386 on node 192.0.2.2 managing GPU 3

"""
SILENT = DEAD.replace("DEAD\n  1 job process is considered dead (unreachable via the RAS network)", "INCOMPLETE\n  M")
SILENT = SILENT.replace("  M\n", "  Missing communicator data from 1 job process\n")
OF_RANK = """#0-0 (78db921d1c117b4a) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 7 -- GPU 3 managed by process 1650386 on node 192.0.2.2

"""
OLD_OF_RANK = OF_RANK.replace("Rank 7 -- GPU 3 managed by process 1650386 on node 192.0.2.2", "The missing rank: 7")
MISMATCH = """#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllReduce operation counts
  6 ranks have launched up to operation 6650
  2 ranks have launched up to operation 6640
  Rank 5 -- GPU 1 managed by process 1945 on node 192.0.2.3
  Rank 6 -- GPU 2 (NVML 6) managed by process 1946 on node 192.0.2.3

"""
ERRORS = """#0-0 (27a079b828ff1a75) ERROR
  Asynchronous errors on 3 ranks
  2 ranks reported Remote process error
  Rank 0 -- GPU 0 managed by process 1940 on node 192.0.2.2
  Rank 1 -- [process information not found]
  Rank 3 reported Unhandled CUDA error -- GPU 3 managed by process 1943 on node 192.0.2.2

"""


def told(*parts: str) -> list[tuple[str, dict[str, float]]]:
    return [(one.name, one.numbers) for one in ras.parse((HEAD + "".join(parts)).encode())]


def diagnosed(path: Path) -> Diagnosis:
    return diagnose(read([path], Wishes()), "log")


def file_of(path: Path, *parts: str) -> Path:
    path.write_text(HEAD + "".join(parts))
    return path


@pytest.mark.parametrize("of_rank", [OF_RANK, OLD_OF_RANK], ids=["2.28", "2.24"])
def test_a_dead_process_is_the_culprit(of_rank: str, tmp_path: Path) -> None:
    """A process that is dead while its group still has it is who has to move: no collective can finish."""
    assert told(DEAD, of_rank) == [("ras-dead", {"rank": 7.0, "pid": 1650386.0})]
    found = diagnosed(file_of(tmp_path / "ras.txt", DEAD, of_rank))
    assert (found.verdict, found.grade) == ("hung", "likely")
    assert [(one.pid, one.rank) for one in found.culprits] == [(1650386, {"rank": 7})]
    assert "-p 1650386" in found.next_steps[0].action


def test_a_process_that_does_not_answer_yet(tmp_path: Path) -> None:
    """Out of reach for less than a minute proves nothing."""
    assert told(SILENT, OF_RANK) == [("ras-missing", {"rank": 7.0, "pid": 1650386.0})]
    found = diagnosed(file_of(tmp_path / "ras.txt", SILENT, OF_RANK))
    assert found.verdict == "undetermined"
    assert "rank 7 is missing" in found.headline


def test_a_dead_process_of_no_group(tmp_path: Path) -> None:
    """Where no group is left that it was in, the others may have ended in order."""
    assert told(DEAD) == [("ras-gone", {"pid": 1650386.0})]
    assert diagnosed(file_of(tmp_path / "ras.txt", DEAD)).verdict == "undetermined"


def test_ranks_of_a_list_have_the_count_of_its_heading(tmp_path: Path) -> None:
    """Ranks that are behind are named where RAS lists them below the count that they share."""
    assert told(MISMATCH) == [
        ("ras-few", {"ranks": 6.0, "operation": 6650.0}),
        ("ras-few", {"ranks": 2.0, "operation": 6640.0}),
        ("ras-count", {"rank": 5.0, "operation": 6640.0, "pid": 1945.0}),
        ("ras-count", {"rank": 6.0, "operation": 6640.0, "pid": 1946.0}),
    ]
    found = diagnosed(file_of(tmp_path / "ras.txt", MISMATCH))
    assert found.verdict == "undetermined"
    assert found.headline.startswith("Ranks 5, 6 are behind the others, at collective 6640, others at 6650")


def test_one_that_launched_nothing(tmp_path: Path) -> None:
    """A rank without any operation is at 0."""
    nothing = (
        "#0-0 (27a079b828ff1a75) MISMATCH\n  Communicator ranks have different AllGather operation counts\n"
        "  3 ranks have launched up to operation 12\n"
        "  Rank 2 has not launched any operations -- GPU 2 managed by process 1942 on node 192.0.2.2\n"
    )
    assert told(nothing)[-1] == ("ras-count", {"rank": 2.0, "operation": 0.0, "pid": 1942.0})
    assert "Rank 2 is behind" in diagnosed(file_of(tmp_path / "ras.txt", nothing)).headline


def test_the_operation_in_which_ranks_differ_most() -> None:
    """Of several operations, and of several groups, the one with the widest gap is told."""
    close = MISMATCH.replace("AllReduce", "AllGather").replace("6640", "6649")
    assert told(close, MISMATCH) == told(MISMATCH) == told(MISMATCH, close)


def test_the_last_of_several_answers_counts() -> None:
    """Who asks three times and keeps all answers in one file wants to know how it stands now."""
    assert told(MISMATCH, HEAD, DEAD, OF_RANK) == told(DEAD, OF_RANK)


def test_who_failed_and_who_suffered(tmp_path: Path) -> None:
    """A rank in which NCCL failed is who has to move; those that lost a peer are not."""
    found = diagnosed(file_of(tmp_path / "ras.txt", ERRORS))
    assert [name for name, _ in told(ERRORS)] == ["ras-suffered", "ras-suffered", "ras-error"]
    assert found.verdict == "hung"
    assert [one.pid for one in found.culprits] == [1943]


def test_within_a_log(tmp_path: Path) -> None:
    """Pasted below a server's log with a container's prefix it says the same."""
    log = "[2026-11-29 10:00:31 TP0] Load weight begin. avail mem=139.13 GB\n" + HEAD + DEAD + OF_RANK
    (tmp_path / "server.log").write_text("".join(f"sglang-1  | {line}\n" for line in log.splitlines()))
    found = diagnosed(tmp_path / "server.log")
    assert found.verdict == "hung"
    assert [one.pid for one in found.culprits] == [1650386]


def test_beside_a_log(tmp_path: Path) -> None:
    """A text in its own file comes after the log, whatever the files are called."""
    (tmp_path / "server.log").write_text("[2026-11-29 10:00:31] Load weight begin. avail mem=139.13 GB\n")
    file_of(tmp_path / "a-ras.txt", DEAD, OF_RANK)
    found = diagnosed(tmp_path)
    assert (found.verdict, found.phase) == ("hung", "weight-load")


def as_json(**status: object) -> list[LogEvent]:
    rank = {"rank": 1, "pid": 1941, "status": {"init_state": 0, "async_error": 7, "abort_flag": False}}
    missing = [{"rank": 2, "pid": 1942, "status": status}] if status else []
    answer = {"nccl_version": "2.29.1", "communicators": [{"ranks": [rank], "missing_ranks": missing}]}
    data = json.dumps(answer).encode()
    assert evidence_kind(data) == "ras"
    return list(ras.parse(data))


@pytest.mark.parametrize(
    ("status", "name"),
    [
        ({"unresponsive": True, "considered_dead": True}, "ras-dead"),
        ({"unresponsive": True, "considered_dead": False}, "ras-missing"),
        ({"unresponsive": False, "considered_dead": False}, "ras-left"),
    ],
)
def test_states_of_json(status: dict[str, object], name: str) -> None:
    """Dead, silent and gone from its group are told apart."""
    assert [(one.name, one.numbers["pid"]) for one in as_json(**status)] == [(name, 1942.0)]


def test_a_healthy_answer_says_nothing() -> None:
    """Ranks without an error and without counts that differ are no complaint."""
    assert as_json() == []
    assert told() == []


def test_words_are_of_the_vocabulary() -> None:
    """Every record may stand in a recording."""
    for event in ras.parse("".join((HEAD, DEAD, OF_RANK, MISMATCH, ERRORS)).encode()):
        assert wording.sentence(Tokens(), event.text) == event.text
