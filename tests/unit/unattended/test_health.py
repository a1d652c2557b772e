"""The state and its reader: red only on what is known for certain and fresh."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from hangdoc.errors import HangdocError
from hangdoc.model.diagnosis import HANG_VERDICTS, Grade, Verdict
from hangdoc.unattended.health import HANGS, SCHEMA, STALE_AFTER_S, judge
from hangdoc.unattended.state import State, StateFile
from tests.unit.cli.commands import run, wait_until
from tests.unit.report.diagnoses import a_diagnosis


def told(path: Path, **changes: Any) -> Path:
    """The state of a confirmed hang, with changes."""
    StateFile(path).tell(a_diagnosis(verdict="blocked", grade="confirmed", phase="warmup"))
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path


def test_the_hangs_are_the_models() -> None:
    """The reader, which imports nothing, knows the same verdicts as the model."""
    assert HANGS == HANG_VERDICTS


@pytest.mark.parametrize(
    ("verdict", "grade", "ill"),
    [(verdict, grade, grade == "confirmed") for verdict in sorted(HANGS) for grade in ("confirmed", "likely")]
    + [("slow-start", "likely", False), ("healthy", "confirmed", False), ("undetermined", "undetermined", False)],
)
def test_only_a_confirmed_hang_is_ill(verdict: Verdict, grade: Grade, ill: bool, tmp_path: Path) -> None:
    """A likely hang warns, an undetermined launch too; a slow start and a healthy launch say nothing."""
    path = tmp_path / "state"
    StateFile(path).tell(a_diagnosis(verdict=verdict, grade=grade))
    found, said = judge(path)
    assert found == ill
    assert bool(said) == (verdict not in ("slow-start", "healthy"))


@pytest.mark.parametrize(
    "changes",
    [
        {"written_at": time.time() - STALE_AFTER_S - 5},
        {"written_at": time.time() + 3600},
        {"schema": SCHEMA + 1},
        {"verdict": None, "grade": None},
        {"written_at": "now"},
        {"written_at": float("nan")},
        {"stale_after_s": None},
    ],
)
def test_what_is_not_fresh_or_not_right_is_not_ill(changes: dict[str, Any], tmp_path: Path) -> None:
    """A state that is stale, of the future, of another schema or damaged warns and is green."""
    ill, said = judge(told(tmp_path / "state", **changes))
    assert not ill
    if "verdict" not in changes:
        assert said


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"schema": 1}', b"[" * 60000])
def test_a_file_that_is_no_state(content: bytes, tmp_path: Path) -> None:
    """Whatever stands in the file: one line, no traceback, green."""
    path = tmp_path / "state"
    path.write_bytes(content)
    ended = run("healthcheck", "--state", str(path))
    assert (ended.code, ended.out, len(ended.err.splitlines())) == (0, "", 1), ended.err


def test_no_file_and_no_right_to_it(tmp_path: Path) -> None:
    """A file that is not there, or is none, warns and is green; wrong use is 2."""
    for path in (tmp_path / "absent", tmp_path, Path("/proc/1/mem/x")):
        ended = run("healthcheck", "--state", str(path))
        assert (ended.code, len(ended.err.splitlines())) == (0, 1)
    assert run("healthcheck").code == 2
    assert run("healthcheck", "--state").code == 2


def test_both_ways_of_asking_say_the_same(tmp_path: Path) -> None:
    """The short way of the program and the command line give the same answer; --json has it, too."""
    path = told(tmp_path / "state")
    program = "import sys; from hangdoc.cli.entry import main; main()"
    short = subprocess.run(
        [sys.executable, "-c", program, "healthcheck", "--state", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    long = run("healthcheck", "--state", str(path))
    assert (short.returncode, short.stderr) == (long.code, long.err) == (1, long.err)
    assert json.loads(run("healthcheck", "--json", "--state", str(path)).out)["ill"] is True


def test_asking_imports_little(tmp_path: Path) -> None:
    """A probe's question waits for none of the libraries."""
    path = told(tmp_path / "state")
    program = "import sys; from hangdoc.cli.entry import main; main()"
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", program, "healthcheck", "--state", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    imported = {line.rsplit("|", 1)[-1].strip() for line in ended.stderr.splitlines()}
    assert "hangdoc.unattended.health" in imported
    assert not {"typer", "rich", "msgspec", "psutil", "zstandard"} & imported


def test_a_reader_never_sees_half_a_state(tmp_path: Path) -> None:
    """While it is written again and again, every reading is a whole state; nothing else is left in the folder."""
    path = tmp_path / "state"
    source = f"""
from pathlib import Path
from hangdoc.unattended.state import StateFile
file = StateFile(Path({str(path)!r}))
while True: file.write()
"""
    writer = subprocess.Popen([sys.executable, "-c", source])
    try:
        wait_until(path.exists)
        for _ in range(300):
            assert json.loads(path.read_text())["schema"] == SCHEMA
    finally:
        writer.kill()
        writer.wait()
    StateFile(path).write()
    assert path.stat().st_mode & 0o777 == 0o644


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    """Whoever may write into the folder as well cannot have a watch of root's write somewhere else."""
    theirs, state = tmp_path / "theirs", tmp_path / "state"
    theirs.write_text("as it was")
    (tmp_path / f".state.{os.getpid()}").symlink_to(theirs)
    StateFile(state).write()
    assert theirs.read_text() == "as it was"
    assert not state.is_symlink()
    assert json.loads(state.read_text())["verdict"] == "undetermined"


def test_since_is_when_it_became_so(tmp_path: Path) -> None:
    """`since` stays while verdict and grade do, and moves with them."""
    file = StateFile(tmp_path / "state")
    seen = []
    for grade in ("likely", "likely", "confirmed"):
        file.tell(a_diagnosis(verdict="blocked", grade=grade))  # type: ignore[arg-type]
        seen.append(json.loads((tmp_path / "state").read_text())["since"])
        wait_until(lambda: time.time() > seen[-1] + 0.001)  # it has milliseconds
    assert seen[0] == seen[1] < seen[2]


def test_a_state_that_cannot_be_written(tmp_path: Path) -> None:
    """It is said before the watch begins."""
    with pytest.raises(HangdocError, match="absent/state cannot be written"):
        State(tmp_path / "absent" / "state", print).begin()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"written_at": time.time() - STALE_AFTER_S - 5, "stale_after_s": 1e9}, "ago"),
        ({"written_at": time.time() + 3600}, "in the future"),
        ({"written_at": float("nan")}, "does not say when"),
        ({"stale_after_s": float("inf")}, "does not say when"),
        ({"verdict": "melted"}, "does not know: melted"),
        ({"verdict": ["blocked"]}, "does not know"),
    ],
)
def test_a_state_is_not_believed_beyond_its_schema(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    """A file cannot make itself fresh for longer than documented; clocks and unknown verdicts are called so."""
    ill, said = judge(told(tmp_path / "state", **changes))
    assert not ill
    assert words in said


def test_a_pipe_is_no_state(tmp_path: Path) -> None:
    """What would have to be waited for is not read."""
    os.mkfifo(tmp_path / "state")
    ended = run("healthcheck", "--state", str(tmp_path / "state"))
    assert (ended.code, "not a regular file" in ended.err) == (0, True)
