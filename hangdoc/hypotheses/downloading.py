"""HD312: a rank, or the launcher, downloads the model in silence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread
from hangdoc.features.activity import NOISE_IO_BYTES_PER_S, activity
from hangdoc.features.dumps import ThreadView
from hangdoc.features.features import Features, Member
from hangdoc.hypotheses import _signs as signs
from hangdoc.hypotheses._waits import worker_threads
from hangdoc.model.reading import Missing

_DOWNLOADS = re.compile(r"(?:^|/)(?:huggingface_hub|modelscope|hf_transfer|hf_xet)/")
"""Files of the packages that fetch models."""

_IMPORTS = re.compile(r"<frozen importlib")
"""Files of the interpreter's own import system."""


def _anybody(features: Features) -> Sequence[Member | None]:
    return tuple(features.members.values())


def _is_in_a_download(case: Case) -> Outcome:
    """A working thread of it was inside the package that fetches models, and not just importing that."""
    name, threads = signs.name_of(case.patient.process), worker_threads(case.patient)
    if isinstance(threads, Missing):
        return Unread.of(threads, f"stack of {name}")
    seen: dict[int, bool] = {}  # equal stacks are one object: the trace has each once
    for thread in threads.value:
        for view in thread.views:
            if id(view.stack) not in seen:
                seen[id(view.stack)] = _fetches(view)
        if any(seen[id(view.stack)] for view in thread.views):
            return Present(f"{name} fetches the model: {signs.where(thread)}")
    return Absent(f"{name} fetches no model")


def _fetches(view: ThreadView) -> bool:
    """Tell whether a stack is inside that package, and neither the package's own import nor one that it asked for."""
    own = [frame for frame in view.stack if _DOWNLOADS.search(frame.file)]
    innermost = next((frame for frame in view.stack if frame in own or _IMPORTS.match(frame.file)), None)
    return innermost in own and all(frame.function != "<module>" for frame in own)


def _bytes_arrive(case: Case) -> Outcome:
    """It shows work: bytes over TCP, or written to the cache."""
    name, done = signs.name_of(case.patient.process), activity(case.patient)
    if isinstance(done, Missing):
        return Unread.of(done, f"what {name} does")
    sentence = f"{name} {signs.describe(done.value)}"
    if done.value == "works":
        return Present(sentence)
    return Absent(sentence) if done.value == "still" else Unread(f"{sentence}: it may be trying again and again")


def _comes_over_tcp(case: Case) -> Outcome:
    """Data arrives on its TCP connections."""
    flow = case.patient.flow
    moved = flow if isinstance(flow, Missing) else flow.value.tcp_bytes
    if isinstance(moved, Missing) or isinstance(flow, Missing):
        return Unread("what arrives over TCP")
    rate = moved.value / flow.value.seconds
    sentence = f"{rate:,.0f} bytes/s arrive over TCP"
    return Present(sentence) if rate > NOISE_IO_BYTES_PER_S else Absent(sentence)


HYPOTHESIS = Hypothesis(
    id="HD312",
    name="slow-start-downloading",
    verdict="slow-start",
    suspects=_anybody,
    essential=(_is_in_a_download, _bytes_arrive),
    supporting=(_is_in_a_download, _bytes_arrive, _comes_over_tcp),
    confirm_at=3,
    excluding=(signs.nobody_died,),
    headline=lambda case: f"{signs.name_of(case.patient.process)} downloads the model, and bytes arrive.",
    culprits=lambda case: (signs.culprit(case.patient, "downloads the model"),),
    action="Wait, or fetch the model before the start (hf download) and start with HF_HUB_OFFLINE=1.",
    playbook="slow-start-downloading",
)
