"""What Hugging Face transformers computes of the bundled models, for tests/golden/reference-models.

    python3 models/transformers_logits.py OUT [FOLDER...]

Writes OUT/NAME.safetensors for each model folder (default: both of models/): 256 token ids of
held-out.txt and the logits of the last eight positions, in f32 on the CPU. The gates of a sparse model
are unknown to transformers, so all its edges are open. Needs torch, transformers and safetensors.
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

here = pathlib.Path(__file__).parent
out = pathlib.Path(sys.argv[1])
folders = [pathlib.Path(name) for name in sys.argv[2:]] or [here / "dense-12x12", here / "sparse-12x12"]
text = (here / "dense-12x12" / "held-out.txt").read_text()[:2000]
out.mkdir(parents=True, exist_ok=True)
for folder in folders:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = tokenizer(text, return_tensors="pt").input_ids[:, :256]
    with torch.no_grad():
        logits = model(ids).logits[0, -8:]
    save_file(
        {"ids": ids.to(torch.int32).contiguous(), "logits": logits.contiguous()},
        out / f"{folder.name}.safetensors",
    )
    print(folder.name, tuple(ids.shape), logits[-1, :4].tolist())
