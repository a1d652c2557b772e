"""Nouns of an ending: members, look-alikes, supervisors, what was there before and is there after. Plain data."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from hangdoc.launch.table import Entry
from hangdoc.model.process import Launch, Process, ProcessKey

Fate: TypeAlias = Literal["program", "wrapper"]
"""wrapper: a script or tool that only started the launch; it is given time to end by itself and comes last."""


@dataclass(frozen=True)
class Member:
    """One process that is to be ended. because: why it belongs, one clause each, the strongest first."""

    process: Process
    entry: Entry
    fate: Fate
    because: tuple[str, ...]

    @property
    def key(self) -> ProcessKey:
        """Its identity."""
        return self.process.key


@dataclass(frozen=True)
class LookAlike:
    """A process that may be taken for a member. because: why it is none; in_doubt: --include would add it.

    is_tied: in doubt, and something of the launch is in its hands: what lives of these afterwards counts as left.
    """

    key: ProcessKey
    title: str
    because: str
    in_doubt: bool = False
    is_tied: bool = False


@dataclass(frozen=True)
class Supervisor:
    """Who starts, or may start, the launch again when it ends. pid: None when it is not visible here.

    command: what stops it; "" when it only started the launch, and nothing says that it would start it again.
    loops: the identity of a script that has a loop: as long as it lives, the launch may come back, however late.
    """

    name: str
    pid: int | None
    command: str
    loops: ProcessKey | None = None


@dataclass(frozen=True)
class Roll:
    """One launch, called by name: its members and who is not one."""

    launch: Launch
    members: tuple[Member, ...]
    look_alikes: tuple[LookAlike, ...]
    supervisors: tuple[Supervisor, ...] = ()


@dataclass(frozen=True)
class Thing:
    """Something outside a process that a launch leaves behind.

    kind: "shm", "semaphore", "socket", "lock" or "baton"; identity: device and inode, so that a later file of the same
    name is another one; held: a member had it open, mapped or locked.
    """

    kind: str
    path: Path
    identity: tuple[int, int]
    user_id: int
    held: bool


@dataclass(frozen=True)
class Port:
    """A TCP port that members listened on, or were to; namespace: the network namespace's name."""

    number: int
    namespace: str
    listened: bool


@dataclass(frozen=True)
class GpuHolder:
    """Somebody with memory on a GPU. title: "" when it is not visible here; used_bytes: None when that is not told."""

    pid: int
    used_bytes: int | None
    title: str = ""
    member: bool = False


@dataclass(frozen=True)
class GpuMemory:
    """One device at one moment; None: not read."""

    index: int
    name: str
    used_bytes: int | None
    holders: tuple[GpuHolder, ...] | None


@dataclass(frozen=True)
class GpuReading:
    """Every device, or why none could be read."""

    devices: tuple[GpuMemory, ...] = ()
    unread: str = ""
    remedy: str = ""


@dataclass(frozen=True)
class Before:
    """What there was before the first signal. opened: GPU device files that members had open, by pid.

    listeners: ports by pid of who listens; unseen: pids of members whose descriptors may not be read.
    """

    things: tuple[Thing, ...] = ()
    ports: tuple[Port, ...] = ()
    opened: dict[int, tuple[str, ...]] = field(default_factory=dict)
    listeners: dict[int, tuple[int, ...]] = field(default_factory=dict)
    gpus: GpuReading = GpuReading()
    unseen: tuple[int, ...] = ()


@dataclass(frozen=True)
class Survivor:
    """A member that did not end. waits_in: the kernel function it sleeps in, "" when it is not told."""

    key: ProcessKey
    title: str
    state: str
    waits_in: str
    because: str


@dataclass(frozen=True)
class Ended:
    """What the procedure did. steps: sentences in order; joined: members that appeared meanwhile; gone: how many ended.

    going_on: wrappers that went on to something else and were left, and scripts above that have a loop;
    restless: nobody is held who lives, but to the end each look found processes that had handed over to others and
    ended. interrupted: Ctrl-C came before all was done. newcomers: who appeared meanwhile and may be of the launch,
    though nothing proves it.
    """

    steps: tuple[str, ...]
    gone: tuple[Member, ...]
    joined: tuple[Member, ...]
    survivors: tuple[Survivor, ...]
    going_on: tuple[LookAlike, ...] = ()
    restless: bool = False
    seconds: float = 0.0
    interrupted: bool = False
    newcomers: tuple[LookAlike, ...] = ()


@dataclass(frozen=True)
class GpuProof:
    """One device before and after. returned: None when that cannot be told; says: the sentence for people."""

    index: int
    name: str
    before_bytes: int | None
    after_bytes: int | None
    returned: bool | None
    holders: tuple[GpuHolder, ...]
    says: str


@dataclass(frozen=True)
class PortProof:
    """One port afterwards. listened: a member did, before; otherwise it is told, but nothing of the launch is left."""

    number: int
    free: bool
    says: str
    listened: bool = True


@dataclass(frozen=True)
class Removal:
    """A thing afterwards. removed; else because says what it was left for, and command removes it by hand."""

    thing: Thing
    removed: bool
    because: str = ""
    command: str = ""


@dataclass(frozen=True)
class After:
    """The proof. doubtful: those of whom it is not certain that they are of the launch, and who live on."""

    gpus: tuple[GpuProof, ...] = ()
    gpus_unread: str = ""
    gpus_remedy: str = ""
    ports: tuple[PortProof, ...] = ()
    removals: tuple[Removal, ...] = ()
    returned: tuple[LookAlike, ...] = ()
    doubtful: tuple[LookAlike, ...] = ()
