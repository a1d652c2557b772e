"""A real server whose own watchdog ends it: hangdoc has everything before that."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

from hangdoc.trace.reader import read
from tests.sglang.launches import Launch, start
from tests.sglang.provision import Rig
from tests.sglang.scenarios import SCENARIOS, Log
from tests.sglang.soak import soak
from tests.unit.cli.commands import argv, environment, run

WATCHDOG_S = 40
FIRED = Log(rf"watchdog timeout \(self\.watchdog_timeout={WATCHDOG_S}")
SHORT_SOAK_S = 48.0
LIMIT_S = 300.0  # only a safety net


def watched(launch: Launch, *options: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        argv("watch", str(launch.pid), *options),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(),
        start_new_session=True,
    )


def answer(document: dict[str, Any]) -> list[Any]:
    return [document[field] for field in ("verdict", "grade", "phase", "culprits", "waits", "hypotheses", "limits")]


def test_evidence_before_the_watchdog(rig: Rig, tmp_path: Path) -> None:
    """A warm-up that hangs: evidence is whole before the server's watchdog says a word, and replays to the same."""
    scenario = replace(SCENARIOS["busy-warmup"], flags=("--watchdog-timeout", str(WATCHDOG_S)))
    folder, told = tmp_path / "evidence", tmp_path / "told"
    with start(scenario, directory=tmp_path / "server", rig=rig) as launch:
        options = ("--until", "hang", "--record", str(folder), "--on-hang", f'cp "$HANGDOC_TRACE" {told}')
        watching = watched(launch, *options)
        out, err = watching.communicate(timeout=LIMIT_S)
        print(out, err)
        assert not launch.seen(FIRED)
        assert watching.returncode == 1, out + err
        schedulers = set(launch.scheduler_pids().values())
        launch.wait_for(FIRED)  # there was a watchdog to be ahead of
    (path,) = folder.glob("hang-*.hangtrace")
    assert told.read_bytes() == path.read_bytes()
    trace, document = read(path), json.loads(path.with_suffix(".json").read_text())
    assert trace.complete
    assert (document["verdict"], document["phase"]) == ("busy-wait", "warmup")
    assert {one["pid"] for one in document["culprits"]} == schedulers
    limits = {one["name"]: one for one in document["limits"]}
    assert limits["watchdog"]["seconds"] == WATCHDOG_S
    assert 0 <= limits["watchdog"]["left_s"] <= WATCHDOG_S
    assert re.search(r"time left \d+ s at the earliest", err)
    replayed = json.loads(run("replay", str(path), "--json").out)
    assert answer(replayed) == answer(document)
    dumped = {
        sample.process.pid
        for one in trace.snapshots
        for sample in one.samples
        if sample.probe == "stacks" and sample.process is not None and hasattr(sample.reading, "value")
    }
    assert schedulers <= dumped


def test_a_short_soak(rig: Rig, tmp_path: Path) -> None:
    """A healthy server, idle and loaded in turn, is never called a hang, and hangdoc does not grow."""
    with start("healthy-tp1", directory=tmp_path / "server", rig=rig) as launch:
        done = soak(launch.wait_until_ill(), SHORT_SOAK_S, tmp_path)
    print("\n".join(done.lines()))
    assert done.documents
    assert done.false_hangs() == []
    assert done.growth_is_flat(), list(done.lines())
    assert done.code in (0, 3), done.complaints  # whatever the last moment looked like, it was no hang
    assert {str(one["verdict"]) for one in done.documents} <= {"healthy", "undetermined"}
    assert any(one["verdict"] == "healthy" for one in done.documents)
    assert not list((tmp_path / "evidence").glob("hang-*"))
