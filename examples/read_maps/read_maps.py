#!/usr/bin/env python3
"""Usage: read_maps.py MAPS.npz

Reads the attention maps that `filigree attention ... --out MAPS.npz` wrote, with nothing but NumPy, and
says of every head which token the last one looks at most.
"""
import json
import sys

import numpy

maps = numpy.load(sys.argv[1])
meta = json.loads(bytes(maps["meta.json"]))
for series in meta["series"]:
    tokens = series["tokens"]
    weights = maps[series["name"] + ".weights"]  # [heads, T, T]: row = query, column = key
    print(f"{series['name']}: {len(meta['heads'])} heads, {len(tokens)} tokens")
    for head, pattern in zip(meta["heads"], weights):
        last = pattern[-1]
        print(f"  {head:>6}  {last.sum():.3f} in all, {last.max():.3f} at {tokens[last.argmax()]!r}")
