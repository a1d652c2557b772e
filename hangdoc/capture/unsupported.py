"""The ways to run SGLang under which a rank has no whole state of a prompt, and capture is refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

REFUSED: tuple[tuple[str, tuple[Any, ...], str], ...] = (
    # the server argument, its values that are fine, why others are not
    ("pp_size", (1,), "pipeline stages hold their layers on different ranks"),
    ("nnodes", (1,), "the ranks of other nodes would run without the hook"),
    ("enable_dp_attention", (False,), "data-parallel attention scatters the states over the ranks"),
    ("attn_dp_size", (1,), "data-parallel attention scatters the states over the ranks"),
    ("attn_cp_size", (1,), "context parallelism scatters the states over the ranks"),
    ("dcp_size", (1,), "context parallelism scatters the states over the ranks"),
    ("enable_nsa_prefill_context_parallel", (False,), "context parallelism scatters the states over the ranks"),
    ("moe_a2a_backend", ("none",), "all-to-all experts leave the states scattered over the ranks"),
    ("enable_deepep_moe", (False,), "all-to-all experts leave the states scattered over the ranks"),
    ("enable_two_batch_overlap", (False,), "two-batch overlap runs the layers outside the layer loop"),
    ("enable_piecewise_cuda_graph", (False,), "a prefill that replays a graph runs no hooks"),
    ("enable_pdmux", (False,), "split prefill runs the layers outside the layer loop"),
    ("disaggregation_mode", ("null",), "a disaggregated server does only a half of a request"),
    ("speculative_algorithm", (), "speculative decoding mixes a drafter's passes with the model's"),
)
"""None, or no such argument, is always fine: it is SGLang's way to say `off`, or `unknown here`."""


def refusals(arguments: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each server argument under which capture is refused."""
    said = []
    for name, fine, why in REFUSED:
        value = arguments.get(name)
        if value is not None and value not in fine:
            said.append(f"{name}={value}: {why}")
    return said
