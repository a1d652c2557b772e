"""One observation as one JSON line, so that a run that was cut goes on where it stopped."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tests.golden.recording import keep
from tests.patients.stage import HANGS

Group: TypeAlias = Literal["patients", "unseen", "sglang", "healthy"]
Load: TypeAlias = Literal["none", "busy"]
Key: TypeAlias = tuple[str, str, str, int]


class Record(Struct, frozen=True, kw_only=True):
    """What was said of one launch, and whether it was right.

    state: "inconclusive" when the illness (or its absence) was not seen by the patient's own vitals, "failed" when
    hangdoc gave no document: the one counts for nothing, the other as wrong; why: of these two.
    culprit_right: None where no hang was said, or none was to be said; phase_right: None where the truth names none;
    waits_right, waits_known: of the waits that the
    truth names; took_s: from the start of the command to its end; trace: where a wrong one's recording was kept.
    """

    group: Group
    name: str
    load: Load
    round: int
    state: Literal["conclusive", "inconclusive", "failed"] = "conclusive"
    why: str = ""
    accepted: tuple[str, ...] = ()
    verdict: str = "none"
    grade: str = "none"
    hypothesis: str = ""
    culprits: tuple[str, ...] = ()
    culprit_right: bool | None = None
    phase_right: bool | None = None
    waits_right: int = 0
    waits_known: int = 0
    took_s: float = 0.0
    trace: str = ""

    @property
    def key(self) -> Key:
        """What makes it this observation and no other."""
        return self.group, self.name, self.load, self.round

    @property
    def counts(self) -> bool:
        return self.state != "inconclusive"

    @property
    def is_ill(self) -> bool:
        return bool(HANGS & set(self.accepted))

    @property
    def verdict_right(self) -> bool:
        return self.verdict in self.accepted

    @property
    def right(self) -> bool:
        """Verdict and, where a hang was said, culprit."""
        return self.verdict_right and self.culprit_right is not False

    @property
    def false_hang(self) -> bool:
        return self.verdict in HANGS and not self.is_ill

    @property
    def truth(self) -> str:
        """The row of the confusion matrix: the hangs that may be said, and whether "undetermined" may."""
        hangs = "/".join(sorted(HANGS & set(self.accepted))) or "no hang"
        return hangs if "undetermined" not in self.accepted else f"{hangs}, or cannot be told"


class Book:
    """The file of records: those of earlier runs, and each new one as soon as it is there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.records: dict[Key, Record] = {}
        text = path.read_bytes() if path.exists() else b""
        whole, _, _cut = text.rpartition(b"\n")  # a run that was killed may have left half a line
        for line in whole.splitlines():
            record = msgspec.json.decode(line, type=Record)
            self.records[record.key] = record
        if _cut:
            path.write_bytes(whole + b"\n" if whole else b"")

    def has(self, key: Key) -> bool:
        """Tell whether an observation is there and was conclusive: another one is tried again."""
        record = self.records.get(key)
        return record is not None and record.counts

    def enter(self, record: Record) -> None:
        """Write a record down."""
        self.records[record.key] = record
        with self._path.open("ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")


@dataclass(frozen=True)
class Round:
    """One look at each launch. kept: the folder for the traces of wrong and of inconclusive looks.

    What is right becomes the patient's golden twin when that is asked for (see recording).
    """

    number: int
    load: Load
    book: Book
    kept: Path

    def lacks(self, group: Group, name: str) -> bool:
        """Tell whether a launch has not been looked at yet."""
        return not self.book.has((group, name, self.load, self.number))

    def blank(self, group: Group, name: str, *accepted: str) -> Record:
        """Return a record in which nothing has been said yet."""
        return Record(group=group, name=name, load=self.load, round=self.number, accepted=tuple(sorted(accepted)))

    def enter(self, record: Record, source: Path) -> None:
        """Write a record down, and keep what a wrong or inconclusive one rests on; source: its trace."""
        if (not record.right or not record.counts) and source.exists():
            self.kept.mkdir(parents=True, exist_ok=True)
            trace = self.kept / f"{record.name}-{record.load}-{record.round}.hangtrace"
            shutil.copy(source, trace)
            record = replace(record, trace=str(trace))
        elif record.group in {"patients", "unseen"}:
            keep(source, f"patients/{record.name}")
        self.book.enter(record)
