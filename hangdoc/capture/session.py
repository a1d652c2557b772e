"""The capture of one scheduler process: from the batch about to run, through the hooks, to samples for the writer."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from . import passes
from .assemble import Assembly, Chunk
from .attach import UnsupportedError, hook, the_stack
from .host import Copies
from .layout import RECORDS
from .passes import Pass, Portion
from .settings import Settings
from .store import Store
from .tally import Tally, same_run
from .unsupported import REFUSED, refusals
from .warming import Warming
from .writer import Writer

LOG = logging.getLogger("hangdoc.capture")
USUAL_LAYERS = 3
"""What SpecForge's EAGLE-3 training reads."""


class Session:
    """Every rank reads the states, because that may be a collective; one rank keeps them."""

    def __init__(self, settings: Settings, warming: Warming) -> None:
        self.settings, self.warming = settings, warming
        self.writer: Writer | None = None
        self._copies: Copies | None = None
        self._assembly = Assembly()
        self._now: Pass | None = None
        self._attached = False
        self._width = 0

    def attach(self, runner: Any) -> None:
        """Hook into a model runner's model; UnsupportedError ends the server's start, before a wrong sample."""
        if getattr(runner, "is_draft_worker", False):
            return
        refused = refusals({name: getattr(runner.server_args, name, None) for name, *_ in REFUSED})
        if refused:
            raise UnsupportedError("hangdoc capture: " + "; ".join(refused))
        config = runner.model_config
        count = config.hf_text_config.num_hidden_layers
        beyond = [number for number in self.settings.layers if not 0 <= number < count]
        if beyond:
            raise UnsupportedError(f"hangdoc capture: the model has layers 0 to {count - 1}, and no {beyond}")
        hook(the_stack(runner.model, count), self.settings.layers, self._on_layer, self._on_last)
        self._attached = True
        if _is_first_rank():
            self._begin_writing(runner, config)

    def _begin_writing(self, runner: Any, config: Any) -> None:
        import torch

        settings = self.settings
        (settings.directory / RECORDS).mkdir(parents=True, exist_ok=True)
        run = {
            "layers": list(settings.layers),
            "form": settings.form,
            "hidden_size": config.hf_text_config.hidden_size,
            "architecture": type(runner.model).__name__,
        }
        differing = same_run(settings.directory, run)
        if differing:
            raise UnsupportedError(f"hangdoc capture: {settings.directory} has samples of another kind: {differing}")
        tally = Tally(settings.directory, {**run, "model": str(runner.server_args.model_path)})
        self._width = config.hf_text_config.hidden_size
        self._copies = Copies(torch.device(runner.device))
        self.writer = Writer(Store(settings.directory, settings.form), tally, settings.queue_bytes)
        tally.save()
        LOG.info("hangdoc capture: inputs of layers %s go to %s", list(settings.layers), settings.directory)
        if len(settings.layers) != USUAL_LAYERS:
            LOG.warning("hangdoc capture: %d layers; SpecForge's EAGLE-3 wants three", len(settings.layers))

    def run(self, forward: Callable[..., Any], batch: Any, *args: Any, **kwargs: Any) -> Any:
        """Run a batch of the scheduler and keep what the hooks saw of it."""
        self._now = passes.read(batch) if self._attached else None
        if self._now is None:
            return forward(batch, *args, **kwargs)
        if self.writer is not None and not self.writer.stopped:
            self._safely(self.writer.wait_for_room)
        try:
            result = forward(batch, *args, **kwargs)
            if self.writer is not None and not self.writer.stopped:
                self._safely(self._finish, self._now)
        finally:
            self._now = None
        return result

    def _on_layer(self, position: int, read: Callable[[], Any]) -> None:
        if self._now is not None:
            self._now.layers[position] = self._keep(read)

    def _on_last(self, read: Callable[[], Any]) -> None:
        if self._now is not None:
            self._now.last = self._keep(read)

    def _keep(self, read: Callable[[], Any]) -> Any:
        """Read a state, which every rank has to; None when it cannot be kept."""
        try:
            state = read()
        except Exception as error:  # noqa: BLE001 - the server's own pass goes on
            self._stop(f"a state cannot be read in this SGLang and model ({type(error).__name__}: {error})")
            return None
        if self._copies is None or self.writer is None or self.writer.stopped:
            return None
        return self._copies.take(state)

    def _finish(self, now: Pass) -> None:
        wanted = range(len(self.settings.layers))
        if now.last is None or any(place not in now.layers for place in wanted):
            self._stop("a prefill ran past the hooks: a captured graph, or another way through the layers")
            return
        states = (*(now.layers[place] for place in wanted), now.last)
        if any(state.dim() != 2 or state.shape[0] < now.rows or state.shape[1] != self._width for state in states):
            shapes = ", ".join(str(tuple(state.shape)) for state in states)
            self._stop(
                f"the states of {now.rows} tokens are scattered over the ranks, or no plain states: there are {shapes}"
            )
            return
        assert self._copies is not None
        ready = self._copies.ready()
        for portion in now.portions:
            self._add(portion, Chunk(states[:-1], states[-1], ready, portion.first_row, portion.rows))

    def _add(self, portion: Portion, chunk: Chunk) -> None:
        assert self.writer is not None
        tally, fault = self.writer.tally, self._unwanted(portion)
        if fault:
            if portion.is_last:
                tally.count(fault)
            return
        before = self._assembly.dropped
        sample, is_cached = self._assembly.add(portion, chunk)
        if is_cached:
            tally.count("prefix_cached")
            LOG.warning("hangdoc capture: the prefix cache kept rows of %s: no sample of it", portion.request)
        if self._assembly.dropped > before:
            tally.count("unfinished", self._assembly.dropped - before)
        if sample is not None:
            self.writer.offer(sample)

    def _unwanted(self, portion: Portion) -> str:
        """Return why the prompt leaves nothing, "" when it does."""
        assert self.writer is not None
        mask = portion.loss_mask
        if passes.is_health_check(portion):
            return "health_checks"
        if self.warming.goes_on():
            return "warm_up"
        if self.writer.store.has(portion.index):
            return "already_there"
        if mask is not None and (len(mask) != len(portion.prompt) or set(mask) - {"0", "1"}):
            return "wrong_loss_mask"
        return ""

    def _safely(self, step: Callable[..., None], *args: Any) -> None:
        try:
            step(*args)
        except Exception as error:  # noqa: BLE001 - whatever is wrong here, the server's own work goes on
            self._stop(f"a fault of the capture itself ({type(error).__name__}: {error})")

    def _stop(self, reason: str) -> None:
        if self.writer is not None:
            self.writer.stop(reason)


def _is_first_rank() -> bool:
    """Say whether this rank writes: rank 0 of its replica's ranks, which all see the same states."""
    import torch.distributed as ranks

    return not ranks.is_available() or not ranks.is_initialized() or ranks.get_rank() == 0
