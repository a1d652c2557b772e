"""Real SGLang launches on the CPU, started again by hangdoc: ready on the same port, or diagnosed and gone."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hangdoc.launch.marker import VARIABLE
from tests.sglang import guard
from tests.sglang.launches import CPU_FLAGS, command, environment, free_port, start, start_keeper
from tests.sglang.provision import NEWEST, Rig
from tests.sglang.scenarios import SCENARIOS
from tests.unit.cli.commands import argv


@contextmanager
def relaunched(folder: Path, *arguments: str, env: dict[str, str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Run the command; what it started is killed at the end, also when the tests die."""
    done = subprocess.run(
        argv("relaunch", "--json", *arguments),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env=env,
        cwd=folder,
        check=False,
    )
    assert done.stdout, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    print(done.stderr)
    if document["started"] is None:
        yield done.returncode, document
        return
    session = document["started"]["pid"]
    keeper = start_keeper()
    try:
        assert keeper.stdin is not None
        keeper.stdin.write(b"%d\n" % session)
        keeper.stdin.flush()
        yield done.returncode, document
    finally:
        guard.kill_session(session)
        keeper.communicate(b"done\n")


def environ(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


def test_a_launch_is_ended_and_ready_again_with_a_capture(rig: Rig, tmp_path: Path) -> None:
    """By a scheduler's pid: the old one is gone whole, its command, with what the capture adds, is ready on its port
    and marked; each prompt leaves its sample, and a recording of the old one gives the same command back."""
    samples, prompts = tmp_path / "samples", tmp_path / "prompts.jsonl"
    lines = ({"input_ids": [5, 6, 7, 8]}, {"input_ids": [9, 10, 11], "loss_mask": [0, 1, 1]})
    prompts.write_text("".join(json.dumps(line) + "\n" for line in lines))
    with start("healthy-tp1", directory=tmp_path / "old", rig=rig) as old:
        old.wait_until_ill()
        env = environment(old.scenario, rig, NEWEST, tmp_path)
        words = [word.decode() for word in Path(f"/proc/{old.pid}/cmdline").read_bytes().split(b"\0")[:-1]]
        trace = tmp_path / "old.hangtrace"
        subprocess.run(argv("record", str(old.pid), "-o", str(trace), "--duration", "2"), check=True, cwd=tmp_path)
        maps = ("--map", f"path-1={rig.model}", "--map", f"{rig.python.name}={rig.python}")
        with relaunched(tmp_path, "--from", str(trace), "--dry-run", *maps, env=env) as (code, plan):
            assert (code, plan["command"]["argv"]) == (0, words)
        rank = next(iter(old.scheduler_pids().values()))
        capture = ("--capture-layers", "0,1,2", "--capture-dir", str(samples), "--prompts", str(prompts))
        with relaunched(tmp_path, str(rank), "--yes", *capture, env=env) as (code, document):
            assert code == 0, document
            assert old.members() == []
            new = document["started"]["pid"]
            started = [word.decode() for word in Path(f"/proc/{new}/cmdline").read_bytes().split(b"\0")[:-1]]
            assert started == words + document["capture"]["flags"]
            assert (document["diagnosis"]["phase"], document["prompts"]["written"]) == ("ready", 2)
            assert sorted(path.name for path in samples.glob("rows_*/*")) == ["data_0.ckpt", "data_1.ckpt"]
            assert len(old.generate(tokens=4)["output_ids"]) == 4  # type: ignore[arg-type]
            marker = f"{VARIABLE}={document['started']['marker']}".encode()
            assert marker in environ(new)


def test_one_that_hangs_in_its_warm_up_is_diagnosed_and_ended(rig: Rig, tmp_path: Path) -> None:
    """A command line whose first forward never ends: exit 1, busy-wait in the warm-up, and nothing of it is left."""
    scenario = SCENARIOS["busy-warmup"]
    env = environment(scenario, rig, NEWEST, tmp_path)
    words = command(scenario, rig, free_port())
    assert set(CPU_FLAGS) <= set(words)
    with relaunched(tmp_path, "--kill-on-hang", "--", *words, env=env) as (code, document):
        assert len(document["ended_again"]["members"]) >= 3
        diagnosis = document["diagnosis"]
        assert (code, document["end"]) == (1, "hang")
        assert (diagnosis["verdict"], diagnosis["phase"]) == ("busy-wait", "warmup")
        assert document["ended_again"]["survivors"] == []
        assert guard.members(document["started"]["pid"]) == []
