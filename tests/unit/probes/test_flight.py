"""Dumps of torch's flight recorder beside a live launch: found where torch puts them, mapped to ranks, never run."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import time
from collections.abc import Iterator
from dataclasses import replace as changed
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from hangdoc.model.flight import Flight, FlightRank
from hangdoc.model.process import Process
from hangdoc.model.reading import Known, Missing
from hangdoc_probes import flight
from tests.unit.probes.targets import context, process_of, round_of


def dump(enqueued: int, completed: int) -> dict[str, Any]:
    entries: list[object] = []
    return {
        "entries": entries,
        "pg_status": {"0": {"last_enqueued_collective": enqueued, "last_completed_collective": completed}},
    }


@pytest.fixture
def ranks(tmp_path: Path) -> Iterator[tuple[Process, Process]]:
    """Two processes that were told where dumps go, as ranks 0 and 1."""
    environment = {**os.environ, "TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(tmp_path / "trace_")}
    children = [subprocess.Popen(["sleep", "1000"], env=environment) for _ in range(2)]
    try:
        first, second = (
            replace(process_of(child.pid), role="scheduler", rank={"tp": number})
            for number, child in enumerate(children)
        )
        yield first, second
    finally:
        for child in children:
            child.kill()
            child.wait()


def write(path: Path, content: bytes, *, age_s: float = 0.0) -> None:
    path.write_bytes(content)
    moment = time.time() + 2 - age_s  # a start is known to the second only
    os.utime(path, (moment, moment))


def found(*members: Process) -> Flight:
    (sample,) = flight.open_session(context()).take(round_of(*members))
    assert isinstance(sample.reading, Known), sample
    assert isinstance(sample.reading.value, Flight)
    return sample.reading.value


def test_dumps_are_found_and_mapped(ranks: tuple[Process, Process], tmp_path: Path) -> None:
    """Pickled or JSON, each rank's dump is read and belongs to the member of that rank."""
    write(tmp_path / "trace_0", pickle.dumps(dump(17, 16), 2))
    write(tmp_path / "trace_1", json.dumps(dump(7, 7)).encode())
    assert found(*ranks).ranks == (FlightRank(0, 17, 16, ranks[0].key), FlightRank(1, 7, 7, ranks[1].key))


def test_an_older_dump_is_not_of_this_launch(ranks: tuple[Process, Process], tmp_path: Path) -> None:
    """What lay there before the launch started is of another one."""
    write(tmp_path / "trace_0", pickle.dumps(dump(17, 16), 2), age_s=3600)
    assert found(*ranks) == Flight(ranks=())


class Evil:
    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("/tmp/hangdoc-was-fooled",)


def test_what_is_no_dump_is_not_run(ranks: tuple[Process, Process], tmp_path: Path) -> None:
    """A pickle that would run something, garbage, a pipe and a link are counted or passed over, and nothing runs."""
    write(tmp_path / "trace_0", pickle.dumps({"entries": [Evil()]}, 2))
    write(tmp_path / "trace_1", b"\xff" * 100)
    os.mkfifo(tmp_path / "trace_2")
    assert found(*ranks) == Flight(ranks=(), unreadable=2)
    assert not Path("/tmp/hangdoc-was-fooled").exists()


def test_a_dump_that_is_too_long_is_not_read(
    ranks: tuple[Process, Process], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of any size costs nothing."""
    monkeypatch.setattr(flight, "LARGEST_BYTES", 10)
    write(tmp_path / "trace_0", pickle.dumps(dump(17, 16), 2))
    assert found(*ranks).unreadable == 1


def test_no_directory_is_no_dump(ranks: tuple[Process, Process], tmp_path: Path) -> None:
    """Where the directory is not there, nobody has written any."""
    tmp_path.rmdir()
    assert found(*ranks) == Flight(ranks=())
    tmp_path.mkdir()


def test_ranks_of_another_shape_are_not_mapped(ranks: tuple[Process, Process], tmp_path: Path) -> None:
    """With pipeline stages a tensor rank is no global rank: whose dump it is stays open."""
    write(tmp_path / "trace_0", pickle.dumps(dump(17, 16), 2))
    staged = [replace(one, rank={**one.rank, "pp": 0}) for one in ranks]
    assert [one.process for one in found(*staged).ranks] == [None]


def test_a_process_that_may_not_be_looked_into(ranks: tuple[Process, Process], tmp_path: Path) -> None:
    """A rank that has ended is a missing reading."""
    gone = replace(ranks[0], key=replace(ranks[0].key, pid=2**22 - 1))
    (sample,) = flight.open_session(context()).take(round_of(gone))
    assert isinstance(sample.reading, Missing)


def test_a_launch_that_is_well_is_left_alone(ranks: tuple[Process, Process]) -> None:
    """While there is no reason to look closely nothing is looked for."""
    calm = changed(round_of(*ranks), calm=True)
    assert list(flight.open_session(context()).take(calm)) == []
