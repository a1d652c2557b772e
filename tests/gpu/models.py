"""Write the model that the scenarios serve: the rig's random DeepSeek-V2, with sizes that kernels for GPUs accept."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.sglang import tiny_model

SIZES = {"VOCAB": 1024, "LAYERS": 8, "HIDDEN": 512, "HEADS": 16, "INTER": 1024}
LATENT = {"NOPE": 128, "ROPE": 64, "VALUE": 128, "KV_RANK": 512, "EXPERTS": 8, "MOE_INTER": 256}
"""The latent attention's 512 + 64 is what kernels for it are built for."""

CONFIG = {
    "vocab_size": 1024,
    "num_hidden_layers": 8,
    "hidden_size": 512,
    "num_attention_heads": 16,
    "num_key_value_heads": 16,
    "intermediate_size": 1024,
    "moe_intermediate_size": 256,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "kv_lora_rank": 512,
    "max_position_embeddings": 4096,
    "rope_scaling": None,
    "pretraining_tp": 1,
    "ep_size": 1,
}


def main(out: Path) -> None:
    for name, size in (SIZES | LATENT).items():
        setattr(tiny_model, name, size)
    tiny_model.CONFIG.update(CONFIG)
    del tiny_model.CONFIG["rope_scaling"], tiny_model.CONFIG["num_nextn_predict_layers"]
    tiny_model.main(out)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
