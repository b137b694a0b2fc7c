#!/usr/bin/env python3
"""Usage: recompute.py FOLDER

Recomputes numbers of a demo from what it stored, data/maps.npz and data/summary.json, with nothing but
NumPy, and prints them beside the program's. The definitions are those of docs/analysis.md,
docs/circuits.md and docs/training.md, written down a second time. Exit code 1 when a number differs.

Every number is also changed in the summary, one at a time, and must then be found to differ: a check that
cannot fail checks nothing.
"""
import copy
import itertools
import json
import sys

import numpy as np


def causal(maps, model, prompts):
    """The maps of each prompt, [heads, T, T] in double precision."""
    return [maps[f"model{model}.prompt{p}.weights"].astype(np.float64) for p in range(prompts)]


def statistics_of(weights, gated):
    """Of one prompt's maps [heads, T, T]: name -> [heads]. Row 0 has one key and no choice."""
    heads, tokens, _ = weights.shape
    below = np.tril(np.ones((tokens, tokens), bool))
    rows = weights[:, 1:, :]
    mass = rows.sum(2)
    with_mass = mass > 0
    share = np.divide(rows, mass[:, :, None], out=np.zeros_like(rows), where=with_mass[:, :, None])
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    entropy = -(share * logs).sum(2)
    open_edges = (weights > 0).sum((1, 2)) if gated else np.full(heads, below.sum())
    # The mean weight of the main diagonal against that of the offsets that half of the rows have.
    diagonals = np.array([np.trace(weights[:, 1:, 1:] if k == 0 else weights, -k, 1, 2) /
                          (tokens - max(k, 1)) for k in range(tokens // 2 + 1)])
    return {
        "peak": rows.max(2).mean(1),
        "row_mass": mass.mean(1),
        "entropy": entropy.sum(1) / np.maximum(with_mass.sum(1), 1),
        "diagonal_dominance": (diagonals[0] > diagonals[1:].max(0)).astype(float),
        "sink_mass": rows[:, :, 0].mean(1),
        "active_edges": open_edges / below.sum(),
        "keys_per_query": open_edges / tokens,
        "empty_rows": 1 - with_mass.mean(1),
    }


def permutation_p(differences):
    """The share of sign patterns whose mean is at least as far from 0."""
    signs = np.array(list(itertools.product((-1, 1), repeat=len(differences))))
    sums = np.abs(signs @ differences)
    return float((sums >= abs(differences.sum()) - 1e-12).mean())


def ranks(values):
    """From 1, equal values sharing the mean of theirs."""
    order = np.argsort(values, kind="stable")
    result = np.empty(len(values))
    result[order] = np.arange(1, len(values) + 1)
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.bincount(group, result) / counts)[group]


def tail(right, prompts, chance):
    """Probability that so many guesses of this chance are right at least `right` times."""
    happened = np.array([1.0])
    for _ in range(prompts):
        happened = np.convolve(happened, [1 - chance, chance])
    return float(happened[right:].sum())


def circuit_point(model):
    """The first point from which on the effect never falls below the level again."""
    found = None
    for point in reversed(model["curve"]):
        if point["effect"] < model["level"]:
            break
        found = point
    return found


def area(curve):
    kept = np.array([point["kept"] for point in curve], float)
    effect = np.array([point["effect"] for point in curve])
    return float(((effect[1:] + effect[:-1]) / 2 * np.diff(kept)).sum() / kept[-1])


def at(summary, path):
    for key in path:
        summary = summary[key]
    return summary


def numbers(summary, maps):
    """Of every number: what it is, where the summary has it, and what it should be."""
    result = []

    def add(what, value, *path):
        result.append((what, path, float(value)))

    meta = json.loads(bytes(maps["meta.json"]))
    prompts = summary["prompts"]
    heads = meta["heads"]
    weights = [causal(maps, m, prompts) for m in range(2)]
    series = [[statistics_of(w, m == 1) for w in weights[m]] for m in range(2)]
    for m, label in enumerate(("dense", "sparse")):
        for name in series[m][0]:
            mean = np.mean([of_prompt[name].mean() for of_prompt in series[m]])
            add(f"{name} ({label})", mean, "models", m, "statistics", "model", name)
    changes = {name: np.array([b[name].mean() - a[name].mean() for a, b in zip(*series)])
               for name in ("peak", "active_edges")}
    add("p of the change of peak", permutation_p(changes["peak"]), "comparison", "model", "peak", "p")
    add("change of active_edges", changes["active_edges"].mean(),
        "comparison", "model", "active_edges", "change")
    slot = heads.index("L3H9")
    add("entropy of L3H9 (sparse)", np.mean([s["entropy"][slot] for s in series[1]]),
        "models", 1, "statistics", "heads", slot, "entropy")
    for m, label, a, b in ((0, "dense", "L0H0", "L0H1"), (1, "sparse", "L3H2", "L3H9")):
        i, j = heads.index(a), heads.index(b)
        cells = [np.concatenate([w[h][np.tril_indices(w.shape[1])] for w in weights[m]]) for h in (i, j)]
        add(f"Pearson of {a} and {b} ({label})", np.corrcoef(*cells)[0, 1],
            "models", m, "pairs", "pearson", i, j)
        add(f"Spearman of {a} and {b} ({label})", np.corrcoef(*map(ranks, cells))[0, 1],
            "models", m, "pairs", "spearman", i, j)

    for k, kind in enumerate(summary["tasks"][0]["kinds"]):
        for m, label in enumerate(("dense", "sparse")):
            path = ("tasks", 0, "kinds", k, "models", m)
            model = kind["models"][m]
            point = circuit_point(model)
            if point is None or not model["carried"]:
                continue
            add(f"{kind['kind']} of the circuit ({label})", point["parts"], *path, "size")
            add(f"area under the curve of {kind['kind']} ({label})", area(model["curve"]), *path, "area")
            metric = model["check"]["metric"]
            whole = metric["clean"]["mean"] - metric["corrupt"]["mean"]
            index = model["curve"].index(point)
            add(f"effect of these {kind['kind']} ({label})",
                (point["metric"] - metric["corrupt"]["mean"]) / whole, *path, "curve", index, "effect")
        sizes = [circuit_point(model) if model["carried"] else None for model in kind["models"]]
        if all(sizes) and sizes[1]["parts"] > 0:
            add(f"ratio of {kind['kind']}", sizes[0]["parts"] / sizes[1]["parts"],
                "tasks", 0, "kinds", k, "models", 1, "ratio")
    check = summary["tasks"][0]["kinds"][0]["models"][0]
    kept = check["fit"]["kept"]
    right = round(check["check"]["accuracy"]["clean"] * kept)
    add("p of the ability (dense)", tail(right, kept, check["check"]["chance"]),
        "tasks", 0, "kinds", 0, "models", 0, "check", "p_value")

    for m, label in enumerate(("dense", "sparse")):
        path = ("held_out", 0, "models", m)
        text = at(summary, path)
        add(f"perplexity of the first text ({label})", np.exp(text["loss"]), *path, "perplexity")
        add(f"bits per byte of the first text ({label})",
            text["loss"] * text["tokens"] / np.log(2) / text["bytes"], *path, "bits_per_byte")
        by_head = [head["active_edges"] for layer in text["layers"] for head in layer["heads"]]
        add(f"active edges of the first text ({label})", np.mean(by_head), *path, "active_edges")
    text = summary["held_out"][0]["models"][0]
    whole, rest = divmod(text["tokens"], text["length"])
    lengths = [text["length"]] * whole + [rest] * (rest > 0)
    add("keys per query of the first text (dense)",
        sum(n * (n + 1) / 2 for n in lengths) / text["tokens"], "held_out", 0, "models", 0, "keys_per_query")
    return result


def differing(summary, maps):
    """Names of the numbers of the summary that are not what they should be."""
    wrong = []
    for what, path, value in numbers(summary, maps):
        stored = at(summary, path)
        # Maps are f32, and the program sums them in another order.
        if stored is None or not abs(stored - value) <= 2e-6 * max(1.0, abs(value)):
            wrong.append(what)
    return wrong


def main():
    folder = sys.argv[1]
    maps = dict(np.load(f"{folder}/data/maps.npz"))
    with open(f"{folder}/data/summary.json", encoding="utf-8") as file:
        summary = json.load(file)
    rows = numbers(summary, maps)
    wrong = differing(summary, maps)
    width = max(len(what) for what, _, _ in rows)
    print(f"{'number':<{width}}  {'program':>14}  {'NumPy':>14}")
    for what, path, value in rows:
        mark = "  DIFFERENT" if what in wrong else ""
        print(f"{what:<{width}}  {at(summary, path):>14.8g}  {value:>14.8g}{mark}")
    print(f"{len(rows)} numbers, {len(wrong)} of them different")
    if wrong:
        return 1
    for what, path, _ in rows:
        changed = copy.deepcopy(summary)
        place = at(changed, path[:-1])
        place[path[-1]] = place[path[-1]] * 1.001 + 0.0001
        if not differing(changed, maps):
            print(f"{what}: a changed number goes unnoticed")
            return 1
    print("each of them, changed by a thousandth, is noticed")
    return 0


sys.exit(main())
