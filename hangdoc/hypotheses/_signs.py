"""Signs that several hypotheses share: progress, steadiness, patience, and who does what."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hangdoc.criteria import Absent, Case, Outcome, Present, Sign, Unread
from hangdoc.features.activity import NOISE_RSS_BYTES, SPIN_DEMAND_RATIO, Activity, activity, work
from hangdoc.features.dumps import ThreadHistory
from hangdoc.features.features import Departure, Features, Member, is_tracker
from hangdoc.features.patience import no_progress_s, patience_s
from hangdoc.hypotheses._http import counters_rise
from hangdoc.hypotheses._plumbing import is_plumbing
from hangdoc.model.diagnosis import Culprit
from hangdoc.model.process import Process
from hangdoc.model.reading import Known, Missing
from hangdoc.model.stack import Frame


def the_launch(features: Features) -> Sequence[Member | None]:
    """Suspect the launch as a whole."""
    del features
    return (None,)


def each_mover(features: Features) -> Sequence[Member | None]:
    """Suspect every member that has to move for the launch to move."""
    return features.movers


def name_of(process: Process) -> str:
    """Return how the report calls a process.

    >>> from hangdoc.model.process import ProcessKey
    >>> name_of(Process(key=ProcessKey(130, 1), ppid=1, role="scheduler", rank={"tp": 1}))
    'scheduler TP1 (pid 130)'
    """
    rank = "".join(f" {axis.upper()}{number}" for axis, number in sorted(process.rank.items()))
    role = "process" if process.role == "other" else process.role
    return f"{role}{rank} (pid {process.key.pid})" if process.key.pid > 0 else f"{role}{rank}"


def culprit(member: Member, reason: str, tid: int | None = None) -> Culprit:
    """Return a member as the one who has to move; tid: its main thread unless told."""
    return process_as_culprit(member.process, reason, tid)


def process_as_culprit(process: Process, reason: str, tid: int | None = None) -> Culprit:
    """Return a process as the one who has to move, a member or one that is gone; tid: its main thread unless told."""
    return Culprit(
        pid=process.key.pid,
        start_ticks=process.key.start_ticks,
        tid=tid if tid is not None else process.key.pid,
        role=process.role,
        rank=process.rank,
        reason=reason,
    )


def where(thread: ThreadHistory) -> str:
    """Return where a thread stands, for a sentence: its innermost frame, and who called the library it waits in."""
    if thread.leaf is None:
        return "no frame"
    caller = next((frame for frame in thread.last.stack if not is_plumbing(frame)), thread.leaf)
    place = place_of(thread.leaf)
    return place if caller == thread.leaf else f"{place} called by {place_of(caller)}"


def below_python(member: Member) -> str:
    """Return where a member stands below Python, as the end of a sentence; "" without what tells it.

    It adds to what is told and to no grade: a native stack says where a thread waits, a core dump which kernel runs;
    neither says whether that ends.
    """
    place = member.native
    below = "" if place is None else f"; below Python it {place.does}: {place.frame.function}"
    return below + (f"; its card stands in {', '.join(member.kernels)}" if member.kernels else "")


def place_of(frame: Frame) -> str:
    """Return a frame for a sentence."""
    return f"{frame.function} ({short_file(frame.file)}:{frame.line})"


def short_file(file: str) -> str:
    """Return the last two parts of a path.

    >>> short_file("lib/python3.11/site-packages/sglang/srt/models/deepseek_v2.py")
    'models/deepseek_v2.py'
    """
    return "/".join(file.rsplit("/", 2)[-2:])


def readings_are_steady(case: Case) -> Outcome:
    """The last slices of 1 s are all of one kind (working, busy or quiet), so that this is a state, not a moment."""
    if case.features.window.seconds <= 0:
        return Unread("one moment only: nothing tells whether it stays so")
    steady = case.features.steady
    if isinstance(steady, Missing):
        return Unread.of(steady, "whether the last slices are all of one kind")
    if steady:
        return Present(f"the readings of the last {case.features.window.seconds:.0f} s are all of one kind")
    return Absent("the readings changed within the last slices: this may be passing")


def nothing_progresses(case: Case) -> Outcome:
    """No member that has to move shows any work: no input or output, no faults, no memory, no new line of its log."""
    host = nothing_moves_on_the_host(case)
    return (_gpu_work_unread(case.features) or host) if isinstance(host, Present) else host


def nothing_moves_on_the_host(case: Case) -> Outcome:
    """No member that has to move shows work outside the GPUs: no input or output, faults, memory or new log line."""
    features = case.features
    unread: Unread | None = None
    for member in _who_may_work(features):
        if isinstance(member.flow, Missing):
            unread = Unread.of(member.flow, f"work of {name_of(member.process)}")
            continue
        if (evidence := work(member.flow.value)) is not None:
            return Absent(f"{name_of(member.process)} {evidence}")
        if isinstance(member.flow.value.io_bytes, Missing):
            unread = Unread.of(member.flow.value.io_bytes, f"reads and writes of {name_of(member.process)}")
        if isinstance(member.flow.value.tcp_bytes, Missing):
            unread = Unread.of(member.flow.value.tcp_bytes, f"TCP bytes of {name_of(member.process)}")
    for outcome in (
        _log_moves(features),
        _output_grows(features),
        _child_at_work(features),
        _gpu_memory_moves(features),
        counters_rise(features),
    ):
        if isinstance(outcome, Absent):
            return outcome
        unread = unread or outcome
    return unread or Present(
        f"nothing moved in {features.window.seconds:.0f} s: no reads, writes, page faults, memory or log lines"
    )


def _who_may_work(features: Features) -> tuple[Member, ...]:
    """Return whose work is progress: the movers; in a generic launch everybody who lives, since any may do the work."""
    if features.launch.engine != "generic":
        return features.movers
    return tuple(
        member for member in features.members.values() if not is_tracker(member.process) and not is_zombie(member)
    )


CHILD_DEMAND_RATIO = SPIN_DEMAND_RATIO / 2
"""Share of a core from which a compiler or another child counts as at work: one that runs uses nearly all of one, an
idle one nothing."""


def _child_at_work(features: Features) -> Absent | Unread | None:
    """Look for compilers and other children that are busy: whoever waits for one of them is not hung."""
    movers = {member.key for member in features.movers}
    unread: Unread | None = None
    for member in features.members.values():
        if member.key in movers or member.process.role not in {"compiler", "other"} or is_tracker(member.process):
            continue
        if isinstance(member.motion, Missing) or isinstance(member.motion.value.demand_ratio, Missing):
            unread = Unread(f"whether {name_of(member.process)} is at work")
        elif member.motion.value.demand_ratio.value >= CHILD_DEMAND_RATIO:
            return Absent(f"{name_of(member.process)} is at work")
    return unread


def _output_grows(features: Features) -> Absent | Unread | None:
    """Look whether a member's own output file grows, where no table says which of an engine's lines mean progress.

    A hung program may repeat a line for ever too: it is then not known whether it hangs.
    """
    if is_server(features):
        return None
    unread: Unread | None = None
    for member in _who_may_work(features):
        if isinstance(member.files, Missing):
            unread = Unread.of(member.files, f"whether the output of {name_of(member.process)} grows")
    for output in features.outputs:
        if output.file.kind != "file":
            continue
        name = f"the output of {name_of(output.process)} ({short_file(output.file.target)})"
        if isinstance(output.grown_bytes, Missing):
            unread = Unread.of(output.grown_bytes, f"whether {name} grows")
        elif output.grown_bytes.value > 0:
            return Absent(f"{name} grew by {output.grown_bytes.value:,} bytes")
    return unread


def _log_moves(features: Features) -> Absent | None:
    if isinstance(features.log, Missing):
        return None  # output to a pipe or terminal has no size; the members' own writes are in their counters
    fresh = [event for event in features.log.value.fresh if event.kind in {"milestone", "batch", "progress"}]
    if fresh:
        return Absent(f"its log went on: {fresh[-1].text}")
    return None


def _gpu_memory_moves(features: Features) -> Absent | None:
    """Memory on the GPUs grows while weights arrive there, whatever the processes themselves show."""
    uses = any(isinstance(member.has_gpu, Known) and member.has_gpu.value for member in features.movers)
    moved = features.gpu_moved_bytes
    if uses and isinstance(moved, Known) and moved.value > NOISE_RSS_BYTES:
        return Absent(f"the memory in use on its GPUs changed by {moved.value / 2**20:,.1f} MiB")
    return None


def _gpu_work_unread(features: Features) -> Unread | None:
    for member in features.movers:
        if isinstance(member.has_gpu, Missing):
            return Unread.of(member.has_gpu, f"whether {name_of(member.process)} uses a GPU")
        if member.has_gpu.value and (unread := _kernels_unread(features)) is not None:
            return unread
    return None


def _kernels_unread(features: Features) -> Unread | None:
    """A GPU that runs kernels may be making progress that no reading here can show yet."""
    if isinstance(features.gpus, Missing):
        return Unread.of(features.gpus, "work on the GPU")
    if not features.gpus.value.devices:
        return Unread("work on the GPU that it has open: no GPU is visible from here")
    for gpu in features.gpus.value.devices:
        if isinstance(gpu.util_ratio, Missing):
            return Unread.of(gpu.util_ratio, f"work on GPU {gpu.index}")
        if gpu.util_ratio.value > 0:
            return Unread(f"GPU {gpu.index} runs kernels: whether they get anywhere is not read")
    return None


def nobody_died(case: Case) -> Outcome:
    """Excluding when present: a member is dead, which explains every wait better."""
    dead = the_dead(case.features)
    if dead:
        return Present(f"{name_of(dead[0])} is dead")
    for member in case.features.members.values():
        if is_vital(member.process, case.features) and isinstance(member.motion, Missing):
            return Unread.of(member.motion, f"whether {name_of(member.process)} is alive")
    return Absent("every member is alive")


def the_dead(features: Features) -> tuple[Process, ...]:
    """Return the vital members that ended while watched, or that are zombies: who died first comes first.

    Where the engine is not known only zombies: children that end and are reaped are a launch's daily life.
    """
    return tuple(death.process for death in _deaths(features))


def the_first_dead(features: Features) -> tuple[Process, ...]:
    """Return who died first: those who died later may have followed, or have been ended by the launcher."""
    deaths = _deaths(features)
    return tuple(death.process for death in deaths if death.died_at == deaths[0].died_at)


def _deaths(features: Features) -> tuple[Departure, ...]:
    if not features.members:
        return ()  # the launch ended as a whole: in order or not, nobody is left who waits for a dead one
    left = features.departed if is_server(features) else ()
    deaths = [death for death in (*left, *features.zombies) if is_vital(death.process, features)]
    return tuple(sorted(deaths, key=lambda death: (death.died_at, death.process.key)))


def is_server(features: Features) -> bool:
    """Tell whether the engine is a server that is known: its ranks never end, and how they idle is known.

    Elsewhere a rank that waits may be one that idles, and one that ended may have done its work. A worker without
    tasks beside a main thread that waits for the end looks from outside like a deadlock, and must not be called one.
    """
    return features.launch.engine in {"sglang", "vllm"}


def is_rank(process: Process, features: Features) -> bool:
    """Tell whether every collective of the launch has to wait for a process: in no known engine that is not known.

    torchrun's agent starts its ranks itself; what these fork for themselves has their environment, and their rank.
    """
    if features.launch.engine != "torchrun":
        return is_server(features) and is_vital(process, features)
    agents = {member.key.pid for member in features.members.values() if member.process.role == "launcher"}
    return process.role == "worker" and process.ppid in agents


def is_vital(process: Process, features: Features) -> bool:
    """Tell whether a launch that lost this process cannot go on.

    Rule: launcher, schedulers, workers, detokenizer and routers; in a launch of no known engine every member that is
    no helper. Tokenizer workers, compilers and trackers come and go.
    """
    if features.launch.engine == "generic" and process.role == "other":
        return not is_tracker(process)
    return process.role in VITAL_ROLES


VITAL_ROLES = frozenset({"scheduler", "worker", "detokenizer", "launcher", "router"})
"""Roles that nobody else can take over."""


def is_zombie(member: Member) -> bool:
    """Tell whether a member has ended and nobody has reaped it."""
    return not isinstance(member.motion, Missing) and member.motion.value.is_zombie


def silence_outlasts_patience(features: Features) -> Outcome:
    """The launch has shown no progress for longer than its phase may.

    Counts from the oldest proof, not from attaching (see features.patience). Missing whenever a member's phase is
    unread, because another phase may have more patience.
    """
    if any(isinstance(member.main, Missing) for member in features.movers):
        return Unread("which phase each rank is in: a stack is missing")
    if isinstance(features.log, Known) and not features.log.value.until_known:
        return Unread("nothing tells until when its log stayed as it is")
    spent, patience = no_progress_s(features), patience_s(features)
    if isinstance(spent, Missing):
        return Unread.of(spent, "since when the launch is silent")
    if isinstance(patience, Missing):
        return Unread.of(patience, "how long it may be silent")
    if spent.value >= patience.value:
        return Present(f"{_proof(features, spent.value)}; this phase may take {patience.value:,.0f} s")
    return Unread(f"silent for {spent.value:,.0f} s, and this phase may be silent for {patience.value:,.0f} s")


def _proof(features: Features, spent_s: float) -> str:
    if isinstance(features.log, Known) and features.log.value.silent_s >= spent_s:
        return f"its log has been silent for {spent_s:,.0f} s"
    return f"the totals of every rank have stood for {spent_s:,.0f} s"


def positive_or_patience(positive: Sign) -> Sign:
    """Before a phase's patience ends only positive evidence makes a hang; after it, silence will do."""

    def sign(case: Case) -> Outcome:
        outcome = positive(case)
        if isinstance(outcome, Present):
            return outcome
        patience = silence_outlasts_patience(case.features)
        if isinstance(patience, Present):
            return patience
        return Unread(f"{outcome.because}; {patience.because}")

    claim = (positive.__doc__ or "").partition("\n")[0]
    sign.__doc__ = f"{claim} Or the silence outlasts the phase's patience."
    return sign


def log_is_silent_too_long(case: Case) -> Outcome:
    """Supporting: the silence alone outlasts the phase's patience."""
    outcome = silence_outlasts_patience(case.features)
    return outcome if isinstance(outcome, Present) else Absent(outcome.because)


def does(*wanted: Activity) -> Sign:
    """Return the sign that the suspect works, spins, stirs or stays still."""

    def sign(case: Case) -> Outcome:
        done = activity(case.patient)
        if isinstance(done, Missing):
            return Unread.of(done, f"what {name_of(case.patient.process)} does")
        sentence = f"{name_of(case.patient.process)} {describe(done.value)}"
        return Present(sentence) if done.value in wanted else Absent(sentence)

    sign.__doc__ = f"It {' or '.join(describe(one) for one in wanted)}."
    return sign


def describe(done: Activity) -> str:
    """Return a member's activity as the end of a sentence."""
    return {
        "works": "shows work",
        "spins": "burns CPU without any outside sign of work",
        "stirs": "wakes now and then without any outside sign of work",
        "still": "stands still: none of its working threads ran",
    }[done]


def main_thread(test: Callable[[ThreadHistory], bool], yes: str, no: str) -> Sign:
    """Return the sign that a test holds for the suspect's main thread."""

    def sign(case: Case) -> Outcome:
        main = case.patient.main
        if isinstance(main, Missing):
            return Unread.of(main, f"stack of {name_of(case.patient.process)}")
        sentence = f"{name_of(case.patient.process)} {yes if test(main.value) else no}: {where(main.value)}"
        return Present(sentence) if test(main.value) else Absent(sentence)

    sign.__doc__ = f"Its main thread {yes}."
    return sign
