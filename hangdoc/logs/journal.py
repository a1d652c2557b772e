"""What is kept of a log while it streams by: the events of one launch, dumps and tables, in flat memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from msgspec.structs import replace

from hangdoc.logs.blocks import TEXTS_OF_TABLE, SmiTable
from hangdoc.logs.elastic import ElasticReport
from hangdoc.logs.glued import Begin
from hangdoc.logs.lines import read_line
from hangdoc.logs.messages import Messages
from hangdoc.logs.numbers import NUMBERED
from hangdoc.logs.prefixes import unwrap
from hangdoc.logs.pyspy import TextDumps
from hangdoc.logs.ras_text import RasText
from hangdoc.logs.tracebacks import HEADS, TIMEOUTS, Tracebacks
from hangdoc.model.engine import Engine
from hangdoc.model.log import LogEvent

KEPT_FIRST, KEPT_LAST = 20, 3
"""Of equal events of one rank. Arbitrary: graphs are captured a few times in a start, complaints come without end."""

MOST_KINDS = 20_000
"""Different (event, rank) pairs. Arbitrary: 30 kinds of lines on 512 ranks are 15,360."""

MOST_BEGINS = 100
"""Launches of which is kept where they begin: the first ones, and the last one. Arbitrary."""

_FAILURES = frozenset({"crash", "error"})

ENDLESS = frozenset({"batch", "progress"})
"""Kinds that come without end: only the end of a log has them."""

FARTHEST_FRAME_BYTES = 1024
"""From one line of a dump to the next: lines between them may come from other ranks. Arbitrary."""

_MODEL = re.compile(r"\bmodel(?:_path|_tag)?'?[=:] ?'(?P<value>[^']{1,300})'")
_SETTING = re.compile(
    r"\b(?P<name>tp_size|tensor_parallel_size|pp_size|dp_size|nnodes|node_rank|port)'?[=:] ?(?P<value>\d{1,6})\b"
)
OTHER_TEXTS = ("Process ", "Thread ", "Current thread ", *TEXTS_OF_TABLE, "sglang", "vllm", "vLLM", "LLM engine")
"""What stands in the first lines of dumps, in each line of nvidia-smi's table, and in lists of versions."""

LONGEST_VERSION_LINE = 300
"""Characters of a line in which a version is looked for. Arbitrary."""

_VERSION = re.compile(
    r"(?:^(?:sglang|vllm|vLLM Version|sglang version)\s*[:=]|\b(?:sglang|vllm)==)\s*v?(?P<pip>\d+\.\d+[\w.+-]{0,20})|"
    r"(?:vLLM (?:API )?server|█) {1,9}version {1,9}v?(?P<api>\d+\.\d+[\w.+-]{0,20})|"
    r"LLM engine \(v(?P<engine>\d+\.\d+[\w.+-]{0,20})\)",
    re.IGNORECASE,
)


@dataclass
class Kept:
    """Equal events of one rank: the first ones, the last ones, and how many there were."""

    first: list[LogEvent] = field(default_factory=list)
    last: list[LogEvent] = field(default_factory=list)
    count: int = 0

    def add(self, event: LogEvent) -> None:
        """Take one more."""
        self.count += 1
        if len(self.first) < KEPT_FIRST:
            self.first.append(event)
        else:
            self.last = [*self.last, event][-KEPT_LAST:]


class Journal:
    """Takes the lines of one log that may mean something.

    launch: which one of several in the file is the patient, counted from 1; None: the last one; number_of: gives the
    number of the line at an offset, 0 for none.
    """

    def __init__(
        self, engine: Engine, launch: int | None = None, number_of: Callable[[int], int] = lambda _offset: 0
    ) -> None:
        self.engine = engine
        self._number_of = number_of
        self.launches = 0
        self.begins: list[Begin] = []
        self._newest = ""
        self.settings: dict[str, str] = {}
        self.version = ""
        self._wanted = launch
        self._clear()

    def _clear(self) -> None:
        self._kept: dict[tuple[object, ...], Kept] = {}
        self.tracebacks, self.report, self.ras = Tracebacks(), ElasticReport(), RasText()
        self.dumps, self._messages = TextDumps(), Messages()
        self._dump_end, self._margin = 0, 0
        self.table = SmiTable()
        self._began = False

    @property
    def is_over(self) -> bool:
        """Whether the launch that was asked for lies behind, so that nothing more is taken."""
        return self._wanted is not None and self.launches > self._wanted

    def line(self, text: str, offset: int) -> LogEvent | None:
        """Take one line, without its end; return its event. Of kinds that come without end none is kept here."""
        known = read_line(text, self.engine, offset)
        if known is None:
            self._other(text, offset)
            return None
        event = self._messages.told(known)
        if event.name == "server-args":
            self._launch(text, event)
        elif event.name == "restarts" and not self.is_over:
            self._clear()
        if not self.is_over and event.kind not in ENDLESS:
            self._sorted_in(event, text)
        self._newest = max(self._newest, event.stamp)
        return event

    def _sorted_in(self, event: LogEvent, text: str) -> None:
        """Keep an event; the lines of a failure that takes several are put together first."""
        if event.kind in NUMBERED:
            event = replace(event, line=self._number_of(event.offset))
        if self.ras.take(event):
            return
        if event.name == "interrupted":
            self.tracebacks.interrupted()
        if event.kind not in _FAILURES and event.name not in TIMEOUTS:
            self.add(event)
        elif self.report.take(event) or (self.tracebacks.is_open and self._indent(text) > self._margin + 1):
            return  # a traceback quotes the source, which names failures that did not happen
        else:
            self._margin = self._indent(text) if event.name in HEADS else self._margin
            for one in self.tracebacks.take(event):
                self.add(one)

    def _indent(self, text: str) -> int:
        """Return the blanks that a line begins with: the lines of a report that was pasted may all have some."""
        bare = unwrap(text, self.engine.rank_axis).text
        return len(bare) - len(bare.lstrip(" "))

    def close(self) -> None:
        """Take what was still open at the log's end."""
        self.dumps.close()
        told = self.report.told()
        for one in (*self.tracebacks.flush(), *((told,) if told is not None else ()), *self.ras.told()):
            self.add(one)

    def follows(self, offset: int) -> bool:
        """Tell whether the line at an offset may belong to a dump that is open."""
        return self.dumps.is_open and offset <= self._dump_end + FARTHEST_FRAME_BYTES

    def add(self, event: LogEvent) -> None:
        """Keep one event."""
        key: tuple[object, ...] = (event.name, event.kind, *sorted(event.rank.items()))
        if event.kind == "watchdog":
            key = (*key, *sorted(item for item in event.numbers.items() if item[0] == "rank"))
        if key in self._kept or len(self._kept) < MOST_KINDS:
            self._kept.setdefault(key, Kept()).add(event)
        self._began = True

    def events(self) -> tuple[LogEvent, ...]:
        """Return what was kept, in the order of the log."""
        found = [event for kept in self._kept.values() for event in (*kept.first, *kept.last)]
        return tuple(sorted(found, key=lambda event: event.offset))

    def _launch(self, text: str, event: LogEvent) -> None:
        settings = {match["name"]: match["value"] for match in _SETTING.finditer(text)}
        # One launch prints its arguments once; the first line of a file is no second launch.
        if self.launches == 0 or self._began:
            node = int(settings.get("node_rank", "-1")) if settings.get("nnodes", "1") != "1" else -1
            self.launches += 1
            self.begins = [*self.begins[: MOST_BEGINS - 1], Begin(event.offset, node, event.stamp, self._newest)]
        if not self.is_over:
            self._clear()
            self.version = _version_in(text) or self.version
            self.settings = settings
            if (model := _MODEL.search(text)) is not None:
                self.settings["model_path"] = model["value"]

    def _other(self, text: str, offset: int) -> None:
        if self.is_over or not (self.dumps.is_open or any(word in text for word in OTHER_TEXTS)):
            return
        bare = unwrap(text, self.engine.rank_axis)
        if offset > self._dump_end + FARTHEST_FRAME_BYTES:
            self.dumps.close()
        if self.dumps.take(bare.text, bare.rank):
            self._dump_end = offset + len(text)
        elif not self.table.take(bare.text) and not self.version:
            self.version = _version_in(bare.text)


def _version_in(text: str) -> str:
    match = _VERSION.search(text[:LONGEST_VERSION_LINE])
    return "" if match is None else next((value for value in match.groups() if value), "")
