"""The buffers probe on C and C++ programs: what the C library's streams hold back."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hangdoc.model.reading import Known, Missing
from tests.conftest import NOT_TO_BE_HAD
from tests.unit.probes.printers import Printer, buffers_of, c_texts, printing, program, python_texts

WAITS = """
static void said(void) {
    char word;
    if (write(atoi(getenv("SAY")), ".", 1) != 1 || read(atoi(getenv("HEAR")), &word, 1) < 0) exit(1);
}
"""
C = "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n#include <wchar.h>\n" + WAITS
CPP = "#include <iostream>\n#include <cstdlib>\n#include <unistd.h>\n" + WAITS

TEXT = "C-side text not flushed 42"
PRINTS = {
    "a partial buffer": ('printf("C-side text not flushed %d", 42);', TEXT),
    "a buffer that was flushed": ('printf("%s", "x"); fflush(stdout);', "x"),
    "more than a buffer": (
        'for (int i = 0; i < 999; i++) printf("line %d\\n", i);',
        "".join(f"line {i}\n" for i in range(999)),
    ),
    "unbuffered": ('setvbuf(stdout, NULL, _IONBF, 0); printf("x");', "x"),
    "a buffer of its own": ('static char own[99]; setvbuf(stdout, own, _IOFBF, 99); printf("%s", "xyz");', "xyz"),
}


def compiled(source: str, folder: Path, *options: str, compiler: str = "cc", suffix: str = "c") -> str:
    file, made = folder / f"program.{suffix}", folder / "program"
    file.write_text(source)
    subprocess.run([compiler, *options, "-o", made, file], check=True)
    return str(made)


@pytest.mark.needs("cc")
@pytest.mark.parametrize("name", PRINTS)
@pytest.mark.parametrize("options", [("-pie", "-fPIE"), ("-no-pie",)], ids=["pie", "no-pie"])
def test_a_c_program(name: str, options: tuple[str, ...], tmp_path: Path) -> None:
    """What arrived and what stdio holds are together what was printed; a program without Python has no such streams."""
    body, printed = PRINTS[name]
    with printing([compiled(f"{C}int main(void) {{ {body} said(); }}", tmp_path, *options)], tmp_path) as printer:
        assert buffers_of(printer.pid).python == Known(())
        check(printer, printed)


def check(printer: Printer, printed: str) -> None:
    arrived = printer.arrived(1).decode()
    hidden = c_texts(printer.pid)[1]
    assert hidden.stream == "c-stdout"
    assert hidden.size_bytes == len(printed) - len(arrived)
    assert arrived + hidden.tail == printed


@pytest.mark.needs("c++")
def test_a_cpp_program(tmp_path: Path) -> None:
    """std::cout goes through stdio as long as nobody asked for the opposite."""
    source = f'{CPP}int main() {{ std::cout << "hidden " << 42; said(); }}'
    with printing([compiled(source, tmp_path, compiler="c++", suffix="cpp")], tmp_path) as printer:
        check(printer, "hidden 42")


@pytest.mark.needs("c++")
def test_a_cpp_program_with_buffers_of_its_own(tmp_path: Path) -> None:
    """Not synchronised with stdio, std::cout cannot be read: then nothing is claimed of descriptor 1."""
    body = 'std::ios::sync_with_stdio(false); std::cout << "hidden"; said();'
    with printing([compiled(f"{CPP}int main() {{ {body} }}", tmp_path, compiler="c++", suffix="cpp")], tmp_path) as it:
        assert it.arrived(1) == b""
        assert buffers_of(it.pid).c == Known(())


@pytest.mark.needs("cc")
def test_other_files_with_text(tmp_path: Path) -> None:
    """A log that the program writes through stdio is there with its descriptor, if it holds anything."""
    body = 'FILE *log = fopen("log", "w"), *done = fopen("done", "w"); fputs("tail", log); (void)done; said();'
    made = compiled(f'{C}int main(void) {{ if (chdir("{tmp_path}")) return 1; {body} }}', tmp_path)
    with printing([made], tmp_path) as printer:
        (text,) = c_texts(printer.pid).values()
        assert (text.stream, text.size_bytes, text.tail) == ("file", 4, "tail")
        assert Path(f"/proc/{printer.pid}/fd/{text.fd}").readlink() == tmp_path / "log"


@pytest.mark.needs("cc")
def test_wide_characters(tmp_path: Path) -> None:
    """Text of wide characters is not what will be written: missing, not guessed."""
    made = compiled(f'{C}int main(void) {{ wprintf(L"wide"); said(); }}', tmp_path)
    with printing([made], tmp_path) as printer:
        found = buffers_of(printer.pid).c
        assert isinstance(found, Missing)
        assert found.reason == "unsupported"


@pytest.mark.needs("cc")
def test_a_static_program(tmp_path: Path) -> None:
    """A program that carries its C library inside does not say where its streams are."""
    try:
        made = compiled(f'{C}int main(void) {{ printf("x"); said(); }}', tmp_path, "-static")
    except subprocess.CalledProcessError:
        pytest.skip(f"{NOT_TO_BE_HAD}no static C library")
    with printing([made], tmp_path) as printer:
        found = buffers_of(printer.pid)
        assert isinstance(found.c, Missing)
        assert found.c.reason == "unsupported"
        assert found.python == Known(())


@pytest.mark.needs("cc")
def test_a_program_that_was_deleted(tmp_path: Path) -> None:
    """What runs is read, not the file it came from."""
    made = compiled(f'{C}int main(void) {{ printf("x"); said(); }}', tmp_path)
    with printing([made], tmp_path) as printer:
        Path(made).unlink()
        shutil.copy("/bin/true", made)
        check(printer, "x")


@pytest.mark.needs("cc")
def test_a_program_that_the_loader_was_given(tmp_path: Path) -> None:
    """Started as an argument of the loader, a program has its libraries all the same, and a Python its streams."""
    made = compiled(f'{C}int main(void) {{ printf("x"); said(); }}', tmp_path)
    lines = Path("/proc/self/maps").read_text().splitlines()
    loader = next(line.split()[-1] for line in lines if "/ld-linux" in line or "/ld-2." in line)
    with printing([loader, made], tmp_path) as printer:
        check(printer, "x")
    command = [loader, str(Path(sys.executable).resolve()), "-S", "-c", program("print('x' * 61)")]
    with printing(command, tmp_path) as printer:
        assert python_texts(printer.pid)[1].tail == "x" * 61 + "\n"
