"""HD223: all ranks wait in one collective on the host, nobody is missing, and it does not end: its transport fails."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.reading import Missing


def _all_sleep_in_one_collective(case: Case) -> Outcome:
    """Every rank of its group slept in the same collective for 9 s or more."""
    found = ranks.compared(case)
    if isinstance(found, Unread):
        return found
    together = ranks.all_stand_together(case)
    if isinstance(together, Absent):
        return together
    members = [case.features.members[key] for key in found.classes[0].members]
    mains = [member.main for member in members]
    if not all(main.value.always_does("collective") for main in mains if not isinstance(main, Missing)):
        return Absent(f"they are in no collective: {ranks.place_of_class(found.classes[0])}")
    asleep = ranks.all_sleep(case.features, found.classes[0].members)
    return together if isinstance(asleep, Present) else asleep


def _nobody_is_missing(case: Case) -> Outcome:
    """All ranks that the launch was told of are here, and they serve, so that their communicators have worked before.

    A first collective may take long because NCCL or Gloo connects in it; of ranks on other nodes nothing is seen.
    """
    apart = ranks.one_node(case)
    if not isinstance(apart, Present):
        return Unread(apart.because)
    settings = case.features.launch.settings
    sizes = [settings.get(name, "1") for name in ("tp_size", "pp_size")]
    wanted = int(sizes[0]) * int(sizes[1]) if all(size.isdigit() for size in sizes) else 0
    count = len(case.features.movers)
    if not wanted or count < wanted:
        return Unread(f"whether a rank is missing: {count} are here")
    main = case.patient.main
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {signs.name_of(case.patient.process)}")
    if not main.value.always_does("event-loop"):
        return Unread("whether the collective only takes long, since the launch is still starting")
    return Present(f"all {count} ranks are here, and none is missing in the collective")


HYPOTHESIS = Hypothesis(
    id="HD223",
    name="all-ranks-in-one-collective",
    verdict="blocked",
    suspects=signs.each_mover,
    essential=(
        ranks.several_ranks,
        _all_sleep_in_one_collective,
        signs.positive_or_patience(_nobody_is_missing),
        signs.nothing_progresses,
        signs.readings_are_steady,
    ),
    supporting=(_nobody_is_missing, signs.log_is_silent_too_long),
    excluding=(signs.nobody_died,),
    headline="All ranks wait in the same collective and it does not end: its transport fails, no rank is astray.",
    action="Test the transport of that group (GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME); switch off what asks for it.",
    playbook="all-ranks-in-one-collective",
)
