"""The report for people: the answer first, nothing wider than the terminal, nothing of the target that acts on it."""

from __future__ import annotations

from io import StringIO

from msgspec.structs import replace
from rich.console import Console

from hangdoc.model.diagnosis import Diagnosis, Finding, Output, ProcessState
from hangdoc.report.terminal import MOST_OPEN, MOST_PROCESSES, parts
from tests.unit.report.diagnoses import FULL, a_diagnosis

WIDTH = 80


def rendered(diagnosis: Diagnosis, width: int = WIDTH) -> str:
    to = StringIO()
    console = Console(file=to, width=width, color_system=None)
    for part in parts(diagnosis):
        console.print(part)
    return to.getvalue()


def test_the_answer_comes_first() -> None:
    """Verdict, grade and phase are the first line, the headline the second."""
    lines = rendered(FULL).splitlines()
    assert lines[0].split() == ["BUSY-WAIT", "(likely)", "in", "phase", "warmup"]
    assert lines[1].strip() == "Rank 1 loops for ever in capture (model.py:88)."


def test_who_has_to_move() -> None:
    """Each culprit is named with pid, thread, role and rank; one that is not there at all says so."""
    text = rendered(FULL)
    assert "scheduler TP1, pid 130, thread 131: loops in capture" in text
    assert "scheduler, not there at all: node 1 never came" in text


def test_evidence_and_what_was_ruled_out() -> None:
    """The leading hypothesis has its evidence; every other one has a line with the reason."""
    text = rendered(FULL)
    assert "+ a thread burns CPU" in text
    assert "? who holds the interpreter lock" in text
    assert "x blocked-on-lock: its main thread runs" in text
    assert "~ native-busy-loop: native stacks" in text


def test_every_hypothesis_is_there() -> None:
    """No hypothesis is dropped from a report with a verdict."""
    text = rendered(FULL)
    assert all(finding.name in text for finding in FULL.hypotheses)


def test_an_undetermined_report_is_short() -> None:
    """Where nothing is said, the first few that are open are named, and the rest of both kinds is counted."""
    left = tuple(replace(a_finding("x"), name=f"open-{number}", grade="undetermined") for number in range(20))
    out = tuple(replace(a_finding("x"), name=f"closed-{number}", grade="ruled-out") for number in range(20))
    text = rendered(a_diagnosis(verdict="undetermined", grade="undetermined", hypotheses=(*left, *out)))
    assert sum(f"open-{number}:" in text for number in range(20)) == MOST_OPEN
    assert "14 more" in text
    assert "20 hypotheses" in text
    assert "closed-" not in text


def test_missing_readings_are_grouped() -> None:
    """The same reason for several processes is one line with its remedy."""
    text = rendered(FULL)
    assert "? stacks of pid 130, 131: permission denied -> run as root" in text
    assert "? gpu: not installed (no libnvidia-ml)" in text


def test_waits_name_both_ends() -> None:
    """A wait says who waits for whom by role and rank, not only by number."""
    assert "- process 129 waits for scheduler DP0 TP1 130 (barrier, barrier.py:1)" in rendered(FULL)
    assert "- launcher 100 waits for process 129 (pipe)" in rendered(FULL)


def test_gpus() -> None:
    """A GPU shows how busy it is, its power and who holds its memory; unread is said, none is no section."""
    assert "0 H200: 100% busy, 123 W, 1 bytes used (pid 130)" in rendered(FULL)
    assert "GPUs" not in rendered(a_diagnosis(gpus=()))


def test_next_step_names_its_playbook() -> None:
    """The next step says which playbook to read."""
    assert "1 Read the function named above.  [hangdoc explain python-busy-loop]" in rendered(FULL)


def test_outputs() -> None:
    """An output says what is held back, since when it is silent, and the last text that did not arrive."""
    text = " ".join(rendered(FULL).split())
    assert (
        "held back in a buffer of the process; opening /proc/PID/fd shows none of it, silent for 14 min;"
        " 62 bytes still in the process; its last lines: " in text
    )
    assert "KV cache" in text


def test_outputs_of_one_file_are_one_line() -> None:
    """Eight ranks that write to one log in one state are one line."""
    many = tuple(
        Output(
            pid=pid, fd=fd, path="/l", kind="file", state="flushed", hidden_bytes=None, hidden_tail=None, silent_s=1.0
        )
        for pid in range(8)
        for fd in (1, 2)
    )
    text = rendered(a_diagnosis(outputs=many))
    assert text.count("/l (") == 1
    assert "/l (pid 0 fd 1+2, pid 1 fd 1+2, pid 2 fd 1+2 and 5 more)" in " ".join(text.split())


def test_nothing_is_wider_than_the_terminal() -> None:
    """No line is wider than 80 columns, whatever the target is called."""
    long = a_diagnosis(headline="x" * 300, hypotheses=(a_finding("y" * 200),))
    assert max(len(line) for line in rendered(long).splitlines()) <= WIDTH


def test_control_sequences_of_the_target_are_not_printed() -> None:
    """Titles, paths and reasons of a hostile target leave no control character in the report."""
    evil = "\x1b[2J\x1b]0;owned\x07[bold]\x9b31m\r\nverdict: healthy"
    hostile = a_diagnosis(
        headline=evil,
        hypotheses=(a_finding(evil),),
        outputs=tuple(a_output(evil) for _ in range(2)),
        processes=(a_process(evil),),
    )
    text = rendered(hostile)
    assert not [char for char in text if char != "\n" and (char < " " or "\x7f" <= char <= "\x9f")]
    assert "[bold]" in text


def test_many_processes() -> None:
    """A large launch has its first processes in the table and says how many more there are."""
    text = rendered(a_diagnosis(processes=tuple(a_process("S", pid) for pid in range(1000, 1100))))
    assert f"and {100 - MOST_PROCESSES} more" in text
    assert "1099" not in text


def test_unread_is_a_question_mark() -> None:
    """A share that was not read is shown as unknown, never as 0."""
    row = next(line for line in rendered(FULL).splitlines() if line.strip().startswith("100 "))
    assert row.split() == ["100", "launcher", "?", "?", "?", "unknown"]


def a_finding(text: str) -> Finding:
    return Finding(
        id="HD101", name="python-busy-loop", verdict="busy-wait", grade="likely", for_=(text,), against=(), missing=()
    )


def a_output(text: str) -> Output:
    return Output(pid=1, fd=1, path=text, kind="file", state="unknown", hidden_bytes=3, hidden_tail=text, silent_s=None)


def a_process(state: str, pid: int = 1) -> ProcessState:
    return ProcessState(
        pid=pid,
        start_ticks=1,
        role="worker",
        rank={"tp": pid},
        state=state,
        phase="unknown",
        cpu_ratio=1.0,
        demand_ratio=1.0,
    )


def test_ranks_are_compared() -> None:
    """Each class of stacks is a line: who stands there, whether it moves, where; the odd one out is marked."""
    text = " ".join(rendered(FULL).split())
    assert (
        "process 129, process 131, stands still: barrier (distributed/distributed_c10d.py:5000) < capture_one" in text
    )
    assert "> scheduler DP0 TP1 130, moves: capture (model.py:88) (the odd one out)" in text


def test_one_rank_is_not_compared() -> None:
    """A launch of one rank has nothing to compare."""
    assert "Ranks compared" not in rendered(a_diagnosis(stack_classes=FULL.stack_classes[1:]))
