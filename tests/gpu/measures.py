"""What is measured on a serving launch: what watching costs, and capturing hidden states beside SGLang's own way."""

from __future__ import annotations

import contextlib
import json
import math
import statistics
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hangdoc.capture.layout import sample_path
from tests.gpu.look import Hangdoc
from tests.gpu.server import QUIET, Machine, Server, python_path

CLIENTS = 8
FIRST_S = 40.0
"""For the first diagnosis: hangdoc itself allows 30 s."""
STUDENT_95 = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14)
"""Quantiles of Student's t at 97.5 %, from one degree of freedom on."""


@contextlib.contextmanager
def followed(server: Server, hangdoc: Hangdoc) -> Iterator[None]:
    """Let hangdoc follow a server meanwhile, from its first diagnosis on: what a long watch costs, not its start."""
    argv = [*hangdoc.command, "watch", str(server.pid), "--json", "--timeout", "600"]
    said = server.directory / "watch.json"
    with said.open("wb") as out:
        watcher = subprocess.Popen(
            argv, stdout=out, stderr=subprocess.DEVNULL, env=hangdoc.environment, start_new_session=True
        )
    try:
        until_s = time.monotonic() + FIRST_S
        while not said.stat().st_size and watcher.poll() is None and time.monotonic() < until_s:
            time.sleep(0.1)
        yield
    finally:
        watcher.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            watcher.wait(15)
        if watcher.poll() is None:
            watcher.kill()
            watcher.wait()


def overhead(server: Server, hangdoc: Hangdoc, pairs: int, slice_s: float, until_s: float) -> dict[str, Any]:
    """Measure throughput with and without a following watch in turn, which comes first changing from pair to pair."""
    ratios: list[float] = []
    rates: list[tuple[float, float]] = []
    server.load(CLIENTS, slice_s)  # warm
    for number in range(pairs):
        if time.monotonic() + 2 * slice_s + 5 > until_s:
            break
        found: dict[bool, float] = {}
        for watched in (True, False) if number % 2 else (False, True):
            with followed(server, hangdoc) if watched else contextlib.nullcontext():
                found[watched] = server.load(CLIENTS, slice_s)
        rates.append((found[False], found[True]))
        if found[False] > 0:
            ratios.append(found[True] / found[False])
    return {"pairs": rates, **interval(ratios)}


def interval(ratios: list[float]) -> dict[str, Any]:
    """Return the mean of ratios and its 95 % interval; none for fewer than two.

    >>> interval([1.0, 1.0, 1.0])["low"]
    1.0
    """
    if len(ratios) < 2:
        return {"mean": None, "low": None, "high": None}
    mean = statistics.fmean(ratios)
    quantile = STUDENT_95[min(len(ratios) - 1, len(STUDENT_95)) - 1]
    half = quantile * statistics.stdev(ratios) / math.sqrt(len(ratios))
    return {"mean": round(mean, 4), "low": round(mean - half, 4), "high": round(mean + half, 4)}


PROMPTS, LENGTH = 64, 192
LAYERS = "2,4,6"
STATES = ("--enable-return-hidden-states", "--disable-radix-cache")


def capture(hangdoc: Hangdoc, machine: Machine, out: Path, port: int, timeout_s: float) -> dict[str, Any]:
    """Take the hidden states of prompts with `relaunch`, then the last ones with SGLang's own return_hidden_states.

    Returns what both took, what `capture verify` says, and the largest relative difference of the last states.
    """
    directory, file = out / "captured", out / "prompts.jsonl"
    ids = [[(7 * number + 3 * at) % 900 + 10 for at in range(LENGTH)] for number in range(PROMPTS)]
    file.write_text("".join(json.dumps({"input_ids": one}) + "\n" for one in ids))
    argv = [*machine.program, "--model-path", str(machine.model), "--port", str(port), *machine.flags, *STATES]
    kept = {**machine.environment, **QUIET, "PYTHONPATH": python_path(machine)}
    given = [word for name, value in kept.items() for word in ("--set", f"{name}={value}")]
    wish = (*given, "--capture-layers", LAYERS, "--capture-dir", str(directory), "--prompts", str(file), "--json")
    begun_s = time.monotonic()
    code, said, complaints = hangdoc.run(
        *("relaunch", *wish, "--log", str(out / "capture.log"), "--", *argv), timeout_s=timeout_s
    )
    found: dict[str, Any] = {"code": code, "took_s": round(time.monotonic() - begun_s, 1)}
    found["relaunch"] = parsed(said) or complaints
    found["verify_code"], verified, _ = hangdoc.run("capture", "verify", str(directory), "--json", timeout_s=60)
    found["verify"] = parsed(verified)
    started = (found["relaunch"] or {}).get("started") if isinstance(found["relaunch"], dict) else None
    if started:
        try:
            found |= returned(port, ids, directory)
        except (OSError, ValueError, KeyError, ImportError) as error:
            found["returned_fault"] = f"{type(error).__name__}: {error}"
        hangdoc.run("kill-clean", str(started["pid"]), "--yes", "--no-snapshot", timeout_s=60)
    return found


def returned(port: int, ids: list[list[int]], directory: Path) -> dict[str, Any]:
    """Ask the same server for the same states in its answers, and compare them with the samples."""
    import torch  # noqa: PLC0415  the machine's own

    begun_s, worst = time.monotonic(), 0.0
    for number, one in enumerate(ids):
        body = {
            "input_ids": one,
            "sampling_params": {"max_new_tokens": 1, "temperature": 0},
            "return_hidden_states": True,
        }
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/generate", json.dumps(body).encode(), {"content-type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            states = json.load(answer)["meta_info"]["hidden_states"][0]
        sample = torch.load(sample_path(directory, number, ".ckpt"), weights_only=True)
        theirs, ours = torch.tensor(states).reshape(LENGTH, -1), sample["hidden_state"][0].float()
        worst = max(worst, float((theirs - ours).norm() / ours.norm()))
    return {"returned_s": round(time.monotonic() - begun_s, 1), "worst_difference": worst}


def parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
