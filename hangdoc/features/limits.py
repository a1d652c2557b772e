"""How long remains until a timer of the launch's own ends it."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.features.features import Features
from hangdoc.features.patience import no_progress_s
from hangdoc.model.engine import Engine, TimeLimit
from hangdoc.model.reading import Known


@dataclass(frozen=True)
class Remaining:
    """One timer that runs in this phase. left_s: until it may end the launch, below 0 when due; None: not read."""

    limit: TimeLimit
    seconds: float
    left_s: float | None


def remaining(features: Features, engine: Engine) -> tuple[Remaining, ...]:
    """Return the timers that run in the phase, the next one first.

    Rule: a timer that runs in this phase began when the launch last got on. It works because each is set back by
    progress; it fails for one that was set back without anything that hangdoc sees, and then comes later than said.
    """
    if features.has_ended:
        return ()
    stood = no_progress_s(features)
    found = [
        Remaining(limit, seconds, seconds - stood.value if isinstance(stood, Known) else None)
        for limit in engine.limits
        if features.phase in limit.phases and _counts(limit, features)
        if (seconds := features.launch.limits.get(limit.name)) is not None
    ]
    return tuple(sorted(found, key=lambda one: (one.left_s is None, one.left_s, one.seconds)))


def _counts(limit: TimeLimit, features: Features) -> bool:
    """A collective's timer is that of NCCL: it needs several ranks on GPUs."""
    if not limit.of_ranks:
        return True
    if len(features.movers) < 2:
        return False
    return not limit.of_gpus or not isinstance(features.gpus, Known) or bool(features.gpus.value.devices)
