"""What a process has printed to a descriptor and not yet written: the sum over the buffers on its way."""

from __future__ import annotations

from dataclasses import dataclass

from hangdoc.features.syscalls import call_of
from hangdoc.model.buffer import Buffers, HiddenText
from hangdoc.model.fd import OpenFile
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.thread import Waits

PROBE = "buffers"
TAIL_CHARACTERS = 2000
"""As the probe keeps of each stream."""

MTIME_SLACK_NS = 10_000_000
"""A file's time of writing comes from a clock that ticks 100 to 1,000 times a second (CONFIG_HZ)."""

NOT_RECORDED = Missing(PROBE, "not-in-input", "text of the process is left out of a trace")
OVERTAKEN = Missing(PROBE, "not-taken", "the process wrote to this output after its buffers were read")
IN_A_WRITE = Missing(PROBE, "not-taken", "a thread is writing to this output: what it writes is in no buffer")


@dataclass(frozen=True)
class Hidden:
    """Bytes that never reached a descriptor. tail: their last text; lacks: what there may be beyond them."""

    size_bytes: int
    tail: Reading[str]
    lacks: tuple[Missing, ...] = ()


def hidden(buffers: Reading[tuple[int, Buffers]], waits: Waits | None, file: OpenFile) -> Reading[Hidden]:
    """Return what is held back of one output; buffers: the last reading and when it was taken, in Unix time.

    Rule: text that was found is held back, whatever else could not be read. That there is none is known only when
    every library could be read, one of them really prints to this descriptor, nothing stands in its place, and no
    thread is just writing. When it fails: a program with a buffer of its own beside these two (C++ with
    sync_with_stdio(false)) that prints to the same descriptor.
    """
    if isinstance(buffers, Missing):
        return buffers
    taken_wall_ns, value = buffers.value
    written = file.modified_wall_ns
    if file.kind == "file" and isinstance(written, Known) and written.value > taken_wall_ns - MTIME_SLACK_NS:
        return OVERTAKEN
    texts, lacks = _texts(value, file.fd)
    size_bytes = sum(text.size_bytes for text in texts)
    if size_bytes:
        return Known(Hidden(size_bytes, _tail(texts), lacks))
    if lacks:
        return lacks[0]
    return IN_A_WRITE if _is_written(waits, file.fd) else Known(Hidden(0, Known("")))


def _texts(value: Buffers, fd: int) -> tuple[list[HiddenText], tuple[Missing, ...]]:
    texts: list[HiddenText] = []
    lacks: list[Missing] = []
    for streams in (value.python, value.c):
        if isinstance(streams, Missing):
            lacks.append(streams)
        else:
            texts += [text for text in streams.value if text.fd == fd]
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
