"""The beginning of a launch that hangdoc starts: a shell or a script becomes an engine's launcher, or starts one."""

from __future__ import annotations

from hangdoc.errors import HangdocError
from hangdoc.launch.find import find_launch
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.model.snapshot import Snapshot
from hangdoc.observe.attach import Attached
from hangdoc.observe.follow import Listener
from hangdoc.unattended.supervise import Halt
from hangdoc.unattended.vigil import Vigil

AT_ONCE_S, LOOK_AGAIN_S = 1.0, 0.1
"""How long a launch may take to show its engine before it is watched as any other program, and how often that is looked
at. Arbitrary: `sh -c 'exec ...'` takes milliseconds; what takes longer is seen by Beginning."""

ASK_EVERY = 5
"""Rounds after which that is asked in any case. Arbitrary: it costs a reading of the process table."""


def wait_for_engine(pid: int, halt: Halt) -> None:
    """Return as soon as the engine of a launch is known, or after a moment."""
    for _ in range(int(AT_ONCE_S / LOOK_AGAIN_S)):
        if _engine(pid) != "generic" or halt.wait(LOOK_AGAIN_S):
            return


class Beginning(Listener):
    """Hears the rounds for a vigil, and ends them when a launch of no known engine has become or started one that is.

    Asked again when a member came or got another command line, and now and then: what a shell starts is no member of
    its launch when it is one of its own. became_known: it has; attach anew.
    """

    def __init__(self, attached: Attached, vigil: Vigil) -> None:
        self.vigil = vigil
        self.became_known = False
        self._attached = attached
        self._titles: tuple[str, ...] = ()

    def round(self, snapshot: Snapshot) -> None:
        """Hear of a round."""
        self.vigil.round(snapshot)
        launch = self._attached.launch
        if launch.engine != "generic":
            return
        titles = tuple(process.title for process in snapshot.processes)
        if titles != self._titles or snapshot.index % ASK_EVERY == 0:
            self._titles = titles
            self.became_known = _engine(launch.root.pid) != "generic"
            if self.became_known:
                self._attached.observer.stop()

    def unsettled(self, diagnosis: Diagnosis) -> None:
        """Hear a diagnosis that the readings do not agree on."""
        self.vigil.unsettled(diagnosis)


def _engine(pid: int) -> str:
    try:
        return find_launch(pid).engine
    except HangdocError:
        return "generic"
