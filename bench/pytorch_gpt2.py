"""GPT-2 of 124M parameters in plain PyTorch on the CPU: the work of `filigree bench`, case by case.

Prints one JSON line a case: {"case", "seconds" (median), "threads", "torch"}. The model is written the
way a PyTorch user would: functional calls on parameters, maps kept by materialising the attention
weights, no custom kernels. Debian: python3-torch.
"""

import argparse
import json
import math
import os
import time

import torch
import torch.nn.functional as F

LAYERS, HEADS, WIDTH, VOCABULARY, CONTEXT = 12, 12, 768, 50257, 1024


class Gpt2(torch.nn.Module):
    def __init__(self):
        super().__init__()

        def matrix(rows, columns, deviation=0.02):
            return torch.nn.Parameter(torch.randn(rows, columns) * deviation)

        def vector(size, value):
            return torch.nn.Parameter(torch.full((size,), float(value)))

        self.tokens = matrix(VOCABULARY, WIDTH)
        self.positions = matrix(CONTEXT, WIDTH, 0.01)
        self.blocks = torch.nn.ModuleList()
        for _ in range(LAYERS):
            block = torch.nn.ParameterDict({
                "norm1": vector(WIDTH, 1), "norm1_bias": vector(WIDTH, 0),
                "qkv": matrix(WIDTH, 3 * WIDTH), "qkv_bias": vector(3 * WIDTH, 0),
                "out": matrix(WIDTH, WIDTH), "out_bias": vector(WIDTH, 0),
                "norm2": vector(WIDTH, 1), "norm2_bias": vector(WIDTH, 0),
                "up": matrix(WIDTH, 4 * WIDTH), "up_bias": vector(4 * WIDTH, 0),
                "down": matrix(4 * WIDTH, WIDTH), "down_bias": vector(WIDTH, 0),
            })
            self.blocks.append(block)
        self.norm, self.norm_bias = vector(WIDTH, 1), vector(WIDTH, 0)

    # With `gate_bias`, every edge gets a sampled gate with a straight-through gradient, and the sum of
    # the layers' expected edges is returned beside the logits.
    def forward(self, ids, maps=None, gate_bias=None):
        expected = 0.0
        batch, length = ids.shape
        causal = torch.ones(length, length, dtype=torch.bool).tril()
        x = self.tokens[ids] + self.positions[:length]
        for p in self.blocks:
            y = F.layer_norm(x, (WIDTH,), p["norm1"], p["norm1_bias"])
            qkv = torch.matmul(y, p["qkv"]) + p["qkv_bias"]
            q, k, v = qkv.view(batch, length, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
            scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS)
            pattern = F.softmax(scores.masked_fill(~causal, float("-inf")), -1)
            if gate_bias is not None:
                logit = (scores + gate_bias).masked_fill(~causal, float("-inf"))
                uniform = torch.rand_like(scores).clamp(1e-6, 1 - 1e-6)
                noisy = logit + torch.log(uniform) - torch.log1p(-uniform)
                relaxed = torch.sigmoid(noisy)
                pattern = pattern * ((noisy > 0).float() + relaxed - relaxed.detach())
                expected = expected + torch.sigmoid(logit).mean()
            if maps is not None:
                maps.append(pattern)
            mixed = (pattern @ v).transpose(1, 2).reshape(batch, length, WIDTH)
            x = x + torch.matmul(mixed, p["out"]) + p["out_bias"]
            y = F.layer_norm(x, (WIDTH,), p["norm2"], p["norm2_bias"])
            hidden = F.gelu(torch.matmul(y, p["up"]) + p["up_bias"], approximate="tanh")
            x = x + torch.matmul(hidden, p["down"]) + p["down_bias"]
        return F.layer_norm(x, (WIDTH,), self.norm, self.norm_bias) @ self.tokens.T, expected


def median_seconds(work, repeats):
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    model = Gpt2()

    def report(case, seconds):
        print(json.dumps({"case": case, "seconds": round(seconds, 4),
                          "threads": torch.get_num_threads(), "torch": torch.__version__}), flush=True)

    for length, repeats in ((16, 10), (128, 5), (1024, 3)):
        ids = torch.randint(0, VOCABULARY, (1, length))

        def forward():
            with torch.no_grad():
                model(ids, maps=[])

        report(f"forward-maps-b1-t{length}", median_seconds(forward, repeats))

    ids = torch.randint(0, VOCABULARY, (4, 256))

    def step(gate_bias):
        model.zero_grad(set_to_none=True)
        logits, expected = model(ids, gate_bias=gate_bias)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, VOCABULARY), ids[:, 1:].reshape(-1))
        (loss + expected).backward()

    report("train-dense-b4-t256", median_seconds(lambda: step(None), 3))
    report("train-gated-b4-t256", median_seconds(lambda: step(2.0), 3))


if __name__ == "__main__":
    main()
