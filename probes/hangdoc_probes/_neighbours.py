"""The sockets of every network namespace that a launch touches, read once a round and only when somebody asks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from hangdoc.launch.table import listed_pids
from hangdoc.model.reading import Known, Reading
from hangdoc.procfs.sockdiag import TcpTotals, UnixSocket
from hangdoc.procfs.tcp import TcpSocket
from hangdoc_probes._network import Diagnosis, namespace, tcp_table
from hangdoc_probes._reading import missing

T = TypeVar("T")
NAME = "links"

MOST_NAMESPACES = 16
"""Network namespaces whose tables are searched for the other end of a connection; arbitrary."""


class Neighbours:
    """Sockets by namespace. Its netlink sockets keep a namespace alive, so it is closed after every round."""

    def __init__(self, proc: Path, members: Iterable[int]) -> None:
        self._proc = proc
        self._diagnoses: dict[str, Diagnosis] = {}
        self._members = tuple(members)
        self._names: dict[int, str] = {}
        self._unix: dict[str, Reading[dict[int, UnixSocket]]] = {}
        self._totals: dict[str, Reading[dict[int, TcpTotals]]] = {}
        self._tcp: dict[str, Reading[tuple[TcpSocket, ...]]] = {}
        self._pairs: dict[str, dict[tuple[bytes, bytes], TcpSocket]] = {}
        self._others: dict[str, int] | None = None

    def close(self) -> None:
        """Let go of the netlink sockets."""
        for diagnosis in self._diagnoses.values():
            diagnosis.close()
        self._diagnoses.clear()

    def unix(self, pid: int) -> Reading[dict[int, UnixSocket]]:
        """Return the unix sockets of a process's namespace."""
        return self._once(self._unix, pid, lambda: self._diagnosis(pid).unix())

    def totals(self, pid: int) -> Reading[dict[int, TcpTotals]]:
        """Return the TCP totals of a process's namespace."""
        return self._once(self._totals, pid, lambda: self._diagnosis(pid).totals())

    def tcp(self, pid: int) -> Reading[tuple[TcpSocket, ...]]:
        """Return the TCP sockets of a process's namespace."""
        return self._once(self._tcp, pid, lambda: tcp_table(self._proc, pid))

    def other_end(self, pid: int, own: TcpSocket) -> TcpSocket | None:
        """Find the socket whose two addresses are these the other way round: here, or in another namespace.

        A connection that nobody has accepted yet is its listener's.
        """
        for name, where in {self._name(pid): pid, **self._namespaces()}.items():
            if name not in self._pairs:
                table = self.tcp(where)
                rows = table.value if isinstance(table, Known) else ()
                self._pairs[name] = {(one.local, one.remote): one for one in rows}
            found = self._pairs[name].get((own.remote, own.local))
            if found is not None and found.inode != own.inode:
                return found if found.inode else self._listener(where, found)
        return None

    def is_served(self, pid: int, own: TcpSocket) -> bool:
        """Tell whether a connection was accepted: a socket of the same namespace listens on its port."""
        return self._listener(pid, own) is not None

    def _listener(self, pid: int, accepted: TcpSocket) -> TcpSocket | None:
        table = self.tcp(pid)
        rows = table.value if isinstance(table, Known) else ()
        return next((one for one in rows if one.listens and one.local_port == accepted.local_port), None)

    def _namespaces(self) -> dict[str, int]:
        """Map every network namespace on this host that may be looked at to a process in it, members first."""
        if self._others is None:
            self._others = {}
            for pid in (*self._members, *sorted(listed_pids(self._proc))):
                with suppress(OSError):
                    self._others.setdefault(self._name(pid), pid)
                if len(self._others) >= MOST_NAMESPACES:
                    break
        return self._others

    def _name(self, pid: int) -> str:
        if pid not in self._names:
            self._names[pid] = namespace(self._proc, pid)
        return self._names[pid]

    def _diagnosis(self, pid: int) -> Diagnosis:
        name = self._name(pid)
        if name not in self._diagnoses:
            self._diagnoses[name] = Diagnosis(self._proc, pid)
        return self._diagnoses[name]

    def _once(self, tables: dict[str, Reading[T]], pid: int, look: Callable[[], T]) -> Reading[T]:
        try:
            name = self._name(pid)
        except OSError as error:
            return missing(NAME, error)
        if name not in tables:
            try:
                tables[name] = Known(look())
            except OSError as error:
                tables[name] = missing(NAME, error)
        return tables[name]
