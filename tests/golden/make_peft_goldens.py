#!/usr/bin/env python3
"""Makes tests/golden/peft: adapters that peft saved for the tiny models beside it, with logits.

    pip install torch==2.13.0 transformers peft
    tests/golden/make_peft_goldens.py

Each folder NAME is what save_pretrained wrote, with golden.safetensors: the ids and the logits of the
model with the adapter, computed in float64. The same seed gives the same files.
"""

import json
import pathlib
import shutil

import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

HERE = pathlib.Path(__file__).parent
FOLDER = HERE / "peft"

# The folder of the base model, and what peft is told.
ADAPTERS = {
    "llama-all": ("llama-tiny", {
        "r": 4, "lora_alpha": 10, "target_modules": "all-linear",
        "rank_pattern": {"q_proj": 3, "mlp.down_proj": 2}, "alpha_pattern": {"v_proj": 5}}),
    "llama-rslora": ("llama-tiny", {
        "r": 4, "lora_alpha": 6, "target_modules": ["q_proj", "up_proj"], "use_rslora": True,
        "modules_to_save": ["lm_head"], "bias": "none"}),
    "gpt2-fused": ("gpt2-tiny", {
        "r": 3, "lora_alpha": 9, "target_modules": ["c_attn", "attn.c_proj", "c_fc"],
        "fan_in_fan_out": True}),
    "pythia-fused": ("pythia-tiny", {
        "r": 2, "lora_alpha": 8, "target_modules": ["query_key_value", "dense", "embed_in"]}),
    "gptj-pairs": ("gptj-wide-tiny", {
        "r": 3, "lora_alpha": 6, "target_modules": ["q_proj", "k_proj", "v_proj", "out_proj"]}),
    "cohere-pairs": ("cohere-tiny", {
        "r": 2, "lora_alpha": 6, "target_modules": "all-linear"}),
    "phi3-fused": ("phi3-tiny", {
        "r": 2, "lora_alpha": 6, "target_modules": "all-linear"}),
    "gpt-bigcode-heads": ("gpt-bigcode-heads-tiny", {
        "r": 2, "lora_alpha": 6, "target_modules": ["c_attn", "c_fc"]}),
    "qwen2-bias": ("qwen2-tiny", {
        "r": 2, "lora_alpha": 4, "target_modules": ["q_proj", "k_proj"], "bias": "lora_only"}),
}


def main():
    for name, (base, settings) in ADAPTERS.items():
        torch.manual_seed(sum(map(ord, name)))
        folder = FOLDER / name
        shutil.rmtree(folder, ignore_errors=True)
        model = AutoModelForCausalLM.from_pretrained(HERE / base, attn_implementation="eager")
        adapted = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", **settings))
        for key, parameter in adapted.named_parameters():
            if parameter.requires_grad:  # what was trained is not what it started as
                parameter.data += 0.1 * torch.randn_like(parameter)
        adapted.save_pretrained(folder)
        (folder / "README.md").unlink(missing_ok=True)
        config_file = folder / "adapter_config.json"
        config = json.loads(config_file.read_text())
        config["base_model_name_or_path"] = base
        for key in ("target_modules", "modules_to_save"):
            if isinstance(config.get(key), list):
                config[key] = sorted(config[key])  # peft writes them in any order
        config_file.write_text(json.dumps(config, indent=2) + "\n")
        adapted = adapted.double().eval()
        ids = torch.randint(0, model.config.vocab_size, (2, 9))
        with torch.no_grad():
            logits = adapted(ids).logits
        save_file({"input_ids": ids.to(torch.int32), "logits": logits.float()},
                  folder / "golden.safetensors")
        print(name, {k: v for k, v in config.items() if k in ("r", "lora_alpha", "peft_version")})


if __name__ == "__main__":
    main()
