"""Make, once and under a lock, the SGLang environment, the 0.5.8 overlay and the tiny model that the tests launch."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
CACHE_VARIABLE = "HANGDOC_SGLANG_CACHE"
VERSIONS = ("0.5.23", "0.5.8")
NEWEST = VERSIONS[0]
# Exactly so and alone: a local CPU wheel (2.13.0+cpu) satisfies it, a plain "torch" would bring the CUDA build.
TORCH = "torch==2.13.0"
DISK_HINT = "check the network and about 3 GB of free disk, then run this again (it continues by itself)"


class ProvisionError(Exception):
    """One line: which step failed and what to do."""


@dataclass(frozen=True)
class Command:
    """One program run of a step; `hint` says what to do when it fails."""

    what: str
    argv: tuple[str, ...]
    hint: str = DISK_HINT


@dataclass(frozen=True)
class Step:
    """A directory to fill; it counts as done when its stamp matches `recipe` and `witness` exists."""

    target: Path
    witness: Path
    recipe: str
    commands: tuple[Command, ...]

    @property
    def stamp(self) -> Path:
        return self.target.with_name(self.target.name + ".stamp")

    def done(self) -> bool:
        return self.witness.exists() and self.stamp.is_file() and self.stamp.read_text() == self.recipe


@dataclass(frozen=True)
class Rig:
    """Where the provisioned parts lie."""

    cache: Path

    @property
    def venv(self) -> Path:
        return self.cache / "venv"

    @property
    def python(self) -> Path:
        return self.venv / "bin" / "python"

    @property
    def model(self) -> Path:
        return self.cache / "model"

    @property
    def overlay(self) -> Path:
        return self.cache / "overlay-0.5.8"


def cache_dir() -> Path:
    repo = HERE.parent.parent
    return Path(os.environ.get(CACHE_VARIABLE) or repo / ".cache" / "sglang").resolve()


def base_python() -> str:
    """SGLang 0.5.23's wheel and the pinned torch wheel exist for CPython 3.11 only as far as this rig goes."""
    if platform.python_version().startswith("3.11."):
        return sys.executable
    found = shutil.which("python3.11")
    if found and subprocess.run([found, "-V"], capture_output=True, check=False).returncode == 0:
        return found
    raise ProvisionError("the SGLang venv needs Python 3.11: run this with python3.11 or put python3.11 on PATH")


def fingerprint(*parts: str | Path) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.read_bytes() if isinstance(part, Path) else part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def pip(rig: Rig, what: str, *arguments: str) -> Command:
    argv = (str(rig.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--compile")
    return Command(f"pip install {what}", argv + arguments)


def venv_step(rig: Rig) -> Step:
    deps, sglang = HERE / "requirements.txt", HERE / "requirements-0.5.23.txt"
    make = (base_python(), "-m", "venv", str(rig.venv))
    commands = (
        Command("python -m venv", make, hint="is the venv module there (Debian: apt install python3.11-venv)?"),
        pip(rig, TORCH, TORCH),
        pip(rig, f"-r {deps.name}", "-r", str(deps)),
        pip(rig, f"-r {sglang.name}", "--no-deps", "-r", str(sglang)),
    )
    return Step(rig.venv, rig.python, fingerprint("venv 1", TORCH, deps, sglang), commands)


def overlay_step(rig: Rig) -> Step:
    wanted = HERE / "requirements-0.5.8.txt"
    command = pip(rig, f"-r {wanted.name}", "--no-deps", "--target", str(rig.overlay), "-r", str(wanted))
    return Step(rig.overlay, rig.overlay / "sglang", fingerprint("overlay 1", wanted), (command,))


def model_step(rig: Rig) -> Step:
    script = HERE / "tiny_model.py"
    command = Command("tiny_model.py", (str(rig.python), str(script), str(rig.model)), hint="see its log")
    return Step(rig.model, rig.model / "config.json", fingerprint("model 1", script), (command,))


def steps(rig: Rig, versions: Sequence[str]) -> list[Step]:
    """The overlay sits on the venv, so every version needs the venv."""
    overlay = [overlay_step(rig)] if "0.5.8" in versions else []
    return [venv_step(rig), *overlay, model_step(rig)]


def last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR")]
    return (errors or lines or ["no output"])[-1]


def run_command(command: Command, log: Path) -> None:
    say(command.what)
    # A PYTHONPATH of the caller must not leak into the new environment's pip.
    env = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONHOME")}
    with log.open("wb") as out:
        done = subprocess.run(
            command.argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=env, close_fds=False, check=False
        )
    if done.returncode:
        raise ProvisionError(f"'{command.what}' failed ({last_line(log)}); log {log}; {command.hint}")


def perform(step: Step) -> None:
    """Whatever an interrupted run left is removed: the stamp is written last."""
    step.stamp.unlink(missing_ok=True)
    shutil.rmtree(step.target, ignore_errors=True)
    log = step.target.with_name(step.target.name + ".log")
    for command in step.commands:
        run_command(command, log)
    step.stamp.write_text(step.recipe)


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """The kernel drops the lock with its holder, so a killed run never leaves it behind."""
    with path.open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another provisioning run ({path})")
            fcntl.flock(handle, fcntl.LOCK_EX)
        # Inherited by pip, so that a pip whose parent was killed keeps the lock until it has stopped writing.
        os.set_inheritable(handle.fileno(), True)
        yield


def say(line: str) -> None:
    print(f"provision: {line}", file=sys.stderr, flush=True)


def provision(versions: Sequence[str] = VERSIONS) -> Rig:
    """Everything the launches of `versions` need; returns at once when it is there."""
    rig = Rig(cache_dir())
    if all(step.done() for step in steps(rig, versions)):
        return rig
    try:
        rig.cache.mkdir(parents=True, exist_ok=True)
        with locked(rig.cache / "lock"):
            for step in steps(rig, versions):
                if not step.done():
                    perform(step)
    except OSError as error:
        raise ProvisionError(f"cannot use the cache {rig.cache} ({error}); set {CACHE_VARIABLE}") from error
    return rig


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--version", choices=[*VERSIONS, "all"], default="all")
    wanted = parser.parse_args().version
    try:
        rig = provision(VERSIONS if wanted == "all" else (wanted,))
    except ProvisionError as error:
        print(f"provision: FAILED: {error}", file=sys.stderr)
        return 1
    print(rig.cache)
    return 0


if __name__ == "__main__":
    sys.exit(main())
