#!/usr/bin/env python3
"""Usage: recompute.py TRANSCODER GOLDEN

Loads a cross-layer transcoder by circuit-tracer's documented layout alone (config.yaml, W_enc_i and W_dec_i
safetensors), with nothing but NumPy, and computes activations and reconstruction of the golden run: GOLDEN
has the model, its tokens and what they must be. The model's forward pass is written down here a second time.
Exit code 1 when a number differs by more than 1e-5 of the largest; 77, skipped, without NumPy.
"""
import glob
import json
import os
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy (Debian: python3-numpy)")
    sys.exit(77)


def tensors(path):
    raw = open(path, "rb").read()
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + length])
    found = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        data = raw[8 + length + begin:8 + length + end]
        if entry["dtype"] == "BF16":
            values = (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32)
        else:
            values = np.frombuffer(data, {"F32": "<f4", "F16": "<f2", "I32": "<i4"}[entry["dtype"]])
        found[name] = values.reshape(entry["shape"]).astype(np.int64 if entry["dtype"] == "I32" else np.float64)
    return found


def norm(x, weights, name, epsilon):
    centred = x - x.mean(-1, keepdims=True)
    scale = np.sqrt((centred ** 2).mean(-1, keepdims=True) + epsilon)
    return centred / scale * weights[name + ".weight"] + weights[name + ".bias"]


def mlp_inputs_and_outputs(folder, ids):
    """Of every layer, what features read and what they are to write: [layers, tokens, width] each."""
    config = json.load(open(os.path.join(folder, "config.json")))
    weights = {name.removeprefix("transformer."): value
               for name, value in tensors(os.path.join(folder, "model.safetensors")).items()}
    heads, epsilon = config["n_head"], config["layer_norm_epsilon"]
    tokens = len(ids)
    x = weights["wte.weight"][ids] + weights["wpe.weight"][:tokens]
    reads, writes = [], []
    for layer in range(config["n_layer"]):
        own = {name.removeprefix(f"h.{layer}."): value for name, value in weights.items()}
        joint = norm(x, own, "ln_1", epsilon) @ own["attn.c_attn.weight"] + own["attn.c_attn.bias"]
        q, k, v = (part.reshape(tokens, heads, -1).transpose(1, 0, 2) for part in np.split(joint, 3, -1))
        scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
        scores = np.where(np.tril(np.ones((tokens, tokens), bool)), scores, -np.inf)
        pattern = np.exp(scores - scores.max(-1, keepdims=True))
        pattern /= pattern.sum(-1, keepdims=True)
        mixed = (pattern @ v).transpose(1, 0, 2).reshape(tokens, -1)
        x = x + mixed @ own["attn.c_proj.weight"] + own["attn.c_proj.bias"]
        read = norm(x, own, "ln_2", epsilon)
        hidden = read @ own["mlp.c_fc.weight"] + own["mlp.c_fc.bias"]
        hidden = 0.5 * hidden * (1 + np.tanh(np.sqrt(2 / np.pi) * (hidden + 0.044715 * hidden ** 3)))
        write = hidden @ own["mlp.c_proj.weight"] + own["mlp.c_proj.bias"]
        x = x + write
        reads.append(read)
        writes.append(write)
    return np.array(reads), np.array(writes)


def main(transcoder, golden):
    config = open(os.path.join(transcoder, "config.yaml")).read()
    for line in ("model_kind: cross_layer_transcoder", "feature_input_hook: ln2.hook_normalized",
                 "feature_output_hook: hook_mlp_out"):
        assert line in config.splitlines(), f"config.yaml has no line '{line}'"
    layers = len(glob.glob(os.path.join(transcoder, "W_enc_*.safetensors")))
    wanted = tensors(os.path.join(golden, "activations.safetensors"))
    reads, writes = mlp_inputs_and_outputs(os.path.join(golden, "model"), wanted["input_ids"])
    active = []
    reconstruction = np.zeros_like(writes)
    for i in range(layers):
        encoder = tensors(os.path.join(transcoder, f"W_enc_{i}.safetensors"))
        decoder = tensors(os.path.join(transcoder, f"W_dec_{i}.safetensors"))
        pre = reads[i] @ encoder[f"W_enc_{i}"].T + encoder[f"b_enc_{i}"]
        active.append(np.where(pre > encoder[f"threshold_{i}"], pre, 0))
        for j in range(layers - i):
            reconstruction[i + j] += active[i] @ decoder[f"W_dec_{i}"][:, j]
        reconstruction[i] += encoder[f"b_dec_{i}"]
    good = True
    for name, value in (("act", np.array(active)), ("reconstruction", reconstruction),
                        ("error", writes - reconstruction)):
        difference = np.abs(value - wanted[name]).max() / np.abs(wanted[name]).max()
        print(f"{name}: largest difference {difference:.1e} of the largest value")
        good = good and difference < 1e-5
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
