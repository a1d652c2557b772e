"""How long a launch may be silent, and from which proof its silence counts."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from docs.generate import pages
from hangdoc.criteria import Absent, Case, Hypothesis, Outcome, Present, Unread, weigh
from hangdoc.diagnosis import diagnose, hypotheses
from hangdoc.engines.sglang import ENGINE
from hangdoc.features.features import Beyond, Features, features
from hangdoc.features.index import Index
from hangdoc.features.patience import DEFAULT_S, PATIENCE, no_progress_s, patience_s, stage_of, weight_bytes
from hangdoc.features.standing import standing_s
from hangdoc.hypotheses import _signs as signs
from hangdoc.model.diagnosis import HANG_VERDICTS
from hangdoc.model.fd import OpenFile, OpenFiles
from hangdoc.model.gpu import Gpus
from hangdoc.model.locks import Locks
from hangdoc.model.patience import Stage
from hangdoc.model.reading import Known, Missing
from hangdoc.model.snapshot import Snapshot
from hangdoc.model.thread import SystemCall
from hangdoc.observe.ring import Ring
from hangdoc.trace.reader import read
from hangdoc.trace.records import Trace
from tests.unit.features.synthetic import (
    KEY,
    PARKED,
    Readings,
    clock,
    cpu,
    dump,
    links,
    process,
    progress,
    stack,
    tail,
    trace,
    waits,
    whole,
)

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("*.hangtrace"))
IMPORTS = stack("_find_and_load", file="<frozen importlib._bootstrap>")
NONE = Missing("fds", "unsupported")


def file(size_bytes: int, target: str = "/m/a.safetensors", access: str = "r") -> OpenFile:
    return OpenFile(
        fd=5,
        kind="file",
        target=target,
        access=access,
        position=NONE,
        size_bytes=Known(size_bytes),
        modified_wall_ns=NONE,
        pipe=NONE,
    )


def launch(*extra: Readings, rounds: int = 5, silent_s: float | None = 1.0, at: str = "", **set_s: float) -> Features:
    """A rank that stands in the stack `at` ("import", or a function of SGLang); its log's last write was then."""
    stacks = [IMPORTS if at == "import" else stack(at or "load_model", file="model_runner.py")]
    readings: list[Readings] = []
    for _ in range(rounds):
        one = {("stacks", KEY): dump((100, 0)), ("progress", KEY): progress(), ("links", KEY): links(received=0)}
        if silent_s is not None:
            one["log", None] = tail(modified_s=rounds - silent_s)  # type: ignore[assignment]
        readings.append({**one, **(extra[0] if extra else {})})
    of = trace(readings, processes=[process(role="scheduler")], stacks=stacks, engine="sglang")
    set_by = {stage.replace("_", "-"): seconds for stage, seconds in set_s.items()}
    of = replace(of, header=replace(of.header, patience_s=set_by))
    return seen(of)


def seen(of: Trace) -> Features:
    stood = standing_s(of, Index(of), (KEY,), len(of.snapshots) - 1)
    return features(of, ENGINE, whole(of), steady=True, beyond=Beyond(stood))


def test_every_stage_has_patience_and_a_source() -> None:
    """The table has each stage once, in the order of a start, and each row says where its figure comes from."""
    assert [*(row.stage for row in PATIENCE), "unknown"] == list(get_args(Stage))
    assert all(row.seconds > 0 and row.source for row in PATIENCE)


def test_an_unknown_phase_has_no_limit_but_one_that_is_given() -> None:
    """A program in no known phase may be silent for ever, unless somebody says for how long."""
    assert stage_of(launch(at="something_else")) == "unknown"
    assert isinstance(patience_s(launch(at="something_else")), Missing)
    assert patience_s(launch(at="something_else", unknown=60.0)) == Known(60.0)


def test_the_page_is_the_table() -> None:
    """docs/patience.md has each stage's figure."""
    page = pages()["patience.md"]
    assert all(f"| {row.stage} | {row.seconds:,.0f} | {row.source}" in page for row in PATIENCE)


def test_imports_have_less_patience() -> None:
    """A launch all of whose ranks are inside an import has the imports' patience, any other one its phase's."""
    assert stage_of(launch(at="import")) == "import"
    assert stage_of(launch(at="load_model")) == "weight-load"
    assert patience_s(launch(at="import")) == Known(60.0)


def test_the_users_figure_counts() -> None:
    """What the user set for a phase replaces the table's figure, for that phase alone."""
    assert patience_s(launch(weight_load=5.0)) == Known(5.0)
    assert patience_s(launch(at="import", weight_load=5.0)) == Known(DEFAULT_S["import"])


@pytest.mark.parametrize(("size_bytes", "seconds"), [(1 << 30, 3600.0), (400 * 10**9, 10_000.0)])
def test_a_load_has_patience_by_its_bytes(size_bytes: int, seconds: float) -> None:
    """A checkpoint of 400 GB may take 10,000 s at the slowest rate that is still a load."""
    files = OpenFiles(True, (file(size_bytes), file(1000, "/m/config.json"), file(1 << 40, "/l.log", "w")), ())
    loading = launch({("fds", KEY): files})
    assert weight_bytes(loading.movers) == Known(size_bytes)
    assert patience_s(loading) == Known(seconds)


def test_unread_files_leave_the_patience_of_a_load_open() -> None:
    """How long a load may take is not known while its files are not: silence then proves nothing."""
    assert isinstance(patience_s(launch({("fds", KEY): Missing("fds", "denied")}, silent_s=10**6)), Missing)


def test_silence_counts_from_the_last_write() -> None:
    """A log that was last written an hour ago proves an hour, however short hangdoc has looked."""
    assert no_progress_s(launch(silent_s=3600.0)) == Known(3600.0)


def test_totals_that_stand_are_proof_without_a_log() -> None:
    """Where no log can be read the totals of the ranks tell since when nothing moved; the longer proof counts."""
    assert no_progress_s(launch(silent_s=None, rounds=9)) == Known(8.0)
    assert no_progress_s(launch(silent_s=2.0, rounds=9)) == Known(8.0)


def moving_until(last: int, rounds: int) -> list[Readings]:
    return [
        {
            ("progress", KEY): progress(min(number, last) * 10**6),
            ("links", KEY): links(received=0),
            ("cpu", KEY): cpu(),
        }
        for number in range(rounds)
    ]


@pytest.mark.parametrize("kept_rounds", [2, 5, 31, 100])
def test_a_long_observation_remembers_since_when_totals_stand(kept_rounds: int) -> None:
    """The ring lets rounds go, and still knows the moment as the whole recording does; work starts the count anew."""
    of = trace(moving_until(20, 80), processes=[process(role="scheduler")])
    ring = Ring(of.header, kept_rounds)
    for snapshot in of.snapshots:
        ring.add(snapshot)
    assert stood(ring.trace()) == stood(of) == Known(59.0)


def test_received_bytes_are_movement_in_the_rounds_that_were_let_go() -> None:
    """A download that paused a while ago, and shows in TCP totals only, did not stand before."""
    downloads: list[Readings] = [
        {("progress", KEY): progress(), ("links", KEY): links(received=min(number, 20) * 10**6)} for number in range(80)
    ]
    of = trace(downloads, processes=[process(role="scheduler")])
    ring = Ring(of.header, 5)
    for snapshot in of.snapshots:
        ring.add(snapshot)
    assert stood(ring.trace()) == stood(of) == Known(59.0)


def stood(of: Trace) -> object:
    return standing_s(of, Index(of), (KEY,), len(of.snapshots) - 1)


def test_unread_totals_do_not_stand() -> None:
    """A round in which the totals could not be read ends the count."""
    rounds = moving_until(0, 10)
    rounds[4] = {("progress", KEY): Missing("progress", "timeout"), ("links", KEY): links(received=0)}
    assert stood(trace(rounds, processes=[process(role="scheduler")])) == Known(4.0)


def the_sign(positive: Outcome, of: Features) -> Outcome:
    def found(_: Case) -> Outcome:
        """Something positive."""
        return positive

    return signs.positive_or_patience(found)(Case(of, None))


def test_before_the_patience_ends_only_positive_evidence_counts() -> None:
    """Nothing positive and little silence: unread, whether the evidence is absent or was not to be had."""
    early, late = launch(at="import", silent_s=59.0), launch(at="import", silent_s=61.0)
    for outcome in (Absent("no owner"), Unread("who owns it")):
        assert isinstance(the_sign(outcome, early), Unread)
        assert isinstance(the_sign(outcome, late), Present)
    assert isinstance(the_sign(Present("owner 5"), early), Present)


def unhurried(of: Trace) -> Trace:
    """The trace as if no patience had ended."""
    return replace(of, header=replace(of.header, patience_s=dict.fromkeys(get_args(Stage), 1e9)))


@pytest.mark.parametrize("golden", GOLDEN, ids=lambda path: path.stem)
def test_no_hang_rests_on_silence_in_a_recording_of_a_minute(golden: Path) -> None:
    """With endless patience every recorded hang is the same: found by an owner, a circle, an absence or a spin."""
    before = diagnose(read(golden), "trace")
    after = diagnose(unhurried(read(golden)), "trace")
    assert (before.verdict, before.culprits) == (after.verdict, after.culprits)


READ, POLL, SLEEP, FUTEX = 0, 7, 230, 202
"""System calls of x86_64."""
WAITS = {
    "read": SystemCall(READ, (5, 0, 0)),
    "poll": SystemCall(POLL, (0x7F00, 1, 1000)),
    "sleep": SystemCall(SLEEP, (0, 0, 0, 0)),
    "timed-futex": SystemCall(FUTEX, (0x7F00, 0x189, 0, 0x7FFF, 0, 0xFFFFFFFF)),
    "futex-beside-a-poll": PARKED,
}


def standing_still(wait: str, at: str, **set_s: float) -> Features:
    """A rank of which everything was read, that waits in one call; a second thread polls; who could end it is alive."""
    socket = replace(file(0), kind="socket", target="socket:[7]", access="rw")
    readings: Readings = {
        ("cpu", KEY): cpu(clock(), clock(tid=101)),
        ("futex", KEY): waits((100, WAITS[wait]), (101, WAITS["poll"])),
        ("stacks", KEY): dump((100, 0), (101, 0)),
        ("fds", KEY): OpenFiles(True, (socket,), ()),
        ("links", KEY): links(received=0),
        ("locks", KEY): Locks((), Known(None), Known(())),
        ("gpu", None): Gpus(()),
    }
    return launch(readings, at=at, **set_s)


HANGS = [one for one in hypotheses() if one.verdict in HANG_VERDICTS]


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("hypothesis", HANGS, ids=lambda one: one.id)
def test_no_hang_on_mere_absence_of_movement(hypothesis: Hypothesis, wait: str) -> None:
    """A rank that just stands still, every reading of it taken, makes no hang likely while there is patience left."""
    for at in ("load_model", "init_memory_pool", "init_distributed_environment", "import"):
        assert weigh(hypothesis, standing_still(wait, at)).grade in {"undetermined", "ruled-out"}


def test_absence_of_movement_is_a_hang_when_the_patience_ends() -> None:
    """The same rank, which waits in a read, is a likely hang once it has been silent for longer than it may."""
    grades = {one.id: weigh(one, standing_still("read", "load_model", weight_load=0.5)).grade for one in HANGS}
    assert grades["HD204"] == "likely"


def test_a_snapshot_that_left_has_no_clock() -> None:
    """What is kept of a round that left the ring gives no rate of CPU time."""
    of = trace(moving_until(0, 9), processes=[process(role="scheduler")])
    ring = Ring(of.header, 2)
    for snapshot in of.snapshots:
        ring.add(snapshot)
    past: Snapshot = ring.trace().snapshots[0]
    assert {sample.probe for sample in past.samples} == {"standing", "progress", "links"}
