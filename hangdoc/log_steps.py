"""What to do next about a log: where its last words point, and the readings on the machine that would decide."""

from __future__ import annotations

from hangdoc.criteria import Case, Present, Weighed
from hangdoc.features.features import Features
from hangdoc.hypotheses import _log_signs as logs
from hangdoc.hypotheses import _watchdog_words as watchdog_words
from hangdoc.model.diagnosis import NextStep
from hangdoc.model.reading import Known, Missing

COMPLAINTS = {
    "download-lock": (
        "slow-start-downloading",
        "Who holds the lock file that the line names: fuser -v FILE. Nobody: delete it. Else: does it load?",
    ),
    "baton": (
        "stale-lock-file",
        "Does a compiler still run (pgrep -a 'nvcc|cicc|ninja|hipcc')? None: delete the lock file that the line names.",
    ),
    "store-barrier": (
        "store-barrier-count",
        "Look at the log and the host of the rank that has not come; more than expected came: end the leftover job.",
    ),
    "no-broadcast-block": (
        "all-ranks-in-one-collective",
        "The engine waits for its workers: compare the stacks of all: py-spy dump --pid of each VLLM::Worker.",
    ),
    "no-answer": (
        "host-loop-in-scheduler",
        "The scheduler does not answer the HTTP process: top -H -p of each sglang::scheduler, then py-spy dump --pid.",
    ),
}
"""What to look at first when a log only has a complaint: a playbook, and its first step."""


def _of_complaint(seen: Features, leader: Weighed | None) -> tuple[NextStep, ...]:
    """Return the first look at what a log complains of that says nothing else."""
    complaints = seen.log.value.complaints if isinstance(seen.log, Known) and leader is None else ()
    named = COMPLAINTS.get(complaints[-1].name) if complaints else None
    return () if named is None else (NextStep(playbook=named[0], action=named[1]),)


def _of_watchdog(seen: Features) -> tuple[NextStep, ...]:
    """Return where to look when a watchdog said more than that the time ran out."""
    whole = Case(seen, None)
    if isinstance(watchdog_words.first_never_ended(whole), Present):
        return (
            NextStep(
                playbook="first-collective-never-finishes",
                action="The transport, no rank: start once with NCCL_P2P_DISABLE=1, then with NCCL_SHM_DISABLE=1 or "
                "NCCL_IB_DISABLE=1: the one with which it runs names what to mend.",
            ),
        )
    if isinstance(watchdog_words.batches_differ(whole), Present):
        return (
            NextStep(
                playbook="rank-divergence",
                action="Find what each rank decides for itself (accepted drafts, sampling, clocks, time limits): start "
                "once without speculative decoding and without request time limits.",
            ),
        )
    return ()


AFTER_NCCL = (
    "It may be the first collective: start once with NCCL_P2P_DISABLE=1. Where that runs, the GPUs cannot reach each "
    "other (ACS, IOMMU, virtual machine, driver)."
)
BETWEEN_NODES = (
    "It may be the network between the nodes: start once with NCCL_DEBUG=INFO on each and compare which interface and "
    "adapter they name; then NCCL_SOCKET_IFNAME, NCCL_IB_DISABLE=1."
)
"""What is behind most logs that end where NCCL begins: in 15 and in 5 public reports."""
TO_THE_OTHERS = (
    "It may be the way to the other nodes: can each of them open --dist-init-addr (nc -vz HOST PORT)? "
    "Then GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME on every node."
)
"""What is behind logs of several nodes that end before: an interface or a port that cannot be reached (6 reports)."""


def _of_last_line(seen: Features, leader: Weighed | None) -> tuple[NextStep, ...]:
    """Return the usual suspect where the log of a start of several ranks ends in the rendezvous."""
    if leader is not None or isinstance(seen.log, Missing) or len(seen.movers) < 2:
        return ()
    log = seen.log.value
    last = max((*log.milestones, *log.endless, *log.complaints), key=lambda event: event.offset, default=None)
    if last is None or log.errors or log.crashes:
        return ()
    has_nodes = seen.launch.nodes != 1 or log.reached("group-on-several-nodes")
    if last.name == "rendezvous-begin" and has_nodes:
        return (NextStep(playbook="blocked-in-rendezvous", action=TO_THE_OTHERS),)
    if last.name not in {"nccl-version", "nccl-begins"}:
        return ()
    if has_nodes:
        return (NextStep(playbook="cross-node-transport", action=BETWEEN_NODES),)
    return (NextStep(playbook="peer-to-peer-broken", action=AFTER_NCCL),)


def deciding_steps(seen: Features, leader: Weighed | None) -> tuple[NextStep, ...]:
    """Return the three readings that would decide, with the commands that take them, cheapest first."""
    playbook = "hung-in-silence" if leader is None else leader.hypothesis.playbook
    settings = seen.launch.settings
    pids = [member.key.pid for member in seen.movers if member.key.pid > 0]
    if pids:
        target, pid = f"{pids[0]}", f"{pids[0]}"
    else:
        target, pid = (f"--port {settings['port']}" if "port" in settings else "PID"), "PID"
    if leader is not None and logs.failures(seen):
        return (*_of_watchdog(seen), *_of_ended(leader))
    first = "" if leader is None else f"{leader.action} "
    suspected = _of_complaint(seen, leader) or _of_last_line(seen, leader)
    return (*_of_watchdog(seen), *suspected, *_readings(playbook, first, target, pid))


def _of_ended(leader: Weighed) -> tuple[NextStep, ...]:
    """Return what to do about a launch that is over: its cause, and a start that is looked at."""
    playbook = leader.hypothesis.playbook
    return (
        NextStep(playbook=playbook, action=leader.action),
        NextStep(
            playbook=playbook,
            action="Start it again and let hangdoc watch --until hang look beside it: it takes CPU, GPU power and "
            "the stacks of all ranks seconds after the standstill, before anything is ended.",
        ),
    )


def _readings(playbook: str, first: str, target: str, pid: str) -> tuple[NextStep, ...]:
    """Return the three readings. first: what to do before; target, pid: how the launch and a process are called."""
    return (
        NextStep(
            playbook=playbook,
            action=f"{first}On the machine, while it stands still, all three readings: hangdoc watch {target} --once",
        ),
        NextStep(
            playbook=playbook,
            action=f"Or one by one: CPU of each thread of each rank (burns or sleeps): top -H -b -n 2 -d 5 -p {pid}; "
            "GPU use and power together (100 % at idle power is a spinning kernel): "
            "nvidia-smi --query-gpu=index,utilization.gpu,power.draw,memory.used --format=csv",
        ),
        NextStep(
            playbook=playbook,
            action=f"And stacks of all ranks, twice, compared (the odd one is the culprit): py-spy dump --pid {pid}",
        ),
    )
