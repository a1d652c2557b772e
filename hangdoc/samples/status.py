"""`capture status`: how far the capture is, how much it takes, and when the volume will be full."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hangdoc.capture import room
from hangdoc.samples.directory import Directory, gaps

LATEST = 200
"""Samples over which the rate is taken: the last ones, because prompts differ. Arbitrary."""


def status(directory: Directory) -> dict[str, Any]:
    """Return the document of `capture status`; a rate that cannot be told yet is null."""
    sizes = {number: path.stat().st_size for number, path in directory.samples.items() if path.is_file()}
    known = [_record(directory, number) for number in sizes]
    tokens = sum(record["tokens"] for record in known if record)
    recorded_bytes = sum(sizes[number] for number, record in zip(sizes, known, strict=True) if record)
    rate = _rate(directory, sizes)
    left = room.of(directory.path)
    counts: Counter[str] = Counter()
    for writer in directory.writers:
        counts.update({name: round(value, 1) for name, value in writer.get("counts", {}).items()})
    return {
        "directory": str(directory.path),
        "samples": len(sizes),
        "first": min(sizes, default=None),
        "last": max(sizes, default=None),
        "gaps": gaps(directory.numbers),
        "nan": sorted({number for writer in directory.writers for number in writer.get("nan", []) if number >= 0}),
        "damaged": [{"path": directory.name(path), "fault": why} for path, why in directory.odd.items()],
        "unfinished": [directory.name(path) for path in directory.unfinished],
        "layers": directory.run.get("layers"),
        "format": directory.run.get("form"),
        "shapes": _shapes([record for record in known if record]),
        "tokens": tokens,
        "bytes": sum(sizes.values()),
        "bytes_per_token": round(recorded_bytes / tokens, 1) if tokens else None,
        "bytes_per_s": round(rate, 1) if rate else None,
        "free_bytes": left.free_bytes,
        "full_in_s": round(left.free_bytes / rate, 1) if rate else None,
        "counts": dict(counts),
        "writers": [_short(writer) for writer in directory.writers],
    }


def is_stopped(document: dict[str, Any]) -> bool:
    """Say whether the last writer has stopped capturing for a fault or a full disk."""
    writers = document["writers"]
    return bool(writers) and writers[-1]["state"] == "stopped"


def _record(directory: Directory, number: int) -> dict[str, Any]:
    found = directory.records.get(directory.name(directory.samples[number]))
    return found[-1] if found else {}


def _rate(directory: Directory, sizes: dict[int, int]) -> float | None:
    """Return bytes a second of the last samples; None when there are too few of them."""
    times = [
        (directory.written.get(directory.name(path), 0.0), sizes[n])
        for n, path in directory.samples.items()
        if n in sizes
    ]
    latest = sorted(pair for pair in times if pair[0])[-LATEST:]
    lasted_s = latest[-1][0] - latest[0][0] if latest else 0.0
    return sum(size for _, size in latest[1:]) / lasted_s if lasted_s > 0 else None


def _shapes(records: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the widths and types that samples have; more than one of a kind is a fault that verify names."""
    lengths = [record["tokens"] for record in records]
    return {
        "tokens": [min(lengths), max(lengths)] if lengths else None,
        "hidden_state": sorted({record["shapes"]["hidden_state"][-1] for record in records}),
        "aux_hidden_state": sorted({record["shapes"]["aux_hidden_state"][-1] for record in records}),
        "dtype": sorted({record["dtype"].removeprefix("torch.") for record in records}),
    }


def _short(writer: dict[str, Any]) -> dict[str, Any]:
    kept = ("pid", "alive", "state", "reason", "queued", "model", "began_at")
    return {name: writer.get(name) for name in kept}
