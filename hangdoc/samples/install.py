"""The SGLang that a launch would import, found by its own interpreter and read as text: nothing of it is imported."""

from __future__ import annotations

import ast
import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from hangdoc.errors import HangdocError

DEADLINE_S = 60.0
"""An interpreter on a cold network file system takes its time. Arbitrary."""

_QUESTION = """
import importlib.metadata, importlib.util, json, sys
spec = importlib.util.find_spec("sglang")
where = list(spec.submodule_search_locations or ()) if spec else []
try:
    version = importlib.metadata.version("sglang")
except importlib.metadata.PackageNotFoundError:
    version = "unknown"
print("\\n" + json.dumps({"where": where, "version": version, "python": sys.version_info[:2]}))
"""


@dataclass(frozen=True)
class Install:
    """package: the directory of the `sglang` package; python: major and minor version of its interpreter."""

    package: Path
    version: str
    python: tuple[int, int]

    @property
    def has_plugins(self) -> bool:
        """Say whether it loads plugins by the entry point `sglang.srt.plugins`."""
        return self.defines("srt/plugins/__init__.py", "load_plugins")

    def text(self, path: str) -> str:
        """Return the text of a file of the package, "" when it is not there."""
        try:
            return (self.package / path).read_text(errors="replace")
        except OSError:
            return ""

    def defines(self, path: str, name: str) -> bool:
        """Say whether a file has a function, a class or a `Class.method` of this name."""
        try:
            body = ast.parse(self.text(path)).body
        except SyntaxError:
            return False
        for part in name.split("."):
            found = [
                node
                for node in body
                if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.name == part
            ]
            if not found:
                return False
            body = found[-1].body
        return True


def find(interpreter: str, environment: Mapping[str, str], cwd: Path) -> Install:
    """Ask the launch's interpreter, in the launch's environment, where its SGLang is; HangdocError without one."""
    remedy = "give the launch's own interpreter: the one with SGLang in it"
    try:
        done = subprocess.run(
            [interpreter, "-c", _QUESTION],
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=DEADLINE_S,
            check=True,
        )
        # The last line: the user's sitecustomize may print.
        answer = json.loads(done.stdout.strip().rpartition("\n")[2])
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise HangdocError(f"{interpreter} does not say where its SGLang is: {error}", remedy) from error
    if not answer["where"]:
        raise HangdocError(f"{interpreter} has no SGLang", remedy)
    return Install(Path(answer["where"][0]), answer["version"], tuple(answer["python"]))
