"""Put up launches that are started again; whatever is left of them is ended by its token."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hangdoc.launch.table import read_argv
from tests.unit.cli.commands import LONGEST_S, argv, environment
from tests.unit.ending.theatre import PROC, Theatre

PATIENTS = Path(__file__).parent / "patients"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found


class Stage(Theatre):
    """A theatre whose stand-in servers become ready, hang or die."""

    def environment(self, act: str) -> dict[str, str]:
        return {**super().environment(act), "PYTHONPATH": str(PATIENTS)}

    def relaunch(self, *arguments: str, prefix: tuple[str, ...] = (), act: str = "ready", **env: str) -> Ended:
        """Run the command without a terminal, in the folder of the test; what it starts carries the token."""
        done = subprocess.run(
            [*prefix, *argv("relaunch", *arguments)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=LONGEST_S,
            cwd=self.folder,
            env={**environment(), **self.environment(act), **env},
            check=False,
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def recording(self, pid: int, name: str = "old.hangtrace") -> Path:
        """Record a launch as it is."""
        path = self.folder / name
        command = argv("record", str(pid), "-o", str(path), "--duration", "1")
        subprocess.run(command, check=True, capture_output=True, env=environment(), timeout=LONGEST_S)
        return path

    def close_programs(self) -> None:
        """Wait for the programs that were started here and have ended."""
        for program in self._programs:
            program.wait()

    def servers(self) -> dict[int, tuple[str, ...]]:
        """The living stand-in launchers of this stage and their command lines."""
        found = {pid: read_argv(PROC, pid) for pid in self.left()}
        return {pid: words for pid, words in found.items() if "sglang.launch_server" in words}
