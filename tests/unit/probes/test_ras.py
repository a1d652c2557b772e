"""Asking NCCL's RAS where it answers, is another job's, silent, endless, refusing or no RAS at all: real sockets."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hangdoc.model.process import Launch, Process
from hangdoc.model.ras import Ras, RasOutcome, RasRank
from hangdoc.model.reading import Known, Missing
from hangdoc.sampling.probe import Context, Session
from hangdoc.trace import wording
from hangdoc.trace.tokens import Tokens
from hangdoc_probes import _network, ras
from hangdoc_probes._ras_answer import counts_of
from tests.fake_ras.answers import EQUAL, MISMATCH, as_json, reserved, serving
from tests.unit.probes.targets import process_of, round_of


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine may take long to answer."""
    monkeypatch.setattr(ras, "ANSWER_S", 60.0)


@pytest.fixture
def port() -> Iterator[int]:
    with reserved() as number:
        yield number


@pytest.fixture
def answer(tmp_path: Path) -> Path:
    return tmp_path / "answer"


def session_of(**settings: str) -> Session:
    launch = Launch(root=process_of(os.getpid()).key, engine="sglang", settings=settings)
    return ras.open_session(Context(launch=launch, intern=lambda _: 0))


def member(child: subprocess.Popen[bytes]) -> Process:
    return process_of(child.pid)


def asked(session: Session, *members: Process) -> Ras:
    (sample,) = session.take(round_of(*members))
    assert isinstance(sample.reading, Known), sample
    assert isinstance(sample.reading.value, Ras)
    return sample.reading.value


def test_unequal_counts_name_the_members(port: int, answer: Path) -> None:
    """Of an answer in JSON come the counts, the highest one, and which rank is which member."""
    answer.write_text(as_json((0, "{pid}", 17), (1, 99_944, 7)))
    with serving(port, "well", answer) as child:
        one = member(child)
        found = asked(session_of(), one)
    assert (found.port, found.outcome, found.leading) == (port, "answered", 17)
    assert found.ranks == (RasRank(0, 17, child.pid, one.key), RasRank(1, 7, 99_944))


def test_an_older_service_answers_as_text(port: int, answer: Path) -> None:
    """Where SET FORMAT is not known the text is read: the operation whose counts differ most."""
    answer.write_text(MISMATCH)
    with serving(port, "old", answer) as child:
        found = asked(session_of(), member(child))
    assert [(one.rank, one.operations) for one in found.ranks] == [(0, 17), (1, 7)]
    assert found.leading == 17


def test_equal_counts_in_a_text_are_no_counts(port: int, answer: Path) -> None:
    """A text tells differences only; that there is none is an answer."""
    answer.write_text(EQUAL)
    with serving(port, "old", answer) as child:
        found = asked(session_of(), member(child))
    assert (found.outcome, found.ranks, found.leading) == ("answered", (), None)


def test_json_that_lacks_a_comma(port: int, answer: Path) -> None:
    """The JSON of 2.28.9, which is none, is read all the same."""
    answer.write_text(as_json((0, "{pid}", 17), (1, 99_944, 7), comma=""))
    with serving(port, "well", answer) as child:
        assert asked(session_of(), member(child)).leading == 17


def test_a_rank_that_is_missing_is_told(port: int, answer: Path) -> None:
    """A rank that RAS cannot reach has no count, and is no rank with the count 0."""
    answer.write_text(as_json((0, "{pid}", 17), missing=(1,)))
    with serving(port, "well", answer) as child:
        found = asked(session_of(), member(child))
    assert [(one.rank, one.operations) for one in found.unreached] == [(1, None)]
    assert [one.rank for one in found.ranks] == [0]


def test_over_several_nodes_no_rank_is_a_member(port: int, answer: Path) -> None:
    """A pid of another node may be a member's here: which rank is which member is then not said."""
    answer.write_text(as_json((0, "{pid}", 17), (1, 99_944, 7)))
    with serving(port, "well", answer) as child:
        found = asked(session_of(nnodes="2"), member(child))
    assert [one.process for one in found.ranks] == [None, None]


def test_torchruns_way_to_say_one_node_is_one_node(port: int, answer: Path) -> None:
    """torchrun writes "1:1" for one node, which is its default: ranks are members there as well."""
    answer.write_text(as_json((0, "{pid}", 17), (1, 99_944, 7)))
    with serving(port, "well", answer) as child:
        one = member(child)
        found = asked(session_of(nnodes="1:1"), one)
    assert [one.process for one in found.ranks] == [one.key, None]


def test_an_answer_of_another_job_is_not_this_ones(port: int, answer: Path) -> None:
    """Who listens is a member, and whoever answers knows none: the counts are another job's, and are not told."""
    answer.write_text(as_json((0, 88_001, 17), (1, 88_002, 7)))
    with serving(port, "well", answer) as child:
        found = asked(session_of(), member(child))
    assert (found.outcome, found.ranks) == ("stranger", ())


def test_two_jobs_on_one_port(port: int, answer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two jobs of one user listen on the same port: it is asked until its own one answers."""
    monkeypatch.setattr(ras, "TRIES", 64)
    theirs = tmp_path / "theirs"
    theirs.write_text(as_json((0, 88_001, 3), (1, 88_002, 3)))
    answer.write_text(as_json((0, "{pid}", 17), (1, 99_944, 7)))
    with serving(port, "well", answer) as child, serving(port, "well", theirs):
        found = asked(session_of(), member(child))
    assert (found.outcome, found.leading) == ("answered", 17)


@pytest.mark.parametrize(
    ("way", "outcome"),
    [
        ("silent", "silent"),
        ("half", "silent"),
        ("bye", "cut"),
        ("nothing", "cut"),
        ("other", "garbled"),
        ("endless-line", "garbled"),
        ("huge", "too-long"),
        ("well", "garbled"),
    ],
)
def test_services_that_do_not_answer(
    port: int, answer: Path, way: str, outcome: RasOutcome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is told from the others; one that listens and says nothing ends at the deadline and is left alone."""
    if outcome == "silent":
        monkeypatch.setattr(ras, "ANSWER_S", 0.3)
    answer.write_text('{"communicators": 5, "nonsense": [' + "x" * 100)
    with serving(port, way, answer) as child:
        session = session_of()
        found = asked(session, member(child))
        again = list(session.take(round_of(member(child))))
    assert (found.outcome, found.ranks) == (outcome, ())
    assert bool(again) == (outcome != "silent")


def test_nobody_listens_before_the_first_communicator(port: int) -> None:
    """That nobody listens is a reading, and no failure."""
    with subprocess.Popen(["sleep", "1000"], env={**os.environ, "NCCL_RAS_ADDR": f"127.0.0.1:{port}"}) as child:
        try:
            assert asked(session_of(), member(child)) == Ras(port=port, outcome="refused")
        finally:
            child.kill()


def test_ras_that_is_off_is_not_asked(port: int, answer: Path) -> None:
    """With NCCL_RAS_ENABLE=0 whoever listens there is not spoken to."""
    answer.write_text(as_json((0, "{pid}", 17)))
    with serving(port, "well", answer, extra={"NCCL_RAS_ENABLE": "0"}) as child:
        assert asked(session_of(), member(child)).outcome == "off"


def test_a_strangers_port_is_not_asked(port: int, answer: Path) -> None:
    """A program outside the launch that listens there gets no question."""
    answer.write_text(as_json((0, 88_001, 17)))
    with serving(port, "silent", answer):
        environment = {**os.environ, "NCCL_RAS_ADDR": f"127.0.0.1:{port}"}
        with subprocess.Popen(["sleep", "1000"], env=environment) as other:
            try:
                found = asked(session_of(), member(other))
            finally:
                other.kill()
    assert found.outcome == "stranger"


def test_a_launch_that_is_well_is_not_asked(port: int, answer: Path) -> None:
    """While there is no reason to look closely there is no question."""
    answer.write_text(as_json((0, "{pid}", 17)))
    with serving(port, "well", answer) as child:
        calm = replace(round_of(member(child)), calm=True)
        assert list(session_of().take(calm)) == []


def test_an_address_without_a_port_is_missing(port: int) -> None:
    """An address that NCCL itself would refuse is a missing reading that says so."""
    with serving(port, "well") as child:
        session = session_of()
        one = member(child)
        session._settings[one.key] = ras.setting_of(b"NCCL_RAS_ADDR=nowhere\0")  # type: ignore[attr-defined]
        (sample,) = session.take(round_of(one))
    assert isinstance(sample.reading, Missing)
    assert "NCCL_RAS_ADDR" in sample.reading.detail


def test_a_namespace_that_cannot_be_entered(port: int, answer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the right to enter the launch's network the reading is missing, with what would change that."""

    def refused(path: str) -> None:
        raise PermissionError(1, "Operation not permitted", path)

    answer.write_text(as_json((0, "{pid}", 17)))
    with serving(port, "well", answer) as child:
        monkeypatch.setattr(_network, "enter", refused)
        monkeypatch.setattr(_network, "namespace", lambda _proc, pid: f"net:[{pid}]")
        (sample,) = session_of().take(round_of(member(child)))
    assert isinstance(sample.reading, Missing)
    assert sample.reading.reason == "denied"
    assert "root" in sample.reading.remedy


NETWORK = """
import ctypes, fcntl, os, runpy, socket, struct, sys
if ctypes.CDLL(None).unshare(0x40000000): sys.exit("refused")
with socket.socket() as one: fcntl.ioctl(one, 0x8914, struct.pack("16sh14x", b"lo", 1))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def test_another_network_namespace(port: int, answer: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a network namespace of its own the service is asked at its own loopback address."""
    if os.geteuid():
        pytest.skip("cannot be had here: a network namespace takes root")
    wrapper = tmp_path / "wrapper.py"
    server = Path(__file__).parents[2] / "fake_ras" / "server.py"
    wrapper.write_text(NETWORK.replace("sys.argv[1:]", f"[{str(server)!r}, *sys.argv[1:]]"))
    answer.write_text(as_json((0, "{pid}", 17), (1, 99_944, 7)))
    monkeypatch.setattr("tests.fake_ras.answers.SERVER", wrapper)
    with serving(port, "well", answer) as child:
        assert asked(session_of(), member(child)).leading == 17


def test_what_it_says_stays_in_a_recording() -> None:
    """Every sentence of a missing reading is made of known words."""
    texts = ["NCCL_RAS_ADDR of the launch is no address with a port", "its network namespace cannot be entered"]
    assert [text for text in (*texts, ras.ELSEWHERE) if wording.sentence(Tokens(), text) != text] == []


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[1]", b"null", b'{"communicators": [5]}', b"\xff" * 99, b"NCCL"],
)
def test_what_is_no_answer(body: bytes) -> None:
    """Malformed answers are none."""
    assert counts_of(body) is None


def test_most_ranks_alike_are_told_by_their_number() -> None:
    """Of many equal ranks a text says how many there are: the one that is behind is told by itself."""
    text = EQUAL.encode() + (
        b"  Communicator ranks have different AllReduce operation counts\n"
        b"  7 ranks have launched up to operation 40\n"
        b"  Rank 3 has launched up to operation 39 -- GPU 3 managed by process 70 on node 192.0.2.2\n"
    )
    found = counts_of(text)
    assert found is not None
    assert (found.leading, found.ranks) == (40, (RasRank(3, 39, 70),))
