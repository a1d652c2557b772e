"""Compile the stand-in for NVML and say what it answers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("libnvidia-ml.c")


class FakeNvml:
    """A compiled stand-in; programs started after `install` find it in NVML's place."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._state = directory / "state"
        compiler = shutil.which("cc")
        if compiler is None:
            pytest.skip("needs a C compiler (cc)")
        library = directory / "libnvidia-ml.so.1"
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE)], check=True)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let programs that start from now on load it."""
        monkeypatch.setenv("LD_LIBRARY_PATH", str(self.directory))
        monkeypatch.setenv("FAKE_NVML", str(self._state))

    def says(self, *lines: str) -> None:
        """Set what it answers; see the C file for the words."""
        fresh = self._state.with_name("state.new")
        fresh.write_text("".join(line + "\n" for line in lines))
        fresh.replace(self._state)  # at once: a call that is in progress sees the old answers or the new ones
