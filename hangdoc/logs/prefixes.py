"""What stands before an engine's own text in a line: containers, schedulers and loggers put it there."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field

from hangdoc.logs.stamps import STAMP, normal


@dataclass(frozen=True)
class Unwrapped:
    """A line without its wrapping: its own text, and what the wrapping told of it; pid 0: nothing was told.

    task: the label of a scheduler's task, which is one node's launch or one rank; -1: none.
    """

    text: str
    stamp: str = ""
    rank: dict[str, int] = field(default_factory=dict)
    pid: int = 0
    task: int = -1


_WRAPPERS = tuple(
    re.compile(pattern)
    for pattern in (
        # a mail's or a report's quotation
        r"(?:> ){1,3}",
        # docker compose: a container's name, padded; the second one is what `time | line` recorders write
        r"[A-Za-z][\w.-]*\s+\|(?: |$)",
        r"\s*\d+\.\d+ \|(?: |$)",
        # kubectl logs --prefix, stern
        r"\[?pod/[\w./-]+\]? ",
        # containerd's and CRI-O's files
        rf"(?P<stamp_cri>{STAMP})\S* std(?:out|err) [FP] ",
        # kubectl logs --timestamps, docker logs -t
        r"(?P<stamp_iso>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)[\d.]*(?:Z|[+-]\d\d:\d\d) ?",
        # journald and syslog
        r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [\w./@:-]+\[\d+\]: ",
        # ray, vLLM: the process that printed, with its rank or its pid
        r"\((?P<who>[A-Za-z][\w:.]*(?: [\w=]+)*?)(?:,? pid=(?P<pid>\d{1,10}))?(?:, ip=[^)]*)?\)(?:\x1b\[0m)? ",
        # torchrun --tee, torch's own C++ messages, srun --label, mpirun -tag-output
        r"\[(?:default|rank)?(?P<rank>\d{1,5})\]:? ?(?=\D|$)",
        r"\[gpu_id=(?P<gpu>\d{1,5})\] ",
        r" {0,6}(?P<task>\d{1,5}): ",
        r"\[\d+,(?P<mpi>\d{1,6})\]<std(?:out|err)>:",
        # Python's logging, as wrapper scripts set it up
        rf"(?P<stamp_log>{STAMP})(?:[,.]\d+)? - [\w.]+ - [A-Z]+ - ",
        rf"(?P<stamp_place>{STAMP}) (?:INFO|WARNING|ERROR|DEBUG|CRITICAL) \d+ \[(?P<place>[^\]]{{0,100}})\] ",
        rf"(?P<stamp_level>{STAMP})(?:[,.]\d+)? (?:INFO|WARNING|ERROR|DEBUG|CRITICAL)\s+(?=\S)",
    )
)

_MOST_WRAPPERS = 4
"""Wrappings of one line. Arbitrary: a container runtime, a scheduler, a launcher and a logger."""

_AXIS = re.compile(r"(?:^|[_ ])(?P<axis>DP|PP|TP|EP|rank=)(?P<number>\d{1,6})")


def unwrap(line: str, rank_axis: str) -> Unwrapped:
    """Return a line without its wrapping; rank_axis: what a bare rank number counts on.

    >>> unwrap("sglang-1  | [2026-01-02 03:04:05 TP1] Load weight begin.", "tp").text
    '[2026-01-02 03:04:05 TP1] Load weight begin.'
    >>> unwrap("(WorkerDict pid=77) [rank3]: Killed", "tp")
    Unwrapped(text='Killed', stamp='', rank={'tp': 3}, pid=77, task=-1)
    """
    line = _unglued(line)
    found = Unwrapped(line)
    if line.startswith('{"'):
        found = _of_docker(line)
    for _ in range(_MOST_WRAPPERS):
        match = _wrapper(found.text)
        if match is None:
            break
        found = _merged(found, match, rank_axis)
    return found


_GLUED = re.compile(r"(?:it/s|s/it)\](?=\([A-Za-z][\w:. ]{0,80} pid=\d{1,10}\) )")
"""Where a bar ends and a line of another process begins: a bar has no line end, and vLLM's processes share a file."""


def _unglued(line: str) -> str:
    """Return the line that another process wrote behind a bar of tqdm; any other line as it is."""
    if "](" not in line:
        return line
    last = 0
    for match in _GLUED.finditer(line):
        last = match.end()
    return line[last:]


def _wrapper(text: str) -> re.Match[str] | None:
    if not text or (text[0] == "[" and text[1:5].isdigit()):
        return None  # the engine's own time stamp: the most frequent line of all
    for pattern in _WRAPPERS:
        if (match := pattern.match(text)) is not None:
            return match
    return None


def _merged(before: Unwrapped, match: re.Match[str], rank_axis: str) -> Unwrapped:
    groups = {name: value for name, value in match.groupdict().items() if value is not None}
    stamps = [normal(value) for name, value in groups.items() if name.startswith("stamp")]
    numbers = [int(groups[name]) for name in ("rank", "gpu", "mpi") if name in groups]
    rank = (
        dict(before.rank)
        | ({rank_axis: numbers[-1]} if numbers else {})
        | _named(groups.get("who", groups.get("place", "")), rank_axis)
    )
    pid = int(groups["pid"]) if "pid" in groups else before.pid
    task = int(groups.get("task", before.task))
    return Unwrapped(before.text[match.end() :], (stamps or [before.stamp])[0], rank, pid, task)


def _named(who: str, rank_axis: str) -> dict[str, int]:
    found = {match["axis"].lower(): int(match["number"]) for match in _AXIS.finditer(who)}
    return {rank_axis if axis == "rank=" else axis: number for axis, number in found.items()}


def _of_docker(line: str) -> Unwrapped:
    """Return the text of one line of docker's json-file driver, or of torch's error file; any other line as it is."""
    try:
        record = json.loads(line)
        if "log" not in record and isinstance(told := record["message"]["message"], str):
            return Unwrapped(told)
        text, time = record["log"], record.get("time", "")
        return Unwrapped(text.rstrip("\n"), normal(time)) if isinstance(text, str) else Unwrapped(line)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Unwrapped(line)
