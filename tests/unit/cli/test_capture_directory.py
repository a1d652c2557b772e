"""`hangdoc capture` over a directory with entries that have a sample's name and are none."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.cli.commands import LONGEST_S, argv, environment


@pytest.mark.parametrize("action", ["verify", "status"])
def test_what_is_no_regular_file_is_named_and_the_rest_is_looked_at(tmp_path: Path, action: str) -> None:
    """A FIFO is not opened; a directory and a dangling link end nothing: exit 1, each named."""
    rows = tmp_path / "rows_0-2000"
    rows.mkdir()
    os.mkfifo(rows / "data_0.ckpt")
    (rows / "data_1.ckpt").mkdir()
    (rows / "data_2.ckpt").symlink_to("nowhere")
    (rows / "data_3.ckpt").write_bytes(b"no sample")
    done = subprocess.run(
        argv("capture", action, str(tmp_path), "--json"),
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        env=environment(),
        check=False,
    )
    assert done.returncode == 1, done.stderr
    document = json.loads(done.stdout)
    number = 4 if action == "verify" else 3
    assert [one["path"] for one in document["damaged"]] == [f"rows_0-2000/data_{n}.ckpt" for n in range(number)]
    assert document["samples"] == (4 if action == "verify" else 1)
    assert document["gaps"] == []
