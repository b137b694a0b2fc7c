#!/usr/bin/env python3
"""Makes tests/golden/hooked: models of TransformerLens of every kind, with their results.

    pip install torch==2.13.0 'transformer-lens>=3,<4'
    tests/golden/make_hooked_goldens.py

Each kind is a state dict as torch.save writes it (NAME.pt) with the settings that its shapes do not
tell (NAME.json), and NAME.safetensors with the ids, the logits, every cached activation by its name
and the gradient of every parameter, computed in float64. The same seed gives the same files.
"""

import json
import pathlib

import torch
from safetensors.torch import save_file
from transformer_lens import HookedTransformer, HookedTransformerConfig

FOLDER = pathlib.Path(__file__).parent / "hooked"

# The whole configuration of a kind, and what of it only a setting can tell.
KINDS = {
    "attn_only": ({"attn_only": True, "normalization_type": "LN"}, []),
    "no_norm": ({"normalization_type": None, "act_fn": "relu", "d_vocab_out": 5}, []),
    "lnpre": ({"normalization_type": "LNPre", "act_fn": "gelu"}, ["normalization_type", "act_fn"]),
    "rmspre": ({"normalization_type": "RMSPre", "act_fn": "silu"},
               ["normalization_type", "act_fn"]),
    "rms_gated": ({"normalization_type": "RMS", "act_fn": "silu", "gated_mlp": True}, []),
    "solu_ln": ({"act_fn": "solu_ln"}, []),
    "solu_folded": ({"act_fn": "solu_ln", "normalization_type": "LNPre"},
                    ["normalization_type", "act_fn"]),
    "rotary": ({"positional_embedding_type": "rotary", "rotary_dim": 4, "d_head": 6,
                "rotary_base": 500, "act_fn": "gelu_new"}, ["act_fn"]),
    "shortformer": ({"positional_embedding_type": "shortformer", "act_fn": "relu"},
                    ["positional_embedding_type"]),
    "bidirectional": ({"attention_dir": "bidirectional", "act_fn": "relu", "d_vocab_out": 2},
                      ["attention_dir"]),
    "parallel": ({"parallel_attn_mlp": True, "act_fn": "relu"}, ["parallel_attn_mlp"]),
    "unscaled": ({"use_attn_scale": False, "act_fn": "relu", "d_head": 3}, ["use_attn_scale"]),
    "grouped": ({"n_key_value_heads": 2, "n_heads": 4, "act_fn": "relu"}, []),
    "local": ({"use_local_attn": True, "window_size": 3, "attn_types": ["global", "local"],
               "attn_only": True}, ["use_local_attn", "window_size", "attn_types"]),
}


def make(name, changes, told):
    settings = {"n_layers": 2, "n_heads": 2, "d_model": 12, "d_head": 5, "d_mlp": 16, "n_ctx": 9,
                "d_vocab": 11, "seed": 7, "device": "cpu"}
    settings.update(changes)
    torch.manual_seed(len(name))
    model = HookedTransformer(HookedTransformerConfig(**settings))
    with torch.no_grad():
        for key, value in model.named_parameters():
            if key.split(".")[-1].startswith("b"):
                value.normal_(0.0, 0.3)  # they start at zero
            elif key.endswith(".w"):
                value.uniform_(0.5, 1.5)
    model = model.float()
    torch.save(model.state_dict(), FOLDER / f"{name}.pt")
    if told:
        (FOLDER / f"{name}.json").write_text(
            json.dumps({key: settings[key] for key in told}, indent=1) + "\n")

    exact = model.double()
    exact.cfg.dtype = torch.float64
    for module in exact.modules():
        if hasattr(module, "cfg"):
            module.cfg.dtype = torch.float64
    exact.set_use_attn_result(True)
    if not settings.get("attn_only"):
        exact.set_use_hook_mlp_in(True)
    ids = torch.randint(0, settings["d_vocab"], (2, 7))
    logits, cache = exact.run_with_cache(ids)
    tensors = {"input_ids": ids.int(), "logits": logits}
    for key, value in cache.items():
        tensors["act." + key] = value
    # The inputs of single heads, whose norms have another shape then.
    exact.set_use_split_qkv_input(True)
    _, split = exact.run_with_cache(ids, names_filter=lambda key: key.endswith("_input"))
    exact.set_use_split_qkv_input(False)
    for key, value in split.items():
        tensors["act." + key] = value
    # A loss that weighs every logit differently.
    weights = torch.linspace(-1.0, 1.0, logits.numel(), dtype=torch.float64).reshape(logits.shape)
    loss = (logits.log_softmax(-1) * weights).sum()
    exact.zero_grad()
    loss.backward()
    tensors["weights"] = weights
    for key, value in exact.named_parameters():
        tensors["grad." + key] = value.grad
    save_file({key: value.detach().float().contiguous() if value.is_floating_point()
               else value.contiguous() for key, value in tensors.items()},
              FOLDER / f"{name}.safetensors")
    print(name, len(cache), "activations")


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, (changes, told) in KINDS.items():
        make(name, changes, told)
