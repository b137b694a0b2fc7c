"""GPT-2 of 124M parameters in PyTorch on a GPU: the work of `filigree bench --device cuda --precision bf16`.

Prints one JSON line a case and setting: {"case", "setting", "seconds" (median), "memory_bytes", "torch"}.
Settings are eager and compiled (torch.compile). The model is what a PyTorch user would write: autocast to
bf16 over f32 weights, scaled_dot_product_attention where there are no gates, fused AdamW, gradients
clipped. Gated attention is spelled out, since nothing fused offers gates.
"""

import argparse
import json
import math

import torch
import torch.nn.functional as F
from torch import nn

LAYERS, HEADS, WIDTH, VOCABULARY, CONTEXT = 12, 12, 768, 50257, 1024


def gated_attention(q, k, v, bias):
    """Sampled gates with a straight-through gradient -> the mixed values, the expected share of edges."""
    length = q.size(-2)
    causal = torch.ones(length, length, device=q.device, dtype=torch.bool).tril()
    scores = (q @ k.transpose(-2, -1)) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(~causal, float("-inf"))
    logits = scores + bias
    noisy = logits + torch.logit(torch.rand_like(logits).clamp(1e-6, 1 - 1e-6))
    relaxed = torch.sigmoid(noisy)
    gate = (noisy > 0).to(q.dtype) + relaxed - relaxed.detach()
    expected = torch.sigmoid(logits).sum((-1, -2)) / (length * (length + 1) / 2)
    return (F.softmax(scores, -1) * gate) @ v, expected


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, gated):
        batch, length, _ = x.shape
        shape = (batch, length, HEADS, WIDTH // HEADS)
        q, k, v = (y.view(shape).transpose(1, 2) for y in self.qkv(self.norm1(x)).split(WIDTH, -1))
        expected = None
        if gated:
            z, expected = gated_attention(q, k, v, 2.0)
        else:
            z = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(z.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh")), expected


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(LAYERS))
        self.norm = nn.LayerNorm(WIDTH)
        for parameter in self.parameters():
            if parameter.dim() == 2:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, gated):
        x = self.tokens(ids) + self.positions(torch.arange(ids.size(1), device=ids.device))
        edges = 0.0
        for block in self.blocks:
            x, expected = block(x, gated)
            if gated:
                edges = edges + expected.mean()
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.view(-1, VOCABULARY), ids.view(-1)) + edges


def median_seconds(work, runs, warm_up=3):
    for _ in range(warm_up):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        work()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    return sorted(times)[len(times) // 2]


def report(case, setting, work, runs):
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    seconds = median_seconds(work, runs)
    print(json.dumps({"case": case, "setting": setting, "seconds": seconds,
                      "memory_bytes": torch.cuda.max_memory_allocated() - before,
                      "torch": torch.__version__}), flush=True)


def time_attention(batch, length, gated, function, setting, runs):
    q, k, v = (torch.randn(batch, HEADS, length, WIDTH // HEADS, device="cuda", dtype=torch.bfloat16,
                           requires_grad=True) for _ in range(3))
    dz = torch.randn_like(q)

    def work():
        q.grad = k.grad = v.grad = None
        if gated:
            z, expected = function(q, k, v, 2.0)
            torch.autograd.backward([z, expected], [dz.to(z.dtype), torch.full_like(expected, 0.01)])
        else:
            F.scaled_dot_product_attention(q, k, v, is_causal=True).backward(dz)

    name = "gated" if gated else "dense"
    report(f"attention-{name}-b{batch}-t{length}", setting, work, runs)


def time_step(batch, length, gated, compiled, runs):
    torch.manual_seed(0)
    model = Gpt2().cuda()
    decayed = [p for p in model.parameters() if p.dim() >= 2]
    others = [p for p in model.parameters() if p.dim() < 2]
    optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1},
                                   {"params": others, "weight_decay": 0.0}], lr=1e-4,
                                  betas=(0.9, 0.95), fused=True)
    forward = torch.compile(model) if compiled else model
    ids = torch.randint(0, VOCABULARY, (batch, length), device="cuda")

    def work():
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16):
            loss = forward(ids, gated)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()

    name = "gated" if gated else "dense"
    report(f"step-{name}-b{batch}-t{length}", "compiled" if compiled else "eager", work, runs)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--only-compiled", action="store_true", help="leave out eager training steps")
    arguments = parser.parse_args()
    runs = arguments.runs
    torch.backends.cuda.matmul.allow_tf32 = True
    compiled_attention = torch.compile(gated_attention)
    time_attention(16, 1024, False, None, "eager", runs)
    time_attention(16, 1024, True, gated_attention, "eager", runs)
    time_attention(16, 1024, True, compiled_attention, "compiled", runs)
    for gated in (False, True):
        for compiled in (True,) if arguments.only_compiled else (True, False):
            try:
                time_step(32, 1024, gated, compiled, runs)
            except torch.cuda.OutOfMemoryError:
                torch.cuda.empty_cache()
                print(json.dumps({"case": f"step-{'gated' if gated else 'dense'}-b32-t1024",
                                  "setting": "compiled" if compiled else "eager",
                                  "problem": "out of memory"}), flush=True)


if __name__ == "__main__":
    main()
