"""What the unseen patients share: programs in C, real scripts, and parts that fall ill together."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NoReturn, TypeAlias

from tests.patients.stage import Stage, keep_open

Act: TypeAlias = Callable[[Callable[[], None]], object]
"""What a part does; it is given a function that returns when all the others have called it too."""

NOBODYS_ADDRESS = ("127.0.0.1", 1)
"""Nobody listens here; a port that no connection gets for its own end, so that none can meet itself."""

PRELUDE = r"""
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
static int ready;
static inline void tie(int parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_PTRACER, -1L, 0, 0, 0);
    if (getppid() != parent) _exit(1);
}
static inline void begin(char **words) { tie(atoi(words[1])); ready = atoi(words[2]); }
static inline void arrive(const char *name) { dprintf(ready, "%s %d\n", name, getpid()); }
"""
"""How a rank in C or C++ begins, and says that it is ill: its words are the parent's pid, the descriptor and others."""


def build(stage: Stage, text: str, compiler: str = "cc", name: str = "rank") -> str:
    """Compile a program into the patient's folder; return its path."""
    source, program = f"{stage.folder}/{name}.{'c' if compiler == 'cc' else 'cpp'}", f"{stage.folder}/{name}"
    Path(source).write_text(PRELUDE + text)
    subprocess.run([compiler, "-O1", "-pthread", "-o", program, source], check=True)
    return program


def become_script(stage: Stage, text: str, *words: str) -> NoReturn:
    """Go on as a Python program of its own; its first word is the descriptor on which it says that it is ill."""
    keep_open()
    os.execv(sys.executable, [sys.executable, "-S", "-c", text, str(stage.ready), *words])


def log_to(path: str) -> None:
    """Send what this process says, errors too, to a file."""
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)


def keep_only(descriptors: Iterable[int], *mine: int) -> None:
    """Close those of the descriptors that belong to others."""
    for descriptor in set(descriptors) - set(mine):
        os.close(descriptor)


def fork_together(stage: Stage, *parts: tuple[str, Act]) -> dict[int, str]:
    """Start parts that fall ill together: none goes on before all have met. Return the name of each by its pid."""
    hearing, saying = os.pipe()
    gate, latch = os.pipe()

    def meet() -> None:
        os.write(saying, b".")
        os.close(saying)
        os.read(gate, 1)
        os.close(gate)

    def play(act: Act) -> None:
        os.close(hearing)
        os.close(latch)
        act(meet)

    found = {stage.fork(play, act): name for name, act in parts}
    os.close(saying)
    os.close(gate)
    for _ in found:
        os.read(hearing, 1)
    os.close(hearing)
    os.close(latch)
    return found


def arrive_together(stage: Stage, parts: dict[int, str]) -> None:
    """Say of several parts at once that they are where they will stay: several may share a name, and the blame."""
    os.write(stage.ready, "".join(f"{name} {pid}\n" for pid, name in parts.items()).encode())
