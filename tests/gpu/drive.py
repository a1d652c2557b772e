"""Run the scenarios on a GPU machine with hangdoc attached; a row for each, and a table of all.

python -m tests.gpu.drive --out DIR --model MODEL [NAME ...]

Names of scenarios or measures; none: all. What DIR/results.jsonl has already is left out, so that a call which was cut
short goes on where it ended; a scenario that was not reached is tried again.
It ends before --limit seconds are over, whatever is left.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.gpu.look import Hangdoc, Row, end, look
from tests.gpu.measures import capture, overhead
from tests.gpu.scenarios import MEASURES, READY, SCENARIOS, Scenario
from tests.gpu.server import FLAGS, Machine, Server

START_S, ILL_S = 200.0, 40.0
"""A start takes 45 to 60 s on a quiet machine, 80 s more with cold caches; an illness sets in with the next request."""
RESERVE_S = 90.0
"""Time that a scenario still needs once its server is released: none is begun with less left."""
IDLE = Scenario("overhead", ("healthy",), ready=READY, flags=())


@dataclass(frozen=True)
class Run:
    """What stays the same for all scenarios. ahead: servers that import while another one is looked at."""

    machine: Machine
    hangdoc: Hangdoc
    out: Path
    until_s: float
    port: int
    ahead: int
    pairs: int
    slice_s: float


def main(argv: Sequence[str] | None = None) -> int:
    given = arguments().parse_args(argv)
    given.out.mkdir(parents=True, exist_ok=True)
    machine = Machine(
        shlex.split(given.server), given.model, shlex.split(given.flags) if given.flags else FLAGS,
        dict(one.split("=", 1) for one in given.set), given.one_card,
    )  # fmt: skip
    hangdoc = Hangdoc(tuple(shlex.split(given.hangdoc)), given.hangdoc_path)
    run = Run(
        *(machine, hangdoc, given.out, time.monotonic() + given.limit, given.port),
        *(given.ahead, given.pairs, given.slice),
    )
    wanted = given.names or [*SCENARIOS, *MEASURES]
    done = {row["name"] for row in rows_of(given.out) if row["reached"]}
    left = [name for name in wanted if name not in done]
    for row in (*scenarios(run, [SCENARIOS[name] for name in left if name in SCENARIOS]), *measures(run, left)):
        with (given.out / "results.jsonl").open("a") as file:
            file.write(row.line() + "\n")
    (given.out / "table.md").write_text(table(rows_of(given.out)))
    sys.stdout.write((given.out / "table.md").read_text())
    return 0 if all(row["right"] for row in rows_of(given.out)) else 1


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*SCENARIOS, *MEASURES, []], metavar="NAME")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=540.0, help="seconds")
    parser.add_argument("--server", default=f"{sys.executable} -m sglang.launch_server", help="program, in one word")
    parser.add_argument("--flags", default="", help="of every server, in place of those for GPUs")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a server's environment")
    parser.add_argument("--hangdoc", default="hangdoc", help="command, in one word")
    parser.add_argument("--hangdoc-path", default="", help="PYTHONPATH of hangdoc, which servers do not get")
    parser.add_argument("--one-card", type=Path, help="libnccl.so that lets two ranks share a card")
    parser.add_argument("--port", type=int, default=31000, help="first port; each server takes two")
    parser.add_argument("--ahead", type=int, default=2, help="servers that import meanwhile")
    parser.add_argument("--pairs", type=int, default=12, help="of the overhead")
    parser.add_argument("--slice", type=float, default=8.0, help="seconds of each half of a pair")
    return parser


def scenarios(run: Run, wanted: list[Scenario]) -> Iterator[Row]:
    """Run scenarios one after the other, the next ones importing meanwhile; end them all in any case."""
    waiting = list(enumerate(wanted))
    begun: list[Server] = []
    try:
        while (waiting or begun) and time.monotonic() + RESERVE_S < run.until_s:
            while waiting and len(begun) <= run.ahead:
                number, scenario = waiting.pop(0)
                say(run, f"{scenario.name}: imports")
                begun.append(Server(scenario, run.machine, run.out / "servers" / scenario.name, run.port + 2 * number))
            yield attempt(run, begun.pop(0))
    finally:
        for server in begun:
            server.end()


def attempt(run: Run, server: Server) -> Row:
    """Run one scenario; a fault of this program costs its row only."""
    try:
        row = one(run, server)
    except Exception as error:  # noqa: BLE001  minutes on the machine are dear: the next scenario goes on
        row = Row(server.scenario.name, values={"fault": f"{type(error).__name__}: {error}"})
    try:
        if server.process.poll() is None:
            row.values |= end(server, run.hangdoc, run.out)
    finally:
        server.end()
    say(run, f"{row.name}: {'right' if row.right else 'NOT RIGHT'} {row.line()[:400]}")
    return row


def one(run: Run, server: Server) -> Row:
    scenario = server.scenario
    server.wait((server.directory / "mark.held").exists, run.until_s - RESERVE_S)
    server.release()
    until_s = min(run.until_s - RESERVE_S / 2, time.monotonic() + START_S)
    began_s = time.monotonic()
    if not bring_about(server, until_s):
        return Row(
            scenario.name, values={"start_s": round(time.monotonic() - began_s, 1), "log": server.text()[-1500:]}
        )
    ill_s = time.monotonic()
    time.sleep(scenario.wait_s)
    row = look(server, run.hangdoc, run.out, ill_s)
    row.values["start_s"] = round(ill_s - began_s, 1)
    if scenario.verdicts == ("healthy",):
        row.values["tokens_after"] = tokens_after(server)
        row.right = row.right and bool(row.values["tokens_after"])
    return row


def bring_about(server: Server, until_s: float) -> bool:
    """Wait until a server is ill, or where it is to be looked at; False when it does not come there."""
    scenario = server.scenario
    if scenario.serving:
        if not server.wait(lambda: server.has(READY), until_s):
            return False
        server.fall_ill()
        threading.Thread(target=server.load, args=(1, 1.0, 64), daemon=True).start()
        until_s = min(until_s, time.monotonic() + ILL_S)
    if scenario.mode:
        return server.wait(server.is_ill, until_s)
    if not server.wait(lambda: server.has(scenario.ready), until_s):
        return False
    if scenario.load:
        threading.Thread(target=server.load, args=(4, 60.0, 2000), daemon=True).start()
        time.sleep(3.0)
    return server.stop_rank() if scenario.stop else True


def tokens_after(server: Server) -> int:
    """Return how many of a few tokens come after the look: 0 when the server does not answer any more."""
    try:
        return server.generate(8, 60.0)
    except (OSError, ValueError, KeyError):
        return 0


def measures(run: Run, wanted: list[str]) -> Iterator[Row]:
    if "overhead" in wanted and time.monotonic() + RESERVE_S < run.until_s:
        server = Server(IDLE, run.machine, run.out / "servers" / "overhead", run.port + 80)
        try:
            server.release()
            reached = server.wait(lambda: server.has(READY), min(run.until_s, time.monotonic() + START_S))
            values = overhead(server, run.hangdoc, run.pairs, run.slice_s, run.until_s - 20) if reached else {}
        finally:
            server.end()
        yield Row("overhead", reached, values.get("mean") is not None, values)
    left_s = run.until_s - time.monotonic()
    if "capture" in wanted and left_s > RESERVE_S:
        values = capture(run.hangdoc, run.machine, run.out, run.port + 90, left_s - 20)
        yield Row("capture", True, values["code"] == 0 and values["verify_code"] == 0, values)


def rows_of(out: Path) -> list[dict[str, Any]]:
    file = out / "results.jsonl"
    lines = file.read_text().splitlines() if file.exists() else []
    return list({row["name"]: row for row in map(json.loads, lines)}.values())  # of a second attempt the last one


COLUMNS = ("verdict", "grade", "phase", "culprits", "hypotheses", "since_ill_s", "kill_code", "kill_s")


def table(rows: list[dict[str, Any]]) -> str:
    """Write the rows as a table of Markdown, in the order they were run."""
    head = ["scenario", "right", *(name.replace("_", " ") for name in COLUMNS)]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for row in rows:
        cells = [row["name"], "yes" if row["right"] else "**no**", *(_cell(row.get(name)) for name in COLUMNS)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


def say(run: Run, text: str) -> None:
    sys.stderr.write(f"{run.until_s - time.monotonic():6.0f} s left  {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
