"""Look at a server that was ready and does not answer: whether to go on with it, and what became of it."""

from __future__ import annotations

from dataclasses import replace

from hangdoc.errors import ExitCode, HangdocError
from hangdoc.launch.start import Started
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.observe.attach import Setting, attach
from hangdoc.observe.look import Window, look
from hangdoc.observe.reasoning import lazily
from hangdoc.relaunch.watch import Say, Watched
from hangdoc.report.exit_code import exit_code


class Doubt:
    """Looks at a server that does not answer."""

    def __init__(self, started: Started, say: Say) -> None:
        self._started = started
        self._say = say
        self._seen: Diagnosis | None = None

    def __call__(self) -> str:
        """Return why to stop feeding it, "" when it does not hang."""
        self._say("hangdoc: no answer for a while: looking at the launch")
        diagnosis = self._look()
        return "" if diagnosis is not None and not _hangs(diagnosis) else "the server does not answer"

    def outcome(self, watched: Watched) -> Watched:
        """Say what became of a server that is not fed any more."""
        if self._started.has_ended():
            return Watched("exit", ExitCode.HANG, watched.diagnosis, self._started.bury())
        seen = self._seen if self._seen is not None else self._look()
        if seen is None:
            return replace(watched, code=ExitCode.UNDETERMINED)
        return Watched("hang" if _hangs(seen) else "ready", ExitCode.HANG, seen)

    def _look(self) -> Diagnosis | None:
        reasoning = lazily(as_json=False)
        try:
            with attach(self._started.pid, None, Setting()) as attached:
                diagnosis = reasoning.diagnose(look(attached, Window(), reasoning).trace)
        except HangdocError as error:
            self._say(f"hangdoc: {error.message}")
            return None
        self._seen = diagnosis if _hangs(diagnosis) else None
        return diagnosis


def _hangs(diagnosis: Diagnosis) -> bool:
    return exit_code(diagnosis.verdict, diagnosis.grade) is ExitCode.HANG
