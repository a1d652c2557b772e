"""Lines of the text that NCCL's RAS service answers, read from the sources of NCCL 2.24 to 2.30.

A line means something below its heading only: hangdoc.logs.ras_text puts them together.
"""

from __future__ import annotations

import re

from hangdoc.model.engine import LogLine

_OF = r"(?: -- (?:GPU \d+(?: \(NVML \d+\))? managed by process (?P<pid>\d+) on node|\[process information not found))"


def _line(name: str, pattern: str, text: str, *, victim: bool = False) -> LogLine:
    return LogLine(name, "watchdog", re.compile(pattern), f"NCCL counts: {text}", victim=victim)


LINES = (
    _line("ras-begins", r"^NCCL version \S+ compiled with CUDA \d", "an answer begins"),
    _line("ras-lost-processes", r"^\d+ job process(?:es are| is) considered dead \(", "processes are dead"),
    _line("ras-silent-processes", r"^Missing communicator data from \d+ job process", "processes do not answer"),
    _line("ras-silent-ranks", r"^Missing communicator data from \d+ ranks?$", "ranks do not answer"),
    _line("ras-communicator", r"^#\d+-\d+ \([0-9a-f]+(?:\) INCOMPLETE|\) ERROR|\) MISMATCH)", "one more group"),
    _line("ras-operation", r"^Communicator ranks have different \w+ operation counts", "ranks differ"),
    _line("ras-states", r"^Communicator ranks have different status", "ranks differ in their state"),
    _line(
        "ras-count",
        r"Rank (?P<rank>\d+) has launched up to operation (?P<operation>\d+)" + _OF,
        "rank {rank} has launched up to operation {operation}",
    ),
    _line(
        "ras-count-none",
        r"^Rank (?P<rank>\d+) has not launched any operations" + _OF,
        "rank {rank} has not launched any operation",
    ),
    _line(
        "ras-few",
        r"^(?P<ranks>\d+) ranks? ha(?:s|ve) launched up to operation (?P<operation>\d+)$",
        "{ranks} ranks have launched up to operation {operation}",
    ),
    _line(
        "ras-few-none",
        r"^(?P<ranks>\d+) ranks? ha(?:s|ve) not launched any operations$",
        "{ranks} ranks have not launched any operation",
    ),
    _line("ras-few-left", r"^\d+ ranks have status (?:FINALIZE|ABORT|NOCOMM)$", "these ranks have left"),
    _line("ras-few-in", r"^\d+ ranks have status [A-Z]+$", "these ranks are in their group"),
    _line("ras-few-victims", r"^\d+ ranks reported Remote process error$", "these ranks: a peer is gone", victim=True),
    _line("ras-few-errors", r"^\d+ ranks reported [A-Z][\w ]+$", "these ranks failed"),
    _line(
        "ras-left",
        r"^Rank (?P<rank>\d+) has status (?:FINALIZE|ABORT|NOCOMM)" + _OF,
        "rank {rank} has left its group",
    ),
    _line("ras-in", r"^Rank (?P<rank>\d+) has status [A-Z]+" + _OF, "rank {rank} is in its group"),
    _line(
        "ras-suffered",
        r"^Rank (?P<rank>\d+) reported Remote process error" + _OF,
        "rank {rank}: a peer is gone",
        victim=True,
    ),
    _line("ras-error", r"^Rank (?P<rank>\d+) reported [A-Z][\w ]+?" + _OF, "rank {rank} failed in a collective"),
    _line("ras-rank", r"^Rank (?P<rank>\d+)" + _OF, "rank {rank} is one of these"),
    _line("ras-missing", r"^The missing ranks?: (?P<rank>\d+)$", "rank {rank} is missing"),
    _line("ras-gone", r"^Process (?P<pid>\d+) on node \S+ managing GPU", "process {pid} is missing"),
)
