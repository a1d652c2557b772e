"""What keeps GPUs and ranks from being called hung: neighbours, namespaces, short looks, nodes that are not seen."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from hangdoc import discovery
from hangdoc.criteria import Absent, Case, Outcome, Present, Unread
from hangdoc.features.features import Features, features
from hangdoc.hypotheses import _ranks as ranks
from hangdoc.hypotheses._kernels import gpu_spins
from hangdoc.hypotheses.blocked_in_rendezvous import HYPOTHESIS as IN_RENDEZVOUS
from hangdoc.model.fd import OpenFiles
from hangdoc.model.gpu import Gpu, GpuProcess, Gpus
from hangdoc.model.process import Process, ProcessKey
from hangdoc.model.reading import Known, Missing, Reading
from hangdoc.model.stack import Frame, Stack
from tests.unit.features.synthetic import Readings, clock, cpu, dump, links, progress, stack, trace, whole
from tests.unit.features.test_gpu_history import SPINS

KEY, OTHER = ProcessKey(100, 1), ProcessKey(101, 1)
RANKS = tuple(Process(key=key, ppid=1, role="scheduler", rank={"tp": key.pid - 100}) for key in (KEY, OTHER))
OPENED = OpenFiles(complete=True, files=(), nvidia=("/dev/nvidia0",))
LOOP = stack("forward:7", "run_batch:3", "event_loop_overlap:9", file="engine/scheduler.py")


def seen(
    gpu: Gpu | None = None,
    holders: Sequence[tuple[int, Reading[float]]] | None = ((100, Known(1.0)),),
    *,
    rounds: int = 12,
    stacks: Sequence[Stack] = (LOOP,),
    of: Sequence[Process] = RANKS[:1],
    settings: dict[str, str] | None = None,
    is_here: bool = True,
) -> Features:
    """Ranks that stand in these stacks, the first ones of the table, and one GPU with these holders."""
    readings: dict[tuple[str, ProcessKey | None], object] = {}
    for number, process in enumerate(of):
        readings["progress", process.key] = progress()
        readings["links", process.key] = links()
        readings["cpu", process.key] = cpu(clock(tid=process.key.pid))
        readings["fds", process.key] = OPENED
        readings["stacks", process.key] = dump((process.key.pid, min(number, len(stacks) - 1)))
    if gpu is not None:
        uses: Reading[tuple[GpuProcess, ...]] = Missing("gpu", "unsupported")
        if holders is not None:
            uses = Known(tuple(GpuProcess(pid, Known(1), use, Known(is_here)) for pid, use in holders))
        readings["gpu", None] = Gpus((replace(gpu, processes=uses),))
    every: list[Readings] = [readings] * rounds  # type: ignore[list-item]
    made = trace(every, processes=of, stacks=stacks, engine="sglang", settings=settings)
    return features(made, discovery.engine("sglang"), whole(made), steady=True)


UNASKED = Missing("gpu", "unsupported")


def test_pids_of_another_namespace() -> None:
    """Under the host's pids the one process on the one GPU is the one member that has it open, and that is said."""
    of = seen(SPINS, ((777, Known(1.0)),), is_here=False)
    outcome = gpu_spins(of, of.members[KEY])
    assert isinstance(outcome, Present)
    assert "not visible" in outcome.because
    two = seen(SPINS, ((777, Known(1.0)), (778, Known(0.0))), is_here=False)
    assert isinstance(gpu_spins(two, two.members[KEY]), Unread)


@pytest.mark.parametrize(
    ("holders", "outcome"),
    [
        (((100, Known(1.0)),), Present),
        (((100, Known(1.0)), (777, Known(0.0))), Present),
        (((100, Known(0.0)), (777, Known(0.9))), Unread),
        (((100, UNASKED), (777, UNASKED)), Unread),
        (((777, Known(1.0)),), Unread),
        (None, Unread),
    ],
)
def test_whose_kernels_run(holders: Sequence[tuple[int, Reading[float]]] | None, outcome: type[Outcome]) -> None:
    """A GPU that spins is the rank's only if nobody outside runs kernels on it; other pids leave it open."""
    of = seen(SPINS, holders)
    assert isinstance(gpu_spins(of, of.members[KEY]), outcome)


@pytest.mark.parametrize(("rounds", "outcome"), [(12, Present), (10, Present), (9, Unread), (2, Unread)])
def test_standing_takes_its_time(rounds: int, outcome: type[Outcome]) -> None:
    """A stack stands when it was the same for 9 s; a shorter look leaves it open."""
    of = seen(rounds=rounds)
    assert isinstance(ranks.stands(of.members[KEY]), outcome)


def test_one_rank_elsewhere_is_named() -> None:
    """Where one of two stands elsewhere, they do not stand together, and the sentence says who and where."""
    late = stack("late:4", "event_loop_overlap:9", file="engine/scheduler.py")
    of = seen(stacks=(LOOP, late), of=RANKS)
    outcome = ranks.all_stand_together(Case(of, of.members[KEY]))
    assert isinstance(outcome, Absent)
    assert "late (engine/scheduler.py:4)" in outcome.because


@pytest.mark.parametrize(
    ("nnodes", "one", "several"),
    [("1", Present, Absent), ("1:1", Present, Absent), ("2", Absent, Present), ("1:4", Unread, Unread)],
)
def test_nodes(nnodes: str, one: type[Outcome], several: type[Outcome]) -> None:
    """Options that leave the number of nodes open are no proof that there is only one."""
    of = seen(settings={"nnodes": nnodes})
    case = Case(of, of.members[KEY])
    assert isinstance(ranks.one_node(case), one)
    assert isinstance(ranks.several_nodes(case), several)


@pytest.mark.parametrize(
    ("leaf", "met"),
    [
        (Frame("PyNcclCommunicator.__init__", "sglang/srt/distributed/device_communicators/pynccl.py", 129), True),
        (
            Frame("MessageQueue.wait_until_ready", "sglang/srt/distributed/device_communicators/shm_broadcast.py", 5),
            True,
        ),
        (Frame("barrier", "torch/distributed/distributed_c10d.py", 4600), True),
        (Frame("_create_c10d_store", "torch/distributed/rendezvous.py", 199), False),
        (Frame("_store_based_barrier", "torch/distributed/distributed_c10d.py", 1060), False),
    ],
)
def test_who_has_met_waits_for_no_node(leaf: Frame, met: bool) -> None:
    """In NCCL's set-up, in a message queue's and in a collective every node has come: no node is missing any more."""
    of = seen(stacks=((leaf, Frame("init_torch_distributed", "model_runner.py", 6)),), settings={"nnodes": "2"})
    outcome = IN_RENDEZVOUS.excluding[0](Case(of, None))
    assert isinstance(outcome, Present if met else Absent)
