"""`hangdoc regress`, as a person and as a CI job meet it."""

from __future__ import annotations

import json
import os
import pty
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.unit.cli.commands import LONGEST_S, REPOSITORY, argv, complaint, environment, run

GOLDEN = REPOSITORY / "tests" / "golden"
CASES = ("absent-barrier", "busy-warmup", "healthy-tp1-idle", "slow-read")
ENDINGS = (".hangtrace", ".expect.toml")


@pytest.fixture
def hangs(tmp_path: Path) -> Path:
    """Four recordings of real launches with what has to be said of them."""
    directory = tmp_path / "hangs"
    directory.mkdir()
    for name in CASES:
        for ending in ENDINGS:
            shutil.copy(GOLDEN / f"{name}{ending}", directory)
    return directory


def expect(directory: Path, name: str, text: str) -> None:
    (directory / f"{name}.expect.toml").write_text(text)


def test_all_as_expected(hangs: Path) -> None:
    """Code 0, and each trace has its row."""
    ended = run("regress", str(hangs))
    assert (ended.code, ended.err) == (0, "")
    assert [line.split()[0] for line in ended.out.splitlines()[1:5]] == list(CASES)
    assert ended.out.endswith("4 traces: 4 as expected\n")


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_a_difference_is_five_and_told_in_words(hangs: Path, jobs: str) -> None:
    """However many processes judge: the one that differs says what was expected and what was found."""
    expect(hangs, "absent-barrier", 'verdict = "healthy"\nculprits = []\ngrade_floor = "confirmed"\n')
    ended = run("regress", str(hangs), "--jobs", jobs, "--json")
    document = json.loads(ended.out)
    assert ended.code == 5
    assert (document["same"], document["differs"], document["unusable"]) == (3, 1, 0)
    (differing,) = [one for one in document["results"] if one["state"] == "differs"]
    assert differing["name"] == "absent-barrier"
    assert differing["lines"] == [
        'verdict: expected "healthy", found "blocked"',
        f"culprits: expected nobody, found scheduler TP1 (pid {culprit_of(hangs)})",
        'grade: expected at least "confirmed", found "likely"',
    ]


def culprit_of(hangs: Path) -> int:
    said = json.loads(run("replay", str(hangs / "absent-barrier.hangtrace"), "--json").out)
    return int(said["culprits"][0]["pid"])


def test_junit(hangs: Path, tmp_path: Path) -> None:
    """A difference is a failure, what cannot be judged an error, and the numbers are those of the cases."""
    expect(hangs, "slow-read", 'verdict = "hung"\n')
    (hangs / "busy-warmup.hangtrace").write_bytes(b"no trace")
    report = tmp_path / "hangs.xml"
    assert run("regress", str(hangs), "--junit", str(report)).code == 2
    (suite,) = ElementTree.parse(report).getroot()
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("4", "1", "1")
    said = {case.get("name"): [child.tag for child in case] for case in suite}
    assert said == {**{name: [] for name in CASES}, "slow-read": ["failure"], "busy-warmup": ["error"]}
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.text == 'verdict: expected "hung", found "slow-start"'


def test_a_report_that_cannot_be_written_is_two(hangs: Path, tmp_path: Path) -> None:
    """The junit file's path leads nowhere, or into a FIFO that nobody reads: one line, and no wait."""
    os.mkfifo(tmp_path / "fifo")
    assert "fifo cannot be written" in complaint(run("regress", str(hangs), "--junit", str(tmp_path / "fifo")))
    line = complaint(run("regress", str(hangs), "--junit", str(tmp_path / "absent" / "a.xml")))
    assert "a.xml cannot be written: No such file or directory" in line


@pytest.mark.parametrize(
    ("remove", "add", "said"),
    [
        ("slow-read.expect.toml", None, "slow-read.hangtrace has no .expect.toml beside it"),
        ("slow-read.hangtrace", None, "slow-read.expect.toml has no trace beside it"),
        (None, ("slow-read.hangtrace", "broken"), "slow-read.hangtrace is not a hangdoc trace"),
        (None, ("slow-read.expect.toml", 'verdikt = "hung"'), 'there is no field "verdikt" (verdict?)'),
        (None, ("slow-read.expect.toml", "verdict ="), "slow-read.expect.toml is no expectation"),
    ],
)
def test_what_cannot_be_judged_is_two(hangs: Path, remove: str | None, add: tuple[str, str] | None, said: str) -> None:
    """Each with one clear line of its own; the other traces are judged all the same."""
    if remove:
        (hangs / remove).unlink()
    if add:
        (hangs / add[0]).write_text(add[1])
    ended = run("regress", str(hangs), "--json")
    document = json.loads(ended.out)
    assert (ended.code, document["same"], document["unusable"]) == (2, 3, 1)
    ((line,),) = [one["lines"] for one in document["results"] if one["lines"]]
    assert said in line


def test_no_traces_is_wrong_use(tmp_path: Path) -> None:
    """An empty directory, none, a file: nothing was tested, so nothing passed."""
    file = tmp_path / "file"
    file.write_text("")
    (tmp_path / "empty").mkdir()
    for path, words in ((tmp_path / "empty", "has no traces"), (tmp_path / "x", "does not exist"), (file, "is no dir")):
        ended = run("regress", str(path))
        assert ended.code == 2
        assert words in complaint(ended)


def test_update_tells_the_change_and_needs_a_yes(hangs: Path) -> None:
    """Without a terminal nothing is written; with --yes it is, and the next run fits. Comments and other lines stay."""
    expect(hangs, "absent-barrier", '# why it is here\nverdict = "healthy"  \nphase = "weight-load"\nculprits = []\n')
    (hangs / "slow-read.expect.toml").unlink()
    before = (hangs / "absent-barrier.expect.toml").read_text()
    refused = run("regress", str(hangs), "--update")
    assert refused.code == 2
    assert 'verdict: no longer "healthy" but "blocked"' in refused.err
    assert "slow-read.expect.toml:\n  new: expects slow-start, " in refused.err
    assert "nobody can be asked" in refused.err
    assert (hangs / "absent-barrier.expect.toml").read_text() == before
    assert not (hangs / "slow-read.expect.toml").exists()

    assert run("regress", str(hangs), "--update", "--yes").code == 0
    after = (hangs / "absent-barrier.expect.toml").read_text()
    assert after.startswith('# why it is here\nverdict = "blocked"\nphase = "weight-load"\nculprits = [{ pid = ')
    assert run("regress", str(hangs)).code == 0
    assert sorted(path.name for path in hangs.iterdir()) == sorted(f"{name}{end}" for name in CASES for end in ENDINGS)


def test_update_keeps_what_an_expectation_spoke_of(hangs: Path) -> None:
    """Of a list of culprits its keys, of a floor a lower one, of what has to be ruled out what still is."""
    text = 'grade_floor = "confirmed"\nculprits = [{ role = "worker" }]\nruled_out = ["member-died", "HD202"]\n'
    expect(hangs, "absent-barrier", text)
    assert run("regress", str(hangs), "--update", "--yes").code == 0
    assert (hangs / "absent-barrier.expect.toml").read_text() == (
        'grade_floor = "likely"\nculprits = [{ role = "scheduler" }]\nruled_out = ["member-died"]\n'
    )


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 2)])
def test_update_asks_at_a_terminal(hangs: Path, answer: str, code: int) -> None:
    """Yes writes; anything else is a declined question."""
    expect(hangs, "slow-read", 'verdict = "hung"\n')
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    ended = subprocess.run(
        argv("regress", str(hangs), "--update", "--no-color"),
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env=environment(),
        timeout=LONGEST_S,
        check=False,
    )
    os.close(theirs)
    os.close(ours)
    assert ended.returncode == code
    assert ("hung" in (hangs / "slow-read.expect.toml").read_text()) == (code != 0)


BREAK = """
import sys
from dataclasses import replace
from hangdoc.criteria import Absent
from hangdoc.hypotheses import blocked_in_host_collective as broken
broken.HYPOTHESIS = replace(broken.HYPOTHESIS, essential=(lambda case: Absent("broken on purpose"),))
from hangdoc.cli.main import run
sys.exit(run(sys.argv[1:]))
"""


def test_a_hypothesis_broken_on_purpose_is_noticed(hangs: Path) -> None:
    """The case that rests on it fails, in words, and no other."""
    command = [sys.executable, "-c", BREAK, "regress", str(hangs), "--json"]
    ended = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=LONGEST_S, check=False)
    assert ended.returncode == 5
    differing = {one["name"]: one["lines"] for one in json.loads(ended.stdout)["results"] if one["state"] == "differs"}
    assert list(differing) == ["absent-barrier"]
    assert 'verdict: expected "blocked", found "undetermined"' in differing["absent-barrier"]
