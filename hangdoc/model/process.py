"""A process of the launch: identity, role, rank."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from hangdoc.model.limit import LimitName
from hangdoc.model.reading import Missing, Reading

Role: TypeAlias = Literal["launcher", "tokenizer", "scheduler", "detokenizer", "worker", "router", "compiler", "other"]
EngineName: TypeAlias = Literal["sglang", "vllm", "torchrun", "generic"]


class ProcessKey(Struct, frozen=True, order=True, array_like=True):
    """What identifies a process: a pid is reused, pid and start time together are not.

    start_ticks: field 22 of /proc/PID/stat, in clock ticks since boot. A pid below 0 stands for a process that a log
    speaks of without its pid.
    """

    pid: int
    start_ticks: int


class Process(Struct, frozen=True, kw_only=True):
    """One member of the launch.

    title: argv joined, or the title the process gave itself (setproctitle), at most 200 characters.
    rank: e.g. {"tp": 0, "dp": 1}; empty when the process has none or it is not visible yet.
    member_because: one clause for people ("child of 4711", "session of 4711").
    """

    key: ProcessKey
    ppid: int
    role: Role
    rank: dict[str, int] = {}
    title: str = ""
    argv: tuple[str, ...] = ()
    member_because: str = ""


class Launch(Struct, frozen=True, kw_only=True):
    """The whole launch, as found when hangdoc attached.

    known_from: "log": nobody looked at the machine, a log is all there is.
    settings: the launcher's options that the reasoning needs, by their long name without dashes and with the
    dashes turned into underscores ({"tp_size": "2", "nnodes": "2", "port": "30000"}); engines name them.
    limits: seconds of the timers that would end it when it stands still, as they are set; one that is off or could not
    be read is left out.
    """

    root: ProcessKey
    engine: EngineName
    engine_version: Reading[str] = Missing("launch", "not-taken")
    settings: dict[str, str] = {}
    limits: dict[LimitName, float] = {}
    processes: tuple[Process, ...] = ()
    known_from: Literal["live", "log"] = "live"

    @property
    def nodes(self) -> int | None:
        """Over how many nodes it is spread; None when its options do not say so plainly (torchrun's "1:4").

        >>> root = ProcessKey(1, 1)
        >>> of = [Launch(root=root, engine="torchrun", settings={"nnodes": text}) for text in ("2", "1:1", "1:4", "x")]
        >>> [launch.nodes for launch in of]
        [2, 1, None, None]
        """
        least, _, most = self.settings.get("nnodes", "1").partition(":")
        return int(least) if least.isdecimal() and most in {"", least} else None
