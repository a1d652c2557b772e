"""What NCCL's RAS service counts: a rank that launched fewer collectives than the others keeps them all waiting.

It is asked only while there is a reason to look closely, over the launch's own socket, and never waited for long: with
a rank that is stopped it may answer late or never.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.ras import Ras, RasOutcome, RasRank
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.snapshot import Payload, Sample
from hangdoc.procfs.tcp import TcpSocket
from hangdoc.sampling.probe import Context, Probe, Round, Session
from hangdoc_probes import _ras_ask
from hangdoc_probes._network import host_of, socket_at, sockets_of, tcp_table
from hangdoc_probes._ras_answer import Counts, counts_of
from hangdoc_probes._reading import missing
from hangdoc_probes._reading import read_table as read_file
from hangdoc_probes._tids import numbers_of

NAME = "ras"
EVERY = 3
"""Rounds from one question to the next: two in the shortest look, so that counts that go on are told from standing
ones. An answer took under 10 ms on one H200 with two ranks."""

ANSWER_S = 3.0
"""For one take, all its questions together. The service waits 1 s for other processes; arbitrary above that."""

QUIET_S = 20.0
"""How long a service that did not answer is left alone. Arbitrary."""

TRIES = 4
"""Questions until the answer is of this launch: every process with NCCL listens on the same port (SO_REUSEPORT), and
the kernel picks one. Arbitrary: with two jobs of equal size one in 16 takes meets the other one only."""

DEFAULT_PORT = 28028
"""NCCL_RAS_CLIENT_PORT in NCCL's src/include/ras.h."""

ELSEWHERE = "run hangdoc as root on the host, or in the container of the launch, to ask its NCCL"


@dataclass(frozen=True)
class Setting:
    """What the environment says of RAS. port: None for an address that NCCL would not take."""

    enabled: bool = True
    port: int | None = DEFAULT_PORT


class RasSession:
    """Asks whoever of the members listens."""

    def __init__(self, context: Context) -> None:
        self._proc = context.proc
        self._nodes = context.launch.nodes
        self._settings: dict[ProcessKey, Setting] = {}
        self._ask_again_s = 0.0

    def take(self, now: Round) -> Iterable[Sample]:
        """Ask once, unless the launch is known to be well or was silent a moment ago."""
        if now.calm or not now.processes or time.monotonic() < self._ask_again_s:
            return
        taken_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        try:
            reading = self._read(now.processes)
        except OSError as error:
            reading = missing(NAME, error)
        yield Sample(probe=NAME, process=None, taken_ns=taken_ns, reading=reading)

    def close(self) -> None:
        """Nothing is held."""

    def _read(self, members: tuple[Process, ...]) -> Reading[Payload]:
        ranks = [one for one in members if one.role in {"scheduler", "worker"}] or list(members)
        setting = self._setting(ranks)
        if setting.port is None:
            return Missing(NAME, "failed", "NCCL_RAS_ADDR of the launch is no address with a port")
        if not setting.enabled:
            return Known(Ras(port=setting.port, outcome="off"))
        speaker = ranks[0].key.pid
        table = tcp_table(self._proc, speaker)
        listening = {one.inode: one for one in table if one.listens and one.local_port == setting.port}
        if not listening:
            return Known(Ras(port=setting.port, outcome="refused"))
        ours = self._ours(members, listening)
        if ours is None:
            return Known(Ras(port=setting.port, outcome="stranger"))
        try:
            socket_at(self._proc, speaker, socket.AF_INET).close()
        except PermissionError:
            return Missing(NAME, "denied", "its network namespace cannot be entered", ELSEWHERE)
        return Known(self._asked((host_of(ours), setting.port), speaker, members))

    def _setting(self, ranks: list[Process]) -> Setting:
        """Return what the first rank that can be looked into was started with; the defaults when none can."""
        for one in ranks:
            if one.key not in self._settings:
                try:
                    self._settings[one.key] = setting_of(read_file(f"{self._proc}/{one.key.pid}/environ"))
                except OSError:
                    continue
            return self._settings[one.key]
        return Setting()

    def _ours(self, members: tuple[Process, ...], listening: dict[int, TcpSocket]) -> TcpSocket | None:
        """Return a listening socket that a member holds; PermissionError when that cannot be told."""
        refused: PermissionError | None = None
        for member in sorted(members, key=lambda one: one.role not in {"scheduler", "worker"}):
            try:
                held = next((inode for inode in sockets_of(self._proc, member.key.pid) if inode in listening), None)
            except PermissionError as error:
                refused, held = error, None
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            if held is not None:
                return listening[held]
        if refused is not None:
            raise refused
        return None

    def _asked(self, address: tuple[str, int], speaker: int, members: tuple[Process, ...]) -> Ras:
        begun_s = time.monotonic()
        pids = self._pids(members)
        found = Ras(port=address[1], outcome="stranger")
        as_json = True
        for _ in range(TRIES):
            left_s = begun_s + ANSWER_S - time.monotonic()
            if left_s <= 0:
                break
            family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
            said = _ras_ask.ask(socket_at(self._proc, speaker, family), address, left_s, json=as_json)
            counts = counts_of(said.body) if said.outcome == "answered" else None
            if said.outcome == "answered" and counts is None and said.json:
                as_json = False  # an answer that cannot be read as JSON may be one as text
                found = self._ras(address[1], "garbled", begun_s)
                continue
            if counts is None:
                found = self._ras(address[1], "garbled" if said.outcome == "answered" else said.outcome, begun_s)
                break
            if self._is_ours(counts, pids):
                return self._ras(address[1], "answered", begun_s, self._named(counts, pids))
            found = self._ras(address[1], "stranger", begun_s)
        if found.outcome == "silent":
            self._ask_again_s = time.monotonic() + QUIET_S
        return found

    def _ras(self, port: int, outcome: RasOutcome, begun_s: float, counts: Counts | None = None) -> Ras:
        took_s = round(time.monotonic() - begun_s, 3)
        if counts is None:
            return Ras(port=port, outcome=outcome, took_s=took_s)
        return Ras(
            port=port,
            outcome=outcome,
            took_s=took_s,
            ranks=counts.ranks,
            leading=counts.leading,
            unreached=counts.unreached,
        )

    def _pids(self, members: tuple[Process, ...]) -> dict[int, ProcessKey]:
        """Map the pid by which each member knows itself, as NCCL tells it, to the member; leave doubtful ones out."""
        found: dict[int, ProcessKey | None] = {}
        for member in members:
            try:
                numbers = numbers_of(f"{self._proc}/{member.key.pid}/status", b"NSpid:")
            except OSError:
                continue
            own = numbers[-1] if numbers else member.key.pid
            found[own] = None if own in found else member.key
        return {pid: key for pid, key in found.items() if key is not None}

    def _is_ours(self, counts: Counts, pids: dict[int, ProcessKey]) -> bool:
        """Tell whether an answer speaks of a member, or of nobody by name: then there is no reason to doubt it."""
        told = {one.pid for one in (*counts.ranks, *counts.unreached) if one.pid}
        return not told or bool(told & pids.keys())

    def _named(self, counts: Counts, pids: dict[int, ProcessKey]) -> Counts:
        """Say which rank is which member: on one node only, since on another one the same pid is somebody else."""
        if self._nodes != 1:
            return counts

        def named(one: RasRank) -> RasRank:
            return RasRank(one.rank, one.operations, one.pid, pids.get(one.pid))

        return Counts(tuple(map(named, counts.ranks)), counts.leading, tuple(map(named, counts.unreached)))


def setting_of(environment: bytes) -> Setting:
    r"""Return what an environment (/proc/PID/environ) says of RAS.

    >>> setting_of(b"A=1\0NCCL_RAS_ADDR=localhost:28100\0"), setting_of(b"NCCL_RAS_ENABLE=0\0").enabled
    (Setting(enabled=True, port=28100), False)
    >>> setting_of(b"NCCL_RAS_ADDR=[::1]:29000\0").port, setting_of(b"NCCL_RAS_ADDR=localhost\0").port
    (29000, None)
    """
    named = dict(item.partition(b"=")[::2] for item in environment.split(b"\0"))
    enabled = named.get(b"NCCL_RAS_ENABLE", b"1").strip() != b"0"
    address = named.get(b"NCCL_RAS_ADDR")
    if address is None:
        return Setting(enabled)
    port = address.rpartition(b":")[2] if b":" in address else b""
    is_port = port.isdigit() and 0 < int(port) < 1 << 16
    return Setting(enabled, int(port) if is_port else None)


def open_session(context: Context) -> Session:
    """Start asking a launch."""
    return RasSession(context)


def check(proc: Path) -> Reading[str]:
    """Say what is asked."""
    del proc
    return Known("NCCL's RAS where a launch's communicator listens; in another network namespace only as root")


PROBE = Probe(
    name=NAME,
    title="collectives that each rank has launched, by NCCL's own count",
    open=open_session,
    check=check,
    every=EVERY,
    background=True,
    deep=True,
    deadline_s=2 * ANSWER_S,
    host=True,
    reads=("NCCL RAS (VERBOSE STATUS)", "/proc/PID/environ", "/proc/PID/net/tcp", "/proc/PID/net/tcp6"),
)
