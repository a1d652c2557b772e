"""Make the plan of a relaunch from what the user wishes; refuse, before anything is touched, what cannot be done."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from hangdoc.errors import HangdocError
from hangdoc.launch.commands import kind_of
from hangdoc.model.gpu import Gpu
from hangdoc.model.patience import Stage
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.observe.attach import Setting, attach
from hangdoc.observe.follow import Until
from hangdoc.observe.look import Window, look
from hangdoc.observe.reasoning import lazily
from hangdoc.relaunch.capturing import look as look_for_capture
from hangdoc.relaunch.capturing import with_flags
from hangdoc.relaunch.check import check_command, check_log, check_port, default_log
from hangdoc.relaunch.engine import EngineCommand, engine_in, port_of
from hangdoc.relaunch.gpus import Choice, choose, peers_reported, read_gpus, visible
from hangdoc.relaunch.living import from_living
from hangdoc.relaunch.recorded import from_trace
from hangdoc.relaunch.records import Command, Origin, Plan
from hangdoc.relaunch.treat import Facts, treat
from hangdoc.relaunch.watch import Say
from hangdoc.samples.wish import Wish
from hangdoc.trace.records import Trace

LOOK = Window(5.0, 15.0)
"""How long the old launch is looked at when a profile asks how it hung: `watch --once`, but not for its longest."""


@dataclass(frozen=True)
class Wishes:
    """The command's options. One of pid, trace and argv is given."""

    pid: int | None = None
    trace: Path | None = None
    argv: tuple[str, ...] = ()
    profile: str = "auto"
    capture: Wish | None = None
    prompts: Path | None = None
    set_: Mapping[str, str] = field(default_factory=dict, repr=False)
    map_: Mapping[str, str] = field(default_factory=dict, repr=False)
    log: Path | None = None
    dry_run: bool = False
    yes: bool = False
    kill_on_hang: bool = False
    until: Until = "ready"
    timeout_s: float | None = None
    patience_s: Mapping[Stage, float] = field(default_factory=dict)
    as_json: bool = False
    no_color: bool = False


def make_plan(wishes: Wishes, say: Say) -> Plan:
    """Return what is going to happen; HangdocError says why nothing can. say: told what takes a while."""
    origin, trace = _origin(wishes)
    command = replace(origin.command, environment={**origin.command.environment, **wishes.set_})
    engine = engine_in(command)
    check_command(command, engine, guessed=origin.kind == "trace")
    capture = look_for_capture(wishes.capture, command, engine)
    reading: Reading[tuple[Gpu, ...]] = Missing("gpu", "not-taken") if wishes.profile == "none" else read_gpus()
    choice = choose(wishes.profile, reading, command.environment)
    facts = _facts(choice, reading, command, engine, wishes)
    if _asks_how_it_hung(choice, facts, command):
        facts = replace(facts, suspected=_suspected(origin, trace, say))
    command, treatment = treat(command, choice, facts)
    command, capture = with_flags(capture, command, engine)
    origin = _with_engine(origin, engine)
    log = Path.cwd() / (wishes.log or default_log())
    check_log(log)
    port = port_of(command, engine)
    check_port(port, origin.old)
    if wishes.prompts is not None and port is None:
        raise HangdocError("--prompts: the command does not say on which port the server listens", "add its --port")
    return Plan(origin, command, treatment, log, wishes.set_, port, capture)


def may_be_an_engine(plan: Plan) -> bool:
    """Say whether a command starts an engine, or is a script that may do so."""
    argv = plan.command.argv
    return plan.origin.engine != "generic" or kind_of(0, argv, "") in {"wrapper", "shell"}


def _origin(wishes: Wishes) -> tuple[Origin, Trace | None]:
    if wishes.pid is not None:
        return from_living(wishes.pid), None
    environment = dict(os.environ)
    if wishes.trace is not None:
        origin, trace = from_trace(wishes.trace, wishes.map_, {**environment, **wishes.set_})
        return replace(origin, command=replace(origin.command, environment=environment)), trace
    return Origin("command", "the command line", Command(wishes.argv, Path.cwd(), environment)), None


def _with_engine(origin: Origin, engine: EngineCommand | None) -> Origin:
    if engine is None:
        return origin
    if origin.kind == "command":
        return replace(origin, engine=engine.name, version=engine.version)
    if origin.kind == "trace" and engine.version and origin.version and engine.version != origin.version:
        note = f"the trace is of {origin.engine} {origin.version}; {engine.version} is what will run"
        return replace(origin, notes=(*origin.notes, note), version=engine.version)
    return replace(origin, version=origin.version or engine.version)


def _facts(
    choice: Choice,
    reading: Reading[tuple[Gpu, ...]],
    command: Command,
    engine: EngineCommand | None,
    wishes: Wishes,
) -> Facts:
    devices = visible(reading.value, command.environment) if isinstance(reading, Known) else ()
    peers = choice.profile is not None and peers_reported(reading, command.environment)
    capturing = wishes.capture is not None
    return Facts(engine, peers, gpus=max(1, len(devices)), capturing=capturing, set_by_user=wishes.set_)


def _asks_how_it_hung(choice: Choice, facts: Facts, command: Command) -> bool:
    entries = choice.profile.change if choice.profile is not None and facts.peers_reported else ()
    return any(one.when == "broken-peers" and one.variable not in command.environment for one in entries)


def _suspected(origin: Origin, trace: Trace | None, say: Say) -> frozenset[str]:
    """Return what the old launch's diagnosis holds for likely or certain: of the trace, or of one look at it."""
    reasoning = lazily(as_json=True)
    if trace is None:
        if origin.old is None:
            return frozenset()
        say(f"hangdoc: looking at the old launch for {LOOK.least_s:g} to {LOOK.most_s:g} s: how does it hang?")
        with attach(origin.old.pid, None, Setting()) as attached:
            seen = look(attached, LOOK, reasoning)
        if seen.end == "stopped":
            raise HangdocError("interrupted", "nothing was touched")
        trace = seen.trace
    found = reasoning.diagnose(trace).hypotheses
    return frozenset(one.id for one in found if one.grade in {"confirmed", "likely"})
