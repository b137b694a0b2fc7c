"""Whether Hugging Face transformers loads model folders that filigree saved, with equal logits.

    python3 models/transformers_loads.py PROGRAM OUT FOLDER...

PROGRAM converts each FOLDER to f32 and to bf16 under OUT, and transformers loads both. A FOLDER is one
of tests/golden with expected.safetensors (input_ids and the logits that transformers computed in double
precision): in f32 the logits must be those within 1e-5 of the largest, and bit for bit those of the
fixture's own weights; in bf16 within 3 %. Or it is a model with a tokenizer and held-out.txt: then the
logits of the last position must be those of `PROGRAM run` on the converted folder within 1e-5, in bf16
too, since both compute in f32 with the rounded weights. Prints a line a folder and exits with 1 if one
differs. Needs torch, transformers, numpy and safetensors.
"""

import pathlib
import subprocess
import sys

import numpy
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM
from transformers.utils import logging

logging.set_verbosity_error()


def logits_of(folder, ids):
    model, info = AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager", output_loading_info=True)
    left = [key for name in ("missing_keys", "unexpected_keys", "mismatched_keys") for key in info.get(name) or []]
    with torch.no_grad():
        return model.eval()(input_ids=ids, use_cache=False).logits, left


def ours_of(program, folder, text):
    """The ids of a text and the logits after it, by `filigree run` on the CPU."""
    file = folder.parent / f"{folder.name}.npz"
    subprocess.run([program, "run", str(folder), "--prompt", text, "--tap", "ln_final.hook_scale", "--out", str(file),
                    "--quiet"], check=True, stdout=subprocess.DEVNULL)
    with numpy.load(file) as arrays:
        ids, logits = arrays["ids"].reshape(1, -1), arrays["plain.logits"].reshape(-1)
    return torch.from_numpy(ids).long(), torch.from_numpy(logits).float()


def main():
    program, out, folders = sys.argv[1], pathlib.Path(sys.argv[2]), map(pathlib.Path, sys.argv[3:])
    out.mkdir(parents=True, exist_ok=True)
    failures = 0
    for source in folders:
        line, good, own = f"{source.name:26}", True, None
        is_fixture = (source / "expected.safetensors").exists()
        if is_fixture:
            expected = load_file(source / "expected.safetensors")
            ids, wanted = expected["input_ids"].long(), expected["logits"].float()
            own, _ = logits_of(source, ids)
        for dtype in ("f32", "bf16"):
            folder = out / f"{source.name}-{dtype}"
            subprocess.run([program, "convert", str(source), "--out", str(folder), "--dtype", dtype, "--quiet"],
                           check=True, stdout=subprocess.DEVNULL)
            if not is_fixture:
                ids, wanted = ours_of(program, folder, (source / "held-out.txt").read_text()[:800])
            found, left = logits_of(folder, ids)
            if not is_fixture:
                found = found[0, -1]
            error = ((found - wanted).abs().max() / wanted.abs().max()).item()
            same = own is not None and torch.equal(found, own)
            limit = 3e-2 if is_fixture and dtype == "bf16" else 1e-5
            good = good and error < limit and not left and (same or own is None or dtype != "f32")
            line += f"  {dtype}: {error:.1e}{', same bits' if same else ''}{', not matched: ' + str(left) if left else ''}"
        failures += not good
        print(line, "" if good else "  DIFFERS", flush=True)
    print(f"{failures} folders differ")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
