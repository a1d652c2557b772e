"""Carry a plan out: evidence, the last look, the signals, the proof; and say how far it came when it is interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from hangdoc.ending.descriptors import lives
from hangdoc.ending.evidence import Evidence, default_path, record
from hangdoc.ending.interruption import report_undisturbed
from hangdoc.ending.outcome import Outcome
from hangdoc.ending.plan import Plan, stock_taken_again
from hangdoc.ending.procedure import RETURNS, Procedure, Say, futile
from hangdoc.ending.proof import prove
from hangdoc.ending.records import Ended, LookAlike
from hangdoc.launch.find import PROC


@dataclass
class _Course:
    """How far an ending has come; changed as it goes, so that an interruption can be reported."""

    plan: Plan
    proc: Path
    snapshot: Path | None
    procedure: Procedure
    ended: Ended | None = None

    def outcome(self) -> Outcome:
        """Report an interruption: what was sent, who lives, where the evidence is."""
        ended = self.ended
        ended = self.procedure.so_far(interrupted=True) if ended is None else replace(ended, interrupted=True)
        evidence = self.snapshot if self.snapshot is not None and self.snapshot.exists() else None
        return Outcome(self.plan, evidence, ended)


def carry_out(plan: Plan, snapshot: Path | None, gpu_timeout_s: float, say: Say, proc: Path = PROC) -> Outcome:
    """End one launch. snapshot: where the evidence goes, None for none; say: told what is being done.

    Ctrl-C, and within `interruptible` SIGTERM and SIGHUP, ends it where it is: the outcome is then
    marked as interrupted and has no proof.
    """
    course = _course(plan, snapshot, say, proc)
    try:
        return _carry_out(course, gpu_timeout_s, say)
    except KeyboardInterrupt:
        report_undisturbed()
        return course.outcome()


def not_begun(plan: Plan, proc: Path = PROC) -> Outcome:
    """Return the outcome of a launch whose turn did not come because hangdoc was interrupted."""
    return _course(plan, None, lambda _: None, proc).outcome()


def _course(plan: Plan, snapshot: Path | None, say: Say, proc: Path) -> _Course:
    cgroup = "" if plan.traits.cgroup_doubt and not plan.traits.is_alone else next(iter(plan.traits.cgroups), "")
    return _Course(plan, proc, snapshot, Procedure(plan.muster, proc, plan.traits.root, cgroup, say))


def _carry_out(course: _Course, gpu_timeout_s: float, say: Say) -> Outcome:
    plan, proc = course.plan, course.proc
    root = plan.traits.root
    evidence: Evidence | None = None
    living = plan.muster.living()
    if course.snapshot is not None and living:
        say(f"recording {course.snapshot}")
        evidence = record(next((one for one in living if one.key == root), living[0]).key.pid, course.snapshot)
    plan.muster.refresh()
    course.plan = plan = stock_taken_again(plan, proc)
    ended = course.procedure.run(futile(proc, plan.muster, root, evidence.hang if evidence is not None else ""))
    course.ended = ended = replace(ended, going_on=(*ended.going_on, *_looping_on(plan, proc)))
    after = prove(plan, ended, gpu_timeout_s, proc)
    return Outcome(plan, evidence.path if evidence is not None else None, ended, after)


def _looping_on(plan: Plan, proc: Path) -> Iterator[LookAlike]:
    """Yield the script above the launch that has a loop and other programs, and lives: it was never a member."""
    for one in plan.roll.supervisors:
        if one.loops is not None and lives(proc, one.loops):
            because = f"{RETURNS[True]}; to end it, too: {one.command}"
            yield LookAlike(one.loops, one.name, because, in_doubt=True, is_tied=True)


def snapshot_path(plan: Plan) -> Path:
    """Return where the evidence of a launch goes."""
    return default_path(plan.traits.root.pid)
