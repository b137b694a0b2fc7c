"""A training step of a cross-layer transcoder in PyTorch: the work of `filigree features train`.

Prints one JSON object: the shape, "setting" (compiled or eager), "ms_per_step" (median), "tokens_per_second",
"peak_memory_bytes" (null on the CPU), "active" (features of a layer at a token, mean), "loss", "device", "torch".
The step is what a PyTorch user would write: f32 weights under autocast to bf16, batch-top-k with as many features as
--l0 says on average, dense products for what features write, gradients clipped, fused Adam, all of forward and
backward compiled. Activations are random and lie on the device; no model runs.
"""

import argparse
import json
import time

import torch
import torch.nn.functional as F
from torch import nn

WARM_UP = 5
BATCHES = 4  # that steps take in turn


def batch_top_k(values, count):
    """The `count` largest of the whole batch where they are above zero, all others zero; how many they are."""
    flat = values.flatten()
    largest, places = flat.topk(count, sorted=False)
    chosen = torch.zeros_like(flat).scatter(0, places, F.relu(largest)).view_as(values)
    return chosen, (largest > 0).sum()


class CrossLayerTranscoder(nn.Module):
    def __init__(self, layers, width, features, l0):
        super().__init__()
        self.layers, self.width, self.l0 = layers, width, l0

        def uniform(bound, *shape):
            return nn.Parameter(torch.empty(*shape).uniform_(-bound, bound))

        self.encoders = nn.ParameterList(uniform(width**-0.5, features, width) for _ in range(layers))
        self.encoder_biases = nn.ParameterList(nn.Parameter(torch.zeros(features)) for _ in range(layers))
        # Of one feature all that it writes, to its layer and to each one above: one product a layer.
        self.decoders = nn.ParameterList(
            uniform((layers * width) ** -0.5, features, (layers - l) * width) for l in range(layers))
        self.decoder_bias = nn.Parameter(torch.zeros(layers, width))

    def forward(self, inputs, targets):
        """[layers, tokens, width] both -> the loss, how many features are active."""
        tokens = inputs.size(1)
        written = [[] for _ in range(self.layers)]
        active = 0
        for l in range(self.layers):
            values = F.linear(inputs[l], self.encoders[l], self.encoder_biases[l])
            features, above_zero = batch_top_k(values, self.l0 * tokens)
            active = active + above_zero
            parts = (features @ self.decoders[l]).view(tokens, self.layers - l, self.width).unbind(1)
            for above, part in enumerate(parts):
                written[l + above].append(part.float())
        loss = 0.0
        for m in range(self.layers):
            error = sum(written[m]) + self.decoder_bias[m] - targets[m].float()
            loss = loss + error.square().sum()
        return loss / (self.layers * self.width * tokens), active


def make_step(arguments, device):
    torch.manual_seed(0)
    transcoder = CrossLayerTranscoder(arguments.layers, arguments.width, arguments.features,
                                      arguments.l0).to(device)
    on_gpu = device.type == "cuda"
    optimizer = torch.optim.Adam(transcoder.parameters(), lr=4e-4, betas=(0.9, 0.999), fused=on_gpu)
    forward = transcoder if arguments.eager else torch.compile(transcoder)
    shape = (arguments.layers, arguments.batch, arguments.width)
    batches = [(torch.randn(shape, device=device, dtype=torch.bfloat16),
                torch.randn(shape, device=device)) for _ in range(BATCHES)]
    taken = 0

    def step():
        nonlocal taken
        inputs, targets = batches[taken % BATCHES]
        taken += 1
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast(device.type, torch.bfloat16):
            loss, active = forward(inputs, targets)
        loss.backward()
        nn.utils.clip_grad_norm_(transcoder.parameters(), 1.0)
        optimizer.step()
        return loss.detach(), active

    return step, sum(parameter.numel() for parameter in transcoder.parameters())


def milliseconds(step, device):
    if device.type == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        result = step()
        end.record()
        torch.cuda.synchronize()
        return start.elapsed_time(end), result
    began = time.perf_counter()
    result = step()
    return 1000 * (time.perf_counter() - began), result


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value, text in (("layers", 12, "layers of the model"), ("width", 384, "width of the model"),
                              ("features", 4096, "features of a layer"), ("batch", 4096, "tokens a step"),
                              ("l0", 16, "features of a layer that are active at a token, on average"),
                              ("steps", 30, "steps that are timed")):
        parser.add_argument(f"--{name}", type=int, default=value, help=f"{text} (default {value})")
    parser.add_argument("--eager", action="store_true", help="without torch.compile")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    arguments = parser.parse_args()
    for name in ("layers", "width", "features", "batch", "l0", "steps"):
        if getattr(arguments, name) < 1:
            parser.error(f"--{name} must be at least 1")
    if arguments.l0 > arguments.features:
        parser.error(f"--l0 {arguments.l0} is more than the {arguments.features} features of a layer")
    device = torch.device(arguments.device)
    on_gpu = device.type == "cuda"

    step, parameters = make_step(arguments, device)
    for _ in range(WARM_UP):
        step()
    if on_gpu:
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
    times = []
    for _ in range(arguments.steps):
        taken, (loss, active) = milliseconds(step, device)
        times.append(taken)
    median = sorted(times)[len(times) // 2]
    print(json.dumps({
        "case": "clt-step", "setting": "eager" if arguments.eager else "compiled",
        "layers": arguments.layers, "width": arguments.width, "features": arguments.features,
        "batch": arguments.batch, "l0": arguments.l0, "parameters": parameters, "steps": arguments.steps,
        "ms_per_step": median, "tokens_per_second": 1000 * arguments.batch / median,
        "peak_memory_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
        "active": active.item() / (arguments.layers * arguments.batch), "loss": loss.item(),
        "device": torch.cuda.get_device_name() if on_gpu else "cpu", "torch": torch.__version__}), flush=True)


if __name__ == "__main__":
    main()
