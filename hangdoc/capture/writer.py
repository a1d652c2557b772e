"""Writes samples in a thread of its own, off the forward path, and holds the server back when the disk is behind."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import Any

from . import room
from .assemble import Sample
from .store import Store
from .tally import Tally

LOG = logging.getLogger("hangdoc.capture")

DELAY_S = 0.5
"""What a prefill waits where the volume is nearly full: time for somebody to make room. Arbitrary."""

SAY_EVERY_S = 10.0
"""A warning that goes on is said again after this time. Arbitrary."""


TELL_EVERY_S = 1.0
"""How old what `hangdoc capture status` reads may be. Arbitrary."""


class Writer:
    """One thread with a bounded queue; after `stop` it takes nothing more, and the server goes on without capture."""

    def __init__(self, store: Store, tally: Tally, queue_bytes: int) -> None:
        self.store, self.tally, self.queue_bytes = store, tally, queue_bytes
        self._queue: deque[Sample] = deque()
        self._bytes = 0
        self._change = threading.Condition()
        self._said: dict[str, float] = {}
        self._told = 0.0
        self.stopped = ""
        self._thread = threading.Thread(target=self._work, name="hangdoc-capture", daemon=True)
        self._thread.start()

    def offer(self, sample: Sample) -> None:
        """Queue a complete sample."""
        with self._change:
            if not self.stopped:
                self._queue.append(sample)
                self._bytes += sample.size_bytes
                self._change.notify_all()

    def wait_for_room(self) -> None:
        """Let the caller, about to run a prefill, wait for a full queue, and a moment for a nearly full volume."""
        began = time.monotonic()
        with self._change:
            while self._bytes > self.queue_bytes and not self.stopped:
                self._warn("queue", f"{self._bytes} bytes wait for the disk: prefill waits for the writer")
                self._change.wait(SAY_EVERY_S)
        left = room.of(self.store.directory)
        if left.is_low and not self.stopped:
            self._warn(
                "room", f"{self.store.directory} is nearly full ({left.free_bytes} bytes left): prefill is slowed down"
            )
            time.sleep(DELAY_S)
        waited_s = time.monotonic() - began
        if waited_s > DELAY_S / 2:
            self.tally.count("slowed_s", waited_s)

    def stop(self, reason: str) -> None:
        """Stop capturing and say so loudly; what is finished stays, what waits is dropped."""
        with self._change:
            if self.stopped:
                return
            self.stopped = reason
            self.tally.count("dropped", len(self._queue))
            self._queue.clear()
            self._bytes = 0
            self._change.notify_all()
        self.tally.tell(state="stopped", reason=reason)
        self.tally.save()
        LOG.error("hangdoc capture STOPPED: %s. The server goes on without it; finished samples are intact.", reason)

    def _work(self) -> None:
        while not self.stopped:
            with self._change:
                if not self._queue:
                    self._change.wait(TELL_EVERY_S)
                sample = self._queue[0] if self._queue else None
                self.tally.tell(queued=len(self._queue))
            self._tell()
            if sample is not None:
                self._write(sample)
                self._done(sample)

    def _done(self, sample: Sample) -> None:
        with self._change:
            if self._queue and self._queue[0] is sample:
                self._queue.popleft()
                self._bytes -= sample.size_bytes
            self._change.notify_all()

    def _tell(self) -> None:
        now = time.monotonic()
        if now - self._told >= TELL_EVERY_S:
            self._told = now
            self.tally.save()

    def _write(self, sample: Sample) -> None:
        try:
            if room.of(self.store.directory).is_too_little_for(sample.size_bytes):
                self.stop(f"no room in {self.store.directory} for another sample of {sample.size_bytes} bytes")
                return
            self._put(sample)
        except OSError as error:
            self.stop(f"a sample cannot be written to {self.store.directory}: {error.strerror or error}")
        except Exception as error:  # noqa: BLE001 - a thread that ends without a word would look like a slow disk
            self.stop(f"a fault of the capture itself ({type(error).__name__}: {error})")

    def _put(self, sample: Sample) -> None:
        tensors = tensors_of(sample)
        portion = sample.portion
        if _has_nan(tensors):
            self.tally.nan(-1 if portion.index is None else portion.index)
            self._warn("nan", f"a sample with NaN is skipped (request {portion.request})")
            return
        record = {
            "tokens": sample.rows,
            "loss_mask": "all ones" if portion.loss_mask is None else "given",
            "shapes": {name: list(tensor.shape) for name, tensor in tensors.items()},
            "dtype": str(tensors["hidden_state"].dtype),
            "request": portion.request,
        }
        if self.store.put(portion.index, tensors, record) is None:
            self.tally.count("already_there")
        else:
            self.tally.count("written")
            self.tally.count("tokens", sample.rows)
            self.tally.count("bytes", sample.size_bytes)

    def _warn(self, kind: str, text: str) -> None:
        now = time.monotonic()
        if now - self._said.get(kind, -SAY_EVERY_S) >= SAY_EVERY_S:
            self._said[kind] = now
            LOG.warning("hangdoc capture: %s", text)


def tensors_of(sample: Sample) -> dict[str, Any]:
    """Return SpecForge's four tensors: ids and mask (S,), final state (1, S, H), layers side by side (1, S, nH)."""
    import torch

    for chunk in sample.chunks:
        if chunk.ready is not None:
            chunk.ready.synchronize()
    rows = [slice(chunk.first_row, chunk.first_row + chunk.rows) for chunk in sample.chunks]
    layers = [
        torch.cat([chunk.layers[place][part] for chunk, part in zip(sample.chunks, rows)])  # noqa: B905 - Python 3.10's
        for place in range(len(sample.chunks[0].layers))
    ]
    last = torch.cat([chunk.last[part] for chunk, part in zip(sample.chunks, rows)])  # noqa: B905 - Python 3.10's
    mask = sample.portion.loss_mask
    return {
        "input_ids": torch.tensor(list(sample.portion.prompt), dtype=torch.int64),
        "loss_mask": torch.tensor([int(bit) for bit in mask or "1" * sample.rows], dtype=torch.int64),
        "hidden_state": last[None],
        "aux_hidden_state": torch.cat(layers, dim=-1)[None],
    }


def _has_nan(tensors: dict[str, Any]) -> bool:
    import torch

    return any(bool(torch.isnan(tensors[name]).any()) for name in ("hidden_state", "aux_hidden_state"))
