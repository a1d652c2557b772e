"""Run kill-clean, and die by SIGKILL at one step: before or after the Nth signal, or where a named step begins."""

from __future__ import annotations

import os
import signal
import sys

from hangdoc.cli.main import run
from hangdoc.ending import carry_out, freeze, plan, procedure, proof
from hangdoc.launch import pidfd

SEND = pidfd.send
STEPS = {
    "second roll": (plan, "take_stock"),
    "evidence": (carry_out, "record"),
    "last look": (carry_out, "stock_taken_again"),
    "asking": (procedure.Procedure, "_ask"),
    "killing": (procedure.Procedure, "_kill"),
    "wrappers": (procedure.Procedure, "_wrappers"),
    "watching": (procedure.Procedure, "_watch"),
    "memory and ports": (carry_out, "prove"),
    "removal": (proof, "clear"),
}
"""Each step of the procedure, in order, and what begins it."""


def main() -> int:
    when, at = sys.argv[1], int(sys.argv[2])
    if when in STEPS:
        setattr(*STEPS[when], lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
    count = 0

    def send(descriptor: int, number: int, *, whole_group: bool = False) -> bool:
        nonlocal count
        if number == pidfd.PROBE:
            return SEND(descriptor, number)
        count += 1
        if count == at and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        sent = SEND(descriptor, number, whole_group=whole_group)
        if count == at and when != "before":
            os.kill(os.getpid(), signal.SIGKILL)
        return sent

    freeze.send = procedure.send = send
    if when == "frozen":
        # As if they multiplied, and neither kind of group could be killed whole: all are stopped first.
        procedure.kill_control_group = procedure.kill_process_groups = lambda *_: False
        procedure.Procedure._kill = lambda self, _, freezer: self._stop_multiplying(freezer)
    return run(["kill-clean", *sys.argv[3:]])


if __name__ == "__main__":
    sys.exit(main())
