"""How long each stage of a launch may show nothing before silence itself speaks for a hang, and for how long it has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hangdoc.features.features import Features, Member
from hangdoc.model.patience import Stage
from hangdoc.model.reading import Known, Missing, Reading


@dataclass(frozen=True)
class Patience:
    """One row of the table. seconds: without any sign of progress; source: who measured it or whose limit it is."""

    stage: Stage
    seconds: float
    source: str


PATIENCE: tuple[Patience, ...] = (
    Patience(
        "import",
        60.0,
        "imports of SGLang took 8 to 45 s on idle machines and 114 s on an overloaded one, reading files and taking "
        "page faults all the while: 60 s without either are none of them",
    ),
    Patience(
        "launch",
        120.0,
        "what a start does beside imports (arguments, the model's configuration, child processes) took seconds; an "
        "overloaded machine needed 114 s",
    ),
    Patience(
        "rendezvous",
        300.0,
        "ranks of one start come within minutes; PyTorch gives up after 600 s (NCCL) or 1,800 s (Gloo)",
    ),
    Patience(
        "weight-load",
        3600.0,
        "public reports have healthy starts that were silent for about 60 min after the last shard; SGLang's barrier "
        "after the load waits for 300 s (0.4.6) to 480 s (0.5.23). Longer when there is more to load, see above",
    ),
    Patience("memory-pool", 300.0, "arbitrary: on one GPU it takes seconds"),
    Patience(
        "jit-compile",
        3600.0,
        "SGLang announces 10 to 20 min for DeepGEMM's kernels with a cold cache; several ranks that compile one after "
        "the other take a multiple of that. Arbitrary beyond it",
    ),
    Patience("graph-capture", 900.0, "a healthy capture was silent for 595 s in a public report"),
    Patience("warmup", 600.0, "SGLang's own limit for its warm-up request (SGLANG_WARMUP_TIMEOUT) is 600 s"),
    Patience("ready", 300.0, "an idle server has no duty to say anything; the same as serving"),
    Patience("serving", 300.0, "SGLang's forward watchdog (--watchdog-timeout) is 300 s and fires after 300 to 450 s"),
    Patience("shutdown", 120.0, "arbitrary: requests that still run are waited for"),
)
"""Least advanced first. Before a stage's patience ends only positive evidence makes a hang likely."""

DEFAULT_S: Mapping[Stage, float] = {row.stage: row.seconds for row in PATIENCE}

LEAST_LOADED_BYTES_PER_S = 40e6
"""The slowest load that is still a load: 10,000 major faults a second, pages of 4 KiB, as public reports of mapped
checkpoints on network file systems have it."""

WEIGHT_FILE_BYTES = 64 << 20
"""Size from which a file that is open for reading counts as weights; arbitrary. By size, because no name is kept in a
redacted trace."""

UNLIMITED = Missing(
    "stacks",
    "not-taken",
    "the phase is unknown, and a program in none may be silent for ever",
    "say how long this one may be: --patience unknown=SECONDS",
)
"""No figure would do for every program: one of no known engine that has nothing to do says nothing for days."""


def stage_of(features: Features) -> Stage:
    """Return the stage whose patience counts: the phase, or its imports when every rank is inside one.

    The main threads of all ranks have to be read; the caller sees to that.
    """
    mains = [member.main for member in features.movers]
    imports = all(isinstance(main, Known) and main.value.always_does("import") for main in mains)
    return "import" if features.phase == "launch" and mains and imports else features.phase


def patience_s(features: Features) -> Reading[float]:
    """Return how long the launch may show nothing, in seconds: as the user set it, or by the table."""
    stage = stage_of(features)
    if stage in features.patience_set:
        return Known(features.patience_set[stage])
    if stage == "unknown":
        return UNLIMITED
    if stage != "weight-load":
        return Known(DEFAULT_S[stage])
    weights = weight_bytes(features.movers)
    if isinstance(weights, Missing):
        return weights
    return Known(max(DEFAULT_S[stage], weights.value / LEAST_LOADED_BYTES_PER_S))


def weight_bytes(ranks: tuple[Member, ...]) -> Reading[int]:
    """Return how many bytes of large files the ranks have open for reading, each file once."""
    sizes: dict[str, int] = {}
    for rank in ranks:
        if isinstance(rank.files, Missing):
            return rank.files
        for file in rank.files.value:
            size = file.size_bytes
            if file.kind == "file" and "r" in file.access and isinstance(size, Known):
                sizes[file.target] = size.value
    return Known(sum(size for size in sizes.values() if size >= WEIGHT_FILE_BYTES))


def no_progress_s(features: Features) -> Reading[float]:
    """Return for how long nothing progressed, by the oldest proof: the last write to the log, or totals that stand.

    The log's file tells of the time before hangdoc came; totals of the ranks stand since the earliest reading that
    they have not moved from. Either alone is proof, so the longer time counts.
    """
    proofs = [
        *([features.log.value.silent_s] if isinstance(features.log, Known) else []),
        *([features.standing_s.value] if isinstance(features.standing_s, Known) else []),
    ]
    if proofs:
        return Known(max(proofs))
    return features.log if isinstance(features.log, Missing) else Missing("progress", "not-taken")
