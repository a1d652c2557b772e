"""Ranks that stand: where, for how long, and whether all of them stand there; shared by the hypotheses that compare."""

from __future__ import annotations

from collections.abc import Iterable

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.features.activity import activity
from hangdoc.features.features import Features, Member
from hangdoc.features.frames import bare_name, is_file
from hangdoc.features.ranks import COLLECTIVES, Comparison, StackClass, comparison_of, motion_of
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._plumbing import is_plumbing
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Missing
from hangdoc.model.stack import Frame, Stack

FEWEST_DUMPS = 3
"""Dumps that all have to be the same, to the line, before a thread counts as standing."""

STANDS_S = 9.0
"""Seconds over which they have to be: a kernel or a collective of a served model ends within one, a prefill of a very
long context within a few, and such a kernel draws power. Arbitrary above that."""


def stands(member: Member) -> Outcome:
    """Tell whether a member's main thread stood at one line of Python for STANDS_S."""
    name = signs.name_of(member.process)
    if isinstance(member.main, Missing):
        return Unread.of(member.main, f"stack of {name}")
    main = member.main.value
    if motion_of(main) == "moving":
        return Absent(f"the stack of {name} moves: last in {signs.where(main)}")
    seen_s = 0.0 if isinstance(member.dumps, Missing) else member.dumps.value.seconds
    if len(main.views) < FEWEST_DUMPS or seen_s < STANDS_S:
        return Unread(f"whether {name} stands: seen for {seen_s:.0f} s only in {signs.where(main)}")
    return Present(f"{name} stood in {signs.where(main)} for {seen_s:.0f} s")


def stands_in_one_place(case: Case) -> Outcome:
    """Its main thread stood at one line of Python in three dumps or more, over 9 s or more."""
    return stands(case.patient)


def compared(case: Case) -> Comparison | Unread:
    """Return the comparison of the suspect's group, or which of its stacks is missing."""
    found = comparison_of(case.features, case.patient.key)
    if found is None:
        return Unread(f"where the other ranks of {signs.name_of(case.patient.process)} stand")
    for key in found.unread:
        member = case.features.members[key]
        assert isinstance(member.main, Missing)
        return Unread.of(member.main, f"stack of {signs.name_of(member.process)}")
    return found


def keys_of(found: Comparison) -> tuple[ProcessKey, ...]:
    """Return every rank of a comparison."""
    return tuple(key for one in found.classes for key in one.members)


def others_than(found: Comparison, suspect: Member) -> tuple[StackClass, ...]:
    """Return the classes that a suspect is not in."""
    return tuple(one for one in found.classes if suspect.key not in one.members)


def all_stand_together(case: Case) -> Outcome:
    """Every rank of its group stood in the same place, for 9 s or more."""
    found = compared(case)
    if isinstance(found, Unread):
        return found
    if len(found.classes) > 1:
        astray = found.odd[0] if found.odd else found.classes[-1]
        return Absent(f"{names(case.features, astray.members)} stands elsewhere: {place_of_class(astray)}")
    outcome = all_stand(case.features, found.classes[0].members)
    if not isinstance(outcome, Present):
        return outcome
    count = len(found.classes[0].members)
    return Present(f"all {count} ranks stood in one place: {place_of_class(found.classes[0])}")


def all_stand(features: Features, keys: Iterable[ProcessKey]) -> Outcome:
    """Tell whether each of these stood in a place, whichever: the first that did not, or is not known, decides."""
    outcomes = [stands(features.members[key]) for key in keys]
    for kind in (Absent, Unread):
        if (other := next((one for one in outcomes if isinstance(one, kind)), None)) is not None:
            return other
    return Present("; ".join(one.because for one in outcomes))


def all_sleep(features: Features, keys: Iterable[ProcessKey]) -> Outcome:
    """Tell whether each of these ran no work and burnt no CPU."""
    for key in keys:
        member = features.members[key]
        done = activity(member)
        if isinstance(done, Missing):
            return Unread.of(done, f"what {signs.name_of(member.process)} does")
        if done.value in {"works", "spins"}:
            return Absent(f"{signs.name_of(member.process)} {signs.describe(done.value)}")
    return Present("none of them burns CPU")


def several_ranks(case: Case) -> Outcome:
    """There is more than one rank on this node."""
    count = len(case.features.movers)
    return Present(f"{count} ranks run here") if count > 1 else Absent("there is no other rank")


def one_node(case: Case) -> Outcome:
    """The launch was told of no node but this one."""
    nodes = case.features.launch.nodes
    if nodes is None:
        return Unread("over how many nodes the launch is spread")
    if nodes > 1:
        return Absent(f"the launch is spread over {nodes} nodes: what the others do is not seen from here")
    return Present("all ranks of the launch are on this node")


def several_nodes(case: Case) -> Outcome:
    """The launch was told of more nodes than this one."""
    nodes = case.features.launch.nodes
    if nodes is None:
        return Unread("over how many nodes the launch is spread")
    if nodes > 1:
        return Present(f"the launch is spread over {nodes} nodes")
    return Absent("all ranks of the launch are on this node")


def is_in_rendezvous(case: Case) -> Outcome:
    """Excluding: it is still setting up its communicators, for which there are hypotheses of their own."""
    main = case.patient.main
    if isinstance(main, Missing):
        return Unread.of(main, f"stack of {signs.name_of(case.patient.process)}")
    if main.value.ever_does("rendezvous"):
        return Present(f"{signs.name_of(case.patient.process)} is in the rendezvous: {signs.where(main.value)}")
    return Absent(f"{signs.name_of(case.patient.process)} is past the rendezvous")


def patience_is_over(case: Case) -> Outcome:
    """The silence outlasts the phase's patience: a slow transport looks the same before."""
    return signs.silence_outlasts_patience(case.features)


def names(features: Features, keys: Iterable[ProcessKey]) -> str:
    """Return how a sentence calls these members."""
    return ", ".join(signs.name_of(features.members[key].process) for key in keys)


def place_of_class(one: StackClass) -> str:
    """Return where a class stands, for a sentence: the outermost collective and who asked for it, or the leaf."""
    stack = outside_the_collective(one.stack)
    shown = [frame for frame in stack if not is_plumbing(frame)][:2] or list(stack[:1])
    return " called by ".join(signs.place_of(frame) for frame in shown) or "no common frame"


def outside_the_collective(stack: Stack) -> Stack:
    """Return a stack from the collective that was asked for outwards."""
    begins = [at for at, frame in enumerate(stack) if is_file(frame.file, COLLECTIVES)]
    return stack[begins[-1] :] if begins else stack


def frames_of(member: Member) -> tuple[Frame, ...]:
    """Return the frames of a member's newest main stack; empty when it was not read."""
    return () if isinstance(member.main, Missing) else member.main.value.last.stack


def is_inside(member: Member, file: str, *functions: str) -> bool:
    """Tell whether a member's main thread is inside one of these functions (none: any) of a file."""
    return any(
        is_file(frame.file, file) and (not functions or bare_name(frame.function) in functions)
        for frame in frames_of(member)
    )


def culprits_of(features: Features, keys: Iterable[ProcessKey], reason: str) -> tuple[Culprit, ...]:
    """Return these members as those who have to move."""
    return tuple(signs.culprit(features.members[key], reason) for key in keys)
