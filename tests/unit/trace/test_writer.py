"""Writing a trace's file."""

from __future__ import annotations

import fcntl
import math
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
import zstandard

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.model.reading import Missing
from hangdoc.trace import codec
from hangdoc.trace.reader import read
from hangdoc.trace.redact import redact
from hangdoc.trace.writer import Writer, encode, write
from tests.unit.trace import sample

SMALL_BYTES = 60_000
"""What a recording of six rounds may take to be kept beside the tests."""


def record(path: Path, rounds: int = sample.ROUNDS) -> None:
    trace = sample.trace()
    with Writer.open(path, trace.header) as writer:
        for snapshot in trace.snapshots[:rounds]:
            writer.add(snapshot, trace.stacks)


@contextmanager
def largest_file(size_bytes: int) -> Iterator[None]:
    """A limit on the size of files: the error of a full disk, without one. Python ignores SIGXFSZ by itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_recording_is_private_and_comes_back_redacted(tmp_path: Path) -> None:
    """The file has mode 0600 whatever the umask, and reads as the redacted trace."""
    path = tmp_path / "a.hangtrace"
    before = os.umask(0)
    try:
        record(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read(path) == redact(sample.trace())


def test_nothing_secret_reaches_the_disk(tmp_path: Path) -> None:
    """What is on the disk at any moment of a recording is redacted."""
    path = tmp_path / "a.hangtrace"
    trace = sample.trace()
    with Writer.open(path, trace.header) as writer:
        for snapshot in trace.snapshots:
            writer.add(snapshot, trace.stacks)
            text = b"".join(codec.unpack([path.read_bytes()]))
            assert b"alice" not in text
            assert b"gpu7" not in text


def test_each_round_can_be_read_as_soon_as_it_is_added(tmp_path: Path) -> None:
    """A recording that is killed loses nothing that was added."""
    path = tmp_path / "a.hangtrace"
    trace = sample.trace()
    with Writer.open(path, trace.header) as writer:
        for count, snapshot in enumerate(trace.snapshots, start=1):
            writer.add(snapshot, trace.stacks)
            found = read(path)
            assert (len(found.snapshots), found.complete) == (count, False)
    assert read(path).complete


def test_a_full_disk_is_one_clear_line_and_leaves_what_was_written(tmp_path: Path) -> None:
    """The write that fails says so with the path; the rounds before it can be read."""
    path = tmp_path / "a.hangtrace"
    trace = sample.trace()
    with largest_file(12_000), pytest.raises(HangdocError) as caught:
        record(path)
    assert caught.value.exit_code == ExitCode.USAGE
    assert caught.value.message == f"{path} cannot be written: File too large"
    found = read(path)
    assert not found.complete
    assert 0 < len(found.snapshots) < len(trace.snapshots)
    assert found.snapshots == redact(trace).snapshots[: len(found.snapshots)]


def test_nothing_follows_a_write_that_failed(tmp_path: Path) -> None:
    """A caller that goes on after a full disk, even when there is room again, cannot spoil what was written."""
    path = tmp_path / "a.hangtrace"
    trace = sample.trace()
    with Writer.open(path, trace.header) as writer:
        with largest_file(5_000), pytest.raises(HangdocError, match="File too large"):
            writer.add(trace.snapshots[0], trace.stacks)
        with pytest.raises(HangdocError, match="an earlier write failed"):
            writer.add(trace.snapshots[1], trace.stacks)
    assert read(path).header == redact(trace).header


def test_a_full_disk_at_the_header_closes_the_file(tmp_path: Path) -> None:
    """Opening fails as a whole: no descriptor stays open."""
    descriptors = len(list(Path("/proc/self/fd").iterdir()))
    with largest_file(0), pytest.raises(HangdocError):
        Writer.open(tmp_path / "a.hangtrace", sample.header())
    assert len(list(Path("/proc/self/fd").iterdir())) == descriptors


def test_a_full_recording_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer stops where the reader would: no recording is too large to be read."""
    monkeypatch.setattr(codec, "MAX_TRACE_BYTES", 60_000)
    path = tmp_path / "a.hangtrace"
    with pytest.raises(HangdocError, match="the recording is full"):
        record(path)
    assert 0 < len(read(path).snapshots) < sample.ROUNDS


def test_an_exception_leaves_the_trace_incomplete_and_ctrl_c_does_not(tmp_path: Path) -> None:
    """Ctrl-C is how a recording ends; anything else is a cut."""
    for error, complete in ((KeyboardInterrupt, True), (RuntimeError, False)):
        path = tmp_path / f"{error.__name__}.hangtrace"
        with pytest.raises(error), Writer.open(path, sample.header()):
            raise error
        assert read(path).complete is complete


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    """The end record is written once."""
    writer = Writer.open(tmp_path / "a.hangtrace", sample.header())
    writer.close()
    writer.close()
    assert read(tmp_path / "a.hangtrace").complete


def test_a_trace_and_an_empty_file_are_replaced(tmp_path: Path) -> None:
    """Recording again to the same file works, whole or cut, and makes it private."""
    path = tmp_path / "a.hangtrace"
    for content in (b"", encode(sample.trace()), encode(sample.trace())[:-300]):
        path.write_bytes(content)
        path.chmod(0o644)
        record(path, rounds=1)
        assert len(read(path).snapshots) == 1
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"a log\n", zstandard.compress(b"a log\n"), b"PK\x03\x04"])
def test_any_other_file_is_left_alone(tmp_path: Path, content: bytes) -> None:
    """A slip in -o costs nobody a log."""
    path = tmp_path / "server.log"
    path.write_bytes(content)
    with pytest.raises(HangdocError, match="left as it is") as caught:
        record(path)
    assert caught.value.exit_code == ExitCode.USAGE
    assert path.read_bytes() == content


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    """A directory, a device, a FIFO, a path that leads nowhere, no path: one line with the path, and no wait."""
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, Path("/dev/full"), tmp_path / "fifo", tmp_path / "none" / "a.hangtrace", Path("a\0b")):
        with pytest.raises(HangdocError) as caught:
            record(path)
        assert str(path) in caught.value.message


def test_two_recordings_do_not_share_a_file(tmp_path: Path) -> None:
    """A file that is being recorded is refused, and the first recording stays whole."""
    path = tmp_path / "a.hangtrace"
    with Writer.open(path, sample.header()), pytest.raises(HangdocError, match="by another hangdoc"):
        record(path)
    assert read(path).complete


def test_a_file_system_without_locks_is_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Locking is a courtesy: where it is not to be had, recording goes on."""

    def no_locks(descriptor: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    record(tmp_path / "a.hangtrace", rounds=1)
    assert read(tmp_path / "a.hangtrace").complete


def test_no_probe_can_make_a_recording_unreadable(tmp_path: Path) -> None:
    """A value that cannot be read back stops with one line; the rounds before it and the next can be read."""
    path = tmp_path / "a.hangtrace"
    trace = sample.trace()
    with Writer.open(path, trace.header) as writer:
        for wrong in ({"at_ns": math.nan}, {"at_ns": object()}):
            with pytest.raises(HangdocError, match="cannot be recorded"):
                writer.add(msgspec.structs.replace(trace.snapshots[0], **wrong), trace.stacks)
        writer.add(trace.snapshots[0], trace.stacks)
    assert read(path).snapshots == redact(trace).snapshots[:1]


def test_half_a_character_is_no_obstacle(tmp_path: Path) -> None:
    """Bytes of a title or a path that are no UTF-8 (surrogates in Python) become tokens."""
    path = tmp_path / "a.hangtrace"
    trace = sample.trace()
    sick = msgspec.structs.replace(
        trace.snapshots[0].samples[0], reading=Missing("fds", "failed", "/caf\udce9: Permission denied")
    )
    with Writer.open(path, trace.header) as writer:
        writer.add(msgspec.structs.replace(trace.snapshots[0], samples=(sick,)), trace.stacks)
    assert read(path).snapshots[0].samples[0].reading == Missing("fds", "failed", "<path-2>: Permission denied")


def test_a_whole_trace_is_written_as_it_is(tmp_path: Path) -> None:
    """Writing a cut trace does not make it complete; stacks that no snapshot uses stay."""
    trace = msgspec.structs.replace(
        sample.trace(), complete=False, stacks=(*sample.trace().stacks, sample.stack_of(99))
    )
    write(tmp_path / "a.hangtrace", trace)
    assert read(tmp_path / "a.hangtrace") == redact(trace)


def test_six_rounds_of_a_launch_are_small(tmp_path: Path) -> None:
    """Five processes with 150 threads, six rounds: small enough to be kept beside the tests, recorded or rewritten."""
    record(tmp_path / "recorded.hangtrace")
    write(tmp_path / "written.hangtrace", sample.trace())
    sizes = [(tmp_path / name).stat().st_size for name in ("written.hangtrace", "recorded.hangtrace")]
    assert sizes == sorted(sizes)
    assert sizes[-1] < SMALL_BYTES
