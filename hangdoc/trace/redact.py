"""Takes out of a trace what must not leave the machine; what no allow-list knows becomes a token.

Numbers stay, so do pids and times: the diagnosis of a redacted trace equals that of the live one. Redaction walks the
types of the records, so that a field which nobody listed is redacted and not leaked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from types import NoneType
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct

from hangdoc.model.buffer import HiddenText
from hangdoc.model.fd import OpenFile, OpenFiles
from hangdoc.model.gpu import Gpu
from hangdoc.model.kernel_dump import KernelDump
from hangdoc.model.link import Link, LinkEnd
from hangdoc.model.lock_file import LockFile
from hangdoc.model.locks import FutexWait
from hangdoc.model.log import LogEvent, LogTail
from hangdoc.model.places import ThreadPlaces
from hangdoc.model.process import Launch, Process
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Plain, Sample, Snapshot
from hangdoc.model.stack import Frame, ThreadStack
from hangdoc.model.thread import ProcessStat, ThreadState, ThreadWait, Waits
from hangdoc.trace import arguments, names, secrets, wording
from hangdoc.trace.records import Assembly, Header, Line, Trace, lines_of
from hangdoc.trace.tokens import Tokens

TextRule: TypeAlias = Callable[[Tokens, str], str]
WholeRule: TypeAlias = Callable[[Tokens, Any], Any]

TEXT_RULES: dict[tuple[type[Struct], str], TextRule] = {
    (Header, "hangdoc"): names.version,
    (Header, "host"): names.host,
    (Header, "machine"): names.machine,
    (Launch, "engine_version"): names.version,
    (Process, "title"): arguments.title,
    (Process, "member_because"): wording.sentence,
    (Process, "rank"): names.rank_dimension,
    (Missing, "probe"): names.code_name,
    (Missing, "detail"): wording.sentence,
    (Missing, "remedy"): wording.sentence,
    (Sample, "probe"): names.code_name,
    (Snapshot, "tally"): names.code_name,
    (OpenFile, "target"): names.path,
    (HiddenText, "tail"): names.nothing,
    (HiddenText, "replaced_by"): names.free_text,
    (OpenFile, "access"): names.state_letter,
    (OpenFiles, "nvidia"): names.path,
    (Frame, "function"): names.function,
    (Frame, "file"): names.frame_file,
    (ThreadStack, "name"): names.thread,
    (ThreadPlaces, "function"): names.function,
    (ThreadPlaces, "file"): names.frame_file,
    (ThreadState, "name"): names.thread,
    (ThreadState, "state"): names.state_letter,
    (ProcessStat, "state"): names.state_letter,
    (ThreadWait, "state"): names.state_letter,
    (ThreadWait, "wait_channel"): names.code_name,
    (Waits, "machine"): names.machine,
    (Gpu, "name"): names.gpu,
    (FutexWait, "shared_key"): names.futex_key,
    (Link, "detail"): wording.sentence,
    (LinkEnd, "command"): names.thread,
    (LockFile, "path"): names.path,
    (LogEvent, "name"): names.code_name,
    (LogEvent, "rank"): names.rank_dimension,
    (LogEvent, "text"): wording.sentence,
    (LogEvent, "stamp"): names.stamp,
    (LogEvent, "numbers"): names.code_name,
    (KernelDump, "file"): names.path,
    (KernelDump, "kernels"): names.function,
    (LogTail, "last_stamp"): names.stamp,
    (LogTail, "path"): names.path,
}
"""What stays of each text in a field. A field that is in neither table loses all its text (names.free_text)."""

WHOLE_RULES: dict[tuple[type[Struct], str], WholeRule] = {
    (Launch, "settings"): arguments.settings,
    (Process, "argv"): arguments.argv,
    (Plain, "values"): lambda tokens, values: {
        names.code_name(tokens, key): names.free_text(tokens, value) if isinstance(value, str) else value
        for key, value in values.items()
    },
}
"""Fields where one text decides about the next."""


class Redactor:
    """Redacts the lines of one trace in their order; it holds the table of tokens."""

    def __init__(self) -> None:
        self.tokens = Tokens()
        self._machine: re.Pattern[str] | None = None

    def line(self, line: Line) -> Line:
        """Return the line without what must not leave; redacting it once more changes nothing."""
        if isinstance(line, Header):
            self._machine = secrets.name_of_machine(line.host)
            line = msgspec.structs.replace(line, redaction="tokens")
        redacted: Line = self._struct(line, names.free_text)
        return redacted

    def _clean(self, kept: Any) -> Any:
        """Return what a rule kept, unless it has the shape of a secret: then a token, whatever the rule."""
        if isinstance(kept, str):
            given_away = secrets.holds(kept) or (self._machine is not None and self._machine.search(kept))
            return self.tokens.of(kept, "text") if given_away else kept
        if isinstance(kept, tuple):
            return tuple([self._clean(item) for item in kept])
        if isinstance(kept, dict):
            return {self._clean(key): self._clean(item) for key, item in kept.items()}
        return kept

    def _struct(self, record: Any, outer: TextRule) -> Any:
        changed = {}
        kind: type[Struct] = type(record)
        for field in _text_fields(kind):
            value = getattr(record, field.name)
            if field.whole is not None:
                kept = self._clean(field.whole(self.tokens, value))
            else:
                kept = self._value(value, field.text or outer)
            if kept is not value:  # most are as they were, and a record costs more to build than to look at
                changed[field.name] = kept
        return msgspec.structs.replace(record, **changed) if changed else record

    def _value(self, value: Any, rule: TextRule) -> Any:
        if value is None or isinstance(value, (int, float)):
            return value
        if isinstance(value, str):
            return self._clean(rule(self.tokens, value))
        if isinstance(value, Struct):
            return self._struct(value, rule)
        if isinstance(value, tuple):
            return tuple([self._value(item, rule) for item in value])
        if isinstance(value, dict):
            return {self._value(key, rule): self._value(item, rule) for key, item in value.items()}
        raise TypeError(f"redaction does not know {type(value).__name__}")


def redact(trace: Trace) -> Trace:
    """Return the trace without what must not leave the machine; tokens are numbered as in its file."""
    return redact_with(Redactor(), trace)


def redact_with(redactor: Redactor, trace: Trace) -> Trace:
    """Return the trace redacted, and the redactor with the table of its tokens."""
    lines = map(redactor.line, lines_of(trace))
    header = next(lines)
    assert isinstance(header, Header)
    assembly = Assembly()
    for line in lines:
        assembly.take(line)
    return assembly.trace(header)


class _TextField(NamedTuple):
    """A field that may hold text: its rule; neither of both where the enclosing field's rule goes on (Known.value)."""

    name: str
    whole: WholeRule | None
    text: TextRule | None


@cache
def _text_fields(record: type[Struct]) -> tuple[_TextField, ...]:
    found = []
    for field in msgspec.structs.fields(record):
        if not _holds_text(field.type):
            continue
        place = (record, field.name)
        default = None if isinstance(field.type, TypeVar) else names.free_text
        found.append(_TextField(field.name, WHOLE_RULES.get(place), TEXT_RULES.get(place, default)))
    return tuple(found)


@cache
def _holds_text(annotation: Any) -> bool:
    """Say whether a value of this type may hold text of the outside world; a closed set of words is none."""
    if annotation in (int, float, bool, NoneType) or annotation is Ellipsis or get_origin(annotation) is Literal:
        return False
    if annotation is str or isinstance(annotation, TypeVar):
        return True
    origin = get_origin(annotation) or annotation
    if origin is Known:
        return any(map(_holds_text, get_args(annotation)))
    if isinstance(origin, type) and issubclass(origin, Struct):
        return any(_holds_text(field.type) for field in msgspec.structs.fields(origin))
    if get_args(annotation):
        return any(map(_holds_text, get_args(annotation)))
    raise TypeError(f"redaction does not know the type {annotation}")
