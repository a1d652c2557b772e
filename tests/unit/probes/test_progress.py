"""The progress probe on real processes."""

from __future__ import annotations

from hangdoc.model.reading import Known
from hangdoc.model.thread import ProcessIo, Progress
from hangdoc_probes import progress
from tests.unit.probes.targets import context, known, missing, process_of, round_of, running, take

WORKER = """
import subprocess
say("ready")
for word in sys.stdin:
    if word == "read\\n":
        with open("/dev/zero", "rb", buffering=0) as zeros: zeros.read(1 << 20)
    elif word == "touch\\n":
        kept = bytearray(8 << 20)
        for at in range(0, len(kept), 4096): kept[at] = 1
    elif word == "child\\n":
        subprocess.run([sys.executable, "-c", "sum(range(10**6))"])
    say("done")
"""


def taken(word: str) -> tuple[Progress, Progress]:
    with running(WORKER) as target:
        session = progress.PROBE.open(context())
        (before,) = session.take(round_of(target.process))
        assert target.tell(word) == "done"
        (after,) = session.take(round_of(target.process))
        session.close()
        return known(before, Progress), known(after, Progress)


def io(reading: Progress) -> ProcessIo:
    assert isinstance(reading.io, Known)
    return reading.io.value


def test_bytes_read_are_counted() -> None:
    """A megabyte read between two rounds shows as a megabyte and a call."""
    before, after = taken("read")
    assert io(after).rchar_bytes - io(before).rchar_bytes >= 1 << 20
    assert io(after).read_calls > io(before).read_calls


def test_memory_touched_shows_as_faults_and_resident_memory() -> None:
    """Eight megabytes touched are as many more resident, and page faults."""
    before, after = taken("touch")
    assert after.minor_faults > before.minor_faults
    assert after.rss_bytes - before.rss_bytes > 4 << 20


def test_work_of_an_ended_child_is_the_parents() -> None:
    """A child that was waited for adds its faults and its CPU time."""
    before, after = taken("child")
    assert after.child_minor_faults > before.child_minor_faults
    assert after.child_cpu_ticks > before.child_cpu_ticks


def test_another_process_with_the_same_pid_is_gone() -> None:
    """The totals of a pid that was given to another are not mixed with those of the member."""
    with running(WORKER) as target:
        (sample,) = take(progress.PROBE, process_of(target.pid, start_ticks=1))
        assert missing(sample).reason == "gone"
