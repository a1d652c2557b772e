"""Parse /proc/PID/stat and /proc/PID/task/TID/stat."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.model.thread import ProcessStat
from hangdoc.procfs.errors import refuse
from hangdoc.procfs.numbers import counter, signed, text

# Positions among the fields after the name, as proc_pid_stat(5) numbers them from 3 on.
PPID, PROCESS_GROUP, SESSION = 1, 2, 3
MINOR, CHILD_MINOR, MAJOR, CHILD_MAJOR = 7, 8, 9, 10
USER, SYSTEM, CHILD_USER, CHILD_SYSTEM = 11, 12, 13, 14
THREADS, START, RSS_PAGES, EXIT = 17, 19, 21, 49

STATES = b"RSDZTtWXxKPI"
"""Every state letter a kernel since 2.6 prints."""


@dataclass(frozen=True, slots=True)
class StatLine:
    """The fields of a stat line that hangdoc uses.

    child_*: of children that ended and were waited for; threads: at most 1 for a process that is a zombie as a whole
    (a main thread that ended alone counts as well, until the last of the others has).
    """

    pid: int
    name: str
    state: str
    ppid: int
    process_group: int
    session: int
    minor_faults: int
    child_minor_faults: int
    major_faults: int
    child_major_faults: int
    utime_ticks: int
    stime_ticks: int
    child_utime_ticks: int
    child_stime_ticks: int
    threads: int
    start_ticks: int
    rss_pages: int


def split_stat(data: bytes) -> tuple[bytes, bytes, list[bytes]]:
    """Cut a stat line into pid, name and the fields after the name.

    A name may hold anything, brackets, blanks and newlines included: the last ")" ends it.

    >>> pid, name, fields = split_stat(b"7 (a) R 1 (b) S 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 99 4096 3 0")
    >>> pid, name, fields[0]
    (b'7', b'a) R 1 (b', b'S')
    """
    head, closing, tail = data.rpartition(b")")
    pid, opening, name = head.partition(b" (")
    fields = tail.split()
    if not closing or not opening or len(fields) <= RSS_PAGES or len(fields[0]) != 1 or fields[0] not in STATES:
        refuse("stat", data)
    return pid, name, fields


def parse_stat(data: bytes) -> StatLine:
    """Read a whole stat line.

    >>> line = parse_stat(b"7 (python3) S 1 7 7 0 -1 4194304 90 2 3 4 50 60 70 80 20 0 12 0 99 4096 3 0")
    >>> line.name, line.state, line.threads, line.start_ticks, line.child_stime_ticks
    ('python3', 'S', 12, 99, 80)
    """
    pid, name, fields = split_stat(data)
    try:
        numbers = [signed(field) for field in fields[1 : RSS_PAGES + 1]]
        return StatLine(
            pid=counter(pid),
            name=text(name),
            state=fields[0].decode(),
            ppid=numbers[PPID - 1],
            process_group=numbers[PROCESS_GROUP - 1],
            session=numbers[SESSION - 1],
            minor_faults=numbers[MINOR - 1],
            child_minor_faults=numbers[CHILD_MINOR - 1],
            major_faults=numbers[MAJOR - 1],
            child_major_faults=numbers[CHILD_MAJOR - 1],
            utime_ticks=numbers[USER - 1],
            stime_ticks=numbers[SYSTEM - 1],
            child_utime_ticks=numbers[CHILD_USER - 1],
            child_stime_ticks=numbers[CHILD_SYSTEM - 1],
            threads=numbers[THREADS - 1],
            start_ticks=numbers[START - 1],
            rss_pages=numbers[RSS_PAGES - 1],
        )
    except ValueError:
        refuse("stat", data)


def parse_exit_status(data: bytes) -> int:
    """Read a zombie's wait status, field 52; the kernel shows 0 to whoever may not trace the process.

    >>> fields = b"Z 1 7 7 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 99 0 0 " + b"0 " * 27 + b"256"
    >>> parse_exit_status(b"7 (a) " + fields)
    256
    """
    fields = split_stat(data)[2]
    if len(fields) <= EXIT or not fields[EXIT].isdigit():
        refuse("stat", data)
    return int(fields[EXIT])


def process_stat(line: StatLine, page_bytes: int) -> ProcessStat:
    """Make the record of a process from its stat line.

    >>> record = process_stat(parse_stat(b"7 (x) S 1 7 7 0 -1 0 1 0 2 0 5 6 0 0 20 0 4 0 99 0 3 0"), 4096)
    >>> record.state, record.utime_ticks, record.minor_faults, record.threads, record.rss_bytes
    ('S', 5, 1, 4, 12288)
    """
    return ProcessStat(
        line.state,
        line.ppid,
        line.utime_ticks,
        line.stime_ticks,
        line.minor_faults,
        line.major_faults,
        line.threads,
        line.rss_pages * page_bytes,
    )
