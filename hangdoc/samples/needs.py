"""What a launch is given so that it captures: a private directory, an environment that names it, and some flags."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import hangdoc
import hangdoc.capture
from hangdoc.capture import settings
from hangdoc.capture.layout import RECORDS, started_at
from hangdoc.errors import HangdocError
from hangdoc.samples.install import Install
from hangdoc.samples.wish import Wish

PACKAGE = "hangdoc_capture"
PLUGIN = "hangdoc-capture"
GROUP = "sglang.srt.plugins"


@dataclass(frozen=True)
class Additions:
    """What has to be added to a launch. environment: variables with their whole new values; flags: to its argv.

    private: the directory with the code, for `remove` once the launch is over; way: how the code gets in.
    """

    environment: dict[str, str]
    flags: tuple[str, ...]
    private: Path
    way: str


def flags(install: Install, argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the flags that the capture needs and argv lacks, in this version's words.

    The prefix cache would keep rows of prompts that begin alike, and a prefill that replays a graph runs no hooks.
    """
    arguments = install.text("srt/server_args.py") + install.text("srt/arg_groups/cuda_graph_hook.py")
    wanted = ["--disable-radix-cache"]
    if "cuda_graph_backend_prefill" in arguments:
        wanted.append("--cuda-graph-backend-prefill=disabled")
    elif "disable_piecewise_cuda_graph" in arguments:
        wanted.append("--disable-piecewise-cuda-graph")
    given = {word.partition("=")[0] for word in argv}
    if "--disable-cuda-graph" in given:  # of both phases
        wanted = wanted[:1]
    return tuple(flag for flag in wanted if flag not in argv)


def way_of(install: Install) -> str:
    """Say how the code gets in."""
    return f"plugin (entry point {GROUP})" if install.has_plugins else "import hook (sitecustomize, chained)"


def prepare(wish: Wish, install: Install, argv: tuple[str, ...], environment: Mapping[str, str]) -> Additions:
    """Make the private directory under the samples' and return what has to be added; HangdocError when it can't be."""
    records = wish.directory / RECORDS
    try:
        records.mkdir(parents=True, exist_ok=True)
        sweep(records)
        private = Path(tempfile.mkdtemp(prefix="code-", dir=records))
        _fill(private, wish, with_plugin=install.has_plugins)
    except OSError as error:
        raise HangdocError(f"{wish.directory} cannot be written: {error.strerror}", "take another directory") from error
    added = {"PYTHONPATH": os.pathsep.join(filter(None, [str(private), environment.get("PYTHONPATH", "")]))}
    allowed = environment.get("SGLANG_PLUGINS", "")
    if install.has_plugins and allowed:  # a list of the plugins that may be loaded
        added["SGLANG_PLUGINS"] = f"{allowed},{PLUGIN}"
    return Additions(added, flags(install, argv), private, way_of(install))


def remove(additions: Additions) -> None:
    """Take the private directory away: after the launch has ended, not before."""
    shutil.rmtree(additions.private, ignore_errors=True)


def sweep(records: Path) -> None:
    """Take away the private directories that launches have left: all processes that used them are gone."""
    for private in records.glob("code-*"):
        users = [path.name.partition("-") for path in (private / settings.USERS).glob("*-*")]
        if users and all(started_at(int(pid)) != int(ticks) for pid, _, ticks in users):
            shutil.rmtree(private, ignore_errors=True)


def _fill(private: Path, wish: Wish, *, with_plugin: bool) -> None:
    source = Path(hangdoc.capture.__path__[0])
    target = private / PACKAGE
    target.mkdir()
    for path in sorted(source.glob("*.py")):
        if path.name != "carried.py":
            shutil.copyfile(path, target / path.name)
    if with_plugin:
        _describe(private / f"{PACKAGE}-{hangdoc.__version__}.dist-info")
    else:
        shutil.copyfile(source / "carried.py", private / "sitecustomize.py")
    told = {"layers": wish.layers, "directory": str(wish.directory), "form": wish.form}
    (private / settings.FILE).write_text(json.dumps(told))


def _describe(description: Path) -> None:
    """Write what importlib.metadata needs to find the entry point of a distribution."""
    description.mkdir()
    (description / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PLUGIN}\nVersion: {hangdoc.__version__}\n")
    (description / "entry_points.txt").write_text(f"[{GROUP}]\n{PLUGIN} = {PACKAGE}.activate:activate\n")
