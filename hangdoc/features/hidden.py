"""What a process has printed to a descriptor and not yet written: the sum over the buffers on its way."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.features.index import Index, Window
from hangdoc.model.buffer import Buffers, HiddenText
from hangdoc.model.fd import OpenFile
from hangdoc.model.process import ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.thread import Progress, Waits
from hangdoc.procfs.syscalls import call_of

PROBE = "buffers"
TAIL_CHARACTERS = 2000
"""As the probe keeps of each stream."""

MTIME_SLACK_NS = 10_000_000
"""A file's time of writing comes from a clock that ticks 100 to 1,000 times a second (CONFIG_HZ)."""

NOT_RECORDED = Missing(PROBE, "not-in-input", "text of the process is left out of a trace")
OVERTAKEN = Missing(PROBE, "not-taken", "this output was written to after the buffers were read")
IN_A_WRITE = Missing(PROBE, "not-taken", "a thread is writing to this output: what it writes is in no buffer")


@dataclass(frozen=True)
class Hidden:
    """Bytes that never reached a descriptor. tail: their last text; lacks: what there may be beyond them."""

    size_bytes: int
    tail: Reading[str]
    lacks: tuple[Missing, ...] = ()


@dataclass(frozen=True)
class Look:
    """A process's buffers as they were last read. quiet: it has made no write of any kind since; waits: at the end."""

    taken_wall_ns: int
    buffers: Buffers
    quiet: bool
    waits: Waits | None


def last_look(index: Index, process: ProcessKey, window: Window, boot_wall_ns: int) -> Reading[Look]:
    """Return the last reading of a process's buffers: not every window has one, and it stays true until a write."""
    until_now = Window(0, window.last, 0, window.end_ns)
    taken = index.known(PROBE, process, Buffers, until_now)
    if not taken:
        return index.missing(PROBE, process, until_now)
    taken_ns, buffers = taken[-1]
    waits = index.known("futex", process, Waits, window)
    quiet = _is_quiet(index.known("progress", process, Progress, until_now), taken_ns)
    return Known(Look(boot_wall_ns + taken_ns, buffers, quiet, waits[-1][1] if waits else None))


def _is_quiet(progress: list[tuple[int, Progress]], since_ns: int) -> bool:
    """Tell whether the process's count of writes stands since a moment; what was not read proves nothing."""
    before = [reading for at_ns, reading in progress if at_ns <= since_ns]
    if not before or isinstance(before[-1].io, Missing) or isinstance(progress[-1][1].io, Missing):
        return False
    return before[-1].io.value.write_calls == progress[-1][1].io.value.write_calls


def hidden(look: Reading[Look], file: OpenFile) -> Reading[Hidden]:
    """Return what is held back of one output.

    Rule: text that was found is held back, whatever else could not be read. That there is none is known only when
    every library could be read, one of them really prints to this descriptor, nothing stands in its place, and no
    thread is just writing. A file that was written after the reading makes it old, unless the process wrote nothing:
    ranks share a log. When it fails: a program with a buffer of its own beside these two (C++ with
    sync_with_stdio(false)) that prints to the same descriptor; a file server whose clock is not this machine's.
    """
    if isinstance(look, Missing):
        return look
    seen = look.value
    written = file.modified_wall_ns
    late = isinstance(written, Known) and written.value > seen.taken_wall_ns - MTIME_SLACK_NS
    if file.kind == "file" and late and not seen.quiet:
        return OVERTAKEN
    texts, lacks = _texts(seen.buffers, file.fd)
    size_bytes = sum(text.size_bytes for text in texts)
    if size_bytes:
        return Known(Hidden(size_bytes, _tail(texts), lacks))
    if lacks:
        return lacks[0]
    return IN_A_WRITE if _is_written(seen.waits, file.fd) else Known(Hidden(0, Known("")))


def holding(look: Reading[Look]) -> frozenset[int]:
    """Return the descriptors that text waits for."""
    if isinstance(look, Missing):
        return frozenset()
    libraries = (look.value.buffers.python, look.value.buffers.c)
    known = [text for library in libraries if isinstance(library, Known) for text in library.value]
    return frozenset(text.fd for text in known if text.size_bytes)


def _texts(value: Buffers, fd: int) -> tuple[list[HiddenText], tuple[Missing, ...]]:
    texts: list[HiddenText] = []
    lacks: list[Missing] = []
    for streams in (value.python, value.c):
        if isinstance(streams, Missing):
            lacks.append(streams)
        else:
            texts += [text for text in streams.value if text.fd == fd]
    if value.unsearched is not None:
        lacks.append(value.unsearched)
    lacks += [_replaced(text) for text in texts if text.replaced_by]
    if not texts and not lacks:
        what = f"no buffer that can be read prints to descriptor {fd}: it may have one of its own"
        lacks.append(Missing(PROBE, "unsupported", what))
    return texts, tuple(lacks)


def _replaced(text: HiddenText) -> Missing:
    what = f"sys.{text.stream} is a {text.replaced_by}: what that keeps itself cannot be read"
    return Missing(PROBE, "unsupported", what)


def _tail(texts: list[HiddenText]) -> Reading[str]:
    if any(text.size_bytes and not text.tail for text in texts):
        return NOT_RECORDED
    # Which of two buffers comes first is not known: each begins a line of its own.
    *others, last = (text.tail for text in texts if text.tail)
    lines = [tail if tail.endswith("\n") else f"{tail}\n" for tail in others]
    return Known("".join((*lines, last))[-TAIL_CHARACTERS:])


def _is_written(waits: Waits | None, fd: int) -> bool:
    if waits is None:
        return False
    calls = [thread.system_call.value for thread in waits.threads if isinstance(thread.system_call, Known)]
    return any(call and call_of(call.number, waits.machine) == "write" and call.args[:1] == (fd,) for call in calls)
