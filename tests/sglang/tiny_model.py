"""Write a random-weight DeepSeek-V2 checkpoint of some 3 MB (six safetensors shards) and a byte tokenizer."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers

VOCAB, LAYERS, HIDDEN, HEADS, INTER = 512, 6, 128, 4, 256
NOPE, ROPE, VALUE, KV_RANK, EXPERTS, MOE_INTER = 32, 16, 32, 64, 8, 64
SPECIAL = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
Shard = dict[str, torch.Tensor]

CONFIG = SPECIAL | {
    "architectures": ["DeepseekV2ForCausalLM"],
    "model_type": "deepseek_v2",
    "vocab_size": VOCAB,
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "intermediate_size": INTER,
    "moe_intermediate_size": MOE_INTER,
    "n_routed_experts": EXPERTS,
    "n_shared_experts": 1,
    "num_experts_per_tok": 2,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "n_group": 1,
    "topk_group": 1,
    "topk_method": "greedy",
    "scoring_func": "softmax",
    "norm_topk_prob": False,
    "routed_scaling_factor": 1.0,
    "aux_loss_alpha": 0.001,
    "seq_aux": True,
    "qk_nope_head_dim": NOPE,
    "qk_rope_head_dim": ROPE,
    "v_head_dim": VALUE,
    "kv_lora_rank": KV_RANK,
    "q_lora_rank": None,
    "num_nextn_predict_layers": 0,
    "max_position_embeddings": 2048,
    "rms_norm_eps": 1e-6,
    "hidden_act": "silu",
    "rope_theta": 10000.0,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
    "attention_bias": False,
    "initializer_range": 0.02,
    "use_cache": True,
    # SGLang's CPU rope for DeepSeek asserts that this is there and is yarn.
    "rope_scaling": {
        "type": "yarn",
        "factor": 4,
        "original_max_position_embeddings": 512,
        "beta_fast": 32,
        "beta_slow": 1,
        "mscale": 1.0,
        "mscale_all_dim": 1.0,
    },
}

TOKENIZER_CONFIG = {
    "tokenizer_class": "PreTrainedTokenizerFast",
    "bos_token": "<bos>",
    "eos_token": "<eos>",
    "pad_token": "<pad>",
    "model_max_length": 2048,
    "clean_up_tokenization_spaces": False,
    "chat_template": "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}",
}


def noise(*shape: int) -> torch.Tensor:
    return (torch.randn(*shape) * 0.02).to(torch.bfloat16)


def ones(size: int) -> torch.Tensor:
    return torch.ones(size, dtype=torch.bfloat16)


def mlp(prefix: str, inter: int) -> Shard:
    return {
        prefix + "gate_proj.weight": noise(inter, HIDDEN),
        prefix + "up_proj.weight": noise(inter, HIDDEN),
        prefix + "down_proj.weight": noise(HIDDEN, inter),
    }


def attention(prefix: str) -> Shard:
    return {
        prefix + "q_proj.weight": noise(HEADS * (NOPE + ROPE), HIDDEN),
        prefix + "kv_a_proj_with_mqa.weight": noise(KV_RANK + ROPE, HIDDEN),
        prefix + "kv_a_layernorm.weight": ones(KV_RANK),
        prefix + "kv_b_proj.weight": noise(HEADS * (NOPE + VALUE), KV_RANK),
        prefix + "o_proj.weight": noise(HIDDEN, HEADS * VALUE),
    }


def experts(prefix: str) -> Shard:
    shard = {prefix + "gate.weight": noise(EXPERTS, HIDDEN)}
    for number in range(EXPERTS):
        shard |= mlp(f"{prefix}experts.{number}.", MOE_INTER)
    return shard | mlp(prefix + "shared_experts.", MOE_INTER)


def layer(number: int) -> Shard:
    prefix = f"model.layers.{number}."
    shard = {
        prefix + "input_layernorm.weight": ones(HIDDEN),
        prefix + "post_attention_layernorm.weight": ones(HIDDEN),
    }
    feed_forward = mlp(prefix + "mlp.", INTER) if number == 0 else experts(prefix + "mlp.")
    return shard | attention(prefix + "self_attn.") | feed_forward


def write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, indent=1))


def write_weights(out: Path) -> None:
    shards = [layer(number) for number in range(LAYERS)]
    shards[0]["model.embed_tokens.weight"] = noise(VOCAB, HIDDEN)
    shards[-1] |= {"model.norm.weight": ones(HIDDEN), "lm_head.weight": noise(VOCAB, HIDDEN)}
    index = {}
    for number, shard in enumerate(shards, 1):
        name = f"model-{number:05d}-of-{LAYERS:05d}.safetensors"
        save_file(shard, out / name, metadata={"format": "pt"})
        index.update(dict.fromkeys(shard, name))
    size = sum(tensor.numel() * tensor.element_size() for shard in shards for tensor in shard.values())
    write_json(out / "model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": index})


def write_tokenizer(out: Path) -> None:
    names = ["<bos>", "<eos>", "<pad>", *sorted(pre_tokenizers.ByteLevel.alphabet())]
    names += [f"<x{number}>" for number in range(len(names), VOCAB)]
    tokenizer = Tokenizer(models.BPE(vocab={name: number for number, name in enumerate(names)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.save(str(out / "tokenizer.json"))
    write_json(out / "tokenizer_config.json", TOKENIZER_CONFIG)


def main(out: Path) -> None:
    torch.manual_seed(0)
    out.mkdir(parents=True, exist_ok=True)
    write_weights(out)
    write_tokenizer(out)
    write_json(out / "generation_config.json", SPECIAL)
    write_json(out / "config.json", CONFIG)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
