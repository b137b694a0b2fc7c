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
    """Of one prompt's maps [heads, T, T]: name -> (value [heads], sum and weight over rows that attend).

    Row 0 has one key and no choice; edges and keys are counted over all rows all the same."""
    heads, tokens, _ = weights.shape
    below = np.tril(np.ones((tokens, tokens), bool))
    rows = weights[:, 1:, :]
    mass = rows.sum(2)
    with_mass = mass > 0
    attending = with_mass.sum(1)
    share = np.divide(rows, mass[:, :, None], out=np.zeros_like(rows), where=with_mass[:, :, None])
    logs = np.log(share, out=np.zeros_like(share), where=share > 0)
    entropy = -(share * logs).sum(2)
    open_by_row = (weights > 0).sum(2) if gated else np.broadcast_to(below.sum(1), (heads, tokens))
    attends = weights.sum(2) > 0
    edges = np.where(attends, below.sum(1), 0).sum(1)
    open_attending = np.where(attends, open_by_row, 0).sum(1)
    # The mean weight of the main diagonal against that of the offsets that half of the rows have.
    diagonals = np.array([np.trace(weights[:, 1:, 1:] if k == 0 else weights, -k, 1, 2) /
                          (tokens - max(k, 1)) for k in range(tokens // 2 + 1)])
    dominance = (diagonals[0] > diagonals[1:].max(0)).astype(float)
    off = np.tril(np.ones((tokens, tokens), bool), -1)
    below_diagonal = np.where(off, weights, 0)
    strong = (below_diagonal.max((1, 2)) > 0.5).astype(float)
    discrete = np.where(rows > np.float32(0.9), rows, 0).sum((1, 2))
    any_row = (attending > 0).astype(float)
    count = tokens - 1

    def by_row(values):
        return values / count, values, attending

    def by_map(values):
        return values, values, any_row

    return {
        "peak": by_row(rows.max(2).sum(1)),
        "row_mass": by_row(mass.sum(1)),
        "entropy": (entropy.sum(1) / np.maximum(attending, 1), entropy.sum(1), attending),
        "diagonal_dominance": by_map(dominance),
        "sink_mass": by_row(rows[:, :, 0].sum(1)),
        "active_edges": (open_by_row.sum(1) / below.sum(), open_attending, edges),
        "keys_per_query": (open_by_row.sum(1) / tokens, open_attending, attends.sum(1)),
        "empty_rows": (1 - with_mass.mean(1), np.zeros(heads), any_row),
        "diagonal_weight": by_row(np.trace(weights, 0, 1, 2) - weights[:, 0, 0]),
        "previous_weight": by_row(np.trace(weights, -1, 1, 2)),
        "strong_off_diagonal": by_map(strong),
        "discretisation": (np.divide(discrete, mass.sum(1), out=np.zeros(heads), where=mass.sum(1) > 0),
                           discrete, mass.sum(1)),
        "direct_connections": by_row((below_diagonal >= np.float32(0.1)).sum((1, 2)).astype(float)),
    }


def over(of_prompt, name, heads, attending):
    """One prompt's value of a statistic over some heads, or None."""
    value, total, weight = of_prompt[name]
    if not attending:
        return value[heads].mean() if heads.any() else None
    return total[heads].sum() / weight[heads].sum() if weight[heads].sum() > 0 else None


def mean_over(series, name, heads, attending):
    values = [v for v in (over(s, name, heads, attending) for s in series) if v is not None]
    return np.mean(values)


def loss_error(windows, targets, difference):
    """Standard error of a sum over windows divided by all targets, each window less what its size lets
    expect."""
    sums = np.array(windows, float)
    residuals = sums[:, 0] - difference * sums[:, 1]
    n = len(residuals)
    return np.sqrt((residuals**2).sum() * n / (n - 1)) / targets


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
        every = np.ones(len(heads), bool)
        living = np.sum([s["keys_per_query"][0] for s in series[m]], 0) > 0
        for name in series[m][0]:
            path = ("models", m, "statistics", "model")
            add(f"{name} ({label})", mean_over(series[m], name, every, False), *path, name)
            for key, chosen, attending in (("attending_rows", every, True), ("living_heads", living, False),
                                           ("living_heads_attending_rows", living, True)):
                add(f"{name}, {key} ({label})", mean_over(series[m], name, chosen, attending),
                    *path, key, name)
    changes = {name: np.array([b[name][0].mean() - a[name][0].mean() for a, b in zip(*series)])
               for name in ("peak", "active_edges")}
    # Of the cells off the diagonal that the dense model's heads connect, those the sparse one's do too.
    had = kept = 0
    for a, b in zip(*weights):
        off = np.tril(np.ones(a.shape[1:], bool), -1)
        dense = (a >= np.float32(0.1)) & off
        had += dense.sum()
        kept += (dense & (b >= np.float32(0.1))).sum()
    add("direct connections kept", kept / had, "comparison", "model", "direct_connections_kept", "share")
    add("p of the change of peak", permutation_p(changes["peak"]), "comparison", "model", "peak", "p")
    add("change of active_edges", changes["active_edges"].mean(),
        "comparison", "model", "active_edges", "change")
    slot = heads.index("L3H9")
    add("entropy of L3H9 (sparse)", np.mean([s["entropy"][0][slot] for s in series[1]]),
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
        living = [head["keys_per_query"] for layer in text["layers"] for head in layer["heads"]
                  if head["keys_per_query"] > 0]
        add(f"living heads of the first text ({label})", len(living), *path, "living_heads", "living")
        add(f"median keys of the living heads ({label})", np.median(living),
            *path, "living_heads", "keys_per_query", "median")
        add(f"largest keys of the living heads ({label})", max(living),
            *path, "living_heads", "keys_per_query", "largest")
        windows = text["by_window"]
        targets = sum(n for _, n in windows)
        add(f"loss of the first text ({label})", sum(x for x, _ in windows) / targets, *path, "loss")
        add(f"error of the loss of the first text ({label})",
            loss_error(windows, targets, text["loss"]), *path, "loss_error")
    dense, sparse = (at(summary, ("held_out", 0, "models", m)) for m in range(2))
    differences = [[b[0] - a[0], a[1]] for a, b in zip(dense["by_window"], sparse["by_window"])]
    targets = sum(n for _, n in differences)
    change = sum(x for x, _ in differences) / targets
    add("change of the loss of the first text", change, "held_out", 0, "models", 1, "change")
    add("error of that change", loss_error(differences, targets, change),
        "held_out", 0, "models", 1, "change_error")
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
