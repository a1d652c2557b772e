"""HD301: processes of the launch are importing their modules, which takes all of a core and is silent."""

from __future__ import annotations

from collections.abc import Sequence

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity
from hangdoc.features.features import Features, Member
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.reading import Missing


def _movers_or_launcher(features: Features) -> Sequence[Member | None]:
    launchers = tuple(member for member in features.members.values() if member.process.role == "launcher")
    return (*features.movers, *(member for member in launchers if member not in features.movers))


def _moves(case: Case) -> Outcome:
    """It shows work, or at least runs and its stack moves on."""
    done = activity(case.patient)
    name = signs.name_of(case.patient.process)
    if isinstance(done, Missing):
        return Unread.of(done, f"what {name} does")
    if done.value in {"works", "stirs"}:
        return Present(f"{name} {signs.describe(done.value)}")
    if done.value == "still":
        return Absent(f"{name} {signs.describe(done.value)}")
    main = case.patient.main
    if isinstance(main, Missing) or len({view.stack for view in main.value.views}) < 2:
        return Unread(f"whether the import of {name} gets on: it burns CPU and its stack stood still")
    return Present(f"{name} goes from import to import: {len({v.stack for v in main.value.views})} different stacks")


def _normal(case: Case) -> str:
    return "a normal, silent start" if signs.is_server(case.features) else "that is silent, and it gets on"


HYPOTHESIS = Hypothesis(
    id="HD301",
    name="slow-start-importing",
    verdict="slow-start",
    suspects=_movers_or_launcher,
    essential=(
        signs.main_thread(lambda main: main.last.meaning.phase == "launch", "is importing", "is not importing"),
        _moves,
    ),
    supporting=(signs.does("works"),),
    confirm_at=1,
    excluding=(signs.nobody_died,),
    headline=lambda case: f"{signs.name_of(case.patient.process)} is importing modules: {_normal(case)}.",
    culprits=lambda case: (signs.culprit(case.patient, "is importing"),),
    action="Wait: imports take 10 to 45 s on an idle machine, minutes on a full one or a cold network disk.",
    playbook="slow-start-importing",
)
