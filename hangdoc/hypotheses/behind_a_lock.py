"""HD305: a rank waits for a file lock whose holder builds or downloads."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity
from hangdoc.hypotheses import _file_locks as locks
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._chains import culprit_at, end_name
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Missing


def _holder_works(case: Case) -> Outcome:
    """Whoever holds the lock, or a child of it, used CPU between two readings some seconds apart."""
    wait, work = locks.file_lock(case.patient), locks.work_of_holders(case)
    if isinstance(wait, Missing) or (wait.value is not None and wait.value.nobody_lives):
        return Absent("nobody who lives holds it") if not isinstance(wait, Missing) else Unread("who holds the lock")
    if isinstance(work, Missing):
        return Unread(work.detail)
    busy = [(end_name(case.features, end), ticks) for end, ticks in work.value if ticks >= locks.WORK_TICKS]
    if busy:
        return Present(f"{busy[0][0]}, which holds the lock, is at work: {busy[0][1]} ticks of CPU between two looks")
    if any(ticks for _, ticks in work.value):
        return Unread("whether the holder of the lock is at work: it used next to no CPU")
    return Absent("whoever holds the lock used no CPU")


def _holder_does_not_spin(case: Case) -> Outcome:
    """No holder of the launch burns CPU without any outside sign of work."""
    for end in locks.holders_of(case):
        member = case.features.members.get(end.process)
        if member is None:
            continue
        done = activity(member)
        if isinstance(done, Missing):
            return Unread.of(done, f"what {signs.name_of(member.process)} does")
        if done.value == "spins":
            return Absent(f"{signs.name_of(member.process)}, which holds the lock, {signs.describe(done.value)}")
    return Present("no holder of the lock is seen to spin")


def _something_is_written(case: Case) -> Outcome:
    """A file beside the lock file was written within the last minute."""
    wait = locks.file_lock(case.patient)
    if isinstance(wait, Missing) or wait.value is None or wait.value.polled is None:
        return Unread("what is written beside the lock")
    quiet_s = wait.value.polled.file.quiet_s
    if isinstance(quiet_s, Missing):
        return Unread.of(quiet_s, "what is written beside the lock")
    sentence = f"the newest file beside the lock is {quiet_s.value:,.0f} s old"
    return Present(sentence) if quiet_s.value < locks.QUIET_S else Absent(sentence)


def _culprits(case: Case) -> tuple[Culprit, ...]:
    what = f"holds the file lock of {signs.name_of(case.patient.process)}, and works"
    return tuple(culprit_at(case.features, (end.process.pid, end.process.pid), what) for end in locks.holders_of(case))


HYPOTHESIS = Hypothesis(
    id="HD305",
    name="slow-start-behind-a-lock",
    verdict="slow-start",
    suspects=signs.each_mover,
    essential=(locks.asks_for_a_file_lock, _holder_works, _holder_does_not_spin),
    supporting=(_holder_works, _something_is_written),
    excluding=(signs.nobody_died,),
    headline=lambda case: (
        f"{signs.name_of(case.patient.process)} waits for {locks.holder_names(case)}, which holds its lock and works."
    ),
    culprits=_culprits,
    action="Wait for the process that holds the lock: it builds or downloads what this rank needs.",
    playbook="slow-start-behind-a-lock",
)
