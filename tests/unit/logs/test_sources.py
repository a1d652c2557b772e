"""What is between the reader and a log's text: encodings, holes, archives that were cut, and input without an end."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from hangdoc.diagnosis import diagnose
from hangdoc.errors import HangdocError
from hangdoc.logs.encoding import text
from hangdoc.logs.read import Wishes, read
from hangdoc.logs.sources import pieces, sources
from hangdoc.logs.unending import LEAST_BYTES, Unending
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.reading import Missing

LAUNCHES = Path(__file__).resolve().parents[2] / "corpus" / "launches"
LOG = (LAUNCHES / "absent-barrier.log").read_bytes()


def diagnosed(path: Path) -> Diagnosis:
    return diagnose(read([path], Wishes()), "log")


def steps(found: Diagnosis) -> list[str]:
    assert found.log is not None
    return [step.name for step in found.log.steps]


def not_read(found: Diagnosis) -> list[str]:
    return [lack.detail for lack in found.missing if lack.probe == "input"]


WHOLE = steps(diagnosed(LAUNCHES / "absent-barrier.log"))


def in_middle(hole: bytes) -> bytes:
    at = LOG.index(b"\n", len(LOG) // 2) + 1
    return LOG[:at] + hole + LOG[at:]


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\0" * 3_000_000 + LOG, id="truncated by copytruncate"),
        pytest.param(in_middle(b"\0" * 5_000), id="in the middle"),
        pytest.param(LOG + b"\0" * 300_000, id="at the end"),
        pytest.param(LOG.decode().encode("utf-16"), id="UTF-16 with a mark"),
        pytest.param(LOG.decode().encode("utf-16-le"), id="UTF-16 without one"),
        pytest.param("\ufeff".encode("utf-16-be") + LOG.decode().encode("utf-16-be"), id="UTF-16, big-endian"),
        pytest.param(LOG.replace(b"\n", b"\r\n").decode().encode("utf-8-sig"), id="UTF-8 with a mark"),
    ],
)
def test_holes_and_encodings(data: bytes, tmp_path: Path) -> None:
    """A log with a hole of NULs, or as PowerShell writes it, says what it says without."""
    log = tmp_path / "server.log"
    log.write_bytes(data)
    assert steps(diagnosed(log)) == WHOLE


def test_a_hole_of_a_terabyte(tmp_path: Path) -> None:
    """A hole that takes no place on the disk takes no time either."""
    log = tmp_path / "server.log"
    with log.open("wb") as file:
        file.seek(1 << 40)
        file.write(LOG)
    assert steps(diagnosed(log)) == WHOLE


def test_a_hole_ends_a_line(tmp_path: Path) -> None:
    """What was written before a hole and after it are two lines."""
    log = tmp_path / "server.log"
    log.write_bytes(b"[2026-11-29 12:00:00] Load weight be" + b"\0" * 64 + b"gin.\n" + LOG)
    assert steps(diagnosed(log)) == WHOLE


@given(st.lists(st.sampled_from([b"\0", b"\0\0", b"a", b"\n", b"bc"]), max_size=40).map(b"".join), st.integers(1, 9))
def test_where_a_hole_is_cut_changes_little(data: bytes, step: int) -> None:
    """However the pieces are cut, the same lines come out, no NUL among them."""
    cut = [b"x" + data[:step], *(data[at : at + step] for at in range(step, len(data), step))]
    found = b"".join(text(cut))
    assert b"\0" not in found
    assert found.replace(b"\n", b"") == (b"x" + data).replace(b"\0", b"").replace(b"\n", b"")


PACKS: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "zst": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
    "bz2": bz2.compress,
    "xz": lzma.compress,
}


@pytest.mark.parametrize("kind", ["gz", "zst"])
@pytest.mark.parametrize("lost", [1, 4, 300])
def test_a_cut_archive_is_told(kind: str, lost: int, tmp_path: Path) -> None:
    """A packed file that was cut is read up to the cut, and that is said."""
    log = tmp_path / f"server.log.{kind}"
    log.write_bytes(PACKS[kind](LOG + os.urandom(400_000).hex().encode())[:-lost])
    found = diagnosed(log)
    assert steps(found) == WHOLE
    assert not_read(found) == [f"{log} is cut: what follows in it was not read"]


@pytest.mark.parametrize("kind", PACKS)
def test_a_whole_archive(kind: str, tmp_path: Path) -> None:
    """A whole archive, one of two parts as well, is read whole, and nothing is said."""
    log = tmp_path / f"server.log.{kind}"
    log.write_bytes(PACKS[kind](LOG[:900]) + PACKS[kind](LOG[900:]))
    assert steps(diagnosed(log)) == WHOLE
    assert not_read(diagnosed(log)) == []


@pytest.mark.parametrize("kind", PACKS)
@pytest.mark.parametrize("begin", range(4))
def test_a_damaged_archive(kind: str, begin: int, tmp_path: Path) -> None:
    """A damaged archive is one clear line, or is read up to the damage, which is said."""
    log = tmp_path / f"server.log.{kind}"
    packed = bytearray(PACKS[kind](os.urandom(400_000).hex().encode()) + b"?" * begin)
    packed[len(packed) // 2 : len(packed) // 2 + 9] = b"\xff" * 9
    log.write_bytes(packed)
    lacks: list[Missing] = []
    if kind == "bz2":  # its blocks are so large that the first one is hit
        with pytest.raises(HangdocError, match="cannot be unpacked"):
            list(pieces(sources([log])[0], lacks))
    else:
        assert sum(map(len, pieces(sources([log])[0], lacks))) > 0
        assert [one for one in lacks if "server.log" in one.detail]


def test_an_unreadable_file_among_others(tmp_path: Path) -> None:
    """One broken file of a directory does not hide the others, and is named."""
    (tmp_path / "server.log").write_bytes(LOG)
    (tmp_path / "old.log").write_bytes(b"\x1f\x8b broken")
    found = diagnosed(tmp_path)
    assert steps(found) == WHOLE
    (said,) = not_read(found)
    assert "old.log cannot be unpacked" in said


class Clock:
    """A clock that goes on by some seconds each time that somebody looks."""

    def __init__(self, step_s: float) -> None:
        self._now_s, self._step_s = 0.0, step_s

    def __call__(self) -> float:
        self._now_s += self._step_s
        return self._now_s


def from_pipe(write: Callable[[int], object], step_s: float, wait_s: float) -> tuple[bytes, list[Missing]]:
    """Read what is in a pipe whose writer stays open, piece by piece."""
    reading, writing = os.pipe()
    lacks: list[Missing] = []
    try:
        write(writing)
        with FileIO(reading) as file, Unending(file, lacks, clock=Clock(step_s), wait_s=wait_s) as given:
            return b"".join(iter(lambda: given.read(10), b"")), lacks
    finally:
        os.close(writing)


def test_input_that_trickles() -> None:
    """Input that gives little in the time counts as ended, though it could go on, and that is said."""
    data, lacks = from_pipe(lambda pipe: os.write(pipe, b"x" * 1000), step_s=1, wait_s=30)
    assert 0 < len(data) < 1000
    assert "bytes in 30 s and has not ended" in lacks[0].detail


def test_input_that_falls_silent() -> None:
    """What came before the silence is kept."""
    data, lacks = from_pipe(lambda pipe: os.write(pipe, b"some lines\n"), step_s=1, wait_s=9)
    assert data == b"some lines\n"
    assert len(lacks) == 1


def test_input_that_ends() -> None:
    """An end is an end: nothing is said."""
    reading, writing = os.pipe()
    os.write(writing, b"all")
    os.close(writing)
    lacks: list[Missing] = []
    with FileIO(reading) as file, Unending(file, lacks) as given:
        assert (given.read(10), given.read(10)) == (b"all", b"")
    assert lacks == []


def test_much_input_is_read_for_as_long_as_it_takes() -> None:
    """Input that keeps coming at the pace of a file is read on, window after window."""

    class Plenty(FileIO):
        left = 60

        def read(self, size: int | None = -1, /) -> bytes:
            del size
            self.left -= 1
            return b"x" * (LEAST_BYTES // 4) if self.left > 0 else b""

    lacks: list[Missing] = []
    with Plenty("/dev/zero") as file, Unending(file, lacks, clock=Clock(1.0), wait_s=30) as given:
        size = sum(len(piece) for piece in iter(given.read, b""))
    assert (size, lacks) == (59 * (LEAST_BYTES // 4), [])


def test_links_in_a_directory(tmp_path: Path) -> None:
    """Links to logs are followed, as kubelet makes them, each log is read once, and a link to a device is none."""
    (tmp_path / "pods").mkdir()
    log = tmp_path / "pods" / "0.log"
    log.write_bytes(LOG)
    containers = tmp_path / "containers"
    containers.mkdir()
    (containers / "llm-0.log").symlink_to(log)
    (containers / "latest.log").symlink_to(log)
    (containers / "zero.log").symlink_to("/dev/zero")
    (containers / "dangling.log").symlink_to(tmp_path / "gone.log")
    assert [one.name for one in sources([containers])] == [str(containers / "latest.log")]
    assert [one.name for one in sources([tmp_path / "pods"])] == [str(log)]
    assert len(sources([tmp_path])) == 1
    assert steps(diagnosed(containers)) == WHOLE
