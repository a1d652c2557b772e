"""HD423: the launch failed because /dev/shm is too small or full."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._log_failures import log_names, nothing_goes_on
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.reading import Missing

SMALL_BYTES = 64 << 20
"""What Docker gives a container unless told otherwise (--shm-size), and no more than NCCL takes for a few ranks."""


def _there_is_little_room(case: Case) -> Outcome:
    """The launcher's /dev/shm has at most 64 MiB in all, or free."""
    around = case.features.surroundings
    room = around if isinstance(around, Missing) else around.value.shared_memory
    if isinstance(room, Missing):
        return Unread.of(room, "how much room there is in /dev/shm")
    total, free = room.value.total_bytes, room.value.free_bytes
    sentence = f"its /dev/shm has {total / 2**20:,.0f} MiB, {free / 2**20:,.0f} of them free"
    return Present(sentence) if min(total, free) <= SMALL_BYTES else Absent(sentence)


def _culprits(case: Case) -> tuple[Culprit, ...]:
    root = next((one for one in case.features.members.values() if one.key == case.features.launch.root), None)
    return () if root is None else (signs.culprit(root, "was started with too little room in /dev/shm"),)


HYPOTHESIS = Hypothesis(
    id="HD423",
    name="shared-memory-full",
    verdict="crashed",
    suspects=signs.the_launch,
    essential=(
        log_names("shared-memory", "a lack of room in /dev/shm"),
        _there_is_little_room,
        nothing_goes_on,
    ),
    supporting=(log_names("shared-memory", "a lack of room in /dev/shm"), _there_is_little_room),
    headline="The launch failed because there is no room in /dev/shm.",
    culprits=_culprits,
    action="Start the container with --shm-size 16g or --ipc=host, or remove what earlier launches left in /dev/shm.",
    playbook="shared-memory-full",
)
