"""The documents of `capture status` and `capture verify` as lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

MOST_LINES = 20
"""Faults and gaps that are listed; --json has all. Arbitrary."""

COUNTED = {
    "written": "written",
    "already_there": "left, they were there",
    "nan": "skipped for NaN",
    "prefix_cached": "lost to the prefix cache",
    "unfinished": "aborted in the middle of their prompt",
    "wrong_loss_mask": "skipped for a loss mask that does not fit",
    "dropped": "dropped when capture stopped",
    "warm_up": "of the warm-up, not kept",
    "health_checks": "of health checks, not kept",
}


def status_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield what a person wants to know first, first."""
    form, layers = document["format"] or "format unknown", document["layers"]
    yield f"{document['directory']}: {document['samples']} samples ({form}), {bytes_of(document['bytes'])}"
    if layers:
        yield f"inputs of layers {','.join(map(str, layers))}, and the state after the final norm"
    yield from _sizes(document)
    yield from _writers(document)
    counts = {text: document["counts"].get(name, 0) for name, text in COUNTED.items()}
    said = ", ".join(f"{number:g} {text}" for text, number in counts.items() if number)
    if said:
        yield f"prompts: {said}"
    slowed_s = document["counts"].get("slowed_s", 0)
    if slowed_s:
        yield f"the server waited {slowed_s:g} s for the disk"
    yield from _listed("damaged", [f"{fault['path']} {fault['fault']}" for fault in document["damaged"]], apart=True)
    yield from _listed("missing numbers", [ranged(gap) for gap in document["gaps"]])
    yield from _listed("unfinished files", document["unfinished"])


def verify_lines(document: dict[str, Any]) -> Iterator[str]:
    """Yield the outcome, then each fault."""
    good = document["samples"] - len([fault for fault in document["damaged"] if fault["path"] != "."])
    yield f"{document['directory']}: {good} of {document['samples']} samples are whole"
    yield from _listed("damaged", [f"{fault['path']} {fault['fault']}" for fault in document["damaged"]], apart=True)
    yield from _listed("missing numbers", [ranged(gap) for gap in document["gaps"]])
    yield from _listed("written, and not there any more", document["removed"])
    yield from _listed("interrupted before they were finished", document["interrupted"])
    yield from _listed("unfinished files", document["unfinished"])
    if document["without_checksum"]:
        yield f"{document['without_checksum']} samples have no checksum: they were only read"


def ranged(gap: list[int]) -> str:
    """Say a range of numbers.

    >>> ranged([3, 3]), ranged([3, 5])
    ('3', '3 to 5')
    """
    first, last = gap
    return str(first) if first == last else f"{first} to {last}"


def bytes_of(size: float) -> str:
    """Say a number of bytes in the unit that suits it.

    >>> bytes_of(12), bytes_of(57344), bytes_of(117e6)
    ('12 bytes', '57.3 kB', '117.0 MB')
    """
    if size < 1000:
        return f"{size:.0f} bytes"
    for unit in ("kB", "MB", "GB"):
        size /= 1000
        if size < 1000:
            return f"{size:.1f} {unit}"
    return f"{size / 1000:.1f} TB"


def _sizes(document: dict[str, Any]) -> Iterator[str]:
    lengths = document["shapes"]["tokens"]
    if lengths:
        kinds = " and ".join(document["shapes"]["dtype"])
        widths = "/".join(map(str, document["shapes"]["hidden_state"] + document["shapes"]["aux_hidden_state"]))
        yield f"{document['tokens']} tokens, {lengths[0]} to {lengths[1]} a sample; widths {widths}, {kinds}"
    if document["bytes_per_token"]:
        yield f"{bytes_of(document['bytes_per_token'])} a token"
    rate = document["bytes_per_s"]
    full = f"; full in {document['full_in_s'] / 60:.0f} min at {bytes_of(rate)}/s" if rate else ""
    yield f"the volume has {bytes_of(document['free_bytes'])} left{full}"


def _writers(document: dict[str, Any]) -> Iterator[str]:
    for writer in document["writers"][-1:]:
        where = f"pid {writer['pid']}, {'running' if writer['alive'] else 'ended'}"
        if writer["state"] == "stopped":
            yield f"capture has STOPPED ({where}): {writer['reason']}"
        else:
            yield f"last writer: {where}, {writer['queued'] or 0} samples waited for the disk"


def _listed(title: str, items: list[str], *, apart: bool = False) -> Iterator[str]:
    if not items:
        return
    shown = items[:MOST_LINES]
    more = [f"... {len(items) - len(shown)} more, see --json"] if len(items) > len(shown) else []
    if apart:
        yield f"{title}:"
        yield from (f"  {item}" for item in shown + more)
    else:
        yield f"{title}: {', '.join(shown + more)}"
