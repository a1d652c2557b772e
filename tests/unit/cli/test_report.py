"""`hangdoc report` and `hangdoc watch --once --html`, as a person meets them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hangdoc.observe.replay import read_trace
from hangdoc.report.material import UNREDACTED
from hangdoc.trace.writer import encode
from tests.unit.cli.commands import SPINS, complaint, program, python, run
from tests.unit.report.recordings import GOLDEN, planted

KEY = "-sk-abcdefghijkmnopqrstuvwx12"
STUCK = GOLDEN / "busy-init.hangtrace"


def test_a_page_and_an_issue_at_once(tmp_path: Path) -> None:
    """--html writes the file and says so, --markdown prints; the code is that of the diagnosis."""
    page = tmp_path / "stuck.html"
    ended = run("report", str(STUCK), "--html", str(page), "--markdown")
    assert ended.code == 1
    assert ended.out.startswith("### Checklist\n")
    assert f"{page} is written" in ended.err
    assert page.read_text().startswith("<!DOCTYPE html>\n<html")


def test_an_old_page_is_replaced_whole(tmp_path: Path) -> None:
    """A longer file of that name leaves nothing behind."""
    page = tmp_path / "page.html"
    page.write_text("x" * 1_000_000)
    assert run("report", str(STUCK), "--html", str(page), "--json").code == 1
    assert page.read_text().endswith("</html>\n")


def test_the_document_beside_the_page(tmp_path: Path) -> None:
    """--json prints the document of the contract."""
    ended = run("report", str(STUCK), "--html", str(tmp_path / "page.html"), "--json")
    assert json.loads(ended.out)["verdict"] == "busy-wait"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "say which report"),
        (["--markdown", "--json"], "all go to standard output"),
        (["--html", "-", "--markdown"], "all go to standard output"),
        (["--html", "/nowhere/page.html"], "cannot be written"),
    ],
)
def test_wrong_use(arguments: list[str], says: str) -> None:
    """One line that says what to do, exit 2."""
    ended = run("report", str(STUCK), *arguments)
    assert ended.code == 2
    assert says in complaint(ended)


def test_what_is_no_trace_leaves_no_page(tmp_path: Path) -> None:
    """Nothing half done stays, and an older page stays as it was."""
    log, page, old = tmp_path / "server.log", tmp_path / "new.html", tmp_path / "old.html"
    log.write_text("no trace\n")
    old.write_text("old")
    for target in (page, old):
        ended = run("report", str(log), "--html", str(target))
        assert ended.code == 2
        assert "is not a hangdoc trace" in complaint(ended)
    assert not page.exists()
    assert old.read_text() == "old"


def test_names_are_tokens_unless_asked(tmp_path: Path) -> None:
    """An unredacted trace gives a redacted report; with --no-redact it has the names, and says so."""
    trace = tmp_path / "named.hangtrace"
    trace.write_bytes(encode(planted(read_trace(STUCK), KEY)))
    redacted = run("report", str(trace), "--markdown")
    kept = run("report", str(trace), "--markdown", "--no-redact")
    assert KEY not in redacted.out
    assert KEY in kept.out
    assert UNREDACTED in kept.out
    assert UNREDACTED not in redacted.out


def test_reports_of_a_watch_go_with_once() -> None:
    """Following ends with a report of its own."""
    for option in (["--html", "x.html"], ["--markdown"]):
        ended = run("watch", "1", *option)
        assert ended.code == 2
        assert "go with --once" in complaint(ended)


def test_a_page_of_a_live_launch(tmp_path: Path) -> None:
    """One look gives the report here, and a redacted page; Markdown takes the place of the report."""
    page = tmp_path / "page.html"
    with program(*python(SPINS)) as child:
        once = ("watch", str(child.pid), "--once", "--window", "3", "--max-window", "3")
        ended = run(*once, "--html", str(page))
        issue = run(*once, "--markdown", "--no-redact")
    assert f"pid {child.pid} on " in ended.out
    assert "Who waits for whom" in page.read_text()
    assert UNREDACTED not in page.read_text()
    assert issue.out.startswith("### Describe the bug\n")
    assert UNREDACTED in issue.out
    assert ended.code == issue.code


def test_what_takes_no_page(tmp_path: Path) -> None:
    """A FIFO that nobody reads is no wait, a full disk no traceback: one line each, exit 2."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    for target in (str(fifo), "/dev/full"):
        ended = run("report", str(STUCK), "--html", target)
        assert ended.code == 2
        assert f"{target} cannot be written" in complaint(ended)
