"""Full disk, killed in mid-write, two writers, resume: nothing finished is lost, harmed or written twice."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hangdoc.samples.directory import read
from hangdoc.samples.status import status
from hangdoc.samples.verify import verify
from tests.capture.conftest import ROOT
from tests.sglang.provision import Rig

DISK_BYTES = 4 << 20
UNSHARE = ("unshare", "--map-root-user", "--mount", "sh", "-c")


def driver(rig: Rig, directory: Path, *mode: object) -> list[str]:
    return [str(rig.python), "-m", "tests.capture.driver", str(directory), *map(str, mode)]


def drive(rig: Rig, directory: Path, *mode: object, wrapper: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*wrapper, *driver(rig, directory, *mode)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done


def whole(directory: Path) -> dict[str, Any]:
    """What verify says, without damage and without anything half done."""
    document = verify(read(directory))
    assert document["damaged"] == []
    assert document["without_checksum"] == 0
    return document


def stamps(directory: Path) -> dict[str, tuple[int, int]]:
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in directory.glob("rows_*/data_*")}


@pytest.mark.needs("unshare")
def test_a_full_volume_first_slows_the_server_then_stops_the_capture(rig: Rig, tmp_path: Path) -> None:
    """A tmpfs that fills up delays prefill and says so, then ends the capture loudly; finished samples are whole."""
    disk, kept = tmp_path / "disk", tmp_path / "kept"
    disk.mkdir()
    mount = f'mount -t tmpfs -o size={DISK_BYTES} none {disk} && "$@"; code=$?; cp -r {disk} {kept}; exit $code'
    done = drive(rig, disk, "numbered", 0, 90, 16, wrapper=(*UNSHARE, mount, "sh"))
    document = status(read(kept))
    assert whole(kept)["unfinished"] == []
    assert "nearly full" in done.stderr
    assert "hangdoc capture STOPPED: no room in" in done.stderr
    assert document["counts"]["slowed_s"] > 0
    assert document["writers"][-1]["state"] == "stopped"
    # As many as there is room for: a sample has 16 tokens of 4 states of 256 floats.
    assert DISK_BYTES * 0.9 < document["samples"] * 16 * 4 * 256 * 4 < DISK_BYTES


def test_killed_in_the_middle_of_a_write(rig: Rig, tmp_path: Path) -> None:
    """A kill in mid-write leaves no half sample under a sample's name; the next run takes the number and tidies up."""
    process = subprocess.Popen(driver(rig, tmp_path, "stuck", 2000), cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "in the middle\n"
    assert len(list(tmp_path.glob("rows_*/.data_2.*.tmp"))) == 1
    process.kill()
    process.communicate()
    assert [sample.rpartition("/")[2][:8] for sample in whole(tmp_path)["unfinished"]] == [".data_2."]
    before = stamps(tmp_path)
    assert set(before) == {"data_0.ckpt", "data_1.ckpt"}
    drive(rig, tmp_path, "numbered", 0, 5, 2000)
    document = whole(tmp_path)
    assert (document["samples"], document["gaps"], document["unfinished"], document["interrupted"]) == (5, [], [], [])
    assert before.items() <= stamps(tmp_path).items()
    assert status(read(tmp_path))["counts"]["already_there"] == 2


def test_resume_writes_nothing_twice(rig: Rig, tmp_path: Path) -> None:
    """A second run over the same numbers leaves every file alone and writes the missing ones only."""
    drive(rig, tmp_path, "numbered", 0, 3, 10)
    (tmp_path / "rows_0-2000" / "data_1.ckpt").unlink()
    assert verify(read(tmp_path))["removed"] == ["rows_0-2000/data_1.ckpt"]
    before = stamps(tmp_path)
    drive(rig, tmp_path, "numbered", 0, 5, 10)
    assert before.items() <= stamps(tmp_path).items()
    assert (whole(tmp_path)["samples"], whole(tmp_path)["removed"]) == (5, [])


def test_two_writers_share_a_directory(rig: Rig, tmp_path: Path) -> None:
    """Two replicas that number their samples themselves lose none and overwrite none."""
    processes = [subprocess.Popen(driver(rig, tmp_path, "free", 150), cwd=ROOT) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    document = whole(tmp_path)
    assert (document["samples"], document["gaps"], document["unfinished"]) == (300, [], [])
    assert status(read(tmp_path))["counts"]["written"] == 300


def test_what_leaves_nothing(rig: Rig, tmp_path: Path, torch_python: Any) -> None:
    """NaN, health checks, the warm-up and masks of another length leave no sample, and each is counted."""
    drive(rig, tmp_path, "unusual")
    document = status(read(tmp_path))
    assert {number for number, _ in read(tmp_path).samples.items()} == {1, 2, 6}
    expected = {"nan": 1, "health_checks": 1, "warm_up": 1, "wrong_loss_mask": 1, "written": 3}
    assert document["counts"].items() >= expected.items()
    assert document["nan"] == [0]
    whole(tmp_path)
    code = "import sys, torch; s = torch.load(sys.argv[1]); print(s['loss_mask'].tolist(), s['input_ids'].tolist())"
    path = tmp_path / "rows_0-2000" / "data_2.ckpt"
    out = subprocess.run([rig.python, "-c", code, path], capture_output=True, text=True, check=True).stdout
    assert out == "[0, 1, 1] [4, 5, 6]\n"


def test_prefill_waits_for_a_full_queue(rig: Rig, tmp_path: Path) -> None:
    """With the queue full the next prefill waits for the writer, and goes on as soon as there is room."""
    done = drive(rig, tmp_path, "held_back")
    assert done.stdout == "waits True\nwent on\n"
    assert "prefill waits for the writer" in done.stderr
    assert whole(tmp_path)["samples"] == 2


@pytest.mark.parametrize(
    ("mode", "reason", "kept"),
    [
        ("skipping", "a prefill ran past the hooks", 1),
        ("scattered", "the states of 4 tokens are scattered", 0),
        ("many_streams", "the states of 4 tokens are scattered over the ranks, or no plain states", 0),
        ("unreadable", "a state cannot be read in this SGLang and model (NotImplementedError: a handoff)", 0),
    ],
)
def test_what_cannot_be_right_stops_the_capture(rig: Rig, tmp_path: Path, mode: str, reason: str, kept: int) -> None:
    """States that are not there, or not whole, stop the capture with the reason; none is ever written wrong."""
    done = drive(rig, tmp_path, mode)
    assert done.stdout.startswith(reason)
    assert f"hangdoc capture STOPPED: {reason}" in done.stderr
    assert whole(tmp_path)["samples"] == kept


def test_what_cannot_be_captured_ends_the_start(rig: Rig, tmp_path: Path) -> None:
    """Scattered states, a layer that is not there and a model with two lists of layers end the start."""
    said = drive(rig, tmp_path, "refused").stdout.splitlines()
    assert [line[:60] for line in said] == [
        "hangdoc capture: pp_size=2: pipeline stages hold their layers "[:60],
        "hangdoc capture: the model has layers 0 to 3, and no [4]",
        "ModuleDict: looked for one list of 4 `layers` whose forward takes"[:60],
    ]
    assert said[2].endswith("found model, other")
    assert not (tmp_path / ".hangdoc" / "run.json").exists()


def test_samples_of_another_kind_are_not_mixed(rig: Rig, tmp_path: Path) -> None:
    """A directory with samples of other layers ends the start instead of getting both kinds."""
    drive(rig, tmp_path, "free", 1)
    record = tmp_path / ".hangdoc" / "run.json"
    record.write_text(json.dumps(json.loads(record.read_text()) | {"layers": [0, 2, 3]}))
    done = subprocess.run(driver(rig, tmp_path, "free", 1), cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "has samples of another kind: layers was 0,2,3 and is 1,2,3" in done.stderr
