"""`hangdoc redact`, as a person meets it."""

from __future__ import annotations

import gzip
import json
import stat
import subprocess
from pathlib import Path

import msgspec
import pytest
import zstandard

from hangdoc.trace.reader import read
from hangdoc.trace.redact import redact
from hangdoc.trace.writer import Writer, encode
from tests.unit.cli.commands import LONGEST_S, SPINS, argv, complaint, environment, program, python, run
from tests.unit.trace import sample

LOG = b"12:00:00 cannot reach /home/alice/x with sk-abcdefgh12345678\nalice waits\n"
SAFE = "12:00:00 cannot reach <path-1> with <text-1>\n<user-1> waits\n"


@pytest.mark.parametrize(
    ("name", "pack", "beside"),
    [
        ("server.log", bytes, "server.redacted.log"),
        ("server.log.gz", gzip.compress, "server.redacted.log"),
        ("server.log.zst", zstandard.compress, "server.redacted.log"),
        ("out", bytes, "out.redacted"),
    ],
)
def test_a_log_is_redacted_beside_itself(tmp_path: Path, name: str, pack: type[bytes], beside: str) -> None:
    """Packed or not: the copy has no secrets, is private, and the input is as it was."""
    path = tmp_path / name
    path.write_bytes(pack(LOG))
    ended = run("redact", str(path))
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == f"{path} -> {tmp_path / beside}: 3 texts became tokens\n"
    assert (tmp_path / beside).read_text() == SAFE
    assert stat.S_IMODE((tmp_path / beside).stat().st_mode) == 0o600
    assert path.read_bytes() == pack(LOG) or name.endswith(".gz")


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """Not by default, not with -o, and not the input itself, by whatever name."""
    path, there, link = tmp_path / "a.log", tmp_path / "there", tmp_path / "link"
    path.write_bytes(LOG)
    there.write_text("mine")
    link.symlink_to(path)
    assert run("redact", str(path)).code == 0
    for arguments in ((), ("-o", str(there)), ("-o", str(path)), ("-o", str(link))):
        line = complaint(run("redact", str(path), *arguments))
        assert "exists: it is left as it is" in line
    assert (path.read_bytes(), there.read_text()) == (LOG, "mine")


def test_an_old_trace_is_redacted(tmp_path: Path) -> None:
    """One that was recorded with --no-redact: afterwards it is what a redacted recording is, and says so."""
    trace = sample.trace()
    header = msgspec.structs.replace(trace.header, redaction="none")
    path, out = tmp_path / "a.hangtrace", tmp_path / "b.hangtrace"
    with Writer.open(path, header) as writer:
        for snapshot in trace.snapshots:
            writer.add(snapshot, trace.stacks)
    assert b"alice" in zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
    assert "This trace is not redacted" in run("replay", str(path)).out

    ended = run("redact", str(path), "-o", str(out), "--json")
    (said,) = json.loads(ended.out)
    assert (said["output"], said["tokens"] > 0) == (str(out), True)
    assert read(out).header.redaction == "tokens"
    assert out.read_bytes() == encode(redact(read(path)))
    assert b"alice" not in zstandard.ZstdDecompressor().decompressobj().decompress(out.read_bytes())
    assert "not redacted" not in run("replay", str(out)).out


def test_standard_input_to_standard_output() -> None:
    """A filter: the log and nothing else comes out."""
    done = subprocess.run(
        argv("redact", "-", "--also", "waits"),
        input=LOG,
        capture_output=True,
        env=environment(),
        timeout=LONGEST_S,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == SAFE.replace("waits", "<user-1>").replace("<user-1> <", "<user-2> <")


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b"\0\1\2" * 9, "it is binary"), (b"\x28\xb5\x2f\xfdrubbish", "cannot be unpacked")],
)
def test_what_is_neither_log_nor_trace(tmp_path: Path, content: bytes, said: str) -> None:
    """One line and 2, and no file is left."""
    path = tmp_path / "a.log"
    path.write_bytes(content)
    ended = run("redact", str(path))
    assert ended.code == 2
    assert said in complaint(ended)
    assert list(tmp_path.iterdir()) == [path]


def test_wrong_use(tmp_path: Path) -> None:
    """A directory, no such file, one output for two inputs, an output that leads nowhere."""
    path = tmp_path / "a.log"
    path.write_bytes(LOG)
    for arguments, said in (
        ((str(tmp_path),), "is a directory"),
        ((str(tmp_path / "absent"),), "No such file"),
        ((str(path), str(path), "-o", "x"), "-o is one file"),
        ((str(path), "-o", "-", "--json"), "both go to standard output"),
        (("-", "--json"), "both go to standard output"),
        ((str(path), "-o", str(tmp_path / "no" / "x")), "cannot be written: No such file"),
    ):
        ended = run("redact", *arguments)
        assert ended.code == 2
        assert said in complaint(ended)


def test_a_recording_without_redaction_says_so_in_every_report(tmp_path: Path) -> None:
    """watch --record --no-redact: names stand in the file, its header and each report of it tell."""
    trace = tmp_path / "a.hangtrace"
    with program(*python(SPINS)) as patient:
        arguments = ("watch", str(patient.pid), "--once", "--window", "3")
        assert "--no-redact is about --record" in complaint(run(*arguments, "--no-redact"))
        run(*arguments, "--record", str(trace), "--no-redact")
    assert read(trace).header.redaction == "none"
    assert any("import ctypes" in " ".join(one.argv) for one in read(trace).snapshots[0].processes)
    assert "This trace is not redacted" in run("replay", str(trace)).out
    assert json.loads(run("replay", str(trace), "--json").out)["target"]["redacted"] is False
