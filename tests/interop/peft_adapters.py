# needs: torch==2.13.0 transformers peft
"""Usage: peft_adapters.py PROGRAM FOLDER

Adapters of sparse runs, loaded by peft onto the dense models they are for: logits equal those of the
model that the run saved merged, dense as transformers runs both. (The other way round is
tests/golden/peft, which peft wrote.)"""

import json
import os
import pathlib
import subprocess
import sys

os.environ["HF_HUB_OFFLINE"] = "1"
import torch  # noqa: E402
from peft import PeftModel  # noqa: E402
from transformers import AutoModelForCausalLM  # noqa: E402

program, work = sys.argv[1], pathlib.Path(sys.argv[2])
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden"


def filigree(*arguments, codes=(0,)):
    run = subprocess.run([program, *map(str, arguments), "--quiet"], capture_output=True, text=True)
    if run.returncode not in codes:
        sys.exit(f"filigree {arguments[0]} ended with {run.returncode}: {run.stderr}")


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")


filigree("task", "corpus", "--documents", 300, "--out", work / "text.txt")
filigree("prepare", work / "text.txt", "--vocab", 300, "--out", work / "shards")
worst = 0.0
print("family        peft - merged   merged - dense")
for family in ("gpt2", "llama", "pythia", "qwen3", "gemma2", "mistral", "gptj-wide", "cohere"):
    config = json.loads((GOLDEN / f"{family}-tiny" / "config.json").read_text())
    config["vocab_size"] = 300
    for context in ("n_positions", "max_position_embeddings"):
        if context in config:
            config[context] = 32
    (work / "config.json").write_text(json.dumps(config))
    dense, sparse = work / family, work / f"{family}-sparse"
    filigree("pretrain", work / "shards", "--config", work / "config.json", "--out", dense, "--steps",
             10, "--batch", 2)
    # So few steps leave a model that has not converged, which sparsify says with exit code 3.
    filigree("sparsify", dense, work / "shards", "--out", sparse, "--steps", 10, "--batch", 2, "--lr",
             1e-2, "--lora-rank", 2, codes=(0, 3))
    torch.manual_seed(1)
    ids = torch.randint(0, 300, (2, 24))
    with torch.no_grad():
        plain = load(dense).double().eval()(ids).logits
        merged = load(sparse).double().eval()(ids).logits
        adapted = PeftModel.from_pretrained(load(dense), sparse / "adapter").double().eval()(ids).logits
    apart = (adapted - merged).abs().max().item()
    change = (merged - plain).abs().max().item()
    print(f"{family:12}  {apart:13.1e}  {change:15.2f}")
    worst = max(worst, apart if change > 0.05 else float("inf"))
sys.exit(0 if worst < 1e-5 else f"the largest difference is {worst:.1e}")
