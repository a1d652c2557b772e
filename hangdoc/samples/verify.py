"""`capture verify`: every sample read and checked against its checksum, SpecForge's layout and the others."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from hangdoc.samples import tensors
from hangdoc.samples.directory import Directory, gaps
from hangdoc.samples.tensors import Tensor

KEYS = ("input_ids", "loss_mask", "hidden_state", "aux_hidden_state")
"""Of SpecForge's EAGLE-3 samples."""

INTEGERS = ("int32", "int64")


def verify(directory: Directory) -> dict[str, Any]:
    """Return the document of `capture verify`: `damaged` names each fault; OSError."""
    damaged = [{"path": directory.name(path), "fault": why} for path, why in directory.odd.items()]
    unrecorded, widths = 0, set()
    for path in directory.samples.values():
        name = directory.name(path)
        recorded = directory.records.get(name, [])
        unrecorded += not recorded
        fault, width = _fault(path, {record.get("sha256") for record in recorded}, directory.run)
        if fault:
            damaged.append({"path": name, "fault": fault})
        widths.add(width)
    widths.discard(None)
    if len(widths) > 1:
        damaged.append({"path": ".", "fault": f"samples differ in their widths: {sorted(map(str, widths))}"})
    present = {directory.name(path) for path in (*directory.samples.values(), *directory.odd)}
    return {
        "directory": str(directory.path),
        "samples": len(directory.samples) + len(directory.odd),
        "damaged": damaged,
        "gaps": gaps(directory.numbers),
        "removed": sorted(set(directory.written) - present),
        "interrupted": sorted(set(directory.records) - set(directory.written) - present),
        "unfinished": [directory.name(path) for path in directory.unfinished],
        "without_checksum": unrecorded,
    }


def _fault(path: Path, checksums: set[Any], run: dict[str, Any]) -> tuple[str, tuple[int, int, str] | None]:
    """Return what is wrong with a sample, "" when nothing is, and its two widths and type."""
    try:
        if checksums:
            with path.open("rb") as stream:
                digest = hashlib.file_digest(stream, "sha256").hexdigest()
            if digest not in checksums:
                return "is not what was written (its checksum differs)", None
        found = tensors.read(path)
    except OSError as error:
        return f"cannot be read ({error.strerror})", None
    except ValueError as error:
        return str(error), None
    wrong = _wrong_layout(found, run)
    if wrong:
        return wrong, None
    if any(tensors.has_nan(found[name]) for name in KEYS):
        return "has NaN", None
    last, layers = found["hidden_state"], found["aux_hidden_state"]
    return "", (last.shape[-1], layers.shape[-1], last.dtype)


def _wrong_layout(found: dict[str, Tensor], run: dict[str, Any]) -> str:
    """Check what SpecForge's reader and its training expect of a sample."""
    absent = [name for name in KEYS if name not in found]
    if absent:
        return f"lacks {', '.join(absent)}"
    ids, mask, last, layers = (found[name] for name in KEYS)
    length, width = ids.shape[0] if ids.shape else 0, last.shape[-1] if last.shape else 0
    expected = {"input_ids": (length,), "loss_mask": (length,), "hidden_state": (1, length, width)}
    number = len(run.get("layers") or ()) or (layers.shape[-1] // width if layers.shape and width else 0)
    expected["aux_hidden_state"] = (1, length, number * width)
    for name, shape in expected.items():
        if found[name].shape != shape or not length:
            return f"{name} has the shape {found[name].shape}, expected {shape}"
    if ids.dtype not in INTEGERS or mask.dtype not in INTEGERS:
        return f"input_ids are {ids.dtype} and loss_mask is {mask.dtype}: both have to be integers"
    return "" if last.dtype == layers.dtype else f"hidden_state is {last.dtype}, aux_hidden_state {layers.dtype}"
