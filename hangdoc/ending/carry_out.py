"""Carry a plan out: evidence, the last look, the signals, the proof."""

from __future__ import annotations

from pathlib import Path

from hangdoc.ending.evidence import Evidence, default_path, record
from hangdoc.ending.outcome import Outcome
from hangdoc.ending.plan import Plan, stock_taken_again
from hangdoc.ending.procedure import Procedure, Say, futile
from hangdoc.ending.proof import prove
from hangdoc.launch.find import PROC


def carry_out(plan: Plan, snapshot: Path | None, gpu_timeout_s: float, say: Say, proc: Path = PROC) -> Outcome:
    """End one launch. snapshot: where the evidence goes, None for none; say: told what is being done."""
    root = plan.traits.root
    evidence: Evidence | None = None
    living = plan.muster.living()
    if snapshot is not None and living:
        say(f"recording {snapshot}")
        evidence = record(next((one for one in living if one.key == root), living[0]).key.pid, snapshot)
    plan.muster.refresh()
    plan = stock_taken_again(plan, proc)
    cgroup = next(iter(plan.traits.cgroups), "")
    procedure = Procedure(plan.muster, proc, root, cgroup, say)
    ended = procedure.run(futile(proc, plan.muster, root, evidence.hang if evidence is not None else ""))
    after = prove(plan, ended, gpu_timeout_s, proc)
    return Outcome(plan, evidence.path if evidence is not None else None, ended, after)


def snapshot_path(plan: Plan) -> Path:
    """Return where the evidence of a launch goes."""
    return default_path(plan.traits.root.pid)
