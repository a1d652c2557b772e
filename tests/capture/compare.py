"""Compare captured samples with transformers on the same checkpoint; prints JSON, one object for each sample.

Run with the server's Python: python -m tests.capture.compare MODEL DIRECTORY LAYERS DTYPE NEW_TOKENS
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM


def relative(found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest error of a row, in lengths of the expected row."""
    found, expected = found.double(), expected.double()
    return float(((found - expected).norm(dim=-1) / expected.norm(dim=-1)).max())


def load(path: Path) -> dict[str, torch.Tensor]:
    if path.suffix == ".safetensors":
        return load_file(path)
    return torch.load(path, weights_only=True)


def greedy(ids: torch.Tensor, model: Any, number: int) -> list[int]:
    """What the model answers, each token from the whole text before it."""
    answer: list[int] = []
    for _ in range(number):
        with torch.no_grad():
            logits = model(torch.cat([ids, torch.tensor(answer, dtype=torch.int64)])[None]).logits
        answer.append(int(logits[0, -1].argmax()))
    return answer


def compared(sample: dict[str, torch.Tensor], model: Any, layers: list[int], number: int) -> dict[str, Any]:
    ids = sample["input_ids"]
    with torch.no_grad():
        states = model(ids[None], output_hidden_states=True).hidden_states
    parts = sample["aux_hidden_state"][0].chunk(len(layers), dim=-1)
    wrong = [
        min(relative(part, states[other][0]) for other in range(len(states)) if other != number)
        for part, number in zip(parts, layers, strict=True)
    ]
    return {
        "ids": ids.tolist(),
        "mask": sample["loss_mask"].tolist(),
        "shapes": {name: list(tensor.shape) for name, tensor in sample.items()},
        "dtypes": {name: str(tensor.dtype) for name, tensor in sample.items()},
        "errors": [relative(part, states[number][0]) for part, number in zip(parts, layers, strict=True)],
        "last_error": relative(sample["hidden_state"][0], states[-1][0]),
        "nearest_wrong": min(wrong),
        "generated": greedy(ids, model, number),
    }


def main(model_path: str, directory: str, layers: str, dtype: str, new_tokens: str) -> None:
    kind = getattr(torch, dtype)
    model = AutoModelForCausalLM.from_pretrained(model_path, dtype=kind, attn_implementation="eager").eval()
    numbers = [int(number) for number in layers.split(",")]
    paths = sorted(Path(directory).glob("rows_*/data_*"))
    print(json.dumps({path.name: compared(load(path), model, numbers, int(new_tokens)) for path in paths}))


if __name__ == "__main__":
    main(*sys.argv[1:])
