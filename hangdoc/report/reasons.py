"""What carries a verdict, and what is still open, in the order in which a report tells it."""

from __future__ import annotations

from hangdoc.model.diagnosis import Diagnosis, Finding


def carried_by(diagnosis: Diagnosis) -> list[Finding]:
    """Return the hypotheses that carry the verdict, the leading one first."""
    sure = ("confirmed", "likely")
    return [one for one in diagnosis.hypotheses if one.verdict == diagnosis.verdict and one.grade in sure]


def still_open(diagnosis: Diagnosis) -> list[Finding]:
    """Return what was neither shown nor ruled out, by what speaks for it beyond what lacks."""
    left = [one for one in diagnosis.hypotheses if one.grade == "undetermined"]
    return sorted(left, key=lambda one: (len(one.missing) - len(one.for_), len(one.missing)))
