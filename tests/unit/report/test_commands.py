"""The commands to type go with the verdict, and only such as can help are named."""

from __future__ import annotations

from msgspec.structs import replace

from hangdoc.model.diagnosis import Diagnosis, MissingReading, Target, Verdict
from hangdoc.report.commands import commands
from tests.unit.report.diagnoses import a_diagnosis


def lines(diagnosis: Diagnosis) -> list[str]:
    return [one.line for one in commands(diagnosis)]


def said(verdict: Verdict, *missing: MissingReading) -> Diagnosis:
    return a_diagnosis(verdict=verdict, missing=missing)


def test_a_hang_is_explained_looked_at_again_and_ended() -> None:
    """In this order; ending it is a plan first."""
    step = said("blocked").next_steps[0].playbook
    assert lines(said("blocked")) == [
        f"hangdoc explain {step}",
        "hangdoc watch 100 --once",
        "hangdoc kill-clean 100 --dry-run",
    ]


def test_nothing_healthy_is_ended() -> None:
    """A start that moves is waited for, a healthy server watched; what is undetermined is looked at again."""
    assert lines(said("slow-start"))[0] == "hangdoc watch 100 --until ready"
    assert lines(said("healthy")) == ["hangdoc watch 100 --until hang"]
    assert lines(said("undetermined"))[0] == "hangdoc watch 100 --once --max-window 120"
    for verdict in ("slow-start", "healthy", "undetermined"):
        assert not any("kill" in line for line in lines(said(verdict)))


def test_probes_only_where_something_is_refused() -> None:
    """A reading that a right or a package would give is worth a look; one that does not exist is not."""
    lack = MissingReading(probe="stacks", pid=1, reason="denied", detail="", remedy="")
    assert "hangdoc probes" in lines(said("undetermined", lack))
    assert "hangdoc probes" not in lines(said("undetermined", replace(lack, reason="unsupported")))
    assert "hangdoc probes" not in lines(said("blocked", lack))


def test_who_is_gone_has_no_pid_to_type() -> None:
    """A log names no process of this machine; of a launch that is over there is nothing to watch or to end."""
    log = Target(kind="log", pid=100, host=None, engine="sglang", engine_version=None)
    for diagnosis in (replace(said("hung"), target=log), replace(said("crashed"), processes=())):
        assert all(line.startswith("hangdoc explain ") for line in lines(diagnosis))
