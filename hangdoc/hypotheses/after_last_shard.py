"""HD311: all shards are read, nothing is printed any more, and the rank still works on its weights."""

from __future__ import annotations

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import activity
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.reading import Known, Missing

ALL = "loading shards 100 %"
"""What the engine's table makes of the last state of the shards' progress bar."""


def _every_shard_is_read(case: Case) -> Outcome:
    """The progress bar stands at 100 %, and the log does not say that the load has ended."""
    log = case.features.log
    if isinstance(log, Missing):
        return Unread.of(log, "how far the load is")
    if log.value.phase != "weight-load":
        return Absent(f"its log stands at {log.value.phase}, not within a load")
    if not log.value.progress:
        return Absent("no progress bar of the load stands in the log")
    bar = log.value.progress[-1]
    return Present("its log says that every shard is read") if bar.text == ALL else Absent(f"its log says: {bar.text}")


def _works_on(case: Case) -> Outcome:
    """It shows work, or its stack goes from place to place: repacking and materialising weights are silent."""
    name, done, main = signs.name_of(case.patient.process), activity(case.patient), case.patient.main
    if isinstance(done, Missing):
        return Unread.of(done, f"what {name} does")
    sentence = f"{name} {signs.describe(done.value)}"
    if done.value == "works":
        return Present(sentence)
    if done.value == "still":
        return Absent(sentence)
    if isinstance(main, Known) and main.value.loop() is None and len({v.stack for v in main.value.views}) > 1:
        return Present(f"{name} goes from place to place: last in {signs.where(main.value)}")
    return Unread(f"{sentence}: computing in place and a loop look alike")


HYPOTHESIS = Hypothesis(
    id="HD311",
    name="slow-start-after-loading",
    verdict="slow-start",
    suspects=signs.each_mover,
    essential=(
        signs.main_thread(
            lambda main: main.last.meaning.phase == "weight-load", "is at its weights", "is not at its weights"
        ),
        _every_shard_is_read,
        _works_on,
    ),
    supporting=(_every_shard_is_read, _works_on, signs.does("works")),
    excluding=(signs.nobody_died,),
    headline=lambda case: (
        f"Every shard is read; {signs.name_of(case.patient.process)} still works on its weights, and prints nothing."
    ),
    culprits=lambda case: (signs.culprit(case.patient, "works on its weights after the last shard"),),
    action="Wait: healthy starts were silent for up to an hour after the last shard. Look at memory, not at the log.",
    playbook="slow-start-after-loading",
)
