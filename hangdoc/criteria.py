"""The grammar of a hypothesis: signs that are essential, supporting, contrary or excluding, and the grade they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hangdoc.features.features import Features, Member
from hangdoc.model.diagnosis import Culprit, Grade, Verdict, Wait
from hangdoc.model.reading import Missing


@dataclass(frozen=True)
class Present:
    """The sign was looked for and found. because: one sentence for the report."""

    because: str


@dataclass(frozen=True)
class Absent:
    """The sign was looked for and is not there."""

    because: str


@dataclass(frozen=True)
class Unread:
    """The sign could not be looked for: what is missing."""

    because: str

    @classmethod
    def of(cls, missing: Missing, what: str) -> Unread:
        """Say which reading is missing for what."""
        return cls(f"{what}: {missing.probe} {missing.reason}" + (f" ({missing.detail})" if missing.detail else ""))


Outcome: TypeAlias = Present | Absent | Unread


@dataclass(frozen=True)
class Case:
    """What a sign looks at: the features, and the suspect a hypothesis is tried on (None: the launch as a whole)."""

    features: Features
    suspect: Member | None

    @property
    def patient(self) -> Member:
        """The suspect of a hypothesis whose suspects are members."""
        if self.suspect is None:
            raise ValueError("this hypothesis is tried on the launch as a whole")
        return self.suspect


Sign: TypeAlias = Callable[[Case], Outcome]


@dataclass(frozen=True, kw_only=True)
class Hypothesis:
    """A clinical criterion without weights.

    suspects: from the roster alone, never from readings, so that a missing reading cannot add one; the whole launch
    is (None,). essential: without one of them it is not this. supporting: confirm_at of them make it certain.
    contrary: one that is there, or could not be read, leaves at most likely. excluding: one that is there rules it
    out; one that could not be read leaves it undetermined, as a missing essential sign does.
    action: what to do next; action_in: the same for one case, where that can be told more exactly.
    headline: one sentence a tired person understands; culprits: who has to move; waits: the edges it saw.
    """

    id: str
    name: str
    verdict: Verdict
    suspects: Callable[[Features], Sequence[Member | None]]
    essential: tuple[Sign, ...]
    supporting: tuple[Sign, ...] = ()
    contrary: tuple[Sign, ...] = ()
    excluding: tuple[Sign, ...] = ()
    confirm_at: int = 2
    headline: Callable[[Case], str] | str
    culprits: Callable[[Case], tuple[Culprit, ...]] | None = None
    waits: Callable[[Case], tuple[Wait, ...]] | None = None
    action: str
    action_in: Callable[[Case], str] | None = None
    playbook: str


@dataclass(frozen=True)
class Weighed:
    """A hypothesis after weighing it on its best suspect. support: how many supporting signs were found."""

    hypothesis: Hypothesis
    case: Case
    grade: Grade
    support: int
    for_: tuple[str, ...]
    against: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def headline(self) -> str:
        """One sentence a tired person understands."""
        text = self.hypothesis.headline
        return text if isinstance(text, str) else text(self.case)

    @property
    def action(self) -> str:
        """What to do next."""
        exact = self.hypothesis.action_in
        return self.hypothesis.action if exact is None else exact(self.case)

    @property
    def culprits(self) -> tuple[Culprit, ...]:
        """Who has to move."""
        return () if self.hypothesis.culprits is None else self.hypothesis.culprits(self.case)

    @property
    def waits(self) -> tuple[Wait, ...]:
        """Who waits for whom."""
        return () if self.hypothesis.waits is None else self.hypothesis.waits(self.case)


RANK: dict[Grade, int] = {"confirmed": 3, "likely": 2, "undetermined": 1, "ruled-out": 0}


def weigh(hypothesis: Hypothesis, features: Features) -> Weighed:
    """Weigh a hypothesis on each of its suspects and return the best; the first one of equals."""
    weighed = [_weigh_on(hypothesis, Case(features, suspect)) for suspect in hypothesis.suspects(features)]
    if not weighed:
        nobody = Case(features, None)
        return Weighed(hypothesis, nobody, "ruled-out", 0, (), ("the launch has no process that this could be",), ())
    return max(weighed, key=lambda one: (RANK[one.grade], one.support, -len(one.against)))


def _weigh_on(hypothesis: Hypothesis, case: Case) -> Weighed:
    essential = [_outcome(sign, case) for sign in hypothesis.essential]
    excluding = [_outcome(sign, case) for sign in hypothesis.excluding]
    contrary = [_outcome(sign, case) for sign in hypothesis.contrary]
    supporting = [_outcome(sign, case) for sign in hypothesis.supporting]
    support = sum(isinstance(outcome, Present) for outcome in supporting)
    speaks_for = [o for o in (*essential, *supporting) if isinstance(o, Present)]
    not_against = [o for o in (*excluding, *contrary) if isinstance(o, Absent)]
    against = [o for o in (*excluding, *contrary) if isinstance(o, Present)] + [
        o for o in essential if isinstance(o, Absent)
    ]
    unread = [o for o in (*essential, *excluding, *contrary, *supporting) if isinstance(o, Unread)]
    return Weighed(
        hypothesis=hypothesis,
        case=case,
        grade=grade(essential, excluding, contrary, enough=support >= hypothesis.confirm_at),
        support=support,
        for_=_sentences([*speaks_for, *not_against]),
        against=_sentences(against),
        missing=_sentences(unread),
    )


def _outcome(sign: Sign, case: Case) -> Outcome:
    """Look for a sign once for each suspect: many hypotheses ask for the same one."""
    found = case.features.outcomes
    key = (sign, None if case.suspect is None else case.suspect.key)
    if key not in found:
        found[key] = sign(case)
    outcome: Outcome = found[key]
    return outcome


def grade(
    essential: Sequence[Outcome], excluding: Sequence[Outcome], contrary: Sequence[Outcome], *, enough: bool
) -> Grade:
    """Return the grade that outcomes give; taking a reading away never raises it.

    >>> grade([Present("a")], [Absent("b")], [], enough=False)
    'likely'
    >>> grade([Present("a"), Unread("c")], [Absent("b")], [], enough=True)
    'undetermined'
    >>> grade([Present("a")], [Present("b")], [], enough=True)
    'ruled-out'
    """
    if any(isinstance(o, Present) for o in excluding) or any(isinstance(o, Absent) for o in essential):
        return "ruled-out"
    if any(isinstance(o, Unread) for o in (*essential, *excluding)):
        return "undetermined"
    if not enough or not all(isinstance(o, Absent) for o in contrary):
        return "likely"
    return "confirmed"


def _sentences(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(outcome.because for outcome in outcomes))
