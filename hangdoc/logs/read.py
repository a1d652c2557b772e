"""From the paths of `hangdoc diagnose` to a trace: files are told apart, read as they stream by, and put together."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TypeAlias

from msgspec.structs import replace

from hangdoc import discovery
from hangdoc.errors import HangdocError
from hangdoc.logs.assemble import Material, trace_of
from hangdoc.logs.attempts import of_last_attempt
from hangdoc.logs.journal import Journal
from hangdoc.logs.moment import Moment, ending
from hangdoc.logs.numbers import LineNumbers, numbered
from hangdoc.logs.pyspy import DumpedProcess, parse_dump
from hangdoc.logs.recognise import engine_of, kind_of
from hangdoc.logs.rotation import rank_in_name, together
from hangdoc.logs.several import FileLog, of_last_launch, told_apart
from hangdoc.logs.sources import STDIN, Source, last_bytes, pieces, sources
from hangdoc.logs.stream import LogText, Stream
from hangdoc.model.engine import Engine
from hangdoc.model.log import LogEvent, LogTail
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

    first_answer: called with a trace of the end of a long file, before the rest is read; fast: use the multi-pattern
    engine where it is installed.
    """

    engine: Engine | None = None
    launch: int | None = None
    now: Moment | None = None
    first_answer: Callable[[Trace], None] | None = None
    fast: bool = True


_Log: TypeAlias = tuple[list[Source], LogText, Journal]


@dataclass
class _Found:
    """What the inputs hold."""

    logs: list[_Log] = field(default_factory=list)
    dumps: list[DumpedProcess] = field(default_factory=list)


def read(paths: list[Path], wishes: Wishes) -> Trace:
    """Return the trace of all inputs; HangdocError (exit 2) for inputs that are nothing hangdoc can read."""
    listed = of_last_attempt(sources(paths), set(paths))
    from_directory = {one.path for one in listed} - set(paths)
    usable = [(one, kind) for one in listed if (kind := _kind(one, skip=one.path in from_directory)) is not None]
    traces = [one for one, kind in usable if kind == "trace"]
    if traces:
        return _only_trace(traces, [one for one, _ in usable])
    if not usable:
        raise HangdocError(f"{paths[0]} has no log that says anything: its files are empty or binary", _NO_LOG)
    found = _Found()
    found.dumps = [process for one, kind in usable if kind == "dump" for process in _json_dump(one)]
    groups = together(one for one, kind in usable if kind == "log")
    engine = wishes.engine or _engine(groups)
    if wishes.first_answer is not None and len(groups) == 1:
        _answer_from_end(groups[0][-1], engine, wishes)
    for group in groups:
        found.logs.append(_log(group, engine, wishes, several=len(groups) > 1))
    found.logs = _told_apart(found.logs, engine)
    return _trace(found, engine, wishes)


def _kind(source: Source, *, skip: bool) -> str | None:
    """Return what a file is; files of a directory that are no use are skipped, those given by name are an error."""
    if source.path == STDIN:
        return "log"  # it can be read only once
    kind = kind_of(_head(source))
    if kind in ("empty", "binary"):
        if skip:
            return None
        what = "is empty" if kind == "empty" else "is binary, not text"
        raise HangdocError(f"{source.name} {what}: there is no log in it", _NO_LOG)
    return kind


def _head(source: Source) -> bytes:
    head = b""
    for piece in pieces(source):
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


def _json_dump(source: Source) -> list[DumpedProcess]:
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
    return [DumpedProcess(main, "", {}, threads)]


def _engine(groups: list[list[Source]]) -> Engine:
    files = [group for group in groups if group[0].path != STDIN]  # standard input can be read only once
    texts = [text for group in files for text in (_head(group[0]), last_bytes(group[-1], HEAD_BYTES))]
    return discovery.engine(engine_of(*texts))


def _log(group: list[Source], engine: Engine, wishes: Wishes, *, several: bool) -> _Log:
    data: Iterator[bytes] = chain.from_iterable(pieces(one) for one in group)
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
    told = numbered(text.events, pieces(group[0])) if once is None and len(group) == 1 else text.events
    events = tuple(event if event.rank or not rank else replace(event, rank=rank) for event in told)
    return group, LogText(events, text.lines, text.size_bytes, text.last_stamp), stream.journal


def _told_apart(logs: list[_Log], engine: Engine) -> list[_Log]:
    """Leave out files of older launches, and give the lines of several servers or nodes the numbers of their files."""
    if len(logs) < 2:
        return logs
    files = [
        FileLog(group[0].name, rank_in_name(group[0], engine.rank_axis), text.events, text.last_stamp)
        for group, text, _ in logs
    ]
    kept = [pair for pair, is_last in zip(zip(logs, files, strict=True), of_last_launch(files), strict=True) if is_last]
    apart = told_apart([file for _, file in kept], engine)
    return [
        (group, dataclasses.replace(text, events=events), journal)
        for ((group, text, journal), _), events in zip(kept, apart, strict=True)
    ]


def _recognised(data: Iterator[bytes], wishes: Wishes) -> tuple[Engine, Iterator[bytes]]:
    """Read the beginning of standard input, which comes only once, to see what it is."""
    head = b""
    for piece in data:
        head += piece
        if len(head) >= HEAD_BYTES:
            break
    kind = kind_of(head)
    if kind != "log":
        what = {"empty": "is empty", "binary": "is binary, not text"}.get(kind, f"is a {kind}: give it as a file")
        raise HangdocError(f"standard input {what}", _NO_LOG)
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
    log, ended_wall_ns = _merged(found, wishes)
    return trace_of(
        Material(
            engine=engine,
            log=log,
            ended_wall_ns=ended_wall_ns,
            dumps=_newest([*found.dumps, *(one for journal in journals for one in journal.dumps.processes)]),
            gpus=tables[-1] if tables else None,
            settings=next((journal.settings for journal in journals if journal.settings), {}),
            version=next((journal.version for journal in journals if journal.version), ""),
        )
    )


def _newest(dumps: list[DumpedProcess]) -> list[DumpedProcess]:
    """Return the last dump of each process, and all of those that name none."""
    last = {one.pid: number for number, one in enumerate(dumps) if one.pid > 0}
    return [one for number, one in enumerate(dumps) if last.get(one.pid, number) == number]


def _merged(found: _Found, wishes: Wishes) -> tuple[LogTail | None, int]:
    """Return all logs as one reading, and the moment that it is of."""
    texts = [text for _, text, _ in found.logs]
    files = [source for group, _, _ in found.logs for source in group]
    newest = max((text.last_stamp for text in texts), default="")
    end = ending(newest, max((source.modified_wall_ns for source in files), default=0), wishes.now)
    if not texts:
        return None, end.wall_ns
    path = files[0].name if len(texts) == 1 else str(files[0].path.parent)
    return LogTail(
        path=path,
        writers=(),
        size_bytes=sum(text.size_bytes for text in texts),
        modified_wall_ns=end.wall_ns - end.silent_ns if end.known or any(one.modified_wall_ns for one in files) else 0,
        events=_in_order([text.events for text in texts]),
        first=True,
        lines=sum(text.lines for text in texts),
        last_stamp=newest,
        until_known=end.known,
    ), end.wall_ns


def _in_order(logs: list[tuple[LogEvent, ...]]) -> tuple[LogEvent, ...]:
    """Return the events of all logs by their times, with offsets that tell them apart and keep the order."""
    if len(logs) == 1:
        return logs[0]
    rows = [(event.stamp, number, event) for number, events in enumerate(logs) for event in events]
    if all(stamp for stamp, _, _ in rows) and len({len(stamp) for stamp, _, _ in rows}) == 1:
        rows.sort(key=lambda row: (row[0], row[1], row[2].offset))
    return tuple(replace(event, offset=position) for position, (_, _, event) in enumerate(rows))
