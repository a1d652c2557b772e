"""System calls by machine, and which futex waits only a thread of the same process can end."""

from __future__ import annotations

import pytest

from hangdoc.model.thread import SystemCall
from hangdoc.procfs.syscalls import awaits, call_of, is_private_futex, is_untimed_futex_wait


@pytest.mark.parametrize(
    ("machine", "numbers"),
    [("x86_64", (202, 0, 1, 61, 281, 257)), ("aarch64", (98, 63, 64, 260, 22, 56))],
)
def test_numbers(machine: str, numbers: tuple[int, ...]) -> None:
    """The same call has another number on another machine, and means the same."""
    found = [call_of(number, machine) for number in numbers]
    assert found == ["futex", "read", "write", "wait-child", "poll", "open"]


@pytest.mark.parametrize(("machine", "numbers"), [("x86_64", (295, 307, 43, 441)), ("aarch64", (69, 269, 202, 441))])
def test_what_a_call_awaits(machine: str, numbers: tuple[int, ...]) -> None:
    """Whom a call waits for and what kind of wait it is come of one table; to accept is no wait that a rule needs."""
    assert [awaits(number, machine) for number in numbers] == ["data", "room", "connection", "epoll"]
    assert [call_of(number, machine) for number in numbers] == ["read", "write", "other", "poll"]


def test_unknown() -> None:
    """An unknown machine's calls, and calls that no rule needs, are "other": no rule takes them for a wait."""
    assert call_of(0, "riscv64") == call_of(9999, "x86_64") == "other"
    assert not is_untimed_futex_wait(SystemCall(202, (0, 0x80, 2, 0)), "riscv64")


@pytest.mark.parametrize(
    ("operation", "timeout", "untimed", "private"),
    [
        (0x189, 0, True, True),  # a semaphore of one process: CPython's lock
        (0x80, 0, True, True),  # a mutex
        (0x00, 0, True, False),  # a mutex that processes share
        (0x109, 0, True, False),  # a join: the kernel wakes it
        (0x189, 0x7FFE, False, True),  # with a time limit
        (0x81, 0, False, True),  # FUTEX_WAKE
    ],
)
def test_futex(operation: int, timeout: int, untimed: bool, private: bool) -> None:
    """Without a timeout and private: then nobody outside can end the wait."""
    for machine, number in (("x86_64", 202), ("aarch64", 98)):
        call = SystemCall(number, (0x7F00, operation, 0, timeout, 0, 0xFFFFFFFF))
        assert is_untimed_futex_wait(call, machine) is untimed
        assert is_private_futex(call, machine) is private
