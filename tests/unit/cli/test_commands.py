"""The commands as a person or a script meets them."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hangdoc import __version__
from tests.unit.cli.commands import (
    LONGEST_S,
    PROGRAM,
    SPINS,
    WAITS,
    argv,
    environment,
    program,
    python,
    rounds_in,
    run,
    start,
    wait_until,
)

SAME_AS_LIVE = ("verdict", "grade", "phase", "culprits", "hypotheses", "waits")


@pytest.fixture(scope="module")
def spinning(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], int, Path]:
    """One look at a program that spins: the document, the code and the trace."""
    trace = tmp_path_factory.mktemp("spins") / "a.hangtrace"
    with program(*python(SPINS)) as patient:
        ended = run("watch", str(patient.pid), "--once", "--json", "--record", str(trace))
    return json.loads(ended.out), ended.code, trace


def test_version() -> None:
    """--version says which hangdoc this is."""
    assert run("--version").out == f"hangdoc {__version__}\n"


def test_python_m_hangdoc() -> None:
    """`python -m hangdoc` is the command line too, where its script is not on PATH."""
    command = [sys.executable, "-m", "hangdoc", "--version"]
    found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    assert found.stdout == f"hangdoc {__version__}\n"


def test_once(spinning: tuple[dict[str, Any], int, Path]) -> None:
    """A program that spins is busy-wait, and 1."""
    document, code, _ = spinning
    assert (document["verdict"], code) == ("busy-wait", 1)
    assert document["target"]["kind"] == "live"


def test_replay_equals_live(spinning: tuple[dict[str, Any], int, Path]) -> None:
    """Replay gives live's verdict, grade, phase and code, and the same bytes each time."""
    document, code, trace = spinning
    first, second = run("replay", str(trace), "--json"), run("replay", str(trace), "--json")
    assert first == second
    assert first.code == code
    replayed = json.loads(first.out)
    assert replayed["target"]["kind"] == "trace"
    assert [replayed[name] for name in ("verdict", "grade", "phase")] == [
        document[name] for name in ("verdict", "grade", "phase")
    ]
    assert [one["pid"] for one in replayed["culprits"]] == [one["pid"] for one in document["culprits"]]
    assert [(one["id"], one["grade"]) for one in replayed["hypotheses"]] == [
        (one["id"], one["grade"]) for one in document["hypotheses"]
    ]


def test_expect(spinning: tuple[dict[str, Any], int, Path], tmp_path: Path) -> None:
    """--expect changes nothing when it fits, and is 5 with the place when it does not."""
    _, code, trace = spinning
    fits, differs = tmp_path / "fits.toml", tmp_path / "differs.json"
    fits.write_text('verdict = "busy-wait"\n')
    differs.write_text('{"verdict": "healthy"}')
    assert run("replay", str(trace), "--expect", str(fits)).code == code
    ended = run("replay", str(trace), "--expect", str(differs))
    assert ended.code == 5
    assert ended.err == 'hangdoc: verdict: expected "healthy", found "busy-wait"\n'


def test_record(tmp_path: Path) -> None:
    """record says where the trace is and how long it is, and is 0 whatever the launch suffers from."""
    trace = tmp_path / "a.hangtrace"
    with program(*python(WAITS)) as patient:
        ended = run("record", str(patient.pid), "-o", str(trace), "--duration", "1", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert json.loads(ended.out) == {"trace": str(trace), "rounds": 2}
    assert trace.stat().st_mode & 0o777 == 0o600


def test_ctrl_c_reports_what_is_known(tmp_path: Path) -> None:
    """Ctrl-C during a look prints the report so far, and its code; the trace is whole."""
    trace = tmp_path / "a.hangtrace"
    with program(*python(WAITS)) as patient:
        looking = start(
            "watch",
            str(patient.pid),
            "--once",
            "--window",
            "600",
            "--max-window",
            "600",
            "--json",
            "--record",
            str(trace),
        )
        wait_until(lambda: rounds_in(trace) > 1)
        looking.send_signal(signal.SIGINT)
        out, err = looking.communicate(timeout=LONGEST_S)
    assert err == b""
    document = json.loads(out)
    assert document["window_s"] < 600
    assert looking.returncode == (3 if document["verdict"] == "undetermined" else looking.returncode)
    assert looking.returncode in (0, 1, 3)
    assert json.loads(run("replay", str(trace), "--json").out)["verdict"] == document["verdict"]


CROSSWISE = """
import threading
first, second, met = threading.Lock(), threading.Lock(), threading.Barrier(3)
def hold(own, other):
    with own:
        met.wait()
        with other:
            pass
threads = [threading.Thread(target=hold, args=pair) for pair in ((first, second), (second, first))]
for thread in threads:
    thread.start()
met.wait()
print("x", flush=True)
threads[0].join()
"""


def test_a_deadlock_within_one_program() -> None:
    """Two threads of a program of one process that hold each other's lock are both culprits."""
    with program(*python(CROSSWISE)) as patient:
        ended = run("watch", str(patient.pid), "--once", "--json")
    document = json.loads(ended.out)
    assert (document["verdict"], ended.code) == ("blocked", 1), document["headline"]
    assert len({culprit["tid"] for culprit in document["culprits"]} - {patient.pid}) == 2


def test_follow_until_hang() -> None:
    """Following prints a line at each change and ends with the whole report and 1 when it hangs."""
    with program(*python(SPINS)) as patient:
        ended = run("watch", str(patient.pid), "--until", "hang", "--timeout", "100")
    assert (ended.code, ended.err) == (1, "")
    lines = ended.out.splitlines()
    assert "busy-wait" in lines[0]
    assert any(line.startswith("BUSY-WAIT") for line in lines)


def test_follow_until_exit(tmp_path: Path) -> None:
    """As JSON following is one document a line; the last one is the end."""
    trace = tmp_path / "a.hangtrace"
    with program(*python(WAITS)) as patient:
        following = start("watch", str(patient.pid), "--until", "exit", "--json", "--record", str(trace))
        wait_until(lambda: rounds_in(trace) > 1)
        patient.kill()
        patient.wait()
        out, err = following.communicate(timeout=LONGEST_S)
    assert err == b""
    last = json.loads(out.splitlines()[-1])
    assert following.returncode == (1 if last["verdict"] == "crashed" else 0)


def test_probes() -> None:
    """probes lists every probe with what it can read, or with the reason and a remedy."""
    listed = json.loads(run("probes", "--json").out)
    names = [probe["name"] for probe in listed]
    assert {"cpu", "fds", "futex", "gpu", "progress", "stacks"} <= set(names)
    assert all(probe["can_read"] or (probe["reason"] and probe["remedy"]) for probe in listed)
    assert all(name in run("probes").out for name in names)


def test_explain() -> None:
    """A hypothesis is found by identifier and by name, whatever the case, and brings its playbook."""
    by_id, by_name = run("explain", "hd101"), run("explain", "python-busy-loop")
    assert by_id == by_name
    assert "## Confirm by hand" in by_id.out
    assert json.loads(run("explain", "HD101", "--json").out)["verdict"] == "busy-wait"
    assert "HD101" in run("explain").out


def test_explain_lists_by_identifier() -> None:
    """The list goes by identifier and says each verdict."""
    rows = [line.split() for line in run("explain").out.splitlines()]
    identifiers = [row[0] for row in rows if row[0].startswith("HD")]
    assert identifiers == sorted(identifiers)
    assert ["HD101", "python-busy-loop", "busy-wait"] in rows


def test_explain_names_the_nearest_identifiers() -> None:
    """An identifier that is none names those with the nearest numbers."""
    ended = run("explain", "HD102999")
    assert ended.code == 2
    nearest = max(row.split()[0] for row in run("explain").out.splitlines())
    assert nearest in ended.err


def test_explain_something_near() -> None:
    """A slip brings the nearest names, and 2."""
    ended = run("explain", "python-bussy-loop")
    assert ended.code == 2
    assert "Did you mean python-busy-loop" in ended.err


def on_a_terminal(*arguments: str, **env: str) -> str:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        argv(*arguments), stdin=subprocess.DEVNULL, stdout=theirs, env={**environment(), "TERM": "xterm", **env}
    )
    os.close(theirs)
    said = b""
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # EIO: the last holder of the other end has gone
            break
        said += piece
    os.close(ours)
    child.wait(LONGEST_S)
    return said.decode()


def test_colours_only_where_they_are_wanted() -> None:
    """A terminal gets styles; a pipe, NO_COLOR and --no-color get none at all."""
    assert "\x1b[" in on_a_terminal("probes")
    assert "\x1b" not in on_a_terminal("probes", "--no-color")
    assert "\x1b" not in on_a_terminal("probes", NO_COLOR="1")
    assert "\x1b" not in run("probes").out


def test_help_imports_little() -> None:
    """--help and the way to the first round wait neither for rich nor for the reasoning."""
    ended = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", PROGRAM, "--help"], capture_output=True, text=True, check=True
    )
    imported = {line.rsplit("|", 1)[-1].strip() for line in ended.stderr.splitlines()}
    assert "hangdoc.cli.main" in imported
    assert not {"rich.console", "msgspec", "psutil", "zstandard", "hangdoc.diagnosis"} & imported
