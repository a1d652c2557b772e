"""Write tests/capture/data, what torch saves for a whole sample and one with NaN; run with the server's Python."""

from __future__ import annotations

from pathlib import Path

import torch

LENGTH, HIDDEN = 3, 4
HERE = Path(__file__).parent / "data"


def sample() -> dict[str, torch.Tensor]:
    states = torch.arange(LENGTH * HIDDEN * 4, dtype=torch.float32).reshape(1, LENGTH, 4 * HIDDEN).to(torch.bfloat16)
    return {
        "input_ids": torch.tensor([7, 8, 9]),
        "loss_mask": torch.tensor([0, 1, 1]),
        "hidden_state": states[:, :, :HIDDEN].clone(),
        "aux_hidden_state": states[:, :, HIDDEN:].clone(),
    }


whole, spoilt = sample(), sample()
# An infinity is a number, and its highest byte is a NaN's.
whole["hidden_state"][0, 0, 0] = float("inf")
spoilt["aux_hidden_state"][0, 2, 11] = float("nan")
torch.save(whole, HERE / "whole.ckpt")
torch.save(spoilt, HERE / "nan.ckpt")
