"""A scheduler in small, with torch and the capture in it and no SGLang: what the tests of faults start and kill.

Run with the server's Python: python -m tests.capture.driver DIRECTORY MODE ...
"""

from __future__ import annotations

import logging
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from hangdoc.capture import formats
from hangdoc.capture.attach import UnsupportedError
from hangdoc.capture.session import Session
from hangdoc.capture.settings import Settings
from hangdoc.capture.warming import Warming

HIDDEN, LAYERS, NAN_TOKEN = 256, 4, 13


class Layer(nn.Module):
    """Adds one to the residual, as a layer of older versions gets and gives it."""

    def forward(self, hidden_states: Any, forward_batch: Any, residual: Any) -> Any:  # noqa: ARG002 - looked for by name
        residual = hidden_states if residual is None else hidden_states + residual
        return torch.ones_like(hidden_states), residual


class Stack(nn.Module):
    """The layer loop."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm = nn.Identity()
        self.skips = False
        self.scatters = 1
        self.streams = 1
        self.batch = SimpleNamespace()

    def forward(self, ids: Any) -> Any:
        hidden = ids[:: self.scatters, None].float().expand(-1, HIDDEN * self.streams).clone()
        hidden[ids[:: self.scatters] == NAN_TOKEN] = float("nan")
        residual = None
        for layer in self.layers:
            run = layer.forward if self.skips else layer
            hidden, residual = run(hidden, self.batch, residual)
        return self.norm(hidden + residual)


def request(number: int, tokens: list[int], **given: Any) -> SimpleNamespace:
    params = SimpleNamespace(custom_params=given or None)
    return SimpleNamespace(rid=f"r{number}", origin_input_ids=tokens, output_ids=[], sampling_params=params)


def batch(*requests: Any) -> SimpleNamespace:
    return SimpleNamespace(
        forward_mode=SimpleNamespace(name="EXTEND"),
        reqs=list(requests),
        prefix_lens=[0 for _ in requests],
        extend_lens=[len(one.origin_input_ids) for one in requests],
    )


class Small:
    """The scheduler: a session attached to the stack."""

    def __init__(
        self,
        directory: Path,
        layers: tuple[int, ...] = (1, 2, 3),
        arguments: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.stack = Stack()
        text = SimpleNamespace(num_hidden_layers=LAYERS, hidden_size=HIDDEN)
        runner = SimpleNamespace(
            model=self.model(),
            model_config=SimpleNamespace(hf_text_config=text),
            server_args=SimpleNamespace(model_path="small", **(arguments or {})),
            device="cpu",
        )
        self.session = Session(Settings(layers, directory, "specforge", **settings), Warming(directory))
        self.session.attach(runner)
        assert self.session.writer is not None
        self.writer = self.session.writer

    def model(self) -> nn.Module:
        return nn.ModuleDict({"model": self.stack})

    def prefill(self, *requests: Any) -> None:
        ids = torch.tensor([token for one in requests for token in one.origin_input_ids])
        self.session.run(lambda _: self.stack(ids), batch(*requests))

    def wait(self) -> None:
        """Until all that was offered is written, or capture has stopped and said so."""
        self.writer.finish()


def numbered(directory: Path, first: int, last: int, length: int) -> None:
    """Samples first to last - 1, each with its number: what a resumed run repeats."""
    small = Small(directory)
    for number in range(first, last):
        small.prefill(request(number, [number % 7] * length, hangdoc_index=number))
        small.wait()


def free(directory: Path, count: int) -> None:
    """Samples without numbers: the next free ones."""
    small = Small(directory)
    for number in range(count):
        small.prefill(request(number, [1, 2, 3]))
    small.wait()


def stuck(directory: Path, length: int) -> None:
    """Stops for good in the middle of writing its third sample, and says so."""
    small = Small(directory)
    for number in range(2):
        small.prefill(request(number, [5] * length, hangdoc_index=number))
    small.wait()
    write = formats.Hashing.write

    def half(self: Any, data: Any) -> int:
        write(self, memoryview(data).cast("B")[: len(memoryview(data).cast("B")) // 2])
        self.stream.flush()
        print("in the middle", flush=True)
        threading.Event().wait()
        return 0

    formats.Hashing.write = half  # type: ignore[method-assign]
    small.prefill(request(2, [5] * length, hangdoc_index=2))
    threading.Event().wait()


def unusual(directory: Path) -> None:
    """NaN, a loss mask that fits and one that does not, a health check, a warm-up; then none of it."""
    small = Small(directory)
    small.prefill(request(0, [1, NAN_TOKEN, 3], hangdoc_index=0), request(1, [1, 2, 3], hangdoc_index=1))
    small.prefill(request(2, [4, 5, 6], hangdoc_index=2, hangdoc_loss_mask="011"))
    small.prefill(request(3, [4, 5, 6], hangdoc_index=3, hangdoc_loss_mask="01"))
    check = request(4, [0])
    check.rid = "HEALTH_CHECK_1"
    small.prefill(check)
    small.session.warming.begin()
    small.prefill(request(5, [8, 8], hangdoc_index=5))
    small.session.warming.end()
    small.prefill(request(6, [8, 8], hangdoc_index=6))
    small.wait()


def held_back(directory: Path) -> None:
    """A queue of a byte and a writer that is held: the second prefill has to wait, and goes on when it is let go."""
    small = Small(directory, queue_bytes=1)
    may_write, put = threading.Event(), small.writer.store.put
    small.writer.store.put = lambda *a: (may_write.wait(), put(*a))[1]  # type: ignore[method-assign]
    small.prefill(request(0, [1, 2, 3], hangdoc_index=0))
    second = threading.Thread(target=small.prefill, args=(request(1, [1, 2], hangdoc_index=1),))
    waits, said = threading.Event(), small.writer._warn

    def warn(kind: str, text: str) -> None:
        said(kind, text)
        waits.set()

    small.writer._warn = warn  # type: ignore[method-assign]
    second.start()
    waits.wait()
    print("waits", second.is_alive(), flush=True)
    may_write.set()
    second.join()
    small.wait()
    print("went on", flush=True)


def skipping(directory: Path) -> None:
    """The layers run without their hooks, as in a captured graph."""
    small = Small(directory)
    small.prefill(request(0, [1, 2, 3]))
    small.wait()
    small.stack.skips = True
    small.prefill(request(1, [1, 2, 3]))
    small.stack.skips = False
    small.prefill(request(2, [1, 2, 3]))
    print(small.writer.stopped)


def scattered(directory: Path) -> None:
    """The rank has every second row."""
    small = Small(directory)
    small.stack.scatters = 2
    small.prefill(request(0, [1, 2, 3, 4]))
    print(small.writer.stopped)


class Double(Small):
    """Its model has two lists of layers, and nobody can say which is meant."""

    def model(self) -> nn.Module:
        return nn.ModuleDict({"model": self.stack, "other": Stack()})


def many_streams(directory: Path) -> None:
    """A model that carries several streams: its states are wider than its hidden size."""
    small = Small(directory)
    small.stack.streams = 2
    small.prefill(request(0, [1, 2, 3, 4]))
    print(small.writer.stopped)


def refused(directory: Path) -> None:
    """Starts that cannot be captured."""
    for kind, given in (
        (Small, {"arguments": {"pp_size": 2}}),
        (Small, {"layers": (1, 2, LAYERS)}),
        (Double, {}),
    ):
        try:
            kind(directory, **given)  # type: ignore[arg-type]
        except UnsupportedError as error:
            print(error)


def unreadable(directory: Path) -> None:
    """A layer whose state cannot be read; the pass itself goes on."""
    small = Small(directory)
    stream = SimpleNamespace(snapshot=lambda _: (_ for _ in ()).throw(NotImplementedError("a handoff")))
    small.stack.batch = SimpleNamespace(residual_stream=stream)
    small.prefill(request(0, [1, 2, 3]))
    print(small.writer.stopped)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    modes = (numbered, free, stuck, unusual, held_back, skipping, scattered, many_streams, refused, unreadable)
    mode = {known.__name__: known for known in modes}[sys.argv[2]]
    mode(Path(sys.argv[1]), *map(int, sys.argv[3:]))
