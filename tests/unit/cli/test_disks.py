"""Disks that are full, limited or read-only, and a hangdoc that is killed while it records."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from hangdoc.trace.reader import read
from tests.conftest import NOT_TO_BE_HAD
from tests.unit.cli.commands import (
    LONGEST_S,
    SPINS,
    WAITS,
    Ended,
    environment,
    program,
    python,
    rounds_in,
    run,
    start,
    wait_until,
)

MOUNT = """
mount -t tmpfs -o size={size} none "$0" || exit 99
{then}
exec "$@"
"""


def on_disk(directory: Path, size: str, then: str, *arguments: str) -> Ended:
    """Run a command that sees a small file system of its own at the directory; then: what is done to it before."""
    script = MOUNT.format(size=size, then=then)
    ended = run(*arguments, prefix=("unshare", "--mount", "sh", "-c", script, str(directory)))
    if ended.code in (1, 99) and ("unshare" in ended.err or "mount" in ended.err):
        pytest.skip(f"{NOT_TO_BE_HAD}{ended.err.strip()}")
    return ended


@pytest.mark.needs("bash")
@pytest.mark.parametrize(
    ("blocks", "command"),
    [("0", ("--once",)), ("2", ("--once",)), ("2", ("--until", "hang", "--timeout", "60"))],
)
def test_watch_reports_although_the_disk_is_full(tmp_path: Path, blocks: str, command: tuple[str, ...]) -> None:
    """Full at the header or in the middle: the whole report, one warning, and 2 because the recording is not whole."""
    trace = tmp_path / "a.hangtrace"
    with program(*python(SPINS)) as patient:
        arguments = ("watch", str(patient.pid), *command, "--json", "--record", str(trace))
        ended = run(*arguments, prefix=("bash", "-c", f'ulimit -f {blocks}; exec "$@"', "bash"))
    assert ended.code == 2
    document = json.loads(ended.out.splitlines()[-1] if "--until" in command else ended.out)
    # No child of hangdoc may write a byte either where the limit is 0, and then py-spy gives no stacks.
    assert document["verdict"] == ("undetermined" if blocks == "0" else "busy-wait")
    (line,) = ended.err.splitlines()
    assert line.startswith(f"hangdoc: {trace} cannot be written: File too large. ")
    if blocks != "0":
        assert not read(trace).complete


@pytest.mark.needs("unshare")
@pytest.mark.parametrize(
    ("size", "then", "reason"),
    [
        ("64k", 'head -c 64k /dev/zero > "$0/full"', "No space left on device"),
        ("1m", 'mount -o remount,ro "$0"', "Read-only file system"),
    ],
)
def test_a_real_disk_that_takes_nothing(tmp_path: Path, size: str, then: str, reason: str) -> None:
    """A file system without room, or mounted read-only: record is 2 with the reason, watch has its report as well."""
    trace = str(tmp_path / "a.hangtrace")
    with program(*python(WAITS)) as patient:
        recorded = on_disk(tmp_path, size, then, "record", str(patient.pid), "-o", trace, "--duration", "1")
        look = ("watch", str(patient.pid), "--once", "--record", trace, "--window", "3", "--max-window", "4")
        watched = on_disk(tmp_path, size, then, *look)
    assert (recorded.code, recorded.out) == (2, "")
    assert recorded.err.startswith(f"hangdoc: {trace} cannot be written: {reason}")
    assert watched.code == 2
    assert "Ruled out" in watched.out
    assert watched.err.splitlines() == recorded.err.splitlines()


def test_a_wrong_path_is_refused_before_the_look(tmp_path: Path) -> None:
    """A slip is no full disk: nobody waits for a look whose recording leads nowhere."""
    with program(*python(WAITS)) as patient:
        ended = run("watch", str(patient.pid), "--once", "--record", str(tmp_path / "absent" / "a.hangtrace"))
    assert (ended.code, ended.out) == (2, "")


def test_killed_in_mid_record(tmp_path: Path) -> None:
    """SIGKILL leaves a file that reads up to the last round that was written, and that can be replayed."""
    trace = tmp_path / "a.hangtrace"
    with program(*python(SPINS)) as patient:
        recording = start("record", str(patient.pid), "-o", str(trace), "--duration", "300", "--interval", "0.2")
        try:
            wait_until(lambda: rounds_in(trace) >= 5)
            os.kill(recording.pid, signal.SIGKILL)
        finally:
            recording.kill()
            recording.communicate()
    found = read(trace)
    assert len(found.snapshots) >= 5
    assert not found.complete
    assert [snapshot.index for snapshot in found.snapshots] == list(range(len(found.snapshots)))
    assert json.loads(run("replay", str(trace), "--json").out)["target"]["pid"] == patient.pid


def test_a_recording_into_a_directory_that_vanishes(tmp_path: Path) -> None:
    """The open file is still written to; nothing fails, and Ctrl-C ends it as ever."""
    folder = tmp_path / "folder"
    folder.mkdir()
    trace = folder / "a.hangtrace"
    with program(*python(WAITS)) as patient:
        recording = start("record", str(patient.pid), "-o", str(trace), "--duration", "300", "--interval", "0.2")
        try:
            wait_until(lambda: rounds_in(trace) >= 2)
            subprocess.run(["rm", "-r", str(folder)], check=True, env=environment(), timeout=LONGEST_S)
            recording.send_signal(signal.SIGINT)
            _, said = recording.communicate(timeout=LONGEST_S)
        finally:
            recording.kill()
            recording.wait()
    assert (recording.returncode, said) == (0, b"")
