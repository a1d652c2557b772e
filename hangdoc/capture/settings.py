"""What the launch that is captured was told: read from the file beside this package's private copy."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

from .layout import started_at

FILE = "settings.json"
USERS = "processes"
QUEUE_BYTES = 1 << 30
"""States that may wait for the disk before the server has to wait for it. Arbitrary: some ten samples of 117 MB."""


@dataclass(frozen=True)
class Settings:
    """layers: whose inputs are wanted, in the order wanted; form: `specforge` or `safetensors`."""

    layers: tuple[int, ...]
    directory: Path
    form: str
    queue_bytes: int = QUEUE_BYTES


def private_directory() -> Path:
    """Return the directory that holds the private copy, its settings and the marks of its processes."""
    return Path(__file__).resolve().parent.parent


def load(directory: Path | None = None) -> Settings:
    """Read the settings; OSError, ValueError or KeyError when hangdoc did not write them."""
    given = json.loads(((directory or private_directory()) / FILE).read_text())
    return Settings(
        tuple(given["layers"]), Path(given["directory"]), given["form"], given.get("queue_bytes", QUEUE_BYTES)
    )


def sign_in() -> None:
    """Note this process among those that use the private directory: it may go when none of them lives."""
    users = private_directory() / USERS
    users.mkdir(exist_ok=True)
    (users / f"{os.getpid()}-{started_at(os.getpid())}").touch()
