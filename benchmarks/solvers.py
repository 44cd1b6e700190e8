"""Other solvers for the same problem: min ‖Aq - b‖² over 0 <= q <= 1, with few rows in A."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from scipy import optimize, sparse

from data import box_least_squares, two_gaussians
from neverworse import ProjectedLeastSquaresClassifier
from timing import seconds

SIZES = ((20, 1_000), (100, 5_000), (100, 50_000))
TOO_LONG = 60.0  # seconds; what takes longer, or would at the next size, is skipped


@dataclass(frozen=True)
class Row:
    """Seconds and relative excess of the objective, or None where the solver was skipped."""

    solver: str
    size: tuple[int, int]
    seconds: float | None
    excess: float | None
    ok: bool


def lbfgs(A, b, **options):
    """Run SciPy's L-BFGS-B on the soft labels, from a half for each."""

    def value_and_gradient(q):
        r = A @ q - b
        return 0.5 * r @ r, r @ A

    start = np.full(A.shape[1], 0.5)
    box = optimize.Bounds(0.0, 1.0)
    return optimize.minimize(
        value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=box, options=options
    ).x


def lbfgs_tight(A, b):
    """Run L-BFGS-B until it makes no progress."""
    return lbfgs(A, b, ftol=1e-16, gtol=1e-12, maxiter=100_000, maxfun=1_000_000)


def bvls(A, b):
    """Run SciPy's bounded-variable least squares, an active set method."""
    return optimize.lsq_linear(A, b, (0.0, 1.0), method="bvls", max_iter=100_000).x


def _quadratic_program(A, b):
    """Return P, c, equality matrix and right-hand side in the variables (q, r) with r = Aq - b."""
    d, n = A.shape
    P = sparse.block_diag([sparse.csc_matrix((n, n)), sparse.eye(d)], format="csc")
    equality = sparse.hstack([sparse.csc_matrix(A), -sparse.eye(d)], format="csc")
    return P, np.zeros(n + d), equality, b


def piqp(A, b):
    """Run PIQP's sparse interior point method."""
    import piqp as package

    P, c, equality, right = _quadratic_program(A, b)
    d, n = A.shape
    low = np.r_[np.zeros(n), np.full(d, -1e30)]
    high = np.r_[np.ones(n), np.full(d, 1e30)]
    solver = package.SparseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-12
    solver.setup(P, c, equality, right, x_l=low, x_u=high)
    solver.solve()
    return np.clip(solver.result.x[:n], 0.0, 1.0)


def clarabel(A, b):
    """Run Clarabel's conic interior point method."""
    import clarabel as package

    P, c, equality, right = _quadratic_program(A, b)
    d, n = A.shape
    box = sparse.hstack([sparse.eye(n), sparse.csc_matrix((n, d))], format="csc")
    rows = sparse.vstack([equality, box, -box], format="csc")
    settings = package.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    cones = [package.ZeroConeT(d), package.NonnegativeConeT(2 * n)]
    limits = np.r_[right, np.ones(n), np.zeros(n)]
    solution = package.DefaultSolver(sparse.triu(P, format="csc"), c, rows, limits, cones, settings)
    return np.clip(np.array(solution.solve().x)[:n], 0.0, 1.0)


OTHERS = {
    "SciPy L-BFGS-B, default": lbfgs,
    "SciPy L-BFGS-B, tight": lbfgs_tight,
    "SciPy lsq_linear, bvls": bvls,
    "PIQP, sparse": piqp,
    "Clarabel": clarabel,
}
NEEDS = {"PIQP, sparse": "piqp", "Clarabel": "clarabel"}


def compare(sizes=SIZES, say=print):
    """Return rows for neverworse and all others, at every size.

    The others get A and b ready made and are timed on the solve alone; neverworse is timed on the
    whole fit, supervised solution, Gram matrix and certificate included.
    """
    rows, slowest = [], dict.fromkeys(OTHERS, 0.0)
    for d, n in sizes:
        X, y, _ = two_gaussians(2 * d + 10, n, d)
        A, b = box_least_squares(X, y)
        answers, times = {}, {}

        def ours(X=X, y=y, answers=answers):
            clf = ProjectedLeastSquaresClassifier(alpha=0.0, tol=1e-10).fit(X, y)
            answers["neverworse, whole fit"] = clf.soft_labels_

        ours()
        times["neverworse, whole fit"] = min(seconds(ours) for _ in range(5))
        for name, solver in OTHERS.items():
            if find_spec(NEEDS.get(name, "scipy")) is None or slowest[name] > TOO_LONG / 10:
                continue
            say(f"{name}, d = {d}, n = {n:,}")

            def solve(name=name, solver=solver, A=A, b=b, answers=answers):
                answers[name] = solver(A, b)

            times[name] = slowest[name] = seconds(solve)
        values = {name: float(np.sum((A @ q - b) ** 2)) for name, q in answers.items()}
        best = min(values.values())
        own = times["neverworse, whole fit"]
        for name in ("neverworse, whole fit", *OTHERS):
            if name not in times:
                rows.append(Row(name, (d, n), None, None, True))
                continue
            excess = values[name] / best - 1.0
            ok = excess <= 1e-9 if name.startswith("never") else times[name] > own
            rows.append(Row(name, (d, n), times[name], excess, ok))
    return rows
