"""States on their way to the host: pinned memory on a stream of its own, so that the forward pass does not wait."""

from __future__ import annotations

from typing import Any


class Copies:
    """Copies states of one device; of the CPU they are taken as they are."""

    def __init__(self, device: Any) -> None:
        import torch

        self._torch = torch
        self._stream = torch.cuda.Stream(device) if device.type == "cuda" else None

    def take(self, state: Any) -> Any:
        """Begin to copy the state (which nobody else writes to) and return where it will be."""
        if self._stream is None:
            return state
        torch = self._torch
        written = torch.cuda.Event()
        written.record()
        target = torch.empty(state.shape, dtype=state.dtype, pin_memory=True)
        with torch.cuda.stream(self._stream):
            self._stream.wait_event(written)
            target.copy_(state, non_blocking=True)
        # Its memory must not be given to the next layer before the copy has read it.
        state.record_stream(self._stream)
        return target

    def ready(self) -> Any:
        """Return an event that is over when all copies so far are; None where there is nothing to wait for."""
        if self._stream is None:
            return None
        event = self._torch.cuda.Event()
        event.record(self._stream)
        return event
