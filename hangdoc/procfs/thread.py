"""Parse what the kernel tells about one thread: schedstat, stat and the switches of status."""

from __future__ import annotations

from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.thread import ThreadClock, ThreadState
from hangdoc.procfs.errors import refuse
from hangdoc.procfs.numbers import LARGEST, counter, text
from hangdoc.procfs.stat import MAJOR, MINOR, SYSTEM, USER, split_stat

VOLUNTARY = b"\nvoluntary_ctxt_switches:\t"
INVOLUNTARY = b"\nnonvoluntary_ctxt_switches:\t"


def parse_schedstat(tid: int, data: bytes) -> ThreadClock:
    r"""Read a schedstat line: time on a CPU, time waiting for one, time slices.

    >>> parse_schedstat(7, b"1200300 4500 12\n")
    ThreadClock(tid=7, run_ns=1200300, wait_ns=4500, slices=12)
    """
    try:
        run_ns, wait_ns, slices = map(int, data.split())
    except ValueError:
        refuse("schedstat", data)
    if not (0 <= run_ns <= LARGEST and 0 <= wait_ns <= LARGEST and 0 <= slices <= LARGEST):
        refuse("schedstat", data)
    return ThreadClock(tid, run_ns, wait_ns, slices)


def parse_thread_state(tid: int, stat: bytes, switches: tuple[Reading[int], Reading[int]]) -> ThreadState:
    """Read a thread's stat line; its switches come from its status file.

    >>> line = b"8 (poller) S 1 7 7 0 -1 0 1 0 2 0 5 6 0 0 20 0 1 0 99 0 3 0"
    >>> thread = parse_thread_state(8, line, (Known(3), Known(4)))
    >>> thread.name, thread.state, thread.utime_ticks, thread.major_faults
    ('poller', 'S', 5, 2)
    """
    _, name, fields = split_stat(stat)
    try:
        user, system, minor, major = (counter(fields[at]) for at in (USER, SYSTEM, MINOR, MAJOR))
    except ValueError:
        refuse("stat", stat)
    return ThreadState(tid, text(name), fields[0].decode(), user, system, minor, major, *switches)


def parse_switches(probe: str, status: bytes) -> tuple[Reading[int], Reading[int]]:
    r"""Read the voluntary and the involuntary context switches out of a status file.

    >>> parse_switches("cpu", b"Name:\tx\nvoluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n")
    (Known(value=3), Known(value=4))
    """
    return _line(probe, status, VOLUNTARY), _line(probe, status, INVOLUNTARY)


def _line(probe: str, status: bytes, label: bytes) -> Reading[int]:
    _, found, rest = status.partition(label)
    if not found:
        return Missing(probe, "unsupported", "this kernel's status file has no context switches")
    try:
        return Known(counter(rest.partition(b"\n")[0].strip()))
    except ValueError:
        refuse("status", status)
