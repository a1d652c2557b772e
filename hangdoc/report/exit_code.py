"""From a diagnosis to the exit code that scripts rely on."""

from __future__ import annotations

from hangdoc.errors import ExitCode
from hangdoc.model.diagnosis import HANG_VERDICTS, Diagnosis, Grade, Verdict

_CERTAIN: frozenset[Grade] = frozenset({"confirmed", "likely"})
_FINE: frozenset[Verdict] = frozenset({"healthy", "slow-start"})


def exit_code(verdict: Verdict, grade: Grade) -> ExitCode:
    """Return the code of a verdict: without a grade that carries it, no verdict says more than "undetermined"."""
    if grade not in _CERTAIN:
        return ExitCode.UNDETERMINED
    if verdict in HANG_VERDICTS:
        return ExitCode.HANG
    return ExitCode.OK if verdict in _FINE else ExitCode.UNDETERMINED


def exit_code_after_end(diagnosis: Diagnosis) -> ExitCode:
    """Return the code when the launch was gone before the observation ended: a crash, or nobody can say any more."""
    code = exit_code(diagnosis.verdict, diagnosis.grade)
    return code if diagnosis.verdict == "crashed" else ExitCode.UNDETERMINED
