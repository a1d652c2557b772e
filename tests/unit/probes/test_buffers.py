"""The buffers probe on CPython: what is in the file and what it finds are together what was printed, byte for byte."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from hangdoc.model.reading import Known, Missing
from hangdoc_probes import buffers
from tests.unit.probes.printers import PYTHONS, buffers_of, printing, program, python_at, python_texts
from tests.unit.probes.targets import process_of, take

WHOLE = 1 << 20
LINES = "".join(f"line {number}\n" for number in range(700))
WORDS = "é 漢字 😀 ß\n"


@dataclass(frozen=True)
class Print:
    """A program and what it printed to descriptors 1 and 2; options: of the interpreter."""

    code: str
    out: bytes = b""
    err: bytes = b""
    options: tuple[str, ...] = ()
    replaced_by: str = ""


TEE = """
class Tee:
    def __init__(self, below): self.below = below
    def write(self, text): return self.below.write(text)
    def flush(self): pass
"""

PRINTS = {
    "62 bytes": Print("print('x' * 61)", b"x" * 61 + b"\n"),
    "7 KB in lines": Print("for number in range(700): print('line', number)", LINES.encode()),
    "20 KB, of which some arrived": Print("for number in range(2100): print('line', number % 700)", LINES.encode() * 3),
    "one text of 100 KB and a little": Print("print('x' * 100_000); print('end')", b"x" * 100_000 + b"\nend\n"),
    "non-ASCII": Print(f"for _ in range(40): print({WORDS[:-1]!r})", WORDS.encode() * 40),
    "ASCII and non-ASCII in turn": Print(f"print('a'); print({WORDS[:-1]!r}); print('b')", f"a\n{WORDS}b\n".encode()),
    "no line feed": Print("sys.stdout.write('Loading')", b"Loading"),
    "an empty text": Print("sys.stdout.write('')"),
    "zero bytes and escapes": Print(r"print('\0\x1b[31m\0')", b"\0\x1b[31m\0\n"),
    "a subclass of str": Print("class S(str): pass\nprint('é' + S('x') + '\\u00e9')", "éxé\n".encode()),
    "nothing": Print("pass"),
    "flushed": Print("print('x' * 61, flush=True)", b"x" * 61 + b"\n"),
    "flushed, then more": Print("print('x', flush=True); print('y')", b"x\ny\n"),
    "-u": Print("print('x' * 61)", b"x" * 61 + b"\n", options=("-u",)),
    "-u without a line feed": Print("sys.stdout.write('x' * 61)", b"x" * 61, options=("-u",)),
    "binary": Print(r"sys.stdout.buffer.write(b'\xff\0\x80' * 99)", b"\xff\0\x80" * 99),
    "text, binary, text": Print(
        r"print('a'); sys.stdout.flush(); sys.stdout.buffer.write(b'\xfe'); print('b')", b"a\n\xfeb\n"
    ),
    "binary larger than the buffer": Print("sys.stdout.buffer.write(b'xyz' * 9000)", b"xyz" * 9000),
    "a partial line on stderr": Print("print('a'); sys.stderr.write('50% of')", b"a\n", b"50% of"),
    "a Tee": Print(TEE + "sys.stdout = Tee(sys.stdout); print('x' * 61)", b"x" * 61 + b"\n", replaced_by="Tee"),
    "a StringIO": Print("print('a'); sys.stdout = io.StringIO(); print('b')", b"a\n", replaced_by="_io.StringIO"),
    "wrapped a second time": Print(
        "print('a', flush=True); sys.stdout = io.TextIOWrapper(sys.stdout.buffer); print('b')", b"a\nb\n"
    ),
    "detached": Print("sys.stdout = io.TextIOWrapper(sys.stdout.detach()); print('b')", b"b\n"),
    "both into one": Print("sys.stderr = sys.stdout; print('a'); print('b', file=sys.stderr)", b"a\nb\n"),
    "opened anew": Print("sys.stdout = open(1, 'w', closefd=False, buffering=99); print('b')", b"b\n"),
    "opened a second time": Print("print('a'); again = open(1, 'w', closefd=False); again.write('hid')", b"a\nhid"),
    "line buffered": Print("sys.stdout.reconfigure(line_buffering=True); print('a'); print('b', end='')", b"a\nb"),
    "none": Print("print('a'); sys.stdout = None; print('b')", b"a\n"),
}


@pytest.fixture(params=PYTHONS, ids=list(PYTHONS))
def python(request: pytest.FixtureRequest) -> str:
    return python_at(PYTHONS[request.param])


@pytest.mark.parametrize("name", PRINTS)
def test_file_and_hidden_text_are_all_that_was_printed(
    name: str, python: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What arrived and what is hidden are together what was printed; nothing is there twice, nothing is missing."""
    monkeypatch.setattr(buffers, "TAIL_CHARACTERS", WHOLE)
    wanted = PRINTS[name]
    with printing([python, *wanted.options, "-c", program(wanted.code)], tmp_path) as printer:
        found = buffers_of(printer.pid).python
        assert isinstance(found, Known), found
        for fd, printed in ((1, wanted.out), (2, wanted.err)):
            arrived = printer.arrived(fd)
            hidden = [text for text in found.value if text.fd == fd]
            assert printed.startswith(arrived)
            assert sum(text.size_bytes for text in hidden) == len(printed) - len(arrived)
            assert "".join(text.tail for text in hidden) == printed[len(arrived) :].decode("utf-8", "replace")
        assert {text.replaced_by for text in found.value if text.stream == "stdout"} <= {wanted.replaced_by}


def test_hidden_means_hidden(python: str, tmp_path: Path) -> None:
    """The file is empty while 62 bytes wait, also when it is opened through the process's own descriptor."""
    with printing([python, "-c", program("print('x' * 61)")], tmp_path) as printer:
        assert python_texts(printer.pid)[1].size_bytes == 62
        assert Path(f"/proc/{printer.pid}/fd/1").read_bytes() == b""


def test_python_unbuffered_by_its_environment(python: str, tmp_path: Path) -> None:
    """With PYTHONUNBUFFERED nothing is hidden, and that is a reading."""
    command = [python, "-c", program("print('x' * 61)")]
    with printing(command, tmp_path, {"PYTHONUNBUFFERED": "1"}) as printer:
        assert python_texts(printer.pid)[1].size_bytes == 0
        assert printer.arrived(1) == b"x" * 61 + b"\n"


def test_a_buffer_of_two_megabytes(python: str, tmp_path: Path) -> None:
    """Its size is exact and its tail is there, though not all of it is read."""
    code = "log = open(1, 'wb', buffering=3_000_000, closefd=False); log.write(b'x' * 2_400_000 + b'end')"
    with printing([python, "-c", program(code)], tmp_path) as printer:
        found = buffers_of(printer.pid).python
        assert isinstance(found, Known)
        (hidden,) = (text for text in found.value if text.fd == 1 and text.size_bytes)
        assert (hidden.size_bytes, hidden.tail[-5:]) == (2_400_003, "xxend")


LOG = """
log = open(os.environ['LOG'], 'w'); log.write('pending'); lines = io.StringIO(); lines.write('not a file')
whole = open(os.environ['LOG'] + '2', 'wb'); whole.write(b'bytes')
done = open(os.environ['LOG'] + '3', 'w'); done.write('written'); done.flush()
"""


def test_files_that_the_program_has_opened(python: str, tmp_path: Path) -> None:
    """Text and bytes that wait for a log file are found by its descriptor; a file that has everything is left out."""
    with printing([python, "-c", program(LOG)], tmp_path, {"LOG": str(tmp_path / "log")}) as printer:
        found = buffers_of(printer.pid)
        assert isinstance(found.python, Known)
        assert found.unsearched is None
        files = [text for text in found.python.value if text.stream == "file"]
        told = {Path(f"/proc/{printer.pid}/fd/{text.fd}").readlink().name: text.tail for text in files}
        assert told == {"log": "pending", "log2": "bytes"}


def test_a_python_whose_objects_lie_elsewhere_is_not_searched(python: str, tmp_path: Path) -> None:
    """With PYTHONMALLOC=malloc other writers cannot be found: that is said, and what sys holds is read all the same."""
    command = [python, "-c", program("print('x' * 61)")]
    with printing(command, tmp_path, {"PYTHONMALLOC": "malloc"}) as printer:
        found = buffers_of(printer.pid)
        assert isinstance(found.unsearched, Missing)
        assert python_texts(printer.pid)[1].size_bytes == 62


def test_only_the_last_characters_are_kept(python: str, tmp_path: Path) -> None:
    """Of 7 KB the size is exact, and the tail is the last 2,000 characters."""
    with printing([python, "-c", program(PRINTS["7 KB in lines"].code)], tmp_path) as printer:
        (hidden,) = (text for text in python_texts(printer.pid).values() if text.fd == 1)
        assert (hidden.size_bytes, hidden.tail) == (len(LINES), LINES[-2000:])


FULL_SPEED = """
import threading
enough = threading.Event()
def wait():
    os.read(int(os.environ['HEAR']), 1)
    enough.set()
threading.Thread(target=wait, daemon=True).start()
os.write(int(os.environ['SAY']), b'.')
number = 0
while not enough.is_set():
    print('line', number, 'é' if number % 3 == 0 else '')
    number += 1
"""


def test_a_process_that_prints_at_full_speed(python: str, tmp_path: Path) -> None:
    """Every reading is missing or a piece of what it printed in the end, in one stretch."""
    with printing([python, "-c", "import os\n" + FULL_SPEED], tmp_path) as printer:
        readings = [buffers_of(printer.pid).python for _ in range(25)]
        printer.let_go()
        assert printer.child.wait() == 0
        printed = printer.arrived(1).decode()
    for reading in readings:
        if isinstance(reading, Missing):
            assert reading.reason == "failed"
            continue
        (hidden,) = (text for text in reading.value if text.fd == 1)
        assert hidden.tail in printed


def test_a_python_whose_objects_are_not_known(tmp_path: Path) -> None:
    """3.8 has streams much like these, but nobody proved it: the reading is missing, and the C library's is not."""
    old = python_at(PYTHONS["cpython-3.9.18"].parents[2] / "3.8.18" / "bin" / "python3")
    with printing([old, "-c", program("print('x')")], tmp_path) as printer:
        found = buffers_of(printer.pid)
    assert isinstance(found.python, Missing)
    assert found.python.reason == "unsupported"
    assert found.c == Known(())


def test_rounds_that_are_not_thorough_read_nothing(python: str, tmp_path: Path) -> None:
    """Memory is read in thorough rounds only."""
    with printing([python, "-c", program("pass")], tmp_path) as printer:
        assert take(buffers.PROBE, process_of(printer.pid), thorough=False) == []
