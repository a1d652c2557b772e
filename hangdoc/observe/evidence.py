"""The end of an observation: what arrived late, and at a hang what is read only when somebody asked for it."""

from __future__ import annotations

from collections.abc import Callable

from hangdoc.errors import ExitCode
from hangdoc.model.diagnosis import Diagnosis
from hangdoc.observe.attach import Attached
from hangdoc.report.exit_code import exit_code
from hangdoc.trace.records import Trace

NATIVE, COREDUMP = "native", "coredump"


def finish(attached: Attached, diagnose: Callable[[Trace], Diagnosis]) -> None:
    """Complete the tape with late readings; at a hang verdict also with what the user asked for.

    Native stacks stop each rank for a moment, and the server may die of a CUDA core dump: that is why a launch that is
    well, or of which nothing is known, has neither.
    """
    tape, observer = attached.tape, attached.observer
    last = observer.finish()
    wanted = [name for name, asked in ((NATIVE, attached.native), (COREDUMP, attached.coredump)) if asked]
    if wanted and last is not None:
        tape.again(last)
        diagnosis = diagnose(tape.trace())
        if exit_code(diagnosis.verdict, diagnosis.grade) is ExitCode.HANG:
            for name in wanted:
                last = observer.request(name) or last
    tape.finish(last)
