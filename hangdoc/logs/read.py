"""From the paths of `hangdoc diagnose` to a trace: files are told apart, read as they stream by, and put together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from hangdoc import discovery
from hangdoc.errors import HangdocError
from hangdoc.logs import glued, ras
from hangdoc.logs.assemble import Material, trace_of
from hangdoc.logs.attempts import of_last_attempt
from hangdoc.logs.evidence import Said, evidence_kind, read_evidence, records
from hangdoc.logs.journal import Journal
from hangdoc.logs.moment import REMEDY, End, Moment, ending
from hangdoc.logs.numbers import LineNumbers, numbered, numbers_of
from hangdoc.logs.pyspy import DumpedProcess, parse_dump
from hangdoc.logs.recognise import Kind, engine_of, kind_of
from hangdoc.logs.rotation import rank_in_name, together
from hangdoc.logs.several import FileLog, named, of_last_launch, told_apart
from hangdoc.logs.sources import STDIN, Source, lack, last_bytes, pieces, sources, stored
from hangdoc.logs.stream import LogText, Stream
from hangdoc.model.engine import Engine
from hangdoc.model.log import LogEvent, LogTail
from hangdoc.model.reading import Missing
from hangdoc.trace.reader import read as read_trace
from hangdoc.trace.records import Trace

HEAD_BYTES = 256 << 10
"""What the engine is recognised by, of each end. Arbitrary: a start writes 10 to 200 KiB."""

LONG_BYTES = 64 << 20
"""Size from which the end is answered for before the rest is read. Arbitrary: less takes a moment."""

FIRST_LOOK_BYTES = 4 << 20
"""The end that the first answer is made from: under 5 % of every file that is long."""

LARGEST_DUMP_BYTES = 64 << 20
"""A JSON dump is parsed as a whole. Arbitrary: 200 threads are 200 KB."""

_NO_LOG = "give a server's log, a saved py-spy dump or a .hangtrace"


@dataclass(frozen=True)
class Wishes:
    """What the caller asks for. engine: None means recognise it; launch: None means the last one in a file.

    first_answer: called with a trace of the end of a long file, before the rest is read; tell: called with each
    sentence on what could not be read; fast: use the multi-pattern
    engine where it is installed.
    """

    engine: Engine | None = None
    launch: int | None = None
    now: Moment | None = None
    first_answer: Callable[[Trace], None] | None = None
    tell: Callable[[str], None] | None = None
    fast: bool = True

    def say(self, sentence: str) -> None:
        """Tell a sentence to who asked, if anybody listens; nothing for an empty one."""
        if self.tell is not None and sentence:
            self.tell(f"hangdoc: {sentence}.")


_Log: TypeAlias = tuple[list[Source], LogText, Journal]


@dataclass
class _Found:
    """What the inputs hold. optional: files of directories, of which one that is no use spoils nothing."""

    logs: list[_Log] = field(default_factory=list)
    dumps: list[DumpedProcess] = field(default_factory=list)
    lacks: list[Missing] = field(default_factory=list)
    evidence: list[tuple[Source, Said]] = field(default_factory=list)
    optional: frozenset[Path] = frozenset()


def read(paths: list[Path], wishes: Wishes) -> Trace:
    """Return the trace of all inputs; HangdocError (exit 2) for inputs that are nothing hangdoc can read."""
    listed = of_last_attempt(sources(paths), set(paths))
    found = _Found(optional=frozenset(one.path for one in listed) - set(paths))
    usable = [(one, kind) for one in listed if (kind := _kind(one, found)) is not None]
    traces = [one for one, kind in usable if kind == "trace"]
    if traces:
        return _only_trace(traces, [one for one, _ in usable])
    if not usable:
        raise _nothing_in(paths[0], found.lacks)
    groups = together(one for one, kind in usable if kind == "log")
    engine = wishes.engine or _engine(groups)
    for one, kind in usable:
        _take(one, kind, engine, found)
    if wishes.first_answer is not None and len(groups) == 1:
        _answer_from_end(groups[0][-1], engine, wishes)
    for group in groups:
        found.logs.append(_log(group, engine, wishes, found.lacks, several=len(groups) > 1))
    found.logs = _told_apart(found.logs, engine, wishes)
    trace = _trace(found, engine, wishes)
    for missed in found.lacks:
        wishes.say(missed.detail)
    return trace


def _nothing_in(path: Path, lacks: list[Missing]) -> HangdocError:
    if lacks:
        return HangdocError(f"{path} has no log that says anything: {lacks[0].detail}", lacks[0].remedy)
    return HangdocError(f"{path} has no log that says anything: its files are empty or binary", _NO_LOG)


def _take(source: Source, kind: Kind, engine: Engine, found: _Found) -> None:
    """Read a file that is no log."""
    try:
        if kind == "dump":
            found.dumps += _json_dump(source, rank_in_name(source, engine.rank_axis))
        elif kind in {"flight", "ras"}:
            found.evidence.append((source, read_evidence(source, kind, engine.rank_axis)))
    except HangdocError as error:
        if source.path not in found.optional:
            raise
        found.lacks.append(lack(error.message, error.remedy))


def _kind(source: Source, found: _Found) -> Kind | None:
    """Return what a file is. Of a directory's files those that are no use are skipped, and told where it is a loss.

    A file that is given by name and is no use is an error.
    """
    if source.path == STDIN:
        return "log"  # it can be read only once
    try:
        kind = evidence_kind(_head_of(stored(source))) or kind_of(_head_of(pieces(source)))
    except HangdocError as error:
        if source.path not in found.optional:
            raise
        found.lacks.append(lack(error.message, error.remedy))
        return None
    if kind in ("empty", "binary"):
        if source.path in found.optional:
            return None
        blank = "has nothing but blanks and zeros" if source.size_bytes else "is empty"
        what = blank if kind == "empty" else "is binary, not text"
        raise HangdocError(f"{source.name} {what}: there is no log in it", _NO_LOG)
    return kind


def _head_of(pieces: Iterable[bytes]) -> bytes:
    head = b""
    for piece in pieces:
        head += piece
        if len(head) >= HEAD_BYTES:
            break
    return head[:HEAD_BYTES]


def _only_trace(traces: list[Source], every: list[Source]) -> Trace:
    if len(every) > 1:
        raise HangdocError(f"{traces[0].name} is a trace: a trace is diagnosed by itself", "give it alone")
    trace = read_trace(traces[0].path)
    if not trace.snapshots:
        raise HangdocError(f"{traces[0].name} was cut before its first round was whole", "record again")
    return trace


def _json_dump(source: Source, rank: dict[str, int]) -> list[DumpedProcess]:
    data = b""
    for piece in pieces(source):
        data += piece
        if len(data) > LARGEST_DUMP_BYTES:
            raise HangdocError(f"{source.name} is too large for a stack dump", _NO_LOG)
    try:
        threads = parse_dump(data)
    except HangdocError as error:
        raise HangdocError(f"{source.name} is no stack dump of py-spy", _NO_LOG) from error
    main = next((thread.tid for thread in threads if thread.name == "MainThread"), threads[0].tid)
    return [DumpedProcess(main, "", rank, threads)]


def _engine(groups: list[list[Source]]) -> Engine:
    files = [group for group in groups if group[0].path != STDIN]  # standard input can be read only once
    texts = [text for group in files for text in (_head_of(pieces(group[0])), last_bytes(group[-1], HEAD_BYTES))]
    return discovery.engine(engine_of(*texts))


def _log(group: list[Source], engine: Engine, wishes: Wishes, lacks: list[Missing], *, several: bool) -> _Log:
    data: Iterator[bytes] = chain.from_iterable(pieces(one, lacks) for one in group)
    if group[0].path == STDIN:
        engine, data = _recognised(data, wishes)
    once = LineNumbers() if group[0].path == STDIN else None
    stream = Stream(engine, wishes.launch, fast=wishes.fast, numbers=once)
    for piece in data:
        stream.feed(piece)
    text = stream.finish()
    if wishes.launch is not None and stream.journal.launches < wishes.launch:
        raise HangdocError(f"{group[0].name} has {stream.journal.launches} launches, not {wishes.launch}")
    rank = rank_in_name(group[0], engine.rank_axis) if several else {}
    for process in stream.journal.dumps.processes:
        process.rank = process.rank or rank
    told = numbered(text.events, pieces(group[0])) if once is None and len(group) == 1 else text.events
    if wishes.launch is None and stream.journal.launches > 1:
        wishes.say(_launches(group, stream.journal))
    events = tuple(event if event.rank or not rank else replace(event, rank=rank) for event in told)
    return group, LogText(events, text.lines, text.size_bytes, text.end), stream.journal


def _launches(group: list[Source], journal: Journal) -> str:
    """Return what is to be said of several launches in one log."""
    countable = len(group) == 1 and group[0].path != STDIN
    numbers = numbers_of({begin.offset for begin in journal.begins}, pieces(group[0])) if countable else {}
    lines = [numbers.get(begin.offset, 0) for begin in journal.begins]
    return glued.told(group[0].name, journal.launches, journal.begins, lines)


def _told_apart(logs: list[_Log], engine: Engine, wishes: Wishes) -> list[_Log]:
    """Leave out files of older launches, and give the lines of several servers or nodes the numbers of their files."""
    if len(logs) < 2:
        return logs
    files = [
        FileLog(group[0].name, rank_in_name(group[0], engine.rank_axis), text.events, text.last_stamp)
        for group, text, _ in logs
    ]
    kept = [pair for pair, is_last in zip(zip(logs, files, strict=True), of_last_launch(files), strict=True) if is_last]
    apart = told_apart([file for _, file in kept], engine)
    wishes.say(named([file for _, file in kept], engine))
    return [
        (group, dataclasses.replace(text, events=events), journal)
        for ((group, text, journal), _), events in zip(kept, apart, strict=True)
    ]


_NAMES: dict[Kind, str] = {
    "empty": "empty",
    "binary": "binary, not text",
    "dump": "a stack dump as JSON: give it as a file",
    "flight": "a dump of a flight recorder: give it as a file",
    "ras": "an answer of NCCL's RAS as JSON: give it as a file",
    "trace": "a trace: give it as a file",
}


def _recognised(data: Iterator[bytes], wishes: Wishes) -> tuple[Engine, Iterator[bytes]]:
    """Read the beginning of standard input, which comes only once, to see what it is."""
    head = b""
    for piece in data:
        head += piece
        if len(head) >= HEAD_BYTES:
            break
    kind = "log" if ras.is_text(head) else evidence_kind(head) or kind_of(head)
    if kind != "log":
        raise HangdocError(f"standard input is {_NAMES[kind]}", _NO_LOG)
    return wishes.engine or discovery.engine(engine_of(head)), chain([head], data)


def _answer_from_end(source: Source, engine: Engine, wishes: Wishes) -> None:
    if source.size_bytes < LONG_BYTES or not (end := last_bytes(source, FIRST_LOOK_BYTES)):
        return
    stream = Stream(engine, fast=wishes.fast)
    stream.feed(end[end.find(b"\n") + 1 :])
    found = _Found([([source], stream.finish(), stream.journal)])
    assert wishes.first_answer is not None
    wishes.first_answer(_trace(found, engine, wishes))


def _trace(found: _Found, engine: Engine, wishes: Wishes) -> Trace:
    journals = [journal for _, _, journal in found.logs]
    engine = journals[0].engine if journals else engine
    tables = [table for journal in journals if (table := journal.table.gpus()) is not None]
    log, ended_wall_ns = _merged(found, engine, wishes)
    return trace_of(
        Material(
            engine=engine,
            log=log,
            ended_wall_ns=ended_wall_ns,
            dumps=_newest([*found.dumps, *(one for journal in journals for one in journal.dumps.processes)]),
            gpus=tables[-1] if tables else None,
            settings=next((journal.settings for journal in journals if journal.settings), {}),
            version=next((journal.version for journal in journals if journal.version), ""),
            lacks=found.lacks,
        )
    )


def _newest(dumps: list[DumpedProcess]) -> list[DumpedProcess]:
    """Return the last dump of each process, and all of those that name none."""
    last = {one.pid: number for number, one in enumerate(dumps) if one.pid > 0}
    return [one for number, one in enumerate(dumps) if last.get(one.pid, number) == number]


def _merged(found: _Found, engine: Engine, wishes: Wishes) -> tuple[LogTail | None, int]:
    """Return all logs, and the evidence beside them, as one reading, and the moment that it is of."""
    texts = [text for _, text, _ in found.logs]
    files = [source for group, _, _ in found.logs for source in group]
    if found.evidence:
        said = records((one for _, one in found.evidence), engine.rank_axis)
        files += [source for source, _ in found.evidence] if not texts else []
        stamp = max((event.stamp for event in said), default="") if not texts else ""
        texts.append(LogText(said, 0, sum(source.size_bytes for source, _ in found.evidence), End(stamp)))
    last = max((text.end for text in texts), key=lambda one: one.stamp, default=End(""))
    newest = last.stamp
    end = ending(last, max((source.modified_wall_ns for source in files), default=0), wishes.now)
    if end.doubt:
        found.lacks.append(lack(end.doubt, REMEDY))
    if not texts:
        return None, end.wall_ns
    path = files[0].name if len(files) == 1 or len(found.logs) == 1 else str(files[0].path.parent)
    return LogTail(
        path=path,
        writers=(),
        size_bytes=sum(text.size_bytes for text in texts),
        modified_wall_ns=end.wall_ns - end.silent_ns if end.known or any(one.modified_wall_ns for one in files) else 0,
        events=_in_order([text.events for _, text, _ in found.logs], texts[-1].events if found.evidence else ()),
        first=True,
        lines=sum(text.lines for text in texts),
        last_stamp=newest,
        until_known=end.known,
    ), end.wall_ns


def _in_order(logs: list[tuple[LogEvent, ...]], evidence: tuple[LogEvent, ...]) -> tuple[LogEvent, ...]:
    """Return the events of all logs by their times, with offsets that tell them apart and keep the order.

    What stands in files beside the logs comes last: it was gathered when all was over.
    """
    if len(logs) == 1:
        end = logs[0][-1].offset + 1 if logs[0] else 0
        return (*logs[0], *(replace(event, offset=end + number) for number, event in enumerate(evidence)))
    rows = [(event.stamp, number, event) for number, events in enumerate(logs) for event in events]
    if all(stamp for stamp, _, _ in rows) and len({len(stamp) for stamp, _, _ in rows}) == 1:
        rows.sort(key=lambda row: (row[0], row[1], row[2].offset))
    every = (*(event for _, _, event in rows), *evidence)
    return tuple(replace(event, offset=position) for position, event in enumerate(every))
