"""One forward pass as the capture sees it: which rows belong to which prompt. Read from the batch, before it runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

PREFILLS = ("EXTEND", "MIXED")
"""SGLang's forward modes that run rows of prompts; MIXED has rows of decoding requests among them."""

HEALTH_CHECK = "HEALTH_CHECK"
"""How the identifiers of /health_generate's requests begin, in SGLang 0.5.8 and 0.5.23."""

INDEX, LOSS_MASK = "hangdoc_index", "hangdoc_loss_mask"
"""Names in a request's `sampling_params.custom_params`: the sample's number, its loss mask as text of 0 and 1."""


@dataclass(frozen=True)
class Portion:
    """Rows `first_row` to `first_row + rows` of the pass are tokens `start` to `start + rows` of the prompt."""

    request: str
    prompt: Sequence[int]
    start: int
    first_row: int
    rows: int
    index: int | None = None
    loss_mask: str | None = None

    @property
    def is_last(self) -> bool:
        """Say whether the prompt ends here."""
        return self.start + self.rows == len(self.prompt)


@dataclass
class Pass:
    """A prefill while it runs: the states found so far, `layers` by position among the layers wanted."""

    portions: tuple[Portion, ...]
    rows: int
    layers: dict[int, Any] = field(default_factory=dict)
    last: Any = None


def read(batch: Any) -> Pass | None:
    """Return the prefill that a batch is; None when it is none, or has rows of no prompt.

    Every rank decides by the same batch, because reading a state may be a collective.
    """
    if getattr(batch.forward_mode, "name", "") not in PREFILLS or not batch.reqs:
        return None
    portions, row = [], 0
    for request, start, rows in zip(batch.reqs, batch.prefix_lens, batch.extend_lens):  # noqa: B905 - Python 3.10's
        if _is_of_prompt(request, start, rows):
            portions.append(_portion(request, start, row, rows))
        row += rows
    return Pass(tuple(portions), row) if portions else None


def _is_of_prompt(request: Any, start: int, rows: int) -> bool:
    """Tell from rows of decoding: those lie behind the prompt, or (a retracted request's) repeat what was seen."""
    return not len(request.output_ids) and 0 < rows <= len(request.origin_input_ids) - start


def _portion(request: Any, start: int, row: int, rows: int) -> Portion:
    given = getattr(request.sampling_params, "custom_params", None)
    given = given if isinstance(given, dict) else {}
    index, mask = given.get(INDEX), given.get(LOSS_MASK)
    return Portion(
        str(request.rid),
        request.origin_input_ids,
        start,
        row,
        rows,
        index if type(index) is int and index >= 0 else None,
        mask if isinstance(mask, str) else None,
    )


def is_health_check(portion: Portion) -> bool:
    """Say whether the server asked itself."""
    return portion.request.startswith(HEALTH_CHECK)
