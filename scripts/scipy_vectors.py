"""Writes the vectors that the statistics are tested against, computed with SciPy and NumPy.

Run from the repository's root, with scipy 1.17.1 and numpy 2.4.6: python3 scripts/scipy_vectors.py > crates/stats/src/vectors.json

p is `scipy.stats.wilcoxon`: exact if n <= 50 without ties, every sign pattern by its permutation method if there are ties
(small n only), normal with continuity correction beyond 50; Student's is `scipy.stats.ttest_1samp`. The interval is computed without Walsh quantiles: all shifts
that SciPy's test does not reject at 5 %, tested between each two neighbouring Walsh averages.

Holm's p-values come from the closed test that his procedure abbreviates: the largest Bonferroni p of all families that
include the comparison. Unpaired samples: `scipy.stats.mannwhitneyu`, the interval as above, and Welch's t-test. The mean over cells is
`scipy.stats.bootstrap` over block numbers, with the percentiles that the t interval of a mean needs; `error` is the
standard error of each bound at 10,000 resamples.
"""

import json
from itertools import combinations

import numpy as np
import scipy
from scipy.stats import PermutationMethod, bootstrap, mannwhitneyu, norm, t, ttest_1samp, ttest_ind, wilcoxon


def p_value(differences):
    nonzero = differences[differences != 0]
    if len(nonzero) > 50:
        return wilcoxon(nonzero, method="asymptotic", correction=True)
    if len(np.unique(np.abs(nonzero))) == len(nonzero):
        return wilcoxon(nonzero, method="exact")
    return wilcoxon(nonzero, method=PermutationMethod(n_resamples=np.inf))


def walsh_averages(differences):
    i, j = np.triu_indices(len(differences))
    return np.sort((differences[i] + differences[j]) / 2)


def interval(differences):
    walsh = walsh_averages(differences)
    far = walsh[-1] - walsh[0] + 1
    edges = np.concatenate([[walsh[0] - far], walsh, [walsh[-1] + far]])
    kept = [p_value(differences - theta).pvalue > 0.05 for theta in (edges[:-1] + edges[1:]) / 2]
    if kept[0] or kept[-1]:
        return None
    first = kept.index(True)
    last = len(kept) - 1 - kept[::-1].index(True)
    return [edges[first], edges[last + 1]]


def vector(name, differences, with_interval=True):
    differences = np.asarray(differences, dtype=float)
    out = {
        "name": name,
        "differences": differences.tolist(),
        "median": float(np.median(differences)),
        "estimate": float(np.median(walsh_averages(differences))),
        "p": float(p_value(differences).pvalue),
    }
    if len(differences) > 1 and np.ptp(differences) > 0:
        out["student_p"] = float(ttest_1samp(differences, 0).pvalue)
    if with_interval:
        out["interval"] = interval(differences)
    return out


def holm(ps):
    families = [f for size in range(1, len(ps) + 1) for f in combinations(range(len(ps)), size)]
    bonferroni = {f: min(1.0, len(f) * min(ps[i] for i in f)) for f in families}
    return [max(p for f, p in bonferroni.items() if i in f) for i in range(len(ps))]


def tail(blocks):
    return float(norm.sf(t.ppf(0.975, blocks - 1) * np.sqrt(blocks / (blocks - 1))))


def mean_shift(name, cells):
    """`cells` has one row per cell and one column per block, NaN where the cell lacks the block."""

    def statistic(blocks):
        drawn = cells[:, blocks.astype(int)]
        return np.mean([np.median(walsh_averages(cell[~np.isnan(cell)])) for cell in drawn])

    blocks = np.arange(cells.shape[1])
    outside = tail(int((~np.isnan(cells)).sum(axis=1).min()))
    result = bootstrap(
        (blocks,),
        statistic,
        confidence_level=1 - 2 * outside,
        n_resamples=50_000,
        vectorized=False,
        method="percentile",
        rng=np.random.default_rng(21),
    )
    scatter = np.sqrt(outside * (1 - outside) / 10_000)
    errors = [np.diff(np.quantile(result.bootstrap_distribution, [at - scatter, at + scatter]))[0] / 2
              for at in (outside, 1 - outside)]
    return {
        "name": name,
        "cells": [{str(block): x for block, x in enumerate(cell) if not np.isnan(x)} for cell in cells.tolist()],
        "estimate": float(statistic(blocks)),
        "interval": [float(bound) for bound in result.confidence_interval],
        "error": [float(error) for error in errors],
    }


def cells(count, blocks, missing=()):
    shared = random.normal(0.02, 0.03, blocks)
    out = shared + random.laplace(0, 0.02, (count, blocks))
    for cell, block in missing:
        out[cell, block] = np.nan
    return out


def unpaired_p(a, b):
    exact = max(len(a), len(b)) <= 50 and len(np.unique(np.concatenate([a, b]))) == len(a) + len(b)
    return float(mannwhitneyu(a, b, method="exact" if exact else "asymptotic").pvalue)


def two_samples(name, a, b, with_interval=True):
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    differences = np.sort(np.subtract.outer(a, b).ravel())
    far = differences[-1] - differences[0] + 1
    edges = np.concatenate([[differences[0] - far], differences, [differences[-1] + far]])
    out = {"name": name, "a": a.tolist(), "b": b.tolist(), "p": unpaired_p(a, b), "estimate": float(np.median(differences))}
    if min(len(a), len(b)) > 1:
        out["welch_p"] = float(ttest_ind(a, b, equal_var=False).pvalue)
    if with_interval:
        kept = [unpaired_p(a - theta, b) > 0.05 for theta in (edges[:-1] + edges[1:]) / 2]
        none = kept[0] or kept[-1]
        last = len(kept) - kept[::-1].index(True)
        out["interval"] = None if none else [edges[kept.index(True)], edges[last]]
    return out


random = np.random.default_rng(20)
vectors = []
for n in [1, 2, 5, 6, 7, 10, 11, 15, 20, 30, 40, 50, 51, 60]:
    vectors.append(vector(f"normal, n = {n}", random.normal(0.02, 0.05, n)))
for n in [10, 25]:
    vectors.append(vector(f"heavy tails, n = {n}", random.standard_t(2, n) * 0.03 - 0.02))
for n in [6, 9, 12]:
    vectors.append(vector(f"ties, n = {n}", random.integers(1, 4, n) * random.choice([-1, 1, 1], n), False))
for n in [8, 13]:
    vectors.append(vector(f"ties and zeros, n = {n}", random.integers(-2, 4, n), False))
vectors.append(vector("ties, n = 70", random.integers(1, 9, 70) * random.choice([-1, 1], 70), False))

tails = [{"z": z, "p": float(norm.sf(z))} for z in [0.0, 0.1, 1.0, 1.959963984540054, 2.9999, 3.0, 5.0, 9.0]]
points = [{"p": p, "z": float(norm.isf(p))} for p in [0.5, 0.3, 0.025, 0.003125, 1e-6]]

for n in [8, 25, 45]:
    vectors.append(vector(f"long tails, n = {n}", random.laplace(0.01, 0.03, n)))

families = [[0.04], [0.01, 0.04, 0.03, 0.005], [0.02, 0.02, 0.02], [0.9, 0.6, 1.0], random.random(8) ** 3]
families = [{"p": [float(p) for p in ps], "adjusted": holm([float(p) for p in ps])} for ps in families]

mean_shifts = [
    mean_shift("one cell, 15 blocks", cells(1, 15)),
    mean_shift("eight cells, 10 blocks", cells(8, 10)),
    mean_shift("three cells, 30 blocks, some missing", cells(3, 30, [(0, 3), (0, 29), (2, 7)])),
]
bootstrap_tails = [{"blocks": n, "tail": tail(n)} for n in [6, 10, 15, 40]]

random = np.random.default_rng(30)
unpaired = [two_samples(f"{a} and {b}", random.normal(0.02, 0.05, a), random.normal(0, 0.05, b))
            for a, b in [(1, 1), (3, 4), (3, 7), (6, 6), (10, 10), (10, 25), (30, 30), (50, 12)]]
unpaired += [two_samples(f"ties, {a} and {b}", random.integers(0, 9, a), random.integers(2, 9, b), False)
             for a, b in [(8, 9), (30, 30)]]
unpaired += [two_samples("70 and 60", random.normal(0.02, 0.05, 70), random.normal(0, 0.05, 60), False)]

print(json.dumps({
    "scipy": scipy.__version__,
    "numpy": np.__version__,
    "vectors": vectors,
    "normal_tails": tails,
    "normal_points": points,
    "families": families,
    "mean_shifts": mean_shifts,
    "bootstrap_tails": bootstrap_tails,
    "unpaired": unpaired,
}, indent=1))
