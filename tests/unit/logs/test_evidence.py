"""Dumps of torch's flight recorder and answers of NCCL's RAS: alone, and beside the log of the launch."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from hangdoc.diagnosis import diagnose
from hangdoc.engines.sglang import ENGINE
from hangdoc.errors import ExitCode, HangdocError
from hangdoc.logs import flight, ras
from hangdoc.logs.evidence import evidence_kind
from hangdoc.logs.lines import read_line
from hangdoc.logs.read import Wishes, read
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.trace import wording
from hangdoc.trace.tokens import Tokens

WATCHDOG = (
    b"[2026-11-29 12:00:00] server_args=ServerArgs(model_path='M', tp_size=2, port=30000)\n"
    b"[2026-11-29 12:00:01 TP0] Load weight begin. avail mem=139.13 GB\n"
    b"[2026-11-29 12:00:01 TP1] Load weight begin. avail mem=139.13 GB\n"
    b"[rank0]:[E1129 12:20:00.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: "
    b"WorkNCCL(SeqNum=17, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600011 milliseconds.\n"
)


def dump(enqueued: int, completed: int, *, group: int = 0, name: str = "0") -> dict[str, Any]:
    """A dump as torch 2.13 makes it, of a rank that enqueued some collectives in one group."""
    entries = [
        {
            "collective_seq_id": number,
            "frames": [{"filename": "/srv/model.py", "line": 3, "name": "forward"}] * 3,
            "input_sizes": [[3]],
            "is_p2p": False,
            "op_id": number,
            "pg_id": group,
            "process_group": (name, "default_pg"),
            "profiling_name": "nccl:all_reduce",
            "record_id": number - 1,
            "retired": number <= completed,
            "state": "completed" if number <= completed else "started",
            "time_created_ns": 1_795_993_167_019_542_482 + number,
            "timeout_ms": 600_000,
        }
        for number in range(1, enqueued + 1)
    ]
    status = {"last_completed_collective": completed, "last_enqueued_collective": enqueued}
    config = {name: {"desc": "default_pg", "name": name, "ranks": "[0, 1]"}}
    return {
        "comm_lib_version": "2.30.7",
        "entries": entries,
        "pg_config": config,
        "pg_status": {str(group): {**status, "last_started_collective": -1}},
        "version": "2.10",
    }


def pickled(found: object) -> bytes:
    return pickle.dumps(found, protocol=2)


def as_json(found: object) -> bytes:
    return json.dumps(found).encode()


def pickled_again(found: object, protocol: int) -> bytes:
    return pickle.dumps(found, protocol=protocol)


PROTOCOLS = [partial(pickled_again, protocol=protocol) for protocol in (3, 4, 5)]
WRITERS = pytest.mark.parametrize("write", [pickled, as_json, *PROTOCOLS])


def diagnosed(path: Path) -> Diagnosis:
    return diagnose(read([path], Wishes()), "log")


@WRITERS
def test_counts(write: Callable[[object], bytes]) -> None:
    """Both forms say which collectives were enqueued and completed, under the name that a group has everywhere."""
    data = write(dump(17, 16, group=3, name="tp"))
    assert evidence_kind(data) == "flight"
    assert flight.parse(data) == (flight.Count("tp", 17, 16),)


@WRITERS
def test_an_older_dump(write: Callable[[object], bytes]) -> None:
    """Where a dump has entries alone, these are counted."""
    found = dump(5, 4)
    assert flight.parse(write({"version": "2.2", "entries": found["entries"]})) == (flight.Count("0", 5, 4),)


@WRITERS
def test_the_rank_behind_is_the_culprit(write: Callable[[object], bytes], tmp_path: Path) -> None:
    """Beside a log whose watchdog fired, the recorders say who is behind: that is whom the others wait for."""
    (tmp_path / "server.log").write_bytes(WATCHDOG)
    (tmp_path / "nccl_trace_rank_0").write_bytes(write(dump(17, 16)))
    (tmp_path / "nccl_trace_rank_1").write_bytes(write(dump(7, 7)))
    found = diagnosed(tmp_path)
    assert found.verdict == "hung"
    assert [culprit.rank for culprit in found.culprits] == [{"tp": 1}]
    assert found.log is not None
    assert found.log.complaints[-2:] == (
        "TP0: last enqueued collective 17, last completed 16",
        "TP1: last enqueued collective 7, last completed 7",
    )


@WRITERS
def test_dumps_alone_prove_no_hang(write: Callable[[object], bytes], tmp_path: Path) -> None:
    """One moment does not tell whether the rank that is behind still moves; it is named all the same."""
    (tmp_path / "nccl_trace_rank_0").write_bytes(write(dump(17, 16)))
    (tmp_path / "nccl_trace_rank_1").write_bytes(write(dump(7, 7)))
    found = diagnosed(tmp_path)
    assert (found.verdict, found.culprits) == ("undetermined", ())
    assert found.headline.startswith("Rank 1 is behind the others, at collective 7, others at 17")
    assert diagnosed(tmp_path / "nccl_trace_rank_1").verdict == "undetermined"


def test_equal_counts_blame_nobody(tmp_path: Path) -> None:
    """Ranks at one collective are told, and none of them is behind."""
    for rank in (0, 1):
        (tmp_path / f"nccl_trace_rank_{rank}").write_bytes(pickled(dump(9, 9)))
    assert "behind" not in diagnosed(tmp_path).headline


def test_groups_of_one_name_are_compared() -> None:
    """Of several groups that one counts in which the ranks differ most."""
    counts = {
        0: (flight.Count("a", 5, 5), flight.Count("b", 9, 9), flight.Count("own", 99, 99)),
        1: (flight.Count("a", 5, 5), flight.Count("b", 4, 4)),
    }
    assert [event.numbers["enqueued"] for event in flight.events(counts, "tp")] == [9, 4]


class Calls:
    """Unpickled by Python's own means, it would make a directory."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (self._path,)


def test_a_pickle_that_calls_something(tmp_path: Path) -> None:
    """A pickle that asks for a class or a function is refused, and nothing is called."""
    mark = tmp_path / "called"
    trace = tmp_path / "nccl_trace_rank_0"
    trace.write_bytes(pickled({"entries": Calls(mark)}))
    with pytest.raises(HangdocError, match="no dump of torch's flight recorder") as refused:
        read([trace], Wishes())
    assert refused.value.exit_code == ExitCode.USAGE
    assert not mark.exists()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x80\x02}", id="cut"),
        pytest.param(b"\x80\x02}r\xff\xff\xff\x7f.", id="a memo of gigabytes"),
        pytest.param(b"\x80\x02}" + b"(" * 99 + b".", id="marks"),
        pytest.param(b"\x80\x02}0" + b"]" * 9_999 + b"a" * 9_998 + b".", id="nested"),
        pytest.param(b"\x80\x02}X\xff\xff\xff\x7fabc.", id="a string of gigabytes"),
        pytest.param(b"\x80\x02}q\x00h\x00h\x00s.", id="an unhashable key"),
        pytest.param(pickled({"entries": [1, 2]}), id="entries that are numbers"),
        pytest.param(pickled({"entries": 7}), id="entries that are none"),
        pytest.param(as_json({"entries": [{"collective_seq_id": "x"}]}), id="no number"),
        pytest.param(as_json({"pg_status": []}) + b"x", id="no JSON"),
        pytest.param(b'{"pg_status": ' + b"[" * 99_999, id="deep JSON"),
    ],
)
def test_no_recorder(data: bytes, tmp_path: Path) -> None:
    """What is no dump is one clear line, whatever it asks for."""
    trace = tmp_path / "nccl_trace_rank_0"
    trace.write_bytes(data)
    assert evidence_kind(data) == "flight" or not data.startswith(b"\x80")
    with pytest.raises(HangdocError) as refused:
        read([trace], Wishes())
    assert refused.value.exit_code == ExitCode.USAGE


def answer(counts: tuple[int, ...], missing: tuple[int, ...] = ()) -> str:
    """An answer of RAS: a communicator in which ranks launched so many all-reduces, and one that is in step."""
    ranks = [
        {
            "rank": rank,
            "host": "192.0.2.2",
            "pid": 1943 + rank,
            "collective_counts": {"Broadcast": 0, "AllReduce": count},
        }
        for rank, count in enumerate(counts)
    ]
    equal = [{**rank, "collective_counts": {"AllReduce": 900}} for rank in ranks]
    return json.dumps(
        {
            "nccl_version": "2.30.7",
            "timestamp": "2026-11-29 14:16:50",
            "communicators_count": 2,
            "communicators": [
                {"hash": "0x1", "size": len(ranks), "ranks": equal, "missing_ranks": []},
                {
                    "hash": "0x2",
                    "size": len(ranks),
                    "ranks": ranks,
                    "missing_ranks": [{"rank": one} for one in missing],
                },
            ],
        },
        indent=2,
    )


TEXT = (
    "  Rank 0 has launched up to operation 17 -- GPU 0 managed by process 1943 on node 192.0.2.2",
    "  Rank 1 has launched up to operation 7 -- GPU 1 managed by process 1944 on node 192.0.2.2",
)


def test_ras_as_json_and_as_text() -> None:
    """The answer as JSON becomes the records that its text becomes."""
    data = answer((17, 7)).encode()
    assert evidence_kind(data) == "ras"
    found = ras.parse(data)
    of_text = [read_line(line, ENGINE) for line in TEXT]
    assert [(one.name, one.text, one.numbers) for one in found] == [
        (one.name, one.text, one.numbers) for one in of_text if one is not None
    ]


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda text: text, id="whole"),
        pytest.param(lambda text: text.replace("},\n", "}\n"), id="commas left out, as 2.28.9 does"),
        pytest.param(lambda text: "SERVER PROTOCOL 2\nOK\nOK\n" + text, id="with the talk before it"),
        pytest.param(lambda text: text + "\n" + text, id="two answers"),
    ],
)
def test_answers_as_they_come(spoil: Callable[[str], str], tmp_path: Path) -> None:
    """Answers are read with the flaws that they have in the field; the rank behind is named."""
    file = tmp_path / "ras.json"
    file.write_text(spoil(answer((17, 7))))
    found = diagnosed(file)
    assert found.verdict == "undetermined"
    assert found.headline.startswith("Rank 1 is behind the others, at collective 7, others at 17")


def test_ras_beside_a_log(tmp_path: Path) -> None:
    """Beside a log whose watchdog fired, the counts name the culprit, with its pid."""
    (tmp_path / "server.log").write_bytes(WATCHDOG)
    (tmp_path / "ras.json").write_text(answer((17, 7)))
    found = diagnosed(tmp_path)
    assert found.verdict == "hung"
    assert [culprit.rank for culprit in found.culprits] == [{"tp": 1}]


def test_missing_ranks(tmp_path: Path) -> None:
    """A rank that does not answer is told."""
    file = tmp_path / "ras.json"
    file.write_text(answer((17, 17), missing=(2,)))
    found = diagnosed(file)
    assert found.log is not None
    assert "NCCL counts: rank 2 is missing" in found.log.complaints


@pytest.mark.parametrize("data", [b'{"nccl_version": 1, "communicators": [7]}', b'{"nccl_version": "communicators"'])
def test_no_answer(data: bytes, tmp_path: Path) -> None:
    """What looks like an answer and is none is one clear line."""
    file = tmp_path / "ras.json"
    file.write_bytes(data)
    with pytest.raises(HangdocError, match=r"no answer of NCCL's RAS|no log"):
        read([file], Wishes())


def test_sentences_are_of_the_vocabulary() -> None:
    """What is said of them may stand in a recording."""
    events = (
        *ras.parse(answer((17, 7), missing=(2,)).encode()),
        *flight.events({0: flight.parse(pickled(dump(3, 2)))}, "tp"),
    )
    for event in events:
        assert wording.sentence(Tokens(), event.text) == event.text


def test_one_broken_file_spoils_nothing(tmp_path: Path) -> None:
    """A broken dump in a directory is told, and the rest is read; given by name it is an error."""
    (tmp_path / "server.log").write_bytes(WATCHDOG)
    (tmp_path / "nccl_trace_rank_0").write_bytes(pickled(dump(17, 16))[:-40])
    (tmp_path / "stacks.json").write_bytes(b'[{"thread_name": 1}]')
    found = diagnosed(tmp_path)
    assert found.verdict == "hung"
    (said,) = [one.detail for one in found.missing if one.probe == "input"]
    assert "nccl_trace_rank_0 is no dump of torch's flight recorder" in said
    assert "stacks.json is no stack dump" in said
