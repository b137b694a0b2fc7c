#!/usr/bin/env python3
"""A sparse model with the queries, keys and gates of some heads taken from another of the same shape:

    models/recipes/heads_of.py FROM INTO OUT L1H11 L9H6=-7...

All are folders with weights in f32 (filigree convert --dtype f32). A number behind a head is added to its gate's bias.
"""
import json
import pathlib
import re
import shutil
import struct
import sys

FILES = "tokenizer.json", "merges.txt", "vocab.json"


class Weights:
    def __init__(self, path):
        self.bytes = bytearray(path.read_bytes())
        (length,) = struct.unpack("<Q", self.bytes[:8])
        self.begin = 8 + length
        self.tensors = json.loads(self.bytes[8 : self.begin])

    def span(self, name, row, columns):
        """Where the columns of one row of a tensor are, of a vector row 0."""
        found = next(tensor for key, tensor in self.tensors.items() if key.endswith(name))
        assert found["dtype"] == "F32", name
        at = self.begin + found["data_offsets"][0] + 4 * (row * found["shape"][-1] + columns.start)
        return slice(at, at + 4 * len(columns))


def main():
    source, model, out = map(pathlib.Path, sys.argv[1:4])
    out.mkdir(parents=True)
    taken, weights = Weights(source / "model.safetensors"), Weights(model / "model.safetensors")
    gates, config = (json.loads((folder / "config.json").read_text()) for folder in (source, model))
    width, heads = config["n_embd"], config["n_head"]
    for word in sys.argv[4:]:
        layer, head, shift = re.fullmatch(r"L(\d+)H(\d+)(?:=(.+))?", word).groups()
        layer, head = int(layer), int(head)
        for part in range(2):  # queries, keys
            first = part * width + head * width // heads
            columns = range(first, first + width // heads)
            places = [(f"h.{layer}.attn.c_attn.weight", row) for row in range(width)]
            for name, row in places + [(f"h.{layer}.attn.c_attn.bias", 0)]:
                weights.bytes[weights.span(name, row, columns)] = taken.bytes[taken.span(name, row, columns)]
        config["gate"]["bias"][layer][head] = gates["gate"]["bias"][layer][head] + float(shift or 0)
    (out / "model.safetensors").write_bytes(weights.bytes)
    (out / "config.json").write_text(json.dumps(config))
    for name in FILES:
        shutil.copy(model / name, out / name)


if __name__ == "__main__":
    main()
