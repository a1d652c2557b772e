"""Rounds over the patients, on a machine that is idle and on one whose cores are all busy."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec.structs import replace

from tests.accuracy.records import Group, Load, Record, Round
from tests.patients.companions import burners, dismiss
from tests.patients.needs import lacking
from tests.patients.stage import HANGS, PATIENTS, Patient
from tests.patients.ward import SURE_S, TRACE_FILE, NoDocumentError, Seen, Ward

UNSEEN = "unseen_"
"""How the modules begin whose patients were written by somebody who had not read the hypotheses."""


def group_of(patient: Patient) -> Group:
    """Return whose patient it is."""
    module = patient.act.__module__.rpartition(".")[2]
    return "unseen" if module.startswith(UNSEEN) else "patients"


@contextmanager
def loaded(load: Load) -> Iterator[None]:
    """Keep every core busy, or none."""
    with ExitStack() as stack:
        for burner in burners(os.sched_getaffinity(0)) if load == "busy" else ():
            stack.callback(dismiss, burner)
        yield


def look_at_patients(names: Sequence[str], beds: int, now: Round) -> None:
    """Look once at each patient that has not been looked at in this round yet; beds: how many at a time."""
    here = [name for name in names if not lacking(PATIENTS[name].needs)]
    left = [name for name in here if now.lacks(group_of(PATIENTS[name]), name)]
    with tempfile.TemporaryDirectory(prefix="hangdoc-ward-", ignore_cleanup_errors=True) as folder, loaded(now.load):
        ward = Ward(left, Path(folder), beds, SURE_S)  # as long as whoever gives no option waits
        try:
            for name in ward.as_they_end():
                now.enter(_record(ward, name, now), Path(folder, name, TRACE_FILE))
                shutil.rmtree(Path(folder, name), ignore_errors=True)
        finally:
            ward.close()


def _record(ward: Ward, name: str, now: Round) -> Record:
    patient = PATIENTS[name]
    blank = now.blank(group_of(patient), name, *patient.truth.accepted)
    try:
        return told(blank, ward.look(name))
    except NoDocumentError as error:
        return replace(blank, state="failed", why=str(error))
    except (TimeoutError, RuntimeError) as error:
        return replace(blank, state="inconclusive", why=f"never fell ill: {error}"[:300])


def told(blank: Record, seen: Seen) -> Record:
    """Return what was said of a patient, weighed against its truth."""
    truth, hypotheses = seen.patient.truth, seen.document["hypotheses"]
    assert isinstance(hypotheses, list)
    judged = seen.verdict in HANGS and bool(truth.accepted & HANGS)
    return replace(
        blank,
        state="inconclusive" if seen.not_seen else "conclusive",
        why=seen.not_seen,
        verdict=seen.verdict,
        grade=str(seen.document["grade"]),
        hypothesis=hypotheses[0]["id"],
        culprits=tuple(seen.culprits),
        culprit_right=truth.names(frozenset(seen.culprits)) if judged else None,
        waits_right=len(truth.edges & seen.edges),
        waits_known=len(truth.edges),
        took_s=round(seen.took_s, 2),
    )
