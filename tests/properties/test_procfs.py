"""Whatever bytes a /proc file has, a parser answers with its record or with its one error."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hangdoc.model.reading import Known
from hangdoc.procfs.cmdline import is_python, parse_cmdline
from hangdoc.procfs.counters import parse_io
from hangdoc.procfs.descriptor import kind_of, looks_like_log, parse_fdinfo
from hangdoc.procfs.errors import ProcParseError
from hangdoc.procfs.locks import parse_lock_line, parse_locks
from hangdoc.procfs.maps import parse_maps
from hangdoc.procfs.mounts import parse_mounts
from hangdoc.procfs.sockdiag import (
    ATTRIBUTE,
    HEADER,
    INET_ANSWER,
    UNIX_ANSWER,
    DiagError,
    messages,
    tcp_totals,
    unix_socket,
)
from hangdoc.procfs.stat import parse_stat, process_stat
from hangdoc.procfs.status import parse_status
from hangdoc.procfs.tcp import parse_tcp
from hangdoc.procfs.thread import parse_schedstat, parse_switches, parse_thread_state
from hangdoc.procfs.wait import parse_system_call, parse_wait_channel
from hangdoc.procfs.waitset import POLLFD, parse_epoll, parse_fd_set, parse_labelled, parse_pollfds

STAT = b"7 (python3) S 1 7 7 0 -1 4194304 90 2 3 4 50 60 70 80 20 0 12 0 99 4096 3 0"
STATUS = (
    b"Name:\tx\nPid:\t70\nTracerPid:\t0\nUid:\t5\t6\t7\t8\nNSpid:\t70\t1\nVmRSS:\t    12 kB\n"
    b"voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t4\n"
)
IO = b"rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 5\nwrite_bytes: 6\ncancelled_write_bytes: 0\n"


def answered(data: bytes) -> object:
    """A netlink answer may also be the kernel's own error."""
    try:
        return messages(data)
    except DiagError as error:
        return error.number


PARSERS: dict[str, tuple[Callable[[bytes], object], bytes]] = {
    "stat": (parse_stat, STAT),
    "process stat": (lambda data: process_stat(parse_stat(data), 4096), STAT),
    "thread stat": (lambda data: parse_thread_state(7, data, (Known(1), Known(2))), STAT),
    "schedstat": (partial(parse_schedstat, 7), b"1200300 4500 12\n"),
    "status": (parse_status, STATUS),
    "switches": (partial(parse_switches, "cpu"), STATUS),
    "io": (parse_io, IO),
    "syscall": (parse_system_call, b"202 0x10 0x80 0x2 0x0 0x0 0x0 0x7ffd0 0x55e0\n"),
    "wchan": (partial(parse_wait_channel, "futex", "S"), b"futex_do_wait"),
    "fdinfo": (parse_fdinfo, b"pos:\t62\nflags:\t0102001\nmnt_id:\t15\n"),
    "maps": (parse_maps, b"7f00-7f80 rw-p 00002000 08:01 42    /lib/a b.so (deleted)\n7f80-7fa0 r--p 0 0:0 0\n"),
    "locks": (
        parse_locks,
        b"1: FLOCK  ADVISORY  WRITE 70 fe:00:12 0 EOF\n1: -> FLOCK  ADVISORY  READ 71 fe:00:12 0 9\n",
    ),
    "mountinfo": (parse_mounts, b"36 35 98:0 / /mnt\\040x rw,noatime master:1 - nfs4 srv:/export rw\n"),
    "held locks": (parse_lock_line, b"flags:\t02\nlock:\t1: POSIX  ADVISORY  WRITE 70 fe:00:12 0 EOF\n"),
    "epoll": (parse_epoll, b"pos:\t0\ntfd:        5 events:       19 data:                5  pos:0 ino:9 sdev:a\n"),
    "poll": (parse_pollfds, POLLFD.pack(4, 1, 0)),
    "select": (parse_fd_set, b"\x09\x02"),
    "eventfd": (partial(parse_labelled, label=b"eventfd-id"), b"pos:\t0\neventfd-id: 12\n"),
    "tcp": (parse_tcp, b"head\n 0: 0100007F:7530 0100007F:9C40 01 00000000:00000000 00:00000000 0 1000 0 4242 1 0\n"),
    "unix diagnosis": (unix_socket, UNIX_ANSWER.pack(1, 1, 1, 0, 70, 0, 0) + ATTRIBUTE.pack(8, 2) + bytes(4)),
    "TCP diagnosis": (
        tcp_totals,
        INET_ANSWER.pack(2, 1, 0, 0, bytes(48), 0, 0, 0, 0, 9) + ATTRIBUTE.pack(164, 2) + bytes(160),
    ),
    "netlink": (answered, HEADER.pack(20, 20, 0, 1, 0) + bytes(4) + HEADER.pack(20, 3, 0, 1, 0) + bytes(4)),
    "cmdline": (parse_cmdline, b"python3\0-m\0server\0"),
    "executable": (lambda data: is_python("x", data), b"7f00 r-xp /usr/lib/libpython3.11.so"),
}
SHARDS = st.lists(
    st.sampled_from([b"(", b")", b" ", b"\n", b"\t", b":", b"-1", b"0x", b"9" * 30, b"1_0", b"\xff", b"S", b"\0", b"7"])
    | st.binary(max_size=4),
    max_size=40,
).map(b"".join)


@st.composite
def damaged(draw: st.DrawFn, whole: bytes) -> bytes:
    """A real file with a piece replaced, cut or doubled."""
    start = draw(st.integers(0, len(whole)))
    end = draw(st.integers(start, len(whole)))
    return whole[:start] + draw(SHARDS | st.just(whole[start:end] * 2)) + whole[end:]


@pytest.mark.parametrize("name", PARSERS)
@given(data=st.data())
def test_garbage_gives_a_record_or_the_typed_error(name: str, data: st.DataObject) -> None:
    """No content makes a parser raise anything but ProcParseError, and every record fits into a trace."""
    parse, whole = PARSERS[name]
    content = data.draw(SHARDS | st.binary(max_size=200) | damaged(whole))
    with suppress(ProcParseError):
        record = parse(content)
        if isinstance(record, msgspec.Struct):
            assert msgspec.json.decode(msgspec.json.encode(record), type=type(record)) == record


@pytest.mark.parametrize("name", PARSERS)
def test_each_parser_takes_its_own_sample(name: str) -> None:
    """The content that the garbage is made from is itself accepted, so the damage is what is tested."""
    parse, whole = PARSERS[name]
    parse(whole)


@given(st.binary(max_size=30), st.sampled_from("RSDZTt"))
def test_no_name_hides_the_state(name: bytes, state: str) -> None:
    """A process may call itself anything, brackets and states included: the fields after the name stay right."""
    line = parse_stat(b"7 (" + name + b") " + state.encode() + STAT.partition(b") S")[2])
    assert (line.state, line.ppid, line.threads, line.start_ticks) == (state, 1, 12, 99)


@given(st.text(max_size=60))
def test_any_link_is_of_some_kind(target: str) -> None:
    """Whatever a descriptor points at, it gets a kind, and asking whether it is a log never fails."""
    kind_of(target)
    looks_like_log(target)
