"""What a member was doing over a window: working, spinning, stirring, or still; and which thread waits in what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from hangdoc.features.features import Member
from hangdoc.features.motion import WAKE_BYTES, Flow, ThreadMotion
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.thread import SystemCall, ThreadWait
from hangdoc.procfs.syscalls import Call, call_of, is_private_futex, is_untimed_futex_wait

Activity: TypeAlias = Literal["works", "spins", "stirs", "still"]

SPIN_DEMAND_RATIO = 0.8
"""Demand (on a CPU or waiting for one) from which a thread counts as burning CPU: spins measured 0.95 to 1.0 on a
full machine, a healthy two-rank idle loop 0.2 to 0.4."""

NOISE_IO_BYTES_PER_S = 1024
"""Reads and writes of a hung server, TCP included: none were seen; a throttled load moved 40 KB/s. Between them,
arbitrary."""

NOISE_FAULTS_PER_S = 100
"""Page faults of a hung or spinning Python process: 0 to a few a second; loads and compiles make 500 to 70,000."""

NOISE_RSS_BYTES = 1 << 20
"""Change of resident memory within a window that means nothing: allocators give pages back. Arbitrary."""


def work(flow: Flow) -> str | None:
    """Return the sentence that shows work, or None when nothing moved above the noise."""
    seconds = flow.seconds
    for amount, noise, sentence in (
        (Known(0) if _only_wakes(flow) else flow.io_bytes, NOISE_IO_BYTES_PER_S, "reads and writes {:,.0f} bytes/s"),
        (flow.tcp_bytes, NOISE_IO_BYTES_PER_S, "moves {:,.0f} bytes/s over TCP"),
        (flow.disk_bytes, NOISE_IO_BYTES_PER_S, "reads {:,.0f} bytes/s from disk"),
        (Known(flow.faults), NOISE_FAULTS_PER_S, "takes {:,.0f} page faults/s"),
    ):
        if isinstance(amount, Known) and amount.value / seconds > noise:
            return sentence.format(amount.value / seconds)
    if flow.rss_bytes > NOISE_RSS_BYTES:
        return f"its memory changed by {flow.rss_bytes / 2**20:,.1f} MiB"
    if flow.child_cpu_ticks > 0:
        return "children of it ended after using CPU"
    return None


def _only_wakes(flow: Flow) -> bool:
    if isinstance(flow.io_bytes, Missing) or isinstance(flow.io_calls, Missing):
        return False
    return flow.io_bytes.value <= WAKE_BYTES * flow.io_calls.value


def activity(member: Member) -> Reading[Activity]:
    """Return what a member did over the window; Missing when a reading that decides it is missing."""
    if "activity" not in member.found:
        member.found["activity"] = _activity(member)
    found: Reading[Activity] = member.found["activity"]
    return found


def _activity(member: Member) -> Reading[Activity]:
    if isinstance(member.flow, Missing):
        return member.flow
    if work(member.flow.value) is not None:
        return Known("works")
    for moved in (member.flow.value.io_bytes, member.flow.value.tcp_bytes):
        if isinstance(moved, Missing):
            return moved
    threads = own_threads(member)
    if isinstance(threads, Missing):
        return threads
    if any(thread.demand_ratio >= SPIN_DEMAND_RATIO for thread in threads.value):
        return Known("spins")
    return Known("still") if all(thread.is_still for thread in threads.value) else Known("stirs")


def own_threads(member: Member) -> Reading[tuple[ThreadMotion, ...]]:
    """Return the motion of the threads that may do the member's work.

    The main thread, Python threads that are no helpers, and native threads that ran and are not known to poll for
    ever (a loader in C that receives weights). Without Python stacks the main thread alone.
    """
    if "own_threads" not in member.found:
        member.found["own_threads"] = _own_threads(member)
    found: Reading[tuple[ThreadMotion, ...]] = member.found["own_threads"]
    return found


def _own_threads(member: Member) -> Reading[tuple[ThreadMotion, ...]]:
    clocks = member.clocks
    if isinstance(clocks, Missing):
        return clocks
    tids = {member.key.pid}
    if isinstance(member.dumps, Known):
        tids |= {tid for tid, seen in member.dumps.value.threads.items() if not seen.is_helper}
        tids |= _native_at_work(clocks.value, set(member.dumps.value.threads))
    found = tuple(clocks.value[tid] for tid in sorted(tids) if tid in clocks.value)
    return Known(found) if found else Missing("cpu", "gone", "none of its Python threads has a clock")


NATIVE_POLLERS = ("gloo_tcp_loop", "pt_", "ZMQbg/", "cuda", "nccl", "NCCL", "jemalloc_bg", "py-spy")
"""How the names of native threads begin that wake for ever in healthy and hung servers alike: in every hung SGLang that
was recorded only gloo_tcp_loop, ZMQbg/IO and pt_* threads ran."""


def _native_at_work(clocks: dict[int, ThreadMotion], python: set[int]) -> set[int]:
    return {
        tid
        for tid, thread in clocks.items()
        if tid not in python and not thread.is_still and not thread.name.startswith(NATIVE_POLLERS)
    }


@dataclass(frozen=True)
class Waiting:
    """A thread that waits in a system call, in every round of the window.

    untimed, private: of a wait for a futex, that it has no timeout and that only its own process can end it;
    channel: the kernel function it sleeps in, "" when that was not to be read;
    sleep_left_s: of a sleep until a moment, how much was left at the last reading; None when that is not known.
    """

    tid: int
    call: Call
    system_call: SystemCall
    untimed: bool
    private: bool
    channel: str
    sleep_left_s: float | None = None

    @property
    def is_parked(self) -> bool:
        """Tell whether only another thread of its own process can end the wait."""
        return self.untimed and self.private


def waiting(member: Member, tid: int) -> Reading[Waiting | None]:
    """Return the system call in which a thread sat in every reading of the window; None when it moved or ran."""
    found = member.found_waits
    if tid not in found:
        found[tid] = _find(member, tid)
    known: Reading[Waiting | None] = found[tid]
    return known


def _find(member: Member, tid: int) -> Reading[Waiting | None]:
    if isinstance(member.waits, Missing):
        return member.waits
    seen = member.waits_of.get(tid)
    if not seen:
        return Missing("futex", "not-taken", f"thread {tid} was not read in this window")
    calls: list[SystemCall | None] = []
    for _, thread in seen:
        if isinstance(thread.system_call, Missing):
            return thread.system_call
        calls.append(thread.system_call.value)
    first = calls[0]
    if first is None or any(call is None or call.number != first.number for call in calls):
        return Known(None)
    return Known(_waiting(first, *seen[-1]))


def _waiting(call: SystemCall, machine: str, last: ThreadWait) -> Waiting:
    left_ns = last.sleep_left_ns.value if isinstance(last.sleep_left_ns, Known) else None
    return Waiting(
        tid=last.tid,
        call=call_of(call.number, machine),
        system_call=call,
        untimed=is_untimed_futex_wait(call, machine),
        private=is_private_futex(call, machine),
        channel=last.wait_channel.value if isinstance(last.wait_channel, Known) else "",
        sleep_left_s=None if left_ns is None else left_ns / 1e9,
    )
