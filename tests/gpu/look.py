"""Let hangdoc look at a server and end it, and say whether that was right: one row of the results."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.gpu.scenarios import Scenario
from tests.gpu.server import Server

LOOK_S, END_S = 90.0, 60.0
"""Beyond what hangdoc itself allows for a look (30 s, native stacks some more) and for memory to come back (30 s)."""


@dataclass(frozen=True)
class Hangdoc:
    """How hangdoc is run here. path: its PYTHONPATH, which servers do not have."""

    command: tuple[str, ...]
    path: str = ""

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        return kept | ({"PYTHONPATH": self.path} if self.path else {})

    def run(self, *arguments: str, timeout_s: float) -> tuple[int, str, str]:
        """Return its exit code, standard output and standard error; 124 when it took too long."""
        try:
            done = subprocess.run(
                [*self.command, *arguments],
                capture_output=True,
                text=True,
                timeout=timeout_s,
                env=self.environment,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            return 124, "", str(late.stderr or "")[-2000:]
        return done.returncode, done.stdout, done.stderr[-2000:]


@dataclass
class Row:
    """What came of a scenario. right: verdict and culprit as they have to be, and the target went on as it was."""

    name: str
    reached: bool = False
    right: bool = False
    values: dict[str, Any] = field(default_factory=dict)

    def line(self) -> str:
        return json.dumps({"name": self.name, "reached": self.reached, "right": self.right, **self.values})


def look(server: Server, hangdoc: Hangdoc, out: Path, ill_s: float) -> Row:
    """Diagnose a server once, with a trace. ill_s: the moment at which the illness set in."""
    row = Row(server.scenario.name, reached=True)
    trace = out / f"{row.name}.hangtrace"
    before = server.states()
    begun_s = time.monotonic()
    code, said, complaints = hangdoc.run(
        *("watch", str(server.pid), "--once", "--json", "--record", str(trace)), timeout_s=LOOK_S
    )
    ended_s, after = time.monotonic(), server.states()
    stopped = [pid for pid, state in after.items() if state in "Tt" and before.get(pid) not in ("T", "t")]
    row.values = {"code": code, "look_s": round(ended_s - begun_s, 1), "since_ill_s": round(ended_s - ill_s, 1)}
    row.values |= {"left_stopped": stopped, "trace_bytes": trace.stat().st_size if trace.exists() else None}
    try:
        document = json.loads(said)
    except ValueError:
        row.values["complaint"] = complaints
        return row
    (out / f"{row.name}.json").write_text(said)
    row.values |= summary(document, server)
    row.right = is_right(server.scenario, row.values) and not stopped
    if server.scenario.native:
        row.values |= look_below(server, hangdoc, out)
    return row


def look_below(server: Server, hangdoc: Hangdoc, out: Path) -> dict[str, Any]:
    """Look once more, with native stacks; return what was told of them, and who was left stopped."""
    name = f"{server.scenario.name}.native"
    wish = ("--once", "--json", "--native", "--record", str(out / f"{name}.hangtrace"))
    begun_s = time.monotonic()
    code, said, _ = hangdoc.run("watch", str(server.pid), *wish, timeout_s=LOOK_S)
    (out / f"{name}.json").write_text(said)
    below = [part for part in said.split('"') if "below Python it" in part or "without Python burns" in part]
    stopped = [pid for pid, state in server.states().items() if state in "Tt"]
    took_s = round(time.monotonic() - begun_s, 1)
    return {"native_code": code, "native_s": took_s, "native": below[:4], "native_left_stopped": stopped}


def summary(document: dict[str, Any], server: Server) -> dict[str, Any]:
    """Return what a row tells of a diagnosis."""
    shown = [one["id"] for one in document["hypotheses"] if one["grade"] in ("confirmed", "likely")]
    ranks = [one["rank"].get("tp", 0) if not one["outside"] else "outside" for one in document["culprits"]]
    return {
        "verdict": document["verdict"],
        "grade": document["grade"],
        "phase": document["phase"],
        "hypotheses": shown,
        "culprits": ranks,
        "headline": document["headline"],
        "gpus": [(one["util_ratio"], one["power_w"]) for one in document["gpus"] or ()],
        "window_s": document["window_s"],
        "milestone": (server.text().splitlines() or [""])[-1][-160:],
    }


def is_right(scenario: Scenario, values: dict[str, Any]) -> bool:
    if values["verdict"] not in scenario.verdicts:
        return False
    return scenario.culprit is None or set(values["culprits"]) == {scenario.culprit}


def end(server: Server, hangdoc: Hangdoc, out: Path) -> dict[str, Any]:
    """End a server with kill-clean; return its code and time, and keep its document beside the others."""
    begun_s = time.monotonic()
    code, said, complaints = hangdoc.run(
        *("kill-clean", str(server.pid), "--yes", "--no-snapshot", "--json"), timeout_s=END_S
    )
    found = {"kill_code": code, "kill_s": round(time.monotonic() - begun_s, 2)}
    (out / f"{server.scenario.name}.kill.json").write_text(said)
    if not said:
        found["kill_complaint"] = complaints
    server.end()
    return found
