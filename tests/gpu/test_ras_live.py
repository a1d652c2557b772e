"""A collective that lacks a rank, looked at as a user would: NCCL's counts alone name who never came."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fake_ras.answers import reserved
from tests.unit.cli.commands import argv

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("two_ranks.py")


@pytest.mark.slow  # counts have to stand for 9 s
def test_the_rank_that_never_came_is_named(tmp_path: Path) -> None:
    """With neither a GPU nor frames that mean anything, the verdict is busy-wait by HD108, and rank 1 the culprit."""
    package = tmp_path / "sglang"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "launch_server.py").write_text(f"import runpy\nrunpy.run_path({str(PROGRAM)!r}, run_name='__main__')\n")
    with reserved() as port:
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT), str(ROOT / "probes")]),
            "NCCL_RAS_ADDR": f"localhost:{port}",
        }
        command = [sys.executable, "-m", "sglang.launch_server", "--model-path", "m", "--tp", "2", "--port", "1"]
        with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as launch:
            try:
                assert launch.stdout is not None
                astray = int(launch.stdout.readline())
                done = subprocess.run(
                    argv("watch", str(launch.pid), "--once", "--json"), capture_output=True, text=True, check=False
                )
            finally:
                launch.kill()
    document = json.loads(done.stdout)
    shown = [one for one in document["hypotheses"] if one["id"] == "HD108"]
    assert (document["verdict"], [one["pid"] for one in document["culprits"]]) == ("busy-wait", [astray]), shown
    assert any("NCCL counts 7 collectives" in sentence for sentence in shown[0]["for"])
