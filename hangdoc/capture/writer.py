"""Writes samples in threads of its own, off the forward path, and holds the server back when the disk is behind."""

from __future__ import annotations

import atexit
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


THREADS = 4
"""That write at once: one takes 0.35 GB/s of a core (sums, checksum, copy), half of what a fast prefill makes."""

FINISH_S = 30.0
"""What an orderly exit of the server waits for the samples that wait for the disk. Arbitrary."""


class Writer:
    """Threads with a bounded queue; after `stop` they take nothing more, and the server goes on without capture."""

    def __init__(self, store: Store, tally: Tally, queue_bytes: int) -> None:
        self.store, self.tally, self.queue_bytes = store, tally, queue_bytes
        self._queue: deque[Sample] = deque()
        self._waiting_bytes = self._writing_bytes = 0
        self._change = threading.Condition()
        self._said: dict[str, float] = {}
        self._told = 0.0
        self.stopped = ""
        for number in range(THREADS):
            threading.Thread(target=self._work, name=f"hangdoc-capture-{number}", daemon=True).start()
        atexit.register(self.finish)

    def offer(self, sample: Sample) -> None:
        """Queue a complete sample."""
        with self._change:
            if not self.stopped:
                self._queue.append(sample)
                self._waiting_bytes += sample.size_bytes
                self._change.notify_all()

    def wait_for_room(self) -> None:
        """Let the caller, about to run a prefill, wait for a full queue, and a moment for a nearly full volume."""
        began = time.monotonic()
        with self._change:
            while self._waiting_bytes + self._writing_bytes > self.queue_bytes and not self.stopped:
                self._warn("queue", f"{self._waiting_bytes} bytes wait for the disk: prefill waits for the writer")
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
            self._waiting_bytes = 0
            self.tally.tell(state="stopped", reason=reason, queued=0)
            self.tally.save()
            LOG.error("hangdoc capture STOPPED: %s. The server goes on without it; finished samples are whole.", reason)
            self._change.notify_all()

    def finish(self) -> None:
        """Wait, not for ever, until nothing waits for the disk any more; then note where the capture stands."""
        with self._change:
            self._change.wait_for(lambda: not (self._queue or self._writing_bytes), FINISH_S)
            self.tally.tell(queued=len(self._queue))
            self.tally.save()

    def _work(self) -> None:
        while not self.stopped:
            sample = self._take()
            if sample is not None:
                self._write(sample)
                with self._change:
                    self._writing_bytes -= sample.size_bytes
                    self._change.notify_all()

    def _take(self) -> Sample | None:
        """Return the next sample, after a while None; then, and now and again, it is noted where the capture stands."""
        with self._change:
            if not self._queue:
                self._change.wait(TELL_EVERY_S)
            sample = self._queue.popleft() if self._queue else None
            if sample is not None:
                self._waiting_bytes -= sample.size_bytes
                self._writing_bytes += sample.size_bytes
            now = time.monotonic()
            if now - self._told >= TELL_EVERY_S:
                self._told = now
                self.tally.tell(queued=len(self._queue))
                self.tally.save()
        return sample

    def _write(self, sample: Sample) -> None:
        try:
            # All that is being written may still need its room.
            if room.of(self.store.directory).is_too_little_for(self._writing_bytes):
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
    mask = sample.portion.loss_mask
    return {
        "input_ids": torch.tensor(list(sample.portion.prompt), dtype=torch.int64),
        "loss_mask": torch.tensor([int(bit) for bit in mask or "1" * sample.rows], dtype=torch.int64),
        "hidden_state": _side_by_side(sample, [(chunk.last,) for chunk in sample.chunks]),
        "aux_hidden_state": _side_by_side(sample, [chunk.layers for chunk in sample.chunks]),
    }


def _side_by_side(sample: Sample, states: list[tuple[Any, ...]]) -> Any:
    """Return states (1, S, width) of chunks one below the other, of layers side by side: each copied once."""
    import torch

    width = states[0][0].shape[-1]
    target = torch.empty((1, sample.rows, width * len(states[0])), dtype=states[0][0].dtype)
    row = 0
    for chunk, layers in zip(sample.chunks, states):  # noqa: B905 - Python 3.10's
        for place, state in enumerate(layers):
            part = state[chunk.first_row : chunk.first_row + chunk.rows]
            target[0, row : row + chunk.rows, place * width : (place + 1) * width] = part
        row += chunk.rows
    return target


def _has_nan(tensors: dict[str, Any]) -> bool:
    import torch

    return any(bool(torch.isnan(tensors[name]).any()) for name in ("hidden_state", "aux_hidden_state"))
