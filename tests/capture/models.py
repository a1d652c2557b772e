"""Write a tiny random checkpoint whose layers differ enough that a mistake by one layer cannot hide in rounding.

Run with the server's Python: python -m tests.capture.models DIRECTORY KIND
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from tests.sglang import tiny_model as tiny

GAIN = 0.7
"""A matrix multiplies the length of a random vector by this: neighbouring layers then differ by a fifth and more."""

LAYERS, HIDDEN, HEADS, KV_HEADS, INTER, Q_RANK = 6, 128, 4, 2, 256, 48
KINDS = ("llama", "qwen2", "qwen3", "deepseek_v2", "deepseek_v3")
CLASSES = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "deepseek_v2": "DeepseekV2ForCausalLM",
    "deepseek_v3": "DeepseekV3ForCausalLM",
}
Shard = dict[str, torch.Tensor]


def matrix(rows: int, columns: int) -> torch.Tensor:
    return (torch.randn(rows, columns) * GAIN / math.sqrt(columns)).to(torch.bfloat16)


def gains(size: int) -> torch.Tensor:
    return (0.5 + torch.rand(size)).to(torch.bfloat16)


def config(kind: str) -> dict[str, Any]:
    common = {"architectures": [CLASSES[kind]], "model_type": kind}
    if kind == "deepseek_v2":
        return tiny.CONFIG | common
    if kind == "deepseek_v3":
        routing = {"n_group": 2, "topk_method": "noaux_tc", "scoring_func": "sigmoid", "norm_topk_prob": True}
        return tiny.CONFIG | common | routing | {"q_lora_rank": Q_RANK}
    kept = ("vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size", "max_position_embeddings")
    kept += ("rms_norm_eps", "rope_theta", "torch_dtype", "tie_word_embeddings", "attention_bias", "use_cache")
    plain = {name: tiny.CONFIG[name] for name in kept} | tiny.SPECIAL | common
    heads = {"num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HIDDEN // HEADS}
    return plain | heads | {"hidden_act": "silu"}


def mlp(prefix: str, inter: int) -> Shard:
    return {
        prefix + "gate_proj.weight": matrix(inter, HIDDEN),
        prefix + "up_proj.weight": matrix(inter, HIDDEN),
        prefix + "down_proj.weight": matrix(HIDDEN, inter),
    }


def plain_attention(prefix: str, kind: str) -> Shard:
    size = HIDDEN // HEADS
    widths = {"q": HEADS * size, "k": KV_HEADS * size, "v": KV_HEADS * size}
    shard = {f"{prefix}{name}_proj.weight": matrix(width, HIDDEN) for name, width in widths.items()}
    shard[prefix + "o_proj.weight"] = matrix(HIDDEN, HEADS * size)
    if kind == "qwen2":
        shard |= {f"{prefix}{name}_proj.bias": matrix(1, width)[0] for name, width in widths.items()}
    if kind == "qwen3":
        shard |= {f"{prefix}{name}_norm.weight": gains(size) for name in "qk"}
    return shard


def latent_attention(prefix: str, kind: str) -> Shard:
    heads = HEADS * (tiny.NOPE + tiny.ROPE)
    shard = {
        prefix + "kv_a_proj_with_mqa.weight": matrix(tiny.KV_RANK + tiny.ROPE, HIDDEN),
        prefix + "kv_a_layernorm.weight": gains(tiny.KV_RANK),
        prefix + "kv_b_proj.weight": matrix(HEADS * (tiny.NOPE + tiny.VALUE), tiny.KV_RANK),
        prefix + "o_proj.weight": matrix(HIDDEN, HEADS * tiny.VALUE),
    }
    if kind == "deepseek_v2":
        return shard | {prefix + "q_proj.weight": matrix(heads, HIDDEN)}
    return shard | {
        prefix + "q_a_proj.weight": matrix(Q_RANK, HIDDEN),
        prefix + "q_a_layernorm.weight": gains(Q_RANK),
        prefix + "q_b_proj.weight": matrix(heads, Q_RANK),
    }


def experts(prefix: str, kind: str) -> Shard:
    shard = {prefix + "gate.weight": matrix(tiny.EXPERTS, HIDDEN)}
    if kind == "deepseek_v3":
        shard[prefix + "gate.e_score_correction_bias"] = torch.zeros(tiny.EXPERTS)
    for number in range(tiny.EXPERTS):
        shard |= mlp(f"{prefix}experts.{number}.", tiny.MOE_INTER)
    return shard | mlp(prefix + "shared_experts.", tiny.MOE_INTER)


def layer(number: int, kind: str) -> Shard:
    prefix = f"model.layers.{number}."
    shard = {prefix + f"{name}_layernorm.weight": gains(HIDDEN) for name in ("input", "post_attention")}
    if not kind.startswith("deepseek"):
        return shard | plain_attention(prefix + "self_attn.", kind) | mlp(prefix + "mlp.", INTER)
    attention = latent_attention(prefix + "self_attn.", kind)
    return shard | attention | (experts(prefix + "mlp.", kind) if number else mlp(prefix + "mlp.", INTER))


def write(out: Path, kind: str) -> None:
    torch.manual_seed(KINDS.index(kind))
    out.mkdir(parents=True)
    weights = {"model.embed_tokens.weight": torch.randn(tiny.VOCAB, HIDDEN).to(torch.bfloat16)}
    for number in range(LAYERS):
        weights |= layer(number, kind)
    weights |= {"model.norm.weight": gains(HIDDEN), "lm_head.weight": matrix(tiny.VOCAB, HIDDEN)}
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    tiny.write_tokenizer(out)
    tiny.write_json(out / "generation_config.json", tiny.SPECIAL)
    tiny.write_json(out / "config.json", config(kind))


if __name__ == "__main__":
    write(Path(sys.argv[1]), sys.argv[2])
