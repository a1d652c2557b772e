"""Dumps of torch's flight recorder, pickled or JSON: which collectives a rank enqueued and completed in each group."""

from __future__ import annotations

import io
import json
import pickle
import pickletools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from hangdoc.errors import HangdocError
from hangdoc.model.log import LogEvent

PICKLED = re.compile(rb"\x80(?:[\x02\x03]|[\x04\x05](?:\x95.{8})?)}", re.DOTALL)
"""How a pickled dictionary begins: torch writes protocol 2; tools that write a dump again use 3 to 5, with frames."""

LARGEST_BYTES = 64 << 20
"""Arbitrary: 2,000 entries, torch's default, with their stacks are some 4 MB."""

MOST_ENTRIES = 100_000
"""Entries that are looked at. Arbitrary: fifty times torch's default."""

_ATOMS = ("NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE")
_BOXES = ("EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "SETITEM", "SETITEMS", "APPEND", "APPENDS", "TUPLE", "MARK")
_OTHERS = ("PROTO", "FRAME", "STOP", "SHORT_BINUNICODE", "TUPLE1", "TUPLE2", "TUPLE3")
_MEMO = ("BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET")
_PLAIN = frozenset((*_ATOMS, *_BOXES, *_OTHERS, *_MEMO))
"""Opcodes that make plain data and nothing else: no class is looked up, nothing is called."""


@dataclass(frozen=True)
class Count:
    """What one process did in one group: the numbers of its last collectives; -1: none."""

    group: str
    enqueued: int
    completed: int


class _PlainUnpickler(pickle.Unpickler):
    """Makes plain data only."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuse: no recorder's dump has classes."""
        raise pickle.UnpicklingError(f"it asks for {module}.{name}")


def parse(data: bytes) -> tuple[Count, ...]:
    """Return the counts of a dump, by group; HangdocError for what is none.

    >>> parse(b'{"entries": [], "pg_status": {"0": {"last_enqueued_collective": 4, "last_completed_collective": 3}}}')
    (Count(group='0', enqueued=4, completed=3),)
    """
    try:
        found = _plain(data) if data.startswith(b"\x80") else json.loads(data)
        entries = list(found.get("entries") or ())[-MOST_ENTRIES:]
        groups = _by_entries(entries) | _by_status(found.get("pg_status") or {}, _names(entries))
    except (
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        IndexError,
        RecursionError,
        OverflowError,
        EOFError,
        pickle.PickleError,
    ) as e:
        raise HangdocError(f"no dump of torch's flight recorder ({e})", "give it as torch wrote it") from e
    return tuple(groups[name] for name in sorted(groups))


def _plain(data: bytes) -> Any:
    """Unpickle after a look at every opcode: a memo that is larger than the data would take any amount of memory."""
    for number, (opcode, argument, _) in enumerate(pickletools.genops(data)):
        if opcode.name not in _PLAIN or (opcode.name.endswith("PUT") and int(argument or 0) > number):
            raise pickle.UnpicklingError(f"it has {opcode.name}")
    return _PlainUnpickler(io.BytesIO(data)).load()


def _names(entries: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Map the numbers that a process gave its groups to their names, which are the same everywhere."""
    return {str(entry.get("pg_id", 0)): _name(entry) for entry in entries}


def _name(entry: Mapping[str, Any]) -> str:
    return str((entry.get("process_group") or (entry.get("pg_id", 0),))[0])


def _by_status(status: Mapping[str, Mapping[str, Any]], names: Mapping[str, str]) -> dict[str, Count]:
    named = {names.get(str(number), str(number)): one for number, one in status.items()}
    return {
        name: Count(name, _number(one["last_enqueued_collective"]), _number(one["last_completed_collective"]))
        for name, one in named.items()
    }


def _number(told: Any) -> int:
    """Return the number of a collective; ValueError or OverflowError for what is none."""
    number = int(told)
    if not -1 <= number < 1 << 63:
        raise ValueError(f"collective {str(number)[:20]}")
    return number


def _by_entries(entries: Sequence[Mapping[str, Any]]) -> dict[str, Count]:
    """Count by the entries, as older dumps have nothing else; what was retired is complete."""
    found: dict[str, Count] = {}
    for entry in entries:
        if entry.get("is_p2p"):
            continue
        name, number = _name(entry), _number(entry.get("collective_seq_id", entry.get("seq_id", -1)))
        is_done = entry.get("state") == "completed" or bool(entry.get("retired"))
        before = found.get(name, Count(name, -1, -1))
        found[name] = Count(name, max(before.enqueued, number), max(before.completed, number if is_done else -1))
    return found


def events(counts: Mapping[int, Sequence[Count]], axis: str) -> tuple[LogEvent, ...]:
    """Return the counts of all ranks in the group in which they differ most; of the first one where all are equal.

    Rule: only groups of the same name and of at least two ranks are compared. Fails where ranks number the groups that
    they belong to differently, as they do when these are made in different orders.
    """
    groups: dict[str, dict[int, Count]] = {}
    for rank, found in counts.items():
        for count in found:
            groups.setdefault(count.group, {})[rank] = count
    shared = {name: ranks for name, ranks in groups.items() if len(ranks) > 1} or groups
    if not shared:
        return ()
    widest = max(sorted(shared), key=lambda name: _spread([one.enqueued for one in shared[name].values()]))
    return tuple(_event(rank, one, axis) for rank, one in sorted(shared[widest].items()))


def _spread(numbers: Sequence[int]) -> int:
    return max(numbers) - min(numbers)


def _event(rank: int, count: Count, axis: str) -> LogEvent:
    return LogEvent(
        kind="watchdog",
        name="last-enqueued",
        phase="unknown",
        rank={axis: rank} if rank >= 0 else {},
        offset=0,
        text=f"last enqueued collective {count.enqueued}, last completed {count.completed}",
        numbers={"enqueued": float(count.enqueued), "completed": float(count.completed)}
        | ({"rank": float(rank)} if rank >= 0 else {}),
    )
