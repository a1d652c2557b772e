"""A launch as real ones look: five processes, 150 threads, six rounds, the first and the last of them thorough."""

from __future__ import annotations

from random import Random

from hangdoc.model.buffer import Buffers, HiddenText
from hangdoc.model.fd import OpenFile, OpenFiles, PipeFill
from hangdoc.model.process import Launch, Process, ProcessKey, Role
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Payload, Sample, Snapshot
from hangdoc.model.stack import Frame, Stack, Stacks, ThreadStack
from hangdoc.model.thread import (
    CpuUse,
    ProcessIo,
    ProcessStat,
    Progress,
    SystemCall,
    ThreadClock,
    ThreadState,
    ThreadWait,
    Waits,
)
from hangdoc.trace.builder import TraceBuilder
from hangdoc.trace.records import Header, Trace

ARGV = (
    *("/opt/venv/bin/python3", "-m", "sglang.launch_server", "--model-path", "/home/alice/models/v2", "--tp", "2"),
    *("--host", "10.1.2.3", "--port=30000", "--api-key", "sk-alice", "--dist-init-addr", "gpu7.example.com:5000"),
    *("--disable-cuda-graph", "--cuda-graph-bs", "1", "2", "--attention-backend", "triton", "--private=x"),
)
SPAWN = "from multiprocessing.resource_tracker import main;main(6)"
MEMBERS: tuple[tuple[Role, tuple[str, ...], int], ...] = (
    ("launcher", ARGV, 40),
    ("other", ("/opt/venv/bin/python3", "-B", "-c", SPAWN), 1),
    ("scheduler", ("sglang::scheduler_TP0",), 54),
    ("scheduler", ("sglang::scheduler_TP1",), 51),
    ("detokenizer", ("sglang::detokenizer",), 4),
)
ROUNDS = 6
PACKAGES = "/opt/venv/lib/python3.12/site-packages"


def processes() -> tuple[Process, ...]:
    return tuple(
        Process(
            key=ProcessKey(1000 + number, 5000 + number),
            ppid=1000 if number else 1,
            role=role,
            rank={"tp": number - 2} if role == "scheduler" else {},
            title=" ".join(argv)[:200],
            argv=argv,
            member_because="child of 1000" if number else "the launcher",
        )
        for number, (role, argv, _) in enumerate(MEMBERS)
    )


def header() -> Header:
    launch = Launch(
        root=ProcessKey(1000, 5000),
        engine="sglang",
        engine_version=Known("0.5.23"),
        settings={"tp_size": "2", "port": "30000", "model_path": "/home/alice/models/v2"},
        processes=processes(),
    )
    clocks = {"clock_ticks_per_s": 100, "started_wall_ns": 1_795_961_084_000_000_000}
    return Header(
        hangdoc="0.1.0", host="gpu7.example.com", machine="x86_64", cpus=2, interval_s=1.0, launch=launch, **clocks
    )


def builder() -> TraceBuilder:
    """The launch, recorded to memory."""
    random = Random(1)
    trace = TraceBuilder(header())
    for index in range(ROUNDS):
        thorough = index in (0, ROUNDS - 1)
        at_ns = 9_000_000_000_000 + index * 1_000_000_000
        samples = tuple(
            Sample(probe=probe, process=process.key, taken_ns=at_ns + random.randrange(10**8), reading=Known(payload))
            for process, (_, _, threads) in zip(processes(), MEMBERS, strict=True)
            for probe, payload in _payloads(trace, random, process.key.pid, threads, thorough)
        )
        gpu = Sample(probe="gpu", process=None, taken_ns=at_ns, reading=Missing("gpu", "not-installed", "no NVML here"))
        wall_ns = 1_795_961_084_000_000_000 + index * 10**9
        trace.add(Snapshot(index=index, at_ns=at_ns, wall_ns=wall_ns, processes=processes(), samples=(*samples, gpu)))
    return trace


def trace() -> Trace:
    return builder().trace()


def _payloads(trace: TraceBuilder, random: Random, pid: int, threads: int, thorough: bool) -> list[tuple[str, Payload]]:
    tids = range(pid * 100, pid * 100 + threads)
    clocks = tuple(
        ThreadClock(tid, random.randrange(10**10), random.randrange(10**7), random.randrange(9999)) for tid in tids
    )
    states = tuple(
        ThreadState(
            tid, "pt_gloo_runloop", "S", random.randrange(999), 3, 7, 0, Known(random.randrange(9999)), Known(4)
        )
        for tid in (tids if thorough else tids[:1])
    )
    stat = ProcessStat("S", 1000, random.randrange(9999), 77, 99999, 0, threads, 574_072 << 10)
    io = ProcessIo(*(random.randrange(10**9) for _ in range(6)))
    found: list[tuple[str, Payload]] = [
        ("cpu", CpuUse(stat, Known(clocks), states)),
        ("progress", Progress(Known(io), 574_072 << 10, 99999, 0, 12, 1)),
    ]
    if thorough:
        found += [("futex", _waits(random, tids)), ("stacks", _stacks(trace, tids)), ("fds", _open_files())]
        found.append(("buffers", _buffers()))
    return found


def _waits(random: Random, tids: range) -> Waits:
    call = Known(SystemCall(202, (random.randrange(2**47), 393, 0, 0, 0, 2**32 - 1)))
    return Waits("x86_64", 0, tuple(ThreadWait(tid, "S", call, Known("futex_do_wait")) for tid in tids))


def _stacks(trace: TraceBuilder, tids: range) -> Stacks:
    threads = [
        ThreadStack(
            tid, "MainThread" if n == 0 else f"ThreadPoolExecutor-0_{n}", False, False, trace.intern(stack_of(n))
        )
        for n, tid in enumerate(tids[:6])
    ]
    return Stacks(tuple(threads))


def stack_of(number: int) -> Stack:
    files = (
        "/usr/lib/python3.12/threading.py",
        f"{PACKAGES}/torch/distributed/distributed_c10d.py",
        f"{PACKAGES}/sglang/srt/managers/scheduler.py",
        "/home/alice/project/serve.py",
        "<frozen importlib._bootstrap>",
    )
    return tuple(Frame(f"function_{depth}", files[(depth + number) % 5], 100 + depth * number) for depth in range(20))


def _buffers() -> Buffers:
    printed = HiddenText(stream="stdout", fd=1, size_bytes=62, tail="prompt of alice: ...\n", replaced_by="AliceTee")
    return Buffers(python=Known((printed,)), c=Missing("buffers", "unsupported", "its C library is not glibc"))


def _open_files() -> OpenFiles:
    none = Missing("fds", "unsupported", "not a pipe")
    log = OpenFile(
        fd=1,
        kind="file",
        target="/home/alice/logs/server.log",
        access="w",
        position=Known(123_456),
        size_bytes=Known(123_456),
        modified_wall_ns=Known(1_795_961_083_123_456_789),
        pipe=none,
    )
    pipe = OpenFile(
        fd=2,
        kind="pipe",
        target="pipe:[123456]",
        access="w",
        position=none,
        size_bytes=none,
        modified_wall_ns=none,
        pipe=Known(PipeFill(62, 65536)),
    )
    return OpenFiles(complete=True, files=(log, pipe), nvidia=("/dev/nvidia0", "/dev/nvidiactl"))
