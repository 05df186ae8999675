"""Writes the vectors that the rank statistics are tested against, computed with SciPy and NumPy.

Run from the repository's root: python3 scripts/scipy_vectors.py > crates/heapmark/src/analyse/stats/vectors.json

p is `scipy.stats.wilcoxon`: exact where n <= 50 without ties, every sign pattern by its permutation method where there are ties
(small n only), normal with continuity correction beyond 50. The interval is found without Walsh quantiles: all shifts that
SciPy's test does not reject at 5 %, tried between each two neighbouring Walsh averages.
"""

import json

import numpy as np
import scipy
from scipy.stats import PermutationMethod, norm, wilcoxon


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
    nonzero = differences[differences != 0]
    ranks = scipy.stats.rankdata(np.abs(nonzero))
    out = {
        "name": name,
        "differences": differences.tolist(),
        "median": float(np.median(differences)),
        "estimate": float(np.median(walsh_averages(differences))),
        "positive_ranks": float(ranks[nonzero > 0].sum()),
        "p": float(p_value(differences).pvalue),
    }
    if with_interval:
        out["interval"] = interval(differences)
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
print(json.dumps({"scipy": scipy.__version__, "vectors": vectors, "normal_tails": tails}, indent=1))
