"""Real small launches with a known illness, or none: what hangdoc says of each, and what it must never say."""

from __future__ import annotations

import pytest

from hangdoc.diagnosis import diagnose
from tests.golden.recording import keep
from tests.patients.stage import HANGS, PATIENTS
from tests.patients.ward import Ward
from tests.properties.test_missing_readings import check, groups_of, without

pytestmark = pytest.mark.slow
"""The fast part replays their recorded twins instead (tests/golden/patients)."""

SICK = sorted(name for name, patient in PATIENTS.items() if patient.truth.accepted & HANGS)
WELL = sorted(set(PATIENTS) - set(SICK))


def is_unseen(name: str) -> bool:
    """Tell whether a patient was written by somebody who had not read the hypotheses."""
    return ".unseen_" in PATIENTS[name].act.__module__


def accepted(name: str) -> frozenset[str]:
    """Return what may be said of a patient here.

    An unseen one may be left undetermined: how often that should not be so is for `make accuracy` to say, which
    reports them apart. To make each of them decided would end their use.
    """
    return PATIENTS[name].truth.accepted | (frozenset({"undetermined"}) if is_unseen(name) else frozenset())


@pytest.mark.parametrize("name", SICK)
def test_illness(ward: Ward, name: str) -> None:
    """A patient that hangs is called what it is, likely at least, and nobody but whoever has to move is named."""
    seen = ward.look(name)
    truth = seen.patient.truth
    assert seen.verdict in accepted(name), seen.told()
    assert not seen.not_seen, f"inconclusive: {seen.not_seen}"
    if seen.verdict in HANGS:
        assert seen.document["grade"] in {"likely", "confirmed"}, seen.told()
        assert truth.names(frozenset(seen.culprits)), seen.told()
    keep(seen.file, f"patients/{name}")


@pytest.mark.parametrize("name", sorted(name for name, patient in PATIENTS.items() if patient.truth.edges))
def test_who_waits_for_whom(ward: Ward, name: str) -> None:
    """The waits that a patient has been given are listed, whatever the verdict is."""
    seen = ward.look(name)
    assert seen.patient.truth.edges <= seen.edges, seen.told()


@pytest.mark.parametrize("name", WELL)
def test_no_false_hang(ward: Ward, name: str) -> None:
    """A patient that idles, works, starts or will go on never hangs; one that was not seen to do so proves nothing."""
    seen = ward.look(name)
    assert not seen.not_seen, f"inconclusive: {seen.not_seen}"
    assert seen.verdict not in seen.patient.truth.forbidden, seen.told()
    assert seen.verdict in accepted(name), seen.told()
    keep(seen.file, f"patients/{name}")


@pytest.mark.parametrize("name", sorted(PATIENTS))
def test_a_reading_less_makes_nothing_more_certain(ward: Ward, name: str) -> None:
    """Without any one probe of any one process of a real patient no grade rises and no hang appears."""
    trace = ward.look(name).trace
    before = diagnose(trace, "trace")
    for group in groups_of(trace):
        check(before, diagnose(without(trace, frozenset({group})), "trace"), f"{group} of {name}")
