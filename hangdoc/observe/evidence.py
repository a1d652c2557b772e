"""The end of an observation: what arrived late, and native stacks where they were asked for and it is a hang."""

from __future__ import annotations

from collections.abc import Callable

from hangdoc.errors import ExitCode
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.observe.attach import Attached
from hangdoc.report.exit_code import exit_code
from hangdoc.trace.records import Trace

NATIVE = "native"


def finish(attached: Attached, diagnose: Callable[[Trace], Diagnosis]) -> None:
    """Complete the tape with late readings; at a hang verdict also with native stacks, if the user wants them.

    They stop each rank for a moment: that is why a launch that is well, or of which nothing is known, has none.
    """
    tape, observer = attached.tape, attached.observer
    last = observer.finish()
    if attached.native and last is not None:
        tape.again(last)
        diagnosis = diagnose(tape.trace())
        if exit_code(diagnosis.verdict, diagnosis.grade) is ExitCode.HANG:
            last = observer.request(NATIVE) or last
    tape.finish(last)
