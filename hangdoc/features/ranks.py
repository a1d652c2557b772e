"""Ranks compared: whose main threads stand in the same place, and who stands elsewhere than the others."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

from hangdoc.features.dumps import ThreadHistory
from hangdoc.features.features import Features, Member
from hangdoc.features.frames import bare_name, is_file
from hangdoc.model.diagnosis import StackMotion
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known
from hangdoc.model.stack import Frame, Stack

K = TypeVar("K", bound=Hashable)

COLLECTIVES = "torch/distributed/distributed_c10d.py"
"""The file of torch's collectives: what goes on inside one differs between the rank that sends and those that receive,
and is still one collective."""

WRAPPERS = ("torch/distributed/c10d_logger.py", "torch/utils/_contextlib.py", "contextlib.py", "functools.py")
"""Files whose frames wrap a call and say nothing of it."""


def merge(stacks: Iterable[tuple[K, Stack]]) -> dict[Stack, list[K]]:
    """Group whoever has a stack (innermost frame first) by its normalised form; groups in the order they first came.

    Equal stacks are put together before any is normalised, and stacks that are one object before any are compared: of
    100,000 ranks few stand in places of their own, and a trace holds each stack once.

    >>> same = (Frame("C.recv", "a.py", 1),), (Frame("recv", "a.py", 9),)
    >>> list(merge([("rank 0", same[0]), ("rank 1", same[1])]).values())
    [['rank 0', 'rank 1']]
    """
    equal: dict[Stack, list[K]] = {}
    of_object: dict[int, list[K]] = {}
    seen: list[Stack] = []  # an object that is gone would leave its identity to another one
    for who, stack in stacks:
        owners = of_object.get(id(stack))
        if owners is None:
            owners = of_object[id(stack)] = equal.setdefault(stack, [])
            seen.append(stack)
        owners.append(who)
    merged: dict[Stack, list[K]] = {}
    for stack, owners in equal.items():
        merged.setdefault(normalised(stack), []).extend(owners)
    return merged


def normalised(stack: Stack) -> Stack:
    """Return the place that a stack stands for, the same one on every rank that is there.

    Rule: functions by their own names, without lines, without wrappers, and nothing inside torch's outermost
    collective. Why it works: ranks run one program, so that those at one point of it have the same functions; lines
    differ within one collective, between who sends and who receives. Fails for ranks that are lost in two places of
    one function: they count as together.
    """
    kept: list[Frame] = []
    for frame in stack:
        normal, is_collective = _normalised(frame.function, frame.file)
        if is_collective:
            kept.clear()  # what came before is inside of it
        if normal is not None:
            kept.append(normal)
    return tuple(kept)


@lru_cache(maxsize=65536)
def _normalised(function: str, file: str) -> tuple[Frame | None, bool]:
    """Return a frame's normalised form, None for a wrapper, and whether it is a collective's."""
    is_wrapper = any(is_file(file, wrapper) for wrapper in WRAPPERS)
    return None if is_wrapper else Frame(bare_name(function), file, 0), is_file(file, COLLECTIVES)


def without_wrappers(stack: Stack) -> Stack:
    """Return a stack without the frames that only wrap a call."""
    return tuple(frame for frame in stack if not any(is_file(frame.file, wrapper) for wrapper in WRAPPERS))


@dataclass(frozen=True)
class StackClass:
    """Ranks whose main threads stand in one place.

    stack: of the first of them as it was read last, cut to what all dumps of it share; motion: "moving" when the
    stacks of any of them changed between dumps, "frozen" when none did, "seen-once" when there was only one dump;
    in_collective: each stood in a collective or in the rendezvous, in every dump.
    """

    members: tuple[ProcessKey, ...]
    stack: Stack
    motion: StackMotion
    in_collective: bool


@dataclass(frozen=True)
class Comparison:
    """The ranks of one group, that run the same program in step. classes: the largest first; unread: without stacks."""

    classes: tuple[StackClass, ...]
    unread: tuple[ProcessKey, ...]

    @property
    def odd(self) -> tuple[StackClass, ...]:
        """Return the classes that stand elsewhere than the others wait; empty when that cannot be told.

        Rule: when some wait in a collective and some do not, those that do not; otherwise those that are fewer than
        the largest class, if that one is the only largest; in either case only while the others stand. Why it works:
        whoever waits in a collective waits for those that are not there; where ranks wait in different ones, most of
        them are where the program should be; and as long as they move, they wait for nobody.
        """
        astray = self._astray()
        moving = any(one.motion == "moving" for one in self.classes if one not in astray)
        return () if moving else astray

    def _astray(self) -> tuple[StackClass, ...]:
        outside = tuple(one for one in self.classes if not one.in_collective)
        if len(self.classes) < 2:
            return ()
        if 0 < len(outside) < len(self.classes):
            return outside
        most = len(self.classes[0].members)
        return () if len(self.classes[1].members) == most else self.classes[1:]

    def class_of(self, key: ProcessKey) -> StackClass | None:
        """Return the class that a rank is in; None when its stack was not read."""
        return next((one for one in self.classes if key in one.members), None)


@lru_cache(maxsize=2)
def compare(features: Features) -> tuple[Comparison, ...]:
    """Return the comparison of each group of ranks, in the order of their first members."""
    groups: dict[Hashable, list[Member]] = {}
    together = _is_one_group(features)
    for member in features.movers:
        groups.setdefault(_group(member, together=together), []).append(member)
    return tuple(_comparison(members) for members in groups.values())


def comparison_of(features: Features, key: ProcessKey) -> Comparison | None:
    """Return the comparison of the group that a rank belongs to; None for a process that is no rank."""
    return _by_rank(features).get(key)


@lru_cache(maxsize=2)
def _by_rank(features: Features) -> dict[ProcessKey, Comparison]:
    return {
        key: found
        for found in compare(features)
        for keys in (found.unread, *(one.members for one in found.classes))
        for key in keys
    }


def _is_one_group(features: Features) -> bool:
    """Tell whether data-parallel replicas run in step: with attention split over data, no tensor rank occurs twice."""
    seen = [(member.process.rank.get("tp"), member.process.rank.get("pp")) for member in features.movers]
    return len(set(seen)) == len(seen)


def _group(member: Member, *, together: bool) -> Hashable:
    """Return what tells a group: the stages of a pipeline, and replicas, run each at their own pace."""
    rank = member.process.rank
    return (member.process.role, rank.get("pp", 0), 0 if together else rank.get("dp", 0))


def _comparison(members: list[Member]) -> Comparison:
    mains = {member.key: member.main.value for member in members if isinstance(member.main, Known)}
    shared = [(key, shared_stack(main)) for key, main in mains.items()]
    classes = [_class(tuple(keys), mains) for keys in merge(shared).values()]
    return Comparison(
        classes=tuple(sorted(classes, key=lambda one: (-len(one.members), one.members))),
        unread=tuple(member.key for member in members if member.key not in mains),
    )


def _class(keys: tuple[ProcessKey, ...], mains: dict[ProcessKey, ThreadHistory]) -> StackClass:
    threads = [mains[key] for key in keys]
    return StackClass(
        members=tuple(sorted(keys)),
        stack=shared_stack(threads[0]),
        motion=_motion(threads),
        in_collective=all(thread.always_does("collective", "rendezvous") for thread in threads),
    )


def motion_of(thread: ThreadHistory) -> StackMotion:
    """Tell whether a thread's stacks, dump after dump, are all the same to the line."""
    if len(thread.views) < 2:
        return "seen-once"
    return "frozen" if len({view.stack for view in thread.views}) == 1 else "moving"


def _motion(threads: list[ThreadHistory]) -> StackMotion:
    found = {motion_of(thread) for thread in threads}
    return "moving" if "moving" in found else "seen-once" if "seen-once" in found else "frozen"


def shared_stack(thread: ThreadHistory) -> Stack:
    """Return the newest stack of a thread, cut to the outer frames that all of its stacks share, function by function.

    Where a thread moves, these are what it is busy with; where it stands, the whole stack.
    """
    first = thread.views[-1].stack
    depth = 0
    for frames in zip(*(reversed(view.stack) for view in thread.views), strict=False):
        if len({(frame.function, frame.file) for frame in frames}) > 1:
            break
        depth += 1
    return first[len(first) - depth :]
