"""How closely a launch is looked at: everything on suspicion, little beside the cheap readings while it is well."""

from __future__ import annotations

from hangdoc.sampling.schedule import SPARSE_EVERY, is_thorough

CALM_EVERY = 10
"""While a launch is well, deep readings (stacks, locks, the HTTP server) are taken in every tenth round: three in the
window of 31 rounds that a diagnosis looks at, which is what telling a loop takes."""

QUIET_EVERY = 30
"""The same once nothing has changed for a while. Arbitrary."""

RESTING_EVERY = 60
"""The same once nothing has changed for minutes: as seldom as leaves three dumps within the time for which one counts
(see observe.ring). Arbitrary: the stacks of 10 processes x 200 threads cost 0.4 s of CPU."""

LEAD_ROUNDS = 4
"""Rounds from the deep readings to the diagnosis: stacks arrive one round later, on a busy machine three."""


class Pace:
    """The pace of one observation, set by whoever reasons about it; read once a round.

    It begins in suspicion: a first look has to be complete.
    """

    def __init__(self) -> None:
        self._calm = False
        self._every = CALM_EVERY
        self._round = 0
        self._suspected_at = 0
        self._deep_at = 0
        self._thorough_at = 0

    @property
    def calm(self) -> bool:
        """Whether there is no reason to look closely: the launch is well, or stays as it was found long ago."""
        return self._calm

    def calm_down(self, every: int = CALM_EVERY) -> None:
        """Take deep readings in every Nth round only; the next ones shortly before N rounds from now."""
        self._calm, self._every = True, every
        self._deep_at = self._round + every - LEAD_ROUNDS

    def is_deep(self, index: int) -> bool:
        """Say whether deep readings are due in a round."""
        return not self._calm or (index >= self._deep_at and (index - self._deep_at) % self._every == 0)

    def suspect(self) -> None:
        """Take deep readings often again, a thorough round first."""
        if self._calm:
            self._calm = False
            self._suspected_at = self._round + 1

    def next_round(self, index: int) -> bool:
        """Say whether a round reads everything; while suspicion lasts this counts from its beginning."""
        self._round = index
        if self._calm:
            is_due = self.is_deep(index) and index - self._thorough_at >= SPARSE_EVERY
        else:
            is_due = is_thorough(index - self._suspected_at)
        if is_due:
            self._thorough_at = index
        return is_due
