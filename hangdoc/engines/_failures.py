"""Lines that say that a process failed, under every engine: Python's, torch's, NCCL's, the shell's, the kernel's.

Read from public reports and from the sources of CPython 3.x, torch 2.x, NCCL 2.x, transformers and Linux 6.x.
"""

from __future__ import annotations

import re

from hangdoc.model.engine import LogLine
from hangdoc.model.log import Phase


def failure(
    name: str, pattern: str, text: str, phase: Phase = "unknown", *, victim: bool = False, since: str = ""
) -> LogLine:
    """Return a line that says that a process failed; victim: it suffers from somebody else's failure."""
    return LogLine(name, "crash", re.compile(pattern), text, phase, since=since, victim=victim)


def error(name: str, pattern: str, text: str, *, victim: bool = False) -> LogLine:
    """Return a line of a failure that a server may survive: what comes after it tells."""
    return LogLine(name, "error", re.compile(pattern), text, victim=victim)


# What a traceback consists of: its head, the joint between two, and a word before it that somebody caught it.
TRACEBACK = (
    error("traceback", r"^Traceback \(most recent call last\)", "traceback"),
    error(
        "chained",
        r"^During handling of the above exception|^The above exception was the direct cause",
        "one more traceback",
    ),
    error(
        "caught",
        r"Exception in ASGI application|^Exception ignored (?:in|while)|^Task exception was never retrieved",
        "an exception that ended nothing",
    ),
    error("thread-exception", r"^Exception in thread ", "a thread ended by an exception"),
)

# torchrun's own report of what its workers did; the numbers of one process stand in lines of their own.
ELASTIC = (
    error("elastic-failures", r"^Failures:$", "torchrun lists failures"),
    error("elastic-root", r"^Root Cause \(first observed failure\)", "torchrun names the first failure"),
    error("elastic-rank", r"^rank +: (?P<rank>\d{1,6}) \(local_rank: (?P<local>\d{1,6})\)", "rank {rank}"),
    error("elastic-exit", r"^exitcode +: (?P<code>-?\d{1,6}) \(pid: (?P<pid>\d{1,10})\)", "exit code {code}"),
    error("elastic-file", r"^error_file: (?!<N/A>)", "it wrote an error file"),
)

_HARD = r"(?P<code>-(?:4|6|7|8|9|11)|13[24-9])\b"
"""Exit codes of a process that a signal ended which nobody sends to end a server in order."""

VICTIMS = (
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
        "remote-error",
        r"ncclRemoteError|remote process exit(?:ed or there was a network error|ing prematurely)",
        "NCCL: a remote process is gone",
        victim=True,
    ),
    failure(
        "peer-closed", r"(?i:gloo|c10d|nccl|store).*Connection (?:closed|reset) by peer", "a peer is gone", victim=True
    ),
    error(
        "peer-closed",
        r"Connection closed by peer|Connection reset by peer|recvValue failed|Broken pipe$|BrokenPipeError",
        "a peer is gone",
        victim=True,
    ),
    error("pipe-closed", r"^EOFError\b", "the process at a pipe's other end is gone", victim=True),
    failure(
        "taken-down",
        r"taking the entire process down|Some NCCL operations have failed or timed out",
        "taken down after a failed collective",
        victim=True,
    ),
)
"""The printer of each of these waited for somebody who failed."""

STARTS = (
    failure("port-taken", r"EADDRINUSE|[Aa]ddress already in use|\[Errno 98\]", "address in use"),
    failure("port-taken", r"port at \d+ is not available in \d+ seconds", "address in use"),
    failure(
        "wrong-arguments",
        r": error: (?:unrecognized arguments|argument |the following arguments|ambiguous option|one of the arg)",
        "its command line has wrong arguments",
    ),
    failure("startup-failed", r"Application startup failed\. Exiting", "the HTTP server did not start"),
    # The last line of a traceback has the word Error; a warning of the same is no failure.
    error(
        "cuda-driver",
        r"Error: .*(?:NVIDIA driver on your system is too old|CUDA driver version is insufficient|"
        r"Found no NVIDIA driver|No CUDA GPUs are available|no CUDA-capable device|forward compatibility was attempted|"
        r"no kernel image is available|unsupported toolchain|No accelerator \()",
        "the driver or the GPU does not fit this CUDA",
    ),
    error(
        "model-denied",
        r"Error: .*(?:gated repo|40[13] Client Error)|GatedRepoError",
        "the model is not given away: 401 or 403",
    ),
    error(
        "no-such-model",
        r"RepositoryNotFoundError|LocalEntryNotFoundError|HFValidationError|"
        r"Error: .*(?:is not a valid model identifier|does not appear to have a file named|"
        r"Cannot find any model weights|Can't load the configuration of|404 Client Error)",
        "the model was not found",
    ),
    error(
        "unknown-model",
        r"Error: .*(?:Model architectures .{1,200} not supported|does not recognize this architecture)",
        "the model is of a kind that is not supported",
    ),
    error("weights-damaged", r"SafetensorError|Error: PytorchStreamReader failed", "the weights cannot be read"),
    error(
        "memory-too-small",
        r"Error: .*(?:Not enough memory\. Please try|No available memory for the cache blocks|"
        r"is less than desired GPU memory utilization)",
        "not enough GPU memory for its settings",
    ),
    error(
        "download-failed",
        r"Error: .*(?:HTTPSConnectionPool\(|huggingface\.co)|"
        r"(?:requests|urllib3)\.exceptions\.\w+Error|httpx\.Connect\w*Error",
        "a download failed",
    ),
)
"""Why a start ended before it began: wrong arguments, no model, no port, no memory, no driver."""

FAILURES = (
    failure(
        "out-of-memory",
        r"CUDA out of memory\. Tried to allocate|OutOfMemoryError: \w+ out of memory|^[\w.]*OutOfMemoryError|"
        r"CUDA error: out of memory|Cuda failure .{0,9}out of memory",
        "out of GPU memory",
    ),
    failure("cuda-error", r"CUDA error: (?!out of memory)", "CUDA error"),
    failure(
        "fatal-python",
        r"Fatal Python error: (?P<what>\w+(?: (?:fault|error|instruction|overflow|failure))?)",
        "Fatal Python error: {what}",
    ),
    failure("gloo-mesh", r"Gloo connectFullMesh failed", "Gloo connectFullMesh failed", "rendezvous"),
    failure("terminate", r"terminate called (?:after throwing|without an active)", "terminate called"),
    failure(
        "shared-memory",
        r"shared memory segment /dev/shm/|Error while creating shared memory segment|"
        r"posix_fallocate failed ?: No space left|/dev/shm/\S+.*No space left|No space left.*/dev/shm/|Bus error",
        "no space in shared memory",
    ),
    error("disk-full", r"No space left on device|Disk quota exceeded", "no space on the disk"),
    *STARTS,
    *VICTIMS,
    failure("nccl-error", r"\bnccl(?:System|UnhandledCuda|Internal|InvalidUsage)Error\b|NCCL error in: ", "NCCL error"),
    failure(
        "host-out-of-memory", r"[Oo]ut of memory: Killed process (?P<pid>\d+)", "killed process {pid}: out of memory"
    ),
    failure("host-out-of-memory", r"\bOOMKilled\b(?!\W{0,3}false)", "killed for its memory: OOMKilled"),
    failure(
        "host-out-of-memory",
        r"A process of this unit has been killed by the OOM killer|Failed with result 'oom-kill'|"
        r"slurmstepd: error: .*oom.kill|srun: error: .*Out Of Memory",
        "killed for its memory",
    ),
    failure("xid", r"\bXid \((?:PCI:)?[\w:.]+\): (?P<code>\d+)", "Xid {code} of the NVIDIA driver"),
    failure(
        "worker-exit",
        r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<rank>\d+) \(pid: (?P<pid>\d+)\)",
        "rank {rank} exited with code {code}",
    ),
    # What started the server says how it ended: a shell, Slurm, Docker, kubectl, MPI, ray, systemd.
    failure(
        "ended-by-signal",
        r": line \d+: +(?P<pid>\d+) (?:Killed|Aborted|Segmentation fault|Bus error)\b|^\*\*\* SIG\w+ received at",
        "ended by a signal",
    ),
    failure(
        "ended-by-signal",
        r"died with <Signals\.SIG(?!TERM|INT)|terminated by signal SIG(?!TERM|INT)|zsh: (?:killed|segmentation fault)|"
        r", code=(?:killed, status=(?!\d+/(?:TERM|INT))|dumped, status=)|Caught signal \d+ \((?!Terminated)|"
        r"Segfault encountered",
        "ended by a signal",
    ),
    failure(
        "ended-in-batch",
        r"srun: error: .*(?:Killed|Exited with exit code)",
        "the process was ended",
    ),
    LogLine("cancelled", "milestone", re.compile(r"slurmstepd: error: .*CANCELLED"), "its job was cancelled"),
    LogLine("exit-zero", "milestone", re.compile(r"^[\w.-]+ exited with code 0$"), "it exited with code 0"),
    failure("exit-code", rf"[Ee]xit(?:ed with)? ?(?:[Cc]ode|status)[:=]? *\(?{_HARD}", "exit code {code}"),
    failure("exit-code", rf"terminated with {_HARD}", "exit code {code}"),
    failure(
        "exit-code",
        r"exited with code (?P<code>(?!130|143)[1-9]\d*)$",
        "exit code {code}",
    ),
    failure("exit-code", r"^Exit Code: +(?P<code>(?!130|143)[1-9]\d*)$", "exit code {code}"),
    failure("exit-code", r", code=exited, status=(?P<code>(?!130|143)[1-9]\d*)/", "exit code {code}"),
    failure("exit-code", r"terminated with exit code (?P<code>(?!130|143)[1-9]\d*)$", "exit code {code}"),
    failure("mpi-exit", r"mpirun noticed that process rank (?P<rank>\d+) .*exited", "rank {rank} exited"),
    failure("ray-death", r"A worker died or was killed while executing a task|\bActorDiedError\b", "a worker died"),
    failure(
        "heap-damage",
        r"^(?:free|malloc|realloc|munmap_chunk)\(\): |^double free or corruption|^corrupted (?:size|double-linked)",
        "its memory is wrong",
    ),
    failure(
        "signal",
        r"^Segmentation fault(?: \(core dumped\))?$|^Aborted(?: \(core dumped\))$|^Illegal instruction\b",
        "killed by a signal",
    ),
    failure("killed", r"^Killed$", "killed"),
    *TRACEBACK,
    *ELASTIC,
    failure("agent-failed", r"\bChildFailedError:", "torchrun says that workers failed", victim=True),
    LogLine("interrupted", "milestone", re.compile(r"^KeyboardInterrupt\b"), "interrupted"),
)
"""Tried after an engine's own lines, first to last."""

EXCEPTIONS = (
    error("import", r"^ModuleNotFoundError\b|^ImportError\b", "a module cannot be imported"),
    error("assertion", r"^AssertionError\b", "an assertion failed"),
    error(
        "python-error",
        r"^(?=(?:\w{1,80}\.){0,9}(?P<what>\w{1,80}Error)(?::|$))[\w.]+Error",
        "an exception: {what}",
    ),
    error(
        "python-error",
        r"^(?=(?:\w{1,80}\.){0,9}(?P<what>\w{0,80}Exception)(?::|$))[\w.]*Exception",
        "an exception: {what}",
    ),
)
"""The last lines of tracebacks that nothing more is known of; tried after all others."""
