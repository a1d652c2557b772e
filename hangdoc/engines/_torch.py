"""Lines that mean the same under every engine: torch's, NCCL's, Python's, the kernel's, and those of shared libraries.

Read from public reports and from the sources of torch 2.x, NCCL 2.x and Linux 6.x.
"""

from __future__ import annotations

import re

from hangdoc.model.engine import LogLine, TimeLimit
from hangdoc.model.log import Phase


def failure(
    name: str, pattern: str, text: str, phase: Phase = "unknown", *, victim: bool = False, since: str = ""
) -> LogLine:
    """Return a line that says that a process failed; victim: it suffers from somebody else's failure."""
    return LogLine(name, "crash", re.compile(pattern), text, phase, since=since, victim=victim)


def complaint(name: str, pattern: str, text: str, phase: Phase = "unknown") -> LogLine:
    """Return a line by which somebody complains that something takes long; phase: the only one that it is heard in."""
    return LogLine(name, "watchdog", re.compile(pattern), text, phase)


def collective_limit(option: str = "") -> TimeLimit:
    """Return the time after which PyTorch's NCCL watchdog ends the process of a rank whose collective stands still.

    600 s is PyTorch's default for NCCL (torch.distributed.constants); option: the engine's setting for it.
    """
    return TimeLimit(
        "collective",
        "PyTorch's NCCL watchdog ends the ranks that wait in a collective",
        frozenset({"rendezvous", "memory-pool", "graph-capture", "warmup", "serving"}),
        option=option,
        default_s=600.0,
        of_ranks=True,
        of_gpus=True,
    )


FAILURES = (
    failure("out-of-memory", r"OutOfMemoryError|CUDA out of memory", "out of GPU memory"),
    failure("cuda-error", r"CUDA error: (?!out of memory)", "CUDA error"),
    failure("fatal-python", r"Fatal Python error: (?P<what>\w+)", "Fatal Python error: {what}"),
    failure("port-taken", r"EADDRINUSE|Address already in use", "address in use"),
    failure("port-taken", r"port at \d+ is not available in \d+ seconds", "address in use"),
    failure("gloo-mesh", r"Gloo connectFullMesh failed", "Gloo connectFullMesh failed", "rendezvous"),
    failure("terminate", r"terminate called after throwing|terminate called without an active", "terminate called"),
    failure(
        "shared-memory",
        r"shared memory segment /dev/shm/|Error while creating shared memory segment|"
        r"posix_fallocate failed: No space left|/dev/shm/\S+.*No space left|No space left.*/dev/shm/|Bus error",
        "no space in shared memory",
    ),
    failure("nccl-error", r"\bnccl(?:System|UnhandledCuda|Internal|InvalidUsage|Remote)Error\b", "NCCL error"),
    failure(
        "host-out-of-memory", r"[Oo]ut of memory: Killed process (?P<pid>\d+)", "killed process {pid}: out of memory"
    ),
    failure("xid", r"\bXid \((?:PCI:)?[\w:.]+\): (?P<code>\d+)", "Xid {code} of the NVIDIA driver"),
    failure(
        "worker-exit",
        r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: (?P<pid>\d+)\)",
        "rank {rank} exited with code {code}",
    ),
    # What started the server says how it ended: a shell, Slurm, Docker, kubectl, MPI, ray.
    failure(
        "ended-by-signal",
        r": line \d+: +(?P<pid>\d+) (?:Killed|Aborted|Segmentation fault|Bus error)\b|^\*\*\* SIG\w+ received at",
        "ended by a signal",
    ),
    failure(
        "ended-in-batch",
        r"srun: error: .*(?:Killed|Exited with exit code)|slurmstepd: error: .*(?:oom.kill|CANCELLED)",
        "the process was ended",
    ),
    failure("exit-code", r"(?:exited with code|terminated with exit code) (?P<code>[1-9]\d*)$", "exit code {code}"),
    failure("mpi-exit", r"mpirun noticed that process rank (?P<rank>\d+) .*exited", "rank {rank} exited"),
    failure("ray-death", r"A worker died or was killed while executing a task", "a worker died"),
    failure(
        "heap-damage",
        r"^(?:free|malloc|realloc|munmap_chunk)\(\): |^double free or corruption|^corrupted (?:size|double-linked)",
        "its memory is wrong",
    ),
    failure("signal", r"^(?:Segmentation fault|Bus error|Aborted) ?\(core dumped\)", "killed by a signal"),
    # The printer of each of these waited for somebody who failed.
    failure(
        "barrier-errors",
        r"Rank (?P<printer>\d+) successfully reached monitoredBarrier, but received errors while waiting for "
        r"send/recv from rank (?P<rank>\d+)",
        "the barrier failed: rank {rank} did not answer rank {printer}",
        victim=True,
    ),
    failure(
        "barrier-timeout",
        r"Ranks? (?P<rank>\d+)[\d, ]* failed to pass monitoredBarrier",
        "the barrier timed out: rank {rank} never came",
        victim=True,
    ),
    failure(
        "peer-closed", r"(?i:gloo|c10d|nccl|store).*Connection (?:closed|reset) by peer", "a peer is gone", victim=True
    ),
    failure(
        "taken-down",
        r"taking the entire process down|Some NCCL operations have failed or timed out",
        "taken down after a failed collective",
        victim=True,
    ),
    failure("killed", r"^Killed$", "killed", victim=True),
)

COMPLAINTS = (
    complaint(
        "nccl-watchdog",
        r"Watchdog caught collective operation timeout: WorkNCCL\(SeqNum=(?P<sequence>\d+), "
        r"OpType=(?P<operation>[A-Z_]+)",
        "NCCL watchdog: collective {sequence} timed out",
    ),
    complaint(
        "nccl-watchdog",
        r"Watchdog caught collective operation timeout",
        "NCCL watchdog: a collective timed out",
    ),
    complaint(
        "last-enqueued",
        r"[Ll]ast enqueued NCCL work: (?P<enqueued>-?\d+), last completed NCCL work: (?P<completed>-?\d+)",
        "last enqueued collective {enqueued}, last completed {completed}",
    ),
    complaint(
        "ras-count",
        r"Rank (?P<rank>\d+) has launched up to operation (?P<operation>\d+) -- "
        r"GPU \d+ managed by process (?P<pid>\d+)",
        "NCCL counts: rank {rank} has launched up to operation {operation}",
    ),
    complaint(
        "store-barrier",
        r"store based barrier to initialize process group for (?:[\d.]+ seconds ?)?rank: (?P<printer>\d+).*"
        r"world_size=(?P<world>\d+), (?:worker_count|num_workers_joined)=(?P<came>\d+)",
        "rank {printer} waits in the store's barrier: {came} came, {world} expected",
        "rendezvous",
    ),
    complaint("baton", r"waiting for baton release at", "waits for another process's build", "jit-compile"),
    complaint("download-lock", r"[Ss]till waiting to acquire lock on", "waits for a download's lock", "weight-load"),
)

PROGRESS = (
    LogLine(
        "shard-bar",
        "progress",
        re.compile(r"(?:Loading \w+ checkpoint|Multi-thread loading) shards: +(?P<percent>\d+)%"),
        "loading shards {percent} %",
        "weight-load",
    ),
    LogLine(
        "autotune",
        "progress",
        re.compile(r"^AUTOTUNE \w+\((?P<what>)"),
        "AUTOTUNE",
        "jit-compile",
    ),
    LogLine(
        "flashinfer-build",
        "progress",
        re.compile(r"flashinfer\.jit:? ?(?:INFO)?.*Loading JIT ops|^Loading JIT ops"),
        "flashinfer loads JIT ops",
        "jit-compile",
    ),
    LogLine(
        "cold-cache",
        "milestone",
        re.compile(r"cold cache JIT-compile may take"),
        "a kernel is compiled with a cold cache",
        "jit-compile",
    ),
    LogLine(
        "flashinfer-backend",
        "milestone",
        re.compile(r"Prebuilt kernels not found, using JIT backend"),
        "flashinfer uses its JIT backend",
        "jit-compile",
    ),
)

# Written by C and C++ into buffers of their own, so that they may come late: they open no phase.
LIBRARIES = (
    LogLine(
        "gloo-connected",
        "milestone",
        re.compile(
            r"\[Gloo\] Rank (?P<rank>\d+) is connected to (?P<peers>\d+) peer ranks\. "
            r"Expected number of connected peer ranks is : (?P<expected>\d+)"
        ),
        "Gloo rank {rank} is connected to {peers} of {expected} peers",
    ),
    LogLine(
        "nccl-init-complete",
        "milestone",
        re.compile(r"NCCL INFO .*\brank (?P<rank>\d+) nranks (?P<ranks>\d+) .*Init COMPLETE"),
        "NCCL rank {rank} of {ranks} init complete",
    ),
    LogLine(
        "nccl-begins",
        "milestone",
        re.compile(r"\bNCCL version (?P<version>\d[\d.]*)|RCCL version : (?P<rccl>\d[\d.]*)"),
        "NCCL version",
    ),
    LogLine(
        "nccl-channels",
        "milestone",
        re.compile(r"NCCL INFO (?:Channel \d+|Using network|Connected all|comm 0x\w+ rank \d+ nranks)"),
        "NCCL builds its channels",
    ),
)

LINES = (*FAILURES, *COMPLAINTS, *PROGRESS, *LIBRARIES)
"""Tried after an engine's own lines."""
