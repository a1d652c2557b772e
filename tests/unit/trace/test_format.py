"""The file format for years: its schema, the kept trace of each schema, later records, sizes, and hostile files."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from hypothesis import given, settings
from jsonschema import Draft202012Validator

from benchmarks.recordings import hung_launch
from hangdoc.diagnosis import diagnose
from hangdoc.errors import HangdocError
from hangdoc.model.patience import Stage
from hangdoc.trace.codec import LIVE_LEVEL, SMALL_LEVEL, Packer, to_json
from hangdoc.trace.limits import MAX_LINE_BYTES
from hangdoc.trace.reader import read
from hangdoc.trace.records import SCHEMA, Trace, lines_of
from hangdoc.trace.redact import redact
from hangdoc.trace.writer import encode
from tests.unit.cli.commands import LONGEST_S, argv, environment
from tests.unit.trace import sample
from tests.unit.trace.strategies import traces

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = ROOT / "tests" / "golden" / "schemas"
LINE_SCHEMA = Draft202012Validator(json.loads((ROOT / "docs" / "trace-schema.json").read_text()))

LARGEST_BYTES = 1_000_000
"""Of 8 ranks x 150 threads, a minute at 1 Hz."""


@settings(max_examples=50)
@given(traces())
def test_every_line_is_valid_by_the_published_schema(trace: Trace) -> None:
    """Whatever a trace holds, docs/trace-schema.json describes it."""
    for line in lines_of(trace):
        LINE_SCHEMA.validate(json.loads(to_json(line)))


@pytest.mark.parametrize("change", [{"type": "header"}, {"type": "stack", "id": "0", "frames": []}, {"type": "end"}])
def test_the_schema_refuses_what_is_no_line(change: dict[str, object]) -> None:
    """A header without its fields, a number as text, an end without its count."""
    assert not LINE_SCHEMA.is_valid(change)


@pytest.mark.parametrize("schema", range(1, SCHEMA + 1))
def test_a_trace_of_each_schema_is_kept_and_read(schema: int) -> None:
    """The file that was written in each schema is there for ever, is of that schema, and still gives a diagnosis."""
    path = SCHEMAS / f"schema-{schema}.hangtrace"
    header = json.loads(zstandard.ZstdDecompressor().stream_reader(path.read_bytes()).read(1 << 20).split(b"\n")[0])
    assert header["schema"] == schema
    assert diagnose(read(path), "trace").hypotheses


def with_lines(trace: Trace, *added: bytes) -> bytes:
    """The trace's file with lines of text behind its header."""
    head, *rest = map(to_json, lines_of(trace))
    return zstandard.compress(b"".join([head, *added, *rest]))


def test_records_of_an_unknown_kind_are_skipped_and_counted() -> None:
    """What a later hangdoc added is passed over; the rest is the same, and the report says how many there were."""
    trace = redact(sample.trace())
    found = read(with_lines(trace, b'{"type":"annotation","text":"hi"}\n', b'{"type":"annotation"}\n'))
    assert found.skipped == 2
    assert (found.snapshots, found.stacks, found.complete) == (trace.snapshots, trace.stacks, True)
    (lack,) = [one for one in diagnose(found, "trace").missing if one.probe == "trace"]
    assert lack.detail == "2 records are of a kind that this hangdoc does not know"
    assert "update hangdoc" in lack.remedy


@pytest.mark.parametrize("line", [b'{"type":"stack","id":"x","frames":[]}\n', b'{"type":7}\n', b'{"no":1}\n', b"[]\n"])
def test_a_broken_record_of_a_known_kind_is_damage(line: bytes) -> None:
    """Only a kind that has no name here is passed over."""
    with pytest.raises(HangdocError, match="damaged"):
        read(with_lines(redact(sample.trace()), line))


def read_or_none(data: bytes) -> Trace | None:
    try:
        return read(data)
    except HangdocError:
        return None


@pytest.mark.slow
def test_any_prefix_of_a_real_file_reads_as_a_prefix_of_its_records() -> None:
    """Every cut of a recorded file, byte by byte: its first records, or one clear error before the header is whole."""
    whole = (SCHEMAS / "schema-1.hangtrace").read_bytes()
    trace, counts = read(whole), []
    for cut in range(1, len(whole), 7):
        found = read_or_none(whole[:cut])
        if found is None:
            assert not counts, "a longer prefix reads no more"
            continue
        assert found.snapshots == trace.snapshots[: len(found.snapshots)]
        assert found.stacks == trace.stacks[: len(found.stacks)]
        counts.append(len(found.snapshots))
    assert counts == sorted(counts)
    assert set(counts) == set(range(len(trace.snapshots) + 1))


@pytest.mark.slow
@pytest.mark.parametrize("level", [LIVE_LEVEL, SMALL_LEVEL])
def test_a_minute_of_eight_ranks_is_small(level: int) -> None:
    """8 ranks x 150 threads at 1 Hz for 60 s stay under 1 MB, recorded live or written once."""
    assert len(encode(redact(hung_launch(ranks=8, threads=150, seconds=60)), level)) < LARGEST_BYTES


def test_stages_of_patience_are_in_the_schema() -> None:
    """A word of a closed set that a record may have is in the published schema."""
    stages = json.dumps(LINE_SCHEMA.schema["$defs"]["Header"]["properties"]["patience_s"])
    assert all(f'"{stage}"' in stages for stage in Stage.__args__)  # type: ignore[attr-defined]


MEMORY_BYTES, CPU_S = 1 << 30, 90
"""What a child may have that reads a hostile file: address space with Python and all libraries in it; CPU time."""


def header_line() -> bytes:
    return to_json(redact(sample.trace()).header)


def frames(count: int) -> bytes:
    return b'{"type":"stack","id":0,"frames":[' + b",".join([b'["","",0]'] * count) + b"]}\n"


HOSTILE = {
    "a line that never ends": lambda: header_line() + b'{"type":"' + b"x" * (MAX_LINE_BYTES + 1),
    "endless empty lines": lambda: header_line() + b"\n" * (64 << 20),
    "a string of 31 MiB": lambda: header_line() + b'{"type":"' + b"x" * (31 << 20) + b'"}\n',
    "three million frames in a line": lambda: header_line() + frames(3_000_000),
    "twenty million frames": lambda: header_line() + frames(2_500_000) * 10,
    "brackets in brackets": lambda: header_line() + b'{"type":"stack","id":0,"frames":' + b"[" * (20 << 20),
    "objects in objects": lambda: header_line() + b'{"type":' * (2 << 20),
    "a number of a million digits": lambda: header_line() + b'{"type":"end","snapshots":' + b"9" * 1_000_000 + b"}\n",
    "a count that nothing backs": lambda: header_line() + b'{"type":"end","snapshots":18446744073709551615}\n',
    "a stack that is the four billionth": lambda: header_line() + b'{"type":"stack","id":4294967295,"frames":[]}\n',
    "a million unknown records": lambda: header_line() + b'{"type":"later"}\n' * 1_000_000,
    "300 MiB of unknown records": lambda: header_line() + (b'{"type":"later","x":"' + b"y" * (1 << 20) + b'"}\n') * 300,
}


def limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_costs_bounded_time_and_memory(name: str, tmp_path: Path) -> None:
    """In a process with 1 GiB of address space and limited CPU time: one clear line and 2, never a kill."""
    path = tmp_path / "a.hangtrace"
    path.write_bytes(zstandard.compress(HOSTILE[name]()))
    ended = subprocess.run(
        argv("replay", str(path), python=sys.executable),
        capture_output=True,
        text=True,
        preexec_fn=limit,
        env=environment(),
        timeout=LONGEST_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout) == (2, "")
    (line,) = ended.stderr.splitlines()
    assert line.startswith(f"hangdoc: {path} ")
    assert "a fault of hangdoc" not in line


def test_what_the_packer_writes_is_one_frame() -> None:
    """The end record closes the frame: any zstd tool unpacks a trace."""
    trace = redact(sample.trace())
    packer = Packer()
    data = b"".join(map(packer.pack, lines_of(trace))) + packer.end()
    unpacked = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    assert [json.loads(line)["type"] for line in unpacked.splitlines()][-1] == "end"
