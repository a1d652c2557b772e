"""A launch is started again from its trace: what redaction took out comes from the user and the present environment."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import msgspec
import pytest

from hangdoc.errors import HangdocError
from hangdoc.launch.table import read_argv
from hangdoc.model.process import Launch, Process, ProcessKey
from hangdoc.model.reading import Known
from hangdoc.relaunch.recorded import from_trace
from hangdoc.trace.writer import Writer
from tests.unit.ending.theatre import PROC, lives
from tests.unit.relaunch.stage import Stage
from tests.unit.trace.sample import header, trace


def test_a_redacted_trace_starts_the_launch_again(stage: Stage) -> None:
    """The command is the old one, the interpreter the first on PATH, the old launch long gone: ready, exit 0."""
    cast = stage.launch("ready", "rank")
    was = read_argv(PROC, cast["launcher"].pid)
    trace = stage.recording(cast["launcher"].pid)
    stage.close_launches()
    ended = stage.relaunch("--from", str(trace), "--json", "--map", f"{Path(sys.executable).name}={sys.executable}")
    assert ended.code == 0, ended.err
    assert ended.document["origin"]["kind"] == "trace"
    assert list(stage.servers().values()) == [was]


def test_one_that_still_runs_is_ended_first(stage: Stage) -> None:
    """The recorded launch is known by pid, start and command; without a terminal its end needs --yes."""
    cast = stage.launch("ready", "rank")
    trace = stage.recording(cast["launcher"].pid)
    words = ("--from", str(trace), "--map", f"{Path(sys.executable).name}={sys.executable}")
    assert stage.relaunch(*words).code == 2
    assert all(map(lives, cast.values()))
    ended = stage.relaunch(*words, "--yes")
    assert ended.code == 0, ended.err
    assert not any(map(lives, cast.values()))
    assert len(stage.servers()) == 1


def test_what_stays_unresolved_is_named_and_nothing_touched(stage: Stage) -> None:
    """A redacted model path: exit 2 with the token and its option, and the old launch lives."""
    stage.start([*stage.server(), "--model-path", "/secret/model"])
    cast = stage.wait_for("launcher", "rank")
    trace = stage.recording(cast["launcher"].pid)
    ended = stage.relaunch("--from", str(trace), "--yes", "--map", f"{Path(sys.executable).name}={sys.executable}")
    assert ended.code == 2
    (line,) = ended.err.splitlines()
    assert "(--model-path): nothing was started or ended" in line
    assert f"hangdoc relaunch {cast['launcher'].pid}" in line
    assert all(map(lives, cast.values()))


WORDS = (
    *("/opt/venv/bin/python", "-m", "sglang.launch_server", "--model-path", "/models/kimi", "--api-key", "s3cret"),
    *("--dist-init-addr", "node-7:5000", "--tp", "8", "--odd=thing"),
)


def recorded(folder: Path, argv: tuple[str, ...], role: str = "launcher") -> Path:
    """A redacted trace of a launch with this command line, which lives nowhere."""
    root = ProcessKey(4_194_303, 1)
    process = Process(key=root, ppid=1, role=role, argv=argv)  # type: ignore[arg-type]
    launch = Launch(root=root, engine="sglang", engine_version=Known("0.5.8"), processes=(process,))
    sample = trace()
    with Writer.open(folder / "a.hangtrace", msgspec.structs.replace(header(), launch=launch)) as writer:
        writer.add(sample.snapshots[0], sample.stacks)
    return folder / "a.hangtrace"


def test_tokens_come_from_map_and_from_variables_named_like_their_option(tmp_path: Path) -> None:
    """--map by token, else the variable with the option's name; where a value came from is noted."""
    path = recorded(tmp_path, WORDS)
    maps = {"path-1": "/m/kimi", "host-2": "node-9", "<arg-2>": "--odd=other", "python": sys.executable}
    origin, _ = from_trace(path, maps, {"API_KEY": "from-here", "PATH": "/usr/bin"})
    assert origin.command.argv == (
        *(sys.executable, "-m", "sglang.launch_server", "--model-path", "/m/kimi", "--api-key", "from-here"),
        *("--dist-init-addr", "node-9:5000", "--tp", "8", "--odd=other"),
    )
    assert any("variable API_KEY" in note for note in origin.notes)
    assert not any("from-here" in note for note in origin.notes)


def test_every_unresolved_token_is_named(tmp_path: Path) -> None:
    """All at once, so that one more run suffices."""
    with pytest.raises(HangdocError) as raised:
        from_trace(recorded(tmp_path, WORDS), {"python": sys.executable}, {})
    for token in ("<path-1> (--model-path)", "<arg-1> (--api-key)", "<host-2>", "<arg-2>"):
        assert token in raised.value.message
    assert "--map path-1=VALUE" in raised.value.remedy


def test_a_program_that_is_not_on_path_is_unresolved(tmp_path: Path) -> None:
    """Redaction keeps a program's name without its directory."""
    with pytest.raises(HangdocError, match=r"python \(the program: not on PATH\)"):
        from_trace(recorded(tmp_path, WORDS[:3]), {}, {"PATH": str(tmp_path)})


def test_an_engines_script_is_found_again(tmp_path: Path) -> None:
    """`/venv/bin/sglang serve` is recorded as "sglang"."""
    script = tmp_path / "sglang"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    python = shutil.which("python3") or sys.executable
    path = recorded(tmp_path, ("/venv/bin/python", "/venv/bin/sglang", "serve", "--tp", "2"))
    origin, _ = from_trace(path, {"python": python}, {"PATH": str(tmp_path)})
    assert origin.command.argv == (python, str(script), "serve", "--tp", "2")


def test_a_map_without_its_token_is_refused(tmp_path: Path) -> None:
    """A slip of the pen in --map must not end in another launch than was meant."""
    with pytest.raises(HangdocError, match="--map path-7"):
        from_trace(recorded(tmp_path, WORDS[:3]), {"path-7": "/x", "python": sys.executable}, {})


def test_a_trace_of_orphans_has_no_command(tmp_path: Path) -> None:
    """The launcher was gone when it was recorded."""
    with pytest.raises(HangdocError, match="does not have the command"):
        from_trace(recorded(tmp_path, ("sglang::scheduler",), role="scheduler"), {}, {})
