"""HD209: a rank asks for a lock file for ever that nobody holds any more: whoever made it was killed."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.features import Member
from hangdoc.features.lock_files import Polled
from hangdoc.hypotheses import _file_locks as locks
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Known, Missing

ELSEWHERE_QUIET_S = 3600.0
"""The same where a holder may be on another machine or in another container: then only silence tells, and the longest
compile of one file in public reports took some 20 minutes."""


def _polled(case: Case) -> Polled | None:
    return _polled_by(case.patient)


def _polled_by(member: Member) -> Polled | None:
    wait = locks.file_lock(member)
    return wait.value.polled if isinstance(wait, Known) and wait.value is not None else None


def _asks_for_a_lock_file(case: Case) -> Outcome:
    """A working thread of it asks again and again for a lock that is a mere file (FileBaton, SoftFileLock)."""
    asks, polled = locks.asks_for_a_file_lock(case), _polled(case)
    if isinstance(asks, Present) and (polled is None or polled.file.kind != "existence"):
        return Absent(f"{asks.because}: the kernel lets go of that lock when its holder ends")
    return asks


def _nobody_holds_it(case: Case) -> Outcome:
    """No living process has the lock file open, as its holder would, and none can be out of sight.

    Fails for a holder that closed the file without removing it, which neither torch nor filelock does.
    """
    polled = _polled(case)
    if polled is None:
        return Unread("which lock file it asks for")
    if isinstance(polled.file.holders, Missing):
        return Unread.of(polled.file.holders, f"who holds {polled.file.path}")
    if polled.file.holders.value:
        return Absent(f"{locks.holder_names(case)} holds {polled.file.path}")
    if polled.file.elsewhere and not _quiet_for(polled, ELSEWHERE_QUIET_S):
        return Unread(f"whether a process of another machine or container holds {polled.file.path}")
    return Present(f"no living process has {polled.file.path} open")


def _quiet_for(polled: Polled, seconds: float) -> bool:
    return isinstance(polled.file.quiet_s, Known) and polled.file.quiet_s.value >= seconds


def _nothing_is_built(case: Case) -> Outcome:
    """Nothing beside the lock file was written for a minute."""
    polled = _polled(case)
    if polled is None:
        return Unread("which lock file it asks for")
    if isinstance(polled.file.quiet_s, Missing):
        return Unread.of(polled.file.quiet_s, f"what is written beside {polled.file.path}")
    sentence = f"the newest file beside {polled.file.path} is {polled.file.quiet_s.value:,.0f} s old"
    return Present(sentence) if _quiet_for(polled, locks.QUIET_S) else Absent(sentence)


def _holder_may_be_elsewhere(case: Case) -> Outcome:
    """The file can be used from where no process can be seen from here: another machine, another container."""
    polled = _polled(case)
    if polled is None:
        return Unread("which lock file it asks for")
    if polled.file.elsewhere:
        return Present("a holder on another machine, or in another container, could not be seen")
    return Absent("whoever holds it could be seen from here")


def _headline(case: Case) -> str:
    polled = _polled(case)
    path = "a lock file" if polled is None else polled.file.path
    return f"{signs.name_of(case.patient.process)} waits for {path}, which nobody who lives holds: it is stale."


def _culprits(case: Case) -> tuple[Culprit, ...]:
    """Return every rank that asks for the same file: nobody else is left who could move."""
    own = _polled(case)
    asking = [(member, _polled_by(member)) for member in case.features.movers]
    return tuple(
        signs.culprit(member, "asks for a stale lock file, and will until that is removed", polled.file.tid)
        for member, polled in asking
        if own is not None and polled is not None and polled.file.path == own.file.path
    )


HYPOTHESIS = Hypothesis(
    id="HD209",
    name="stale-lock-file",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        _asks_for_a_lock_file,
        _nobody_holds_it,
        signs.does("still", "stirs"),
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_nobody_holds_it, _nothing_is_built),
    contrary=(_holder_may_be_elsewhere,),
    excluding=(signs.nobody_died,),
    headline=_headline,
    culprits=_culprits,
    action="Delete the lock file named above: the waiting ranks then go on. Remove a half-built cache beside it, too.",
    playbook="stale-lock-file",
)
