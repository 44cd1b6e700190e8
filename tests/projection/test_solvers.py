"""The exact solver against other solvers, and against brute force."""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import lsq_linear

from neverworse import LeastSquaresClassifierCV
from tests.problems import KINDS, distances, make_problem

WELL_CONDITIONED = [
    "gaussian",
    "many labels",
    "one unlabeled",
    "binary features",
    "duplicate rows",
    "ties",
    "float32",
]


def penalties(problem):
    """The penalties of the baseline and of the loss, as numbers."""
    alpha, constraint_alpha = (problem.settings[name] for name in ("alpha", "constraint_alpha"))
    if alpha == "loo":
        baseline = LeastSquaresClassifierCV(fit_intercept=problem.settings["fit_intercept"])
        alpha = baseline.fit(problem.X, problem.y, sample_weight=problem.weights).alpha_
    return alpha, alpha if constraint_alpha == "same" else constraint_alpha


class Reference:
    """The projection written down as in the paper, with explicit inverses."""

    def __init__(self, problem, distance):
        p = problem.settings
        n, d = problem.X.shape
        one = [np.ones(n)] if p["fit_intercept"] else []
        E = np.column_stack([problem.X.astype(float), *one])
        P = np.diag([1.0] * d + [0.0] * len(one))
        s = problem.weights_or(np.ones(n))
        u = problem.unlabeled
        X, sl, y = E[~u], s[~u], problem.y[~u]
        self.U, self.su = E[u], s[u]
        alpha, constraint_alpha = penalties(problem)
        lhs = X.T @ (sl[:, None] * X) + alpha * P
        self.w_sup = np.linalg.lstsq(lhs, X.T @ (sl * y), rcond=None)[0]
        penalty = constraint_alpha * P
        G = self.U.T @ (self.su[:, None] * self.U)
        if isinstance(distance, str) and distance == "unlabeled":
            H, known = G + penalty, np.zeros(len(P))
        else:
            H, known = G + X.T @ (sl[:, None] * X) + penalty, X.T @ (sl * y)
        self.H = H
        self.c = H @ self.w_sup - known
        if not isinstance(distance, str):
            D = np.column_stack([distance, *[np.ones(len(distance))] * len(one)])
            DD = D.T @ D
        else:
            labeled = X.T @ (sl[:, None] * X)
            DD = {"labeled": labeled, "euclidean": np.eye(len(H))}.get(distance, H)
        self.DD = DD
        self.well_conditioned = max(map(np.linalg.cond, (lhs, H, DD))) < 1e6
        if not self.well_conditioned:
            return
        inverse = np.linalg.inv(H)
        values, vectors = np.linalg.eigh(inverse @ DD @ inverse)
        self.B = (vectors * np.sqrt(np.maximum(values, 0.0))).T
        self.A = self.B @ (self.U.T * self.su)
        self.b = self.B @ self.c

    def objective(self, q):
        r = self.A @ q - self.b
        return float(r @ r)

    def bvls(self):
        return lsq_linear(self.A, self.b, (0, 1), method="bvls", tol=1e-15, max_iter=10_000).x

    def brute_force(self):
        """The best feasible point over all faces of the cube."""
        best = np.inf
        for face in product((0.0, 1.0, None), repeat=len(self.su)):
            q = np.array([0.0 if v is None else v for v in face])
            free = np.array([v is None for v in face])
            if free.any():
                rest = self.b - self.A @ q
                q[free] = np.linalg.lstsq(self.A[:, free], rest, rcond=None)[0]
            if q.min() >= -1e-12 and q.max() <= 1 + 1e-12:
                best = min(best, self.objective(q))
        return best

    def distance_of(self, clf):
        w = clf.coef_[0]
        if clf.fit_intercept:
            w = np.append(w, clf.intercept_[0] + 0.5)
        v = w - self.w_sup
        return float(v @ self.DD @ v)


def _problems(kinds, count):
    for kind in kinds:
        rng = np.random.default_rng(list(kind.encode()))
        for _ in range(count):
            problem = make_problem(kind, rng)
            for distance in distances(rng, problem.X.shape[1]):
                reference = Reference(problem, distance)
                if reference.well_conditioned and (reference.su > 0).any():
                    yield problem, distance, reference


def _scale(reference):
    """The objective of the worst soft labels: what accuracy is measured against."""
    return reference.objective(np.full(len(reference.su), 0.5)) + float(reference.b @ reference.b)


def test_same_objective_as_bounded_least_squares():
    checked = 0
    for problem, distance, reference in _problems(WELL_CONDITIONED, 12):
        clf = problem.fit(distance=distance, tol=1e-12)
        expected = reference.objective(reference.bvls())
        tolerance = 1e-8 * expected + 1e-12 * _scale(reference)
        # Both the soft labels and the weights must reach the optimum.
        assert reference.objective(clf.soft_labels_) <= expected + tolerance
        assert abs(reference.distance_of(clf) - expected) <= tolerance
        checked += 1
    assert checked > 120


def test_same_objective_as_lbfgs():
    for problem, distance, reference in _problems(WELL_CONDITIONED, 4):
        exact = problem.fit(distance=distance, tol=1e-12)
        slow = problem.fit(distance=distance, tol=1e-8, solver="lbfgs")
        tolerance = 1e-8 * reference.distance_of(exact) + 1e-11 * _scale(reference)
        assert abs(reference.distance_of(exact) - reference.distance_of(slow)) <= tolerance


def test_brute_force_over_all_faces():
    rng = np.random.default_rng(3)
    checked = 0
    while checked < 40:
        problem = make_problem("gaussian", rng)
        keep = np.flatnonzero(~problem.unlabeled)
        keep = np.r_[keep, np.flatnonzero(problem.unlabeled)[:5]]
        problem.X, problem.y = problem.X[keep], problem.y[keep]
        problem.weights = None if problem.weights is None else problem.weights[keep] + 0.1
        for distance in distances(rng, problem.X.shape[1]):
            reference = Reference(problem, distance)
            if reference.well_conditioned:
                clf = problem.fit(distance=distance, tol=1e-12)
                expected = reference.brute_force()
                tolerance = 1e-8 * expected + 1e-12 * _scale(reference)
                assert abs(reference.distance_of(clf) - expected) <= tolerance
                checked += 1


@pytest.mark.parametrize("kind", ["gaussian", "few labels", "ties", "outliers"])
def test_brute_force_over_all_labelings(kind):
    rng = np.random.default_rng(4)
    for _ in range(10):
        problem = make_problem(kind, rng)
        keep = np.r_[np.flatnonzero(~problem.unlabeled), np.flatnonzero(problem.unlabeled)[:8]]
        problem.X, problem.y = problem.X[keep], problem.y[keep]
        problem.weights = None if problem.weights is None else problem.weights[keep]
        clf = problem.fit(constraint_alpha=0.0)
        s = problem.weights_or(np.ones(len(keep)))
        f = problem.X @ clf.coef_[0] + clf.intercept_[0] + 0.5
        g = problem.X @ clf.supervised_.coef_[0] + clf.supervised_.intercept_[0] + 0.5
        differences = []
        for labels in product((0, 1), repeat=int(problem.unlabeled.sum())):
            y = problem.y.copy()
            y[problem.unlabeled] = labels
            differences.append(s @ (f - y) ** 2 - s @ (g - y) ** 2)
        certificate = clf.certificate_
        slack = 1e-9 * (1 + s @ g**2) + 2 * certificate.rounding_bound
        assert certificate.worst_case == pytest.approx(max(differences), abs=slack)
        assert certificate.best_case == pytest.approx(min(differences), abs=slack)
        assert max(differences) <= slack


@pytest.mark.parametrize("kind", KINDS)
def test_gap_is_closed_and_improvement_is_the_squared_distance(kind):
    rng = np.random.default_rng(7)
    for _ in range(20):
        problem = make_problem(kind, rng)
        clf = problem.fit()
        certificate = clf.certificate_
        assert certificate.converged
        # What is smaller than the rounding errors of the losses is no gap.
        improvement = certificate.guaranteed_improvement
        rounding = 1e-13 * (1 + sum(certificate.supervised_loss))
        assert certificate.duality_gap * improvement <= 1e-9 * improvement + rounding
        reference = Reference(problem, "all")
        if reference.well_conditioned and improvement > 1e-6:
            assert improvement == pytest.approx(reference.distance_of(clf), rel=1e-6)


def test_the_oracle_is_never_farther_from_the_projection():
    # The projection theorem, for every labeling: d(w_semi, w) <= d(w_sup, w) for w in the set.
    rng = np.random.default_rng(8)
    for _ in range(50):
        problem = make_problem("gaussian", rng)
        reference = Reference(problem, "all")
        if not reference.well_conditioned:
            continue
        clf = problem.fit()
        w = np.append(clf.coef_[0], clf.intercept_[0] + 0.5)[: len(reference.w_sup)]
        for _ in range(10):
            q = rng.integers(0, 2, len(reference.su)).astype(float)
            oracle = reference.w_sup + np.linalg.solve(
                reference.H, reference.U.T @ (reference.su * q) - reference.c
            )
            semi, sup = w - oracle, reference.w_sup - oracle
            limit = float(sup @ reference.H @ sup)
            assert semi @ reference.H @ semi <= limit * (1 + 1e-9) + 1e-9
