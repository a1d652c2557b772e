"""The grammar of a hypothesis: signs that are essential, supporting, contrary or excluding, and the grade they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hangdoc.features.features import Features, Member
from hangdoc.model.diagnosis import Culprit, Grade, Verdict, Wait
from hangdoc.model.process import ProcessKey
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


class Outcomes:
    """What the signs say over one set of features: each is asked once of a suspect, whichever hypotheses ask for it.

    One that did not look at its suspect is asked once for all: with hundreds of ranks, signs about the whole launch
    would each go over all members for every member.
    """

    def __init__(self, features: Features) -> None:
        self.features = features
        self._of_all: dict[Sign, Outcome] = {}
        self._of_one: dict[tuple[Sign, ProcessKey | None], Outcome] = {}

    def of(self, sign: Sign, suspect: Member | None) -> Outcome:
        """Return what a sign says of a suspect."""
        key = (sign, None if suspect is None else suspect.key)
        known = self._of_all.get(sign) or self._of_one.get(key)
        if known is not None:
            return known
        case = _WatchedCase(self.features, suspect)
        outcome = sign(case)
        if case.looked_at:
            self._of_one[key] = outcome
        else:
            self._of_all[sign] = outcome
        return outcome


class _WatchedCase(Case):
    """A case that knows whether its suspect was looked at."""

    def __init__(self, features: Features, suspect: Member | None) -> None:
        object.__setattr__(self, "features", features)
        object.__setattr__(self, "hidden", suspect)
        object.__setattr__(self, "looked_at", False)

    hidden: Member | None
    looked_at: bool

    @property
    def suspect(self) -> Member | None:
        object.__setattr__(self, "looked_at", True)
        return self.hidden


RANK: dict[Grade, int] = {"confirmed": 3, "likely": 2, "undetermined": 1, "ruled-out": 0}


def weigh(hypothesis: Hypothesis, features: Features, outcomes: Outcomes | None = None) -> Weighed:
    """Weigh a hypothesis on each of its suspects and return the best; the first one of equals.

    outcomes: of the same features, where other hypotheses ask for the same signs.
    """
    said = outcomes or Outcomes(features)
    weighed = [_weigh_on(hypothesis, Case(features, suspect), said) for suspect in hypothesis.suspects(features)]
    if not weighed:
        nobody = Case(features, None)
        return Weighed(hypothesis, nobody, "ruled-out", 0, (), ("the launch has no process that this could be",), ())
    return max(weighed, key=lambda one: (RANK[one.grade], one.support, -len(one.against)))


def _weigh_on(hypothesis: Hypothesis, case: Case, said: Outcomes) -> Weighed:
    essential = [said.of(sign, case.suspect) for sign in hypothesis.essential]
    excluding = [said.of(sign, case.suspect) for sign in hypothesis.excluding]
    contrary = [said.of(sign, case.suspect) for sign in hypothesis.contrary]
    supporting = [said.of(sign, case.suspect) for sign in hypothesis.supporting]
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
