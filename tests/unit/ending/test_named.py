"""The pid that is named has to be a member: who only stands above a launch, or calls hangdoc, ends nobody."""

from __future__ import annotations

import shlex
import subprocess
import sys

import pytest

from tests.unit.cli.commands import LONGEST_S, argv, complaint, environment
from tests.unit.ending.theatre import Theatre, lives

RUNS_ONE = "import subprocess, sys; subprocess.run(sys.argv[1:])"


@pytest.mark.parametrize("words", [(), ("ipykernel_launcher",), ("pytest",)])
def test_who_stands_above_a_launch_does_not_end_it(theatre: Theatre, words: tuple[str, ...]) -> None:
    """A supervisor, a notebook and a test runner are no members: exit 2, the launch's own pid is named, all live."""
    for word in words:
        (theatre.folder / f"{word}.py").write_text(RUNS_ONE)
    program = ["-m", *words] if words else ["-c", RUNS_ONE]
    above = theatre.start([sys.executable, "-S", *program, *theatre.server()], cwd=theatre.folder)
    cast = theatre.wait_for("launcher", "rank0", "rank1")
    ended = theatre.kill_clean(str(above.pid), "--yes", "--no-snapshot")
    assert ended.code == 2
    assert f"give {cast['launcher'].pid}" in complaint(ended)
    assert all(lives(key) for key in cast.values())
    assert above.poll() is None


def test_pid_one_is_never_a_way_to_a_launch(theatre: Theatre) -> None:
    """Pid 1 is above every launch: naming it is exit 2 whatever runs below, also as a dry run."""
    cast = theatre.launch("plain", "rank0", "rank1")
    assert theatre.kill_clean("1", "--dry-run").code == 2
    assert all(lives(key) for key in cast.values())


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_the_callers_own_shell_survives(theatre: Theatre, shell: str) -> None:
    """`kill-clean $$` in a script: exit 2 in one line, and the script goes on."""
    command = shlex.join(argv("kill-clean"))
    script = f'{command} $$ --yes --no-snapshot; echo "code $?"; {command} $PPID --yes --no-snapshot; echo "code $?"'
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import subprocess, sys; subprocess.run(sys.argv[1:])", shell, "-c", script],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=LONGEST_S,
        cwd=theatre.folder,
        env=environment(),
        start_new_session=True,
        check=False,
    )
    assert done.stdout.split("\n") == ["code 2", "code 2", ""], done.stderr
    assert len(done.stderr.strip().split("\n")) == 2
    assert done.returncode == 0


def test_a_member_that_calls_hangdoc_is_not_ended(theatre: Theatre) -> None:
    """A launcher that runs hangdoc on its own rank waits for the answer: exit 2, and nobody was touched."""
    cast = theatre.launch("calls_hangdoc", "rank0", "answered")
    assert (theatre.folder / "code").read_text() == "2", (theatre.folder / "said").read_text()
    assert all(lives(cast[name]) for name in ("launcher", "rank0"))
