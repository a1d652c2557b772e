"""A diagnosis with something in every field, for the tests of what is made of it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hangdoc.model.diagnosis import (
    Culprit,
    Diagnosis,
    Finding,
    GpuState,
    GpuUse,
    MissingReading,
    NextStep,
    Output,
    ProcessState,
    StackClass,
    Target,
    Wait,
    WaitEnd,
)

FULL = Diagnosis(
    taken_wall_ns=1_796_000_000_123_456_789,
    target=Target(kind="live", pid=100, host="node1", engine="sglang", engine_version="0.5.23"),
    verdict="busy-wait",
    grade="likely",
    phase="warmup",
    headline="Rank 1 loops for ever in capture (model.py:88).",
    culprits=(
        Culprit(pid=130, start_ticks=7, tid=131, role="scheduler", rank={"tp": 1}, reason="loops in capture"),
        Culprit(pid=None, start_ticks=None, tid=None, role="scheduler", rank={}, reason="node 1 never came"),
    ),
    hypotheses=(
        Finding(
            id="HD101",
            name="python-busy-loop",
            verdict="busy-wait",
            grade="likely",
            for_=("a thread burns CPU", "nothing moved in 5 s"),
            against=(),
            missing=("who holds the interpreter lock",),
        ),
        Finding(
            id="HD201",
            name="blocked-on-lock",
            verdict="blocked",
            grade="ruled-out",
            for_=(),
            against=("its main thread runs",),
            missing=(),
        ),
        Finding(
            id="HD102",
            name="native-busy-loop",
            verdict="busy-wait",
            grade="undetermined",
            for_=(),
            against=(),
            missing=("native stacks",),
        ),
    ),
    waits=(
        Wait(from_=WaitEnd(pid=129, tid=129), to=WaitEnd(pid=130, tid=None), through="barrier", detail="barrier.py:1"),
        Wait(from_=WaitEnd(pid=100, tid=100), to=WaitEnd(pid=129, tid=129), through="pipe", detail=""),
    ),
    next_steps=(NextStep(playbook="python-busy-loop", action="Read the function named above."),),
    outputs=(
        Output(
            pid=130,
            fd=2,
            path="/logs/server.log",
            kind="file",
            state="flushed",
            hidden_bytes=None,
            hidden_tail=None,
            silent_s=840.0,
        ),
        Output(
            pid=130,
            fd=1,
            path="/logs/server.log",
            kind="file",
            state="held-back",
            hidden_bytes=62,
            hidden_tail="KV cache",
            silent_s=840.04567,
        ),
    ),
    gpus=(
        GpuState(
            index=0,
            name="H200",
            used_bytes=1,
            util_ratio=1.0,
            power_w=123.4567,
            processes=(GpuUse(pid=130, used_bytes=None),),
        ),
    ),
    missing=(
        MissingReading(probe="stacks", pid=131, reason="denied", detail="", remedy="run as root"),
        MissingReading(probe="stacks", pid=130, reason="denied", detail="", remedy="run as root"),
        MissingReading(probe="gpu", pid=None, reason="not-installed", detail="no libnvidia-ml", remedy=""),
    ),
    window_s=5.0004,
    processes=(
        ProcessState(
            pid=130,
            start_ticks=7,
            role="scheduler",
            rank={"tp": 1, "dp": 0},
            state="R",
            phase="warmup",
            cpu_ratio=0.97123,
            demand_ratio=1.0,
        ),
        ProcessState(
            pid=100,
            start_ticks=1,
            role="launcher",
            rank={},
            state=None,
            phase="unknown",
            cpu_ratio=None,
            demand_ratio=None,
        ),
    ),
    stack_classes=(
        StackClass(
            pids=(129, 131),
            ranks=({"tp": 0}, {"tp": 2}),
            motion="frozen",
            frames=("barrier (distributed/distributed_c10d.py:5000)", "capture_one (runner.py:88)"),
            odd=False,
        ),
        StackClass(pids=(130,), ranks=({"tp": 1},), motion="moving", frames=("capture (model.py:88)",), odd=True),
    ),
)


def a_diagnosis(**changes: Any) -> Diagnosis:
    return replace(FULL, **changes)
