"""One step of sparse post-training with adapters in PyTorch on a GPU: the work of
`filigree bench --device cuda --precision bf16 --config FILE --cases step-lora-b4-t2048`.

    bench/pytorch_lora_gpu.py bench/llama-7b.json

The model is transformers' own class of that config.json with random weights in bf16, frozen, and
gradient checkpointing. The teacher is the same model with adapters and gates off and
scaled_dot_product_attention; the student has adapters on q, k, v and o and gated attention, which is
spelled out, since nothing fused offers gates. The loss is cross entropy and divergence from the
teacher, and the logarithm of the expected share of edges; the optimiser is fused AdamW on adapters
and gate biases, gradients clipped.

Prints one JSON line: {"case", "setting", "seconds" (median), "tokens_per_s", "memory_bytes" (most that
was allocated, weights included), "reserved_bytes", "torch", "transformers"}.
"""

import argparse
import json

import torch
import torch.nn.functional as F
import transformers
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, AttentionInterface

RANK, GATE_BIAS, LAMBDA = 16, 2.0, 2.0


class Adapted(nn.Module):
    """A frozen linear layer and its low-rank adapter."""

    on = True

    def __init__(self, base):
        super().__init__()
        self.base = base
        device = base.weight.device
        self.down = nn.Parameter(torch.empty(RANK, base.in_features, device=device, dtype=torch.float32))
        self.up = nn.Parameter(torch.zeros(base.out_features, RANK, device=device, dtype=torch.float32))
        nn.init.uniform_(self.down, -base.in_features**-0.5, base.in_features**-0.5)

    def forward(self, x):
        y = self.base(x)
        if not Adapted.on:
            return y
        return y + F.linear(2.0 * F.linear(x, self.down.to(x.dtype)), self.up.to(x.dtype))


def gated_attention(q, k, v, bias, scale):
    """Sampled gates with a straight-through gradient -> the mixed values, the expected share of edges."""
    length = q.size(-2)
    causal = torch.ones(length, length, device=q.device, dtype=torch.bool).tril()
    scores = (q @ k.transpose(-2, -1)) * scale
    scores = scores.masked_fill(~causal, float("-inf"))
    logits = scores + bias.to(q.dtype)
    noisy = logits + torch.logit(torch.rand_like(logits).clamp(1e-6, 1 - 1e-6))
    relaxed = torch.sigmoid(noisy)
    gate = (noisy > 0).to(q.dtype) + relaxed - relaxed.detach()
    expected = torch.sigmoid(logits).sum((-1, -2), dtype=torch.float32) / (length * (length + 1) / 2)
    pattern = F.softmax(scores, -1, dtype=torch.float32).to(q.dtype)
    return (pattern * gate) @ v, expected


class Gates(nn.Module):
    def __init__(self, layers, heads, function):
        super().__init__()
        self.biases = nn.ParameterList(
            nn.Parameter(torch.full((heads, 1, 1), GATE_BIAS, device="cuda", dtype=torch.float32))
            for _ in range(layers))
        self.expected = [None] * layers
        self.function = function

    def __call__(self, module, q, k, v, attention_mask, scaling=None, dropout=0.0, **others):
        groups = q.size(1) // k.size(1)
        if groups > 1:
            k, v = (x.repeat_interleave(groups, dim=1) for x in (k, v))
        if not Adapted.on:
            z = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scaling)
        else:
            layer = module.layer_idx
            z, self.expected[layer] = self.function(q, k, v, self.biases[layer], scaling)
        return z.transpose(1, 2).contiguous(), None


def median(values):
    return sorted(values)[len(values) // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--length", type=int, default=2048)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--compile-attention", action="store_true", help="gated attention by torch.compile")
    arguments = parser.parse_args()

    torch.manual_seed(0)
    torch.set_default_dtype(torch.bfloat16)
    settings = json.load(open(arguments.config))
    config = AutoConfig.for_model(settings.pop("model_type"), **settings)
    function = torch.compile(gated_attention) if arguments.compile_attention else gated_attention
    gates = Gates(config.num_hidden_layers, config.num_attention_heads, function)
    AttentionInterface.register("gated_or_sdpa", lambda *a, **k: gates(*a, **k))
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config)
    model = model.to(device="cuda", dtype=torch.bfloat16)
    model.config._attn_implementation = "gated_or_sdpa"
    model.requires_grad_(False)
    for layer in model.model.layers:
        for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
            setattr(layer.self_attn, name, Adapted(getattr(layer.self_attn, name)))
    model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model.train()
    trained = [p for p in model.parameters() if p.requires_grad] + list(gates.biases)
    optimizer = torch.optim.AdamW(trained, lr=1e-4, betas=(0.9, 0.95), weight_decay=0.1, fused=True)
    vocabulary = config.vocab_size
    ids = torch.randint(0, vocabulary, (arguments.batch, arguments.length), device="cuda")
    targets = torch.randint(0, vocabulary, ids.shape, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        with torch.no_grad():
            Adapted.on = False
            teacher = model(input_ids=ids, use_cache=False).logits.view(-1, vocabulary)
            Adapted.on = True
        student = model(input_ids=ids, use_cache=False).logits.view(-1, vocabulary)
        cross_entropy = F.cross_entropy(student.float(), targets.view(-1))
        divergence = F.kl_div(F.log_softmax(student.float(), -1), F.log_softmax(teacher.float(), -1),
                              reduction="batchmean", log_target=True)
        edges = torch.log(torch.stack(gates.expected).mean())
        loss = (edges + LAMBDA * 0.5 * (cross_entropy + divergence)) / (1 + LAMBDA)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        return loss

    for _ in range(2):
        step()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(arguments.runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        loss = step()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end) / 1000)
    assert torch.isfinite(loss), "the loss is not finite"
    assert all(p.grad is not None for p in trained), "a parameter had no gradient"
    seconds = median(times)
    print(json.dumps({"case": f"step-lora-b{arguments.batch}-t{arguments.length}",
                      "setting": "compiled attention" if arguments.compile_attention else "eager",
                      "seconds": seconds, "tokens_per_s": ids.numel() / seconds,
                      "memory_bytes": torch.cuda.max_memory_allocated(),
                      "reserved_bytes": torch.cuda.max_memory_reserved(),
                      "torch": torch.__version__, "transformers": transformers.__version__}), flush=True)


if __name__ == "__main__":
    main()
