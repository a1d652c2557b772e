"""`hangdoc watch --baseline`: the log of a live launch beside good starts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

from tests.unit.cli.commands import complaint, run

LAUNCHES = Path(__file__).resolve().parents[2] / "corpus" / "launches"

SERVER = """
import sys
for line in {lines!r}:
    print(line, flush=True)
sys.stderr.write("x")
sys.stderr.flush()
sys.stdin.read()
"""


@contextmanager
def server(directory: Path, lines: list[str]) -> Iterator[int]:
    """A program that looks like SGLang's launcher, has written these lines to its log and waits; ended at the end."""
    package = directory / "sglang"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "launch_server.py").write_text(SERVER.format(lines=lines))
    with (directory / "server.log").open("wb") as log:
        child = subprocess.Popen(
            [sys.executable, "-S", "-m", "sglang.launch_server"],
            cwd=directory,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.PIPE,
        )
    try:
        assert child.stderr is not None
        assert child.stderr.read(1) == b"x"
        yield child.pid
    finally:
        child.kill()
        child.communicate()


def test_watch_with_good_starts(tmp_path: Path) -> None:
    """The report of a live launch has what good starts took and say next, from the reader that diagnose uses."""
    now = datetime.now().astimezone() + timedelta(seconds=2)
    lines = [
        f"[{now + timedelta(seconds=at):%Y-%m-%d %H:%M:%S}{who}] {text}"
        for at, who, text in (
            (0, "", "server_args=ServerArgs(model_path='M', tp_size=1, port=30000)"),
            (1, " TP0", "Init torch distributed begin."),
            (2, " TP0", "Load weight begin. avail mem=139.13 GB"),
        )
    ]
    short = ("--once", "--window", "3", "--max-window", "3", "--json")
    with server(tmp_path, lines) as pid:
        ended = run("watch", str(pid), *short, "--baseline", str(LAUNCHES))
        without = run("watch", str(pid), *short)
        refused = run("watch", str(pid), *short, "--baseline", str(LAUNCHES / "missing-node.log"))
    found = json.loads(ended.out)["log"]
    assert any(one.startswith("good launches say Load weight end ") for one in found["baseline"]), found["baseline"]
    assert any(one.startswith("this one has been silent for ") for one in found["baseline"])
    assert [step["usual_s"] is not None for step in found["steps"]] == [True, True, True]
    assert (json.loads(without.out)["log"] or {"steps": []})["steps"][0]["usual_s"] is None
    assert refused.code == 2
    assert "no good start" in complaint(refused)
