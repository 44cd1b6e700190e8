"""What is measured, and what must be reached."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse
from sklearn.linear_model import Ridge
from sklearn.svm import LinearSVC

import beside
from data import gaussian_classes, paper_gaussians, two_gaussians
from kinds import KINDS
from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.methods import L2SVMClassifier, SelfLearningClassifier, TransductiveSVMClassifier
from timing import peak_memory, ratio, side_by_side


@dataclass(frozen=True)
class Result:
    """A measured ratio, with the limit it must keep (None: for information)."""

    case: str
    what: str
    measured: float
    limit: float | None = None

    @property
    def ok(self):
        """Whether the limit is kept, in a word."""
        if self.limit is None:
            return ""
        return "yes" if self.measured <= self.limit else "NO"


def _fit(X, y, **settings):
    # Without a penalty there is something to improve on Gaussian classes, and to solve.
    clf = ProjectedLeastSquaresClassifier(**{"alpha": 0.0, **settings}).fit(X, y)
    assert clf.certificate_.converged
    return clf


def million(quick, repeats):
    """Time one fit of a million rows against Ridge with all labels, and against a Gram matrix."""
    n = 50_000 if quick else 1_000_000
    X, y, truth = two_gaussians(500, n, 100)
    assert _fit(X, y).certificate_.duality_gap <= 1e-9
    times = side_by_side(
        {
            "fit": lambda: _fit(X, y),
            "ridge": lambda: Ridge(solver="cholesky").fit(X, truth),
            "gram": lambda: X.T @ X,
            "icls": lambda: _fit(X, y, distance="labeled"),
            "defaults": lambda: _fit(X, y, alpha="loo"),
        },
        repeats,
    )
    memory = peak_memory(lambda: _fit(X, y)) / X.nbytes
    case = f"n_u = {n:,}, d = 100"
    best = times["fit"].min()
    return [
        Result(case, f"fit ({best:.2f} s) / Ridge, all labels", ratio(times, "fit", "ridge"), 0.6),
        Result(case, "fit / Gram matrix", ratio(times, "fit", "gram"), 3.5),
        Result(case, "extra memory / data", memory, 0.10),
        Result(case, 'distance="labeled" / Gram matrix', ratio(times, "icls", "gram"), 5.0),
        Result(
            case, "all defaults (alpha='loo') / Gram matrix", ratio(times, "defaults", "gram"), 2.0
        ),
        Result(case, "all defaults / Ridge, all labels", ratio(times, "defaults", "ridge"), 0.6),
    ]


def leave_one_out(quick, repeats):
    """Time what choosing the penalty adds to a fit with that penalty."""
    results = []
    for n_labeled, n, d in ((2_000, 1_000_000, 100), (500, 619_326, 10)):
        n = n // 20 if quick else n
        X, y, _ = two_gaussians(n_labeled, n, d)
        chosen = _fit(X, y, alpha="loo").supervised_.alpha_
        times = side_by_side(
            {
                "chosen": lambda X=X, y=y: _fit(X, y, alpha="loo"),
                "given": lambda X=X, y=y, alpha=chosen: _fit(X, y, alpha=alpha),
            },
            max(5, repeats),
        )
        case = f"n_u = {n:,}, d = {d}, n_l = {n_labeled:,}"
        what = "fit with alpha by leave-one-out / with that alpha"
        results.append(Result(case, what, ratio(times, "chosen", "given"), 1.1))
    return results


def wide(quick, repeats):
    """Time many columns: the small problems of the solver grow with d, too."""
    n, d = (20_000, 200) if quick else (200_000, 400)
    X, y, _ = two_gaussians(5 * d, n, d)
    times = side_by_side({"fit": lambda: _fit(X, y), "gram": lambda: X.T @ X}, repeats)
    case = f"n_u = {n:,}, d = {d}"
    return [Result(case, "fit / Gram matrix", ratio(times, "fit", "gram"), 4.0)]


def paper(quick, repeats):
    """Time the largest problem of the paper's timing figure."""
    X, y, truth = paper_gaussians(200, 1024, 100)
    times = side_by_side(
        {
            "fit": lambda: _fit(X, y),
            "supervised": lambda: LeastSquaresClassifier().fit(X[:200], truth[:200]),
        },
        5 * repeats if quick else 20 * repeats,
    )
    case = "n_u = 1,024, d = 100, n_l = 200"
    return [Result(case, "fit / supervised fit", ratio(times, "fit", "supervised"), 12.0)]


def growth(quick, repeats):
    """Time doubling numbers of rows: the cost must grow no faster than they do."""
    sizes = [(12_500 if quick else 100_000) * 2**k for k in range(5)]
    X, y, _ = two_gaussians(200, sizes[-1], 50)
    times = side_by_side(
        {n: lambda n=n: _fit(X[: n + 200], y[: n + 200]) for n in sizes}, max(3, repeats)
    )
    doublings = [ratio(times, b, a) for a, b in pairwise(sizes)]
    listed = ", ".join(f"{value:.2f}" for value in doublings)
    case = f"n_u = {sizes[0]:,} … {sizes[-1]:,}, d = 50"
    return [Result(case, f"worst doubling of {listed}", max(doublings), 2.2)]


def inside(quick, repeats):
    """Time a fit that can improve nothing, and has to prove that."""
    n = 50_000 if quick else 1_000_000
    X, y, _ = two_gaussians(n // 20, n, 100, separation=0.7)
    assert _fit(X, y).certificate_.reason == "inside"
    times = side_by_side({"fit": lambda: _fit(X, y), "gram": lambda: X.T @ X}, repeats)
    case = f"n_u = {n:,}, d = 100, supervised solution in the constraint set"
    return [Result(case, "fit / Gram matrix", ratio(times, "fit", "gram"))]


def storage(quick, repeats):
    """Time data in single precision, and sparse data."""
    n = 50_000 if quick else 500_000
    X, y, _ = two_gaussians(500, n, 100, dtype=np.float32)
    double = X.astype(np.float64)
    rng = np.random.default_rng(0)
    thin = sparse.random_array((n, 100), density=0.02, format="csr", rng=rng)
    dense, labels = thin.toarray(), np.where(np.arange(n) < 500, np.arange(n) % 2, -1)
    times = side_by_side(
        {
            "float32": lambda: _fit(X, y),
            "float64": lambda: _fit(double, y),
            "sparse": lambda: _fit(thin, labels),
            "dense": lambda: _fit(dense, labels),
        },
        repeats,
    )
    case = f"n_u = {n:,}, d = 100"
    return [
        Result(f"{case}, float32", "fit / fit in float64", ratio(times, "float32", "float64")),
        Result(f"{case}, 2 % filled", "sparse / dense fit", ratio(times, "sparse", "dense")),
    ]


def classes(quick, repeats):
    """Time several classes against one of them and the rest."""
    results = []
    sizes = [(200, 5_000, 20, 3), (200, 5_000, 20, 10)]
    if not quick:
        sizes += [(500, 200_000, 50, 3), (500, 200_000, 50, 10), (2000, 50_000, 20, 26)]
    for n_labeled, n, d, k in sizes:
        X, y, _ = gaussian_classes(n_labeled, n, d, k)
        rest = [np.where(y == -1, -1, y == j) for j in range(3)]
        fits = {"all": lambda X=X, y=y: _fit(X, y)}
        fits |= {j: lambda X=X, one=one: _fit(X, one) for j, one in enumerate(rest)}
        times = side_by_side(fits, repeats)
        one = np.median([times[j].min() for j in range(3)])
        case = f"n_u = {n:,}, d = {d}, {k} classes"
        what = f"fit ({times['all'].min():.2f} s) / {k} binary fits"
        results.append(Result(case, what, times["all"].min() / (k * one), 1.2))
    return results


def restricted(quick, repeats):
    """Time what more knowledge about the labels costs."""
    n = 20_000 if quick else 200_000
    X, y, truth = two_gaussians(500, n, 50)
    rng = np.random.default_rng(0)
    bounds = np.full((len(y), 2), np.nan)
    sure = rng.random(len(y)) < 0.3
    bounds[sure] = np.where(truth[sure, None] == 1, [0.5, 1.0], [0.0, 0.5])
    bounds[y != -1] = np.nan
    weak = ProjectedLeastSquaresClassifier(alpha=0.0)
    times = side_by_side(
        {
            "plain": lambda: _fit(X, y),
            "prior": lambda: _fit(X, y, class_prior=0.5),
            "confidence": lambda: _fit(X, y, class_prior="confidence"),
            "bounds": lambda: weak.fit(X, y, label_bounds=bounds),
        },
        repeats,
    )
    case = f"n_u = {n:,}, d = 50"
    names = {"prior": "class_prior=0.5", "confidence": 'class_prior="confidence"'}
    names["bounds"] = "label_bounds"
    return [Result(case, f"{names[k]} / plain fit", ratio(times, k, "plain")) for k in names]


def svm(quick, repeats):
    """Time the support vector machine against scikit-learn's, on the same objective."""
    n = 10_000 if quick else 100_000
    X, _, truth = two_gaussians(0, n, 100)
    ours = L2SVMClassifier(1.0, penalise_intercept=True)
    theirs = LinearSVC(C=0.5, dual=False)
    times = side_by_side(
        {"ours": lambda: ours.fit(X, truth), "theirs": lambda: theirs.fit(X, truth)}, repeats
    )
    what = "L2SVMClassifier / LinearSVC(dual=False)"
    return [Result(f"n = {n:,}, d = 100, all labeled", what, ratio(times, "ours", "theirs"), 1.0)]


def iterations(quick, repeats):
    """Time iterations over twice the rows: their cost must grow no faster than they do."""
    n = 10_000 if quick else 100_000
    X, y, _ = two_gaussians(500, 2 * n, 100)
    half = slice(n + 500)
    results = []
    for make in (SelfLearningClassifier, TransductiveSVMClassifier):
        small, large = make(), make()
        times = side_by_side(
            {
                "small": lambda model=small: model.fit(X[half], y[half]),
                "large": lambda model=large: model.fit(X, y),
            },
            repeats,
        )
        grown = ratio(times, "large", "small") * small.n_iter_ / large.n_iter_
        case = f"n_u = {n:,} and {2 * n:,}, d = 100"
        results.append(Result(case, f"{make.__name__}, per iteration", grown, 2.2))
    return results


def kinds_of_tables(quick, repeats):
    """Time tables of many kinds beside the solver that this one replaced."""
    found = list(beside.compare(20_000 if quick else beside.N_ROWS, repeats))
    all_in_all = beside.summary(found)
    case = f"{len(found)} fits to tables of {len(KINDS)} kinds"
    return [
        Result(case, "passes, at most", all_in_all["passes"], beside.MOST_PASSES),
        Result(case, "seconds / old solver, at most", all_in_all["slowest"], beside.MOST_TIME),
        Result(case, "the same, geometric mean", all_in_all["mean"], beside.MEAN_TIME),
        Result(case, "difference of the guaranteed improvements", all_in_all["difference"], 1e-6),
    ]


CASES = {
    "million": million,
    "tables": kinds_of_tables,
    "leave_one_out": leave_one_out,
    "wide": wide,
    "paper": paper,
    "growth": growth,
    "inside": inside,
    "storage": storage,
    "classes": classes,
    "restricted": restricted,
    "svm": svm,
    "iterations": iterations,
}
