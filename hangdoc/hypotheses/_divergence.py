"""Ranks that wait for each other in different collectives: shared by the hypotheses of ranks out of step."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.features.frames import bare_name, is_file
from hangdoc.features.ranks import Comparison, StackClass
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import Culprit, Wait, WaitEnd
from hangdoc.model.process import ProcessKey

HICACHE_FILES = (
    "mem_cache/hiradix_cache.py",
    "mem_cache/hi_mamba_radix_cache.py",
    "mem_cache/unified_radix_cache.py",
    "managers/cache_controller.py",
    "mem_cache/hybrid_cache/hybrid_cache_controller.py",
)
"""Where SGLang's hierarchical cache asks the other ranks, 0.4.8 to 0.5.23."""

HICACHE_FUNCTIONS = ("writing_check", "loading_check", "_all_reduce_attn_groups", "can_terminate_prefetch")
"""Functions of these files that reports and wheels name; whatever has "prefetch" or "hicache" in its name as well."""


def all_wait_in_collectives(case: Case) -> Outcome:
    """Every rank of its group slept in a collective for 9 s or more, and they are not all in the same one."""
    found = ranks.compared(case)
    if isinstance(found, Unread):
        return found
    if len(found.classes) < 2:
        return Absent("all ranks stand in one place")
    outside = next((one for one in found.classes if not one.in_collective), None)
    if outside is not None:
        return Absent(f"{ranks.names(case.features, outside.members)} is in no collective")
    keys = ranks.keys_of(found)
    for outcome in (ranks.all_stand(case.features, keys), ranks.all_sleep(case.features, keys)):
        if not isinstance(outcome, Present):
            return outcome
    places = "; ".join(_sentence(case, one) for one in found.classes)
    return Present(f"the ranks wait in {len(found.classes)} different collectives: {places}")


def _sentence(case: Case, one: StackClass) -> str:
    return f"{ranks.names(case.features, one.members)} in {ranks.place_of_class(one)}"


def nobody_else_can_come(case: Case) -> Outcome:
    """All ranks are on this node and are no stages of a pipeline: each waits for the others, and none of them moves."""
    apart = ranks.one_node(case)
    if not isinstance(apart, Present):
        return Unread(apart.because)
    stages = {member.process.rank.get("pp", 0) for member in case.features.movers}
    if len(stages) > 1:
        return Unread("the stages of a pipeline wait in different collectives when all is well")
    return Present("every rank of the launch is here and waits: nobody is left who could come")


def in_hicache(one: StackClass) -> bool:
    """Tell whether a class stands in a collective of the hierarchical cache."""
    for frame in one.stack:
        name = bare_name(frame.function)
        known = name in HICACHE_FUNCTIONS or "prefetch" in name or "hicache" in name
        if known and any(is_file(frame.file, file) for file in HICACHE_FILES):
            return True
    return False


def hicache_classes(case: Case) -> tuple[StackClass, ...] | Unread:
    """Return the classes that wait in the hierarchical cache."""
    found = ranks.compared(case)
    return found if isinstance(found, Unread) else tuple(one for one in found.classes if in_hicache(one))


def astray(case: Case) -> tuple[StackClass, ...]:
    """Return the classes that are out of step: the odd ones; of equal ones those in the cache; else every one."""
    found = ranks.compared(case)
    if isinstance(found, Unread):
        return ()
    return found.odd or tuple(one for one in found.classes if in_hicache(one)) or found.classes


def is_astray(case: Case) -> Outcome:
    """It is one of the fewer; where as many ranks wait in one collective as in another, either may be astray."""
    found = ranks.compared(case)
    if isinstance(found, Unread):
        return found
    own = found.class_of(case.patient.key)
    name = signs.name_of(case.patient.process)
    if own is None or own not in astray(case):
        return Absent(f"{name} is where most ranks are")
    return Present(f"{name} is not where most ranks are" if found.odd else f"{name}: as many wait here as elsewhere")


def culprits(case: Case) -> tuple[Culprit, ...]:
    """Return the ranks that are out of step."""
    return tuple(
        one
        for kind in astray(case)
        for one in ranks.culprits_of(
            case.features, kind.members, f"is out of step: it waits in {ranks.place_of_class(kind)}"
        )
    )


def waits(case: Case) -> tuple[Wait, ...]:
    """Return who waits for whom: the others for the first rank that is out of step, and that one for one of them."""
    found = ranks.compared(case)
    if isinstance(found, Unread) or len(found.classes) < 2:
        return ()
    return tuple(_wait(found, key, case) for key in ranks.keys_of(found))


def _wait(found: Comparison, key: ProcessKey, case: Case) -> Wait:
    own = found.class_of(key)
    other = next(one for one in (*astray(case), *found.classes) if one is not own)
    detail = "" if own is None else ranks.place_of_class(own)
    to = other.members[0].pid
    return Wait(from_=WaitEnd(pid=key.pid, tid=key.pid), to=WaitEnd(pid=to, tid=to), through="barrier", detail=detail)
