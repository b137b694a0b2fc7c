#!/usr/bin/env python3
"""Makes tests/golden/NAME-tiny for the families below: tiny models of transformers, with results.

    python3 -m venv goldens && goldens/bin/pip install torch==2.13.0 transformers safetensors numpy
    goldens/bin/python tests/golden/make_family_goldens.py [NAME...]

A folder has config.json and model.safetensors as transformers saves them, and expected.safetensors
with the ids, the logits, every hidden state, every attention map, the loss and the gradient of every
tensor of the file, computed in float64 from the float32 weights. The configurations reach what is
particular to a family: windows shorter than the prompts, shared keys, two bases, scaling of
positions that is in effect, heads turned in part, biases. The same seed gives the same files.
"""

import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

FOLDER = pathlib.Path(__file__).parent
ROWS, LENGTH = 2, 14

# With Llama's names of the extents; a window of 5 and contexts of 8 are shorter than the prompts.
LLAMA = {"vocab_size": 47, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 3,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 32,
         "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
# With GPT-2's.
GPT = {"vocab_size": 47, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 32,
       "bos_token_id": 1, "eos_token_id": 2}
FAR = {"rope_type": "longrope", "rope_theta": 500.0, "partial_rotary_factor": 0.75,
       "short_factor": [1.0, 1.1, 1.3], "long_factor": [1.5, 2.0, 4.0]}

KINDS = {
    "gemma": ("Gemma", {"num_key_value_heads": 1, "head_dim": 6}),
    "gemma3": ("Gemma3", {
        "num_hidden_layers": 4, "head_dim": 6, "sliding_window": 5, "query_pre_attn_scalar": 10,
        "final_logit_softcapping": 3.0,
        "layer_types": ["sliding_attention", "full_attention", "sliding_attention",
                        "full_attention"],
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 100.0},
            "full_attention": {"rope_type": "linear", "rope_theta": 5000.0, "factor": 2.0}}}),
    "phi3": ("Phi3", {"sliding_window": 5, "rope_parameters": {
        "rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.5}}),
    "phi3-longrope": ("Phi3", {
        "hidden_size": 32, "num_hidden_layers": 2, "original_max_position_embeddings": 8,
        "rope_parameters": FAR}),
    "phi": ("Phi", {"qk_layernorm": True, "rope_parameters": {
        "rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.5}}),
    "olmo3": ("Olmo3", {
        "num_hidden_layers": 4, "sliding_window": 5, "attention_bias": True,
        "rope_parameters": {
            "sliding_attention": {"rope_type": "default", "rope_theta": 300.0},
            "full_attention": {"rope_type": "yarn", "rope_theta": 300.0, "factor": 4.0,
                               "original_max_position_embeddings": 8, "beta_fast": 2.0,
                               "beta_slow": 0.2}}}),
    "smollm3": ("SmolLM3", {
        "num_hidden_layers": 4, "no_rope_layers": [1, 0, 1, 0], "mlp_bias": True,
        "use_sliding_window": True, "sliding_window": 5,
        "rope_parameters": {"rope_type": "default", "rope_theta": 300.0}}),
    "llama-yarn": ("Llama", {"hidden_size": 32, "num_hidden_layers": 2, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 50.0, "factor": 4.0,
        "original_max_position_embeddings": 8, "beta_fast": 3.0, "beta_slow": 0.3, "mscale": 0.7,
        "mscale_all_dim": 0.3, "truncate": False}}),
    "qwen2-dynamic": ("Qwen2", {
        "hidden_size": 32, "num_hidden_layers": 2, "max_position_embeddings": 8,
        "rope_parameters": {"rope_type": "dynamic", "rope_theta": 50.0, "factor": 2.0}}),
    "gptj": ("GPTJ", {"rotary_dim": 2}),
    "gptj-wide": ("GPTJ", {"n_embd": 32, "rotary_dim": 6, "n_inner": 20}),
    "opt": ("OPT", {"ffn_dim": 24, "num_hidden_layers": 2, "word_embed_proj_dim": 16}),
    "gpt-bigcode": ("GPTBigCode", {"n_inner": 24}),
    "gpt-bigcode-heads": ("GPTBigCode", {"multi_query": False, "tie_word_embeddings": False}),
    "stablelm": ("StableLm", {"hidden_size": 32, "use_qkv_bias": True, "rope_parameters": {
        "rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": 0.5}}),
    "stablelm-parallel": ("StableLm", {
        "num_hidden_layers": 2, "use_parallel_residual": True, "qk_layernorm": True,
        "rope_parameters": {"rope_type": "default", "rope_theta": 300.0,
                            "partial_rotary_factor": 0.5}}),
    "starcoder2": ("Starcoder2", {"sliding_window": 5}),
    "cohere": ("Cohere", {"use_qk_norm": True, "logit_scale": 0.4, "attention_bias": True,
                          "rope_parameters": {"rope_type": "default", "rope_theta": 300.0}}),
    "cohere-plain": ("Cohere", {"num_hidden_layers": 2, "tie_word_embeddings": False}),
    "olmoe": ("Olmoe", {"num_hidden_layers": 2, "num_experts": 5, "num_experts_per_tok": 2}),
    "olmoe-normed": ("Olmoe", {"num_hidden_layers": 2, "num_experts": 4, "num_experts_per_tok": 3,
                               "norm_topk_prob": True, "tie_word_embeddings": True}),
    "qwen3-moe": ("Qwen3Moe", {"num_hidden_layers": 2, "num_experts": 5, "num_experts_per_tok": 2,
                               "moe_intermediate_size": 12, "head_dim": 6, "norm_topk_prob": True,
                               "use_sliding_window": True, "sliding_window": 5}),
}
CONFIGS = {"Gemma3": "Gemma3TextConfig"}  # where it is not the family's name


def config_of(family, changes):
    # A copy: classes of configurations write defaults into nested dictionaries.
    changes = json.loads(json.dumps(changes))
    base = GPT if family.startswith("GPT") else LLAMA
    config_class = getattr(transformers, CONFIGS.get(family, family + "Config"))
    return config_class(**{**base, **changes})


def draw_weights(model):
    for name, value in model.named_parameters():
        if value.dim() == 1 or "norm" in name:
            if name.endswith("bias"):
                value.normal_(0.0, 0.3)
            else:  # around the gain of 1, also where it is stored less 1
                value.add_(torch.rand_like(value) - 0.5)
        else:
            value.normal_(0.0, 1.3 / value.shape[-1] ** 0.5)


def gradients_by_file(model, folder):
    """The gradients under the names, and in the parts, that the file has."""
    grads = {name: value.grad for name, value in model.named_parameters()}
    found = {}
    for name in load_file(folder / "model.safetensors"):
        if name in grads:
            found[name] = grads[name]
            continue
        # transformers holds the experts of a layer together, and their files apart.
        before, expert = name.split(".experts.")
        index, matrix, _ = expert.split(".")
        if matrix == "down_proj":
            found[name] = grads[before + ".experts.down_proj"][int(index)]
        else:
            both = grads[before + ".experts.gate_up_proj"][int(index)].chunk(2)
            found[name] = both[0 if matrix == "gate_proj" else 1]
    return found


def make(name, family, changes):
    torch.manual_seed(sum(map(ord, name)))
    config = config_of(family, changes)
    classes = transformers.AutoModelForCausalLM
    model = classes.from_config(config, attn_implementation="eager").float()
    with torch.no_grad():
        draw_weights(model)
    folder = FOLDER / f"{name}-tiny"
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)

    model = classes.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32)
    if hasattr(model, "set_experts_implementation"):
        model.set_experts_implementation("eager")
    model = model.double().eval()
    ids = torch.randint(3, config.vocab_size, (ROWS, LENGTH))
    result = model(ids, labels=ids, output_hidden_states=True, output_attentions=True,
                   use_cache=False)
    result.loss.backward()
    expected = {"input_ids": ids.to(torch.int32), "logits": result.logits, "loss": result.loss}
    for kind in ("hidden_states", "attentions"):
        for i, value in enumerate(getattr(result, kind)):
            expected[f"{kind}.{i}"] = value
    for i, value in enumerate(getattr(result, "router_logits", None) or ()):
        expected[f"router_logits.{i}"] = value
    for key, value in gradients_by_file(model, folder).items():
        expected["grad." + key] = value
    expected = {key: value if value.dtype == torch.int32 else value.detach().float()
                for key, value in expected.items()}
    save_file({key: value.contiguous().clone() for key, value in expected.items()},
              folder / "expected.safetensors",
              metadata={"transformers": transformers.__version__, "torch": torch.__version__})
    size = sum(file.stat().st_size for file in folder.iterdir())
    print(f"{name}-tiny: {model.num_parameters()} numbers, loss {result.loss.item():.4f}, "
          f"{size // 1024} kB")


def main(names):
    print(f"transformers {transformers.__version__}, torch {torch.__version__}")
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        sys.exit(f"there is no {', '.join(unknown)}; there are {', '.join(KINDS)}")
    for name, (family, changes) in KINDS.items():
        if not names or name in names:
            make(name, family, changes)


if __name__ == "__main__":
    main(sys.argv[1:])
