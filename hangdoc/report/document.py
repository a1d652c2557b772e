"""The diagnosis as the JSON document of the contract: fixed order and rounding, so equal readings give equal bytes."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import Any, TypeAlias

from hangdoc import __version__
from hangdoc.model.diagnosis import Diagnosis, MissingReading, ProcessState, Wait
from hangdoc.report.plain import unsurrogated

SCHEMA = 1
"""Version of the document; it may grow fields, nothing in it changes meaning."""

FLOAT_DIGITS = 3
"""Milliseconds, thousandths of a core: finer digits are noise of the sampling."""

Json: TypeAlias = dict[str, Any]


def document(diagnosis: Diagnosis) -> Json:
    """Return the document as plain data, in the contract's field order."""
    fields = _plain(diagnosis)
    head = {"schema": SCHEMA, "hangdoc": __version__, "taken_at": timestamp(fields.pop("taken_wall_ns"))}
    return {**head, **fields, **_ordered(diagnosis)}


def encode(diagnosis: Diagnosis, *, indent: int | None = 2) -> str:
    """Return the document as text in ASCII with a final newline; indent None gives one line.

    ASCII, because the document may be shown on a terminal: what the target wrote stays escaped there.
    """
    return json.dumps(document(diagnosis), indent=indent, ensure_ascii=True, allow_nan=False) + "\n"


def timestamp(wall_ns: int) -> str:
    """Return Unix time as the contract writes it, in whole seconds of UTC."""
    return datetime.fromtimestamp(wall_ns // 1_000_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _ordered(diagnosis: Diagnosis) -> Json:
    """Return the lists that have no rank of their own, sorted whatever order the readings came in."""
    gpus = diagnosis.gpus
    return {
        "waits": [_plain(wait) for wait in sorted(diagnosis.waits, key=_wait_order)],
        "outputs": [_plain(out) for out in sorted(diagnosis.outputs, key=lambda out: (out.pid, out.fd))],
        "gpus": None if gpus is None else [_plain(gpu) for gpu in sorted(gpus, key=lambda gpu: gpu.index)],
        "missing": [_plain(lack) for lack in sorted(diagnosis.missing, key=_missing_order)],
        "processes": [_plain(one) for one in sorted(diagnosis.processes, key=_process_order)],
    }


def _wait_order(wait: Wait) -> tuple[int, int, int, int, str, str]:
    start, end = wait.from_, wait.to
    return (start.pid, start.tid or 0, end.pid, end.tid or 0, wait.through, wait.detail)


def _process_order(one: ProcessState) -> tuple[int, int, str]:
    return (one.pid or 0, one.start_ticks or 0, str(sorted(one.rank.items())))


def _missing_order(lack: MissingReading) -> tuple[str, int, str, str]:
    return (lack.probe, -1 if lack.pid is None else lack.pid, lack.reason, lack.detail)


def _plain(value: Any) -> Any:
    """Turn records into dictionaries ("for_" becomes "for"), tuples into lists, and round."""
    if isinstance(value, str):
        return unsurrogated(value)
    if isinstance(value, float):
        return round(value, FLOAT_DIGITS) + 0.0 if math.isfinite(value) else None
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {unsurrogated(key): _plain(item) for key, item in sorted(value.items())}
    if hasattr(value, "__struct_fields__"):
        return {name.rstrip("_"): _plain(getattr(value, name)) for name in value.__struct_fields__}
    return value
