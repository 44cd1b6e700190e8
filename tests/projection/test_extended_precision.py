"""The projection on badly scaled features, checked with 60 digits."""

import mpmath
import numpy as np
import pytest

from neverworse import ProjectedLeastSquaresClassifier


def _mp_projection(X, y, soft):
    """Solve the optimality conditions for the given pattern of soft labels; return all parts."""
    mpmath.mp.dps = 60
    unlabeled = np.flatnonzero(y == -1)
    E = mpmath.matrix([[*map(mpmath.mpf, row), 1] for row in X.tolist()])
    rows = [i for i in range(len(y)) if y[i] != -1]
    L = mpmath.matrix([[E[i, j] for j in range(E.cols)] for i in rows])
    labels = mpmath.matrix([int(y[i]) for i in rows])
    w_sup = mpmath.lu_solve(L.T * L, L.T * labels)
    H = E.T * E
    c = H * w_sup - L.T * labels
    U = mpmath.matrix([[E[int(i), j] for j in range(E.cols)] for i in unlabeled])
    free = [j for j, q in enumerate(soft) if 0 < q < 1]
    q = mpmath.matrix([round(v) for v in soft])
    for j in free:
        q[j] = 0
    inverse = mpmath.inverse(H)
    if free:  # on the kink: u_j·v = 0 for v = H⁻¹(U'q - c)
        F = mpmath.matrix([[U[j, k] for k in range(U.cols)] for j in free])
        solved = mpmath.lu_solve(F * inverse * F.T, F * inverse * (c - U.T * q))
        for place, j in enumerate(free):
            q[j] = solved[place]
    v = inverse * (U.T * q - c)
    return w_sup, v, q, U * v


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("spread", [0, 12])
def test_optimality_conditions_hold_in_extended_precision(seed, spread):
    rng = np.random.default_rng(seed)
    d, n_labeled, n = 4, 6, 60
    truth = np.arange(n) % 2
    X = (rng.normal(size=(n, d)) + 0.5 * truth[:, None]) * 10.0 ** np.linspace(
        -spread / 2, spread / 2, d
    )
    y = np.where(np.arange(n) < n_labeled, truth, -1)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, tol=1e-13).fit(X, y)
    assert clf.certificate_.guaranteed_improvement > 0
    w_sup, v, q, t = _mp_projection(X, y, clf.soft_labels_)
    # The pattern that was found is the optimal one: labels in the box, and the right signs.
    for soft, exact, score in zip(clf.soft_labels_, q, t, strict=True):
        assert 0 <= exact <= 1
        assert exact == pytest.approx(soft, abs=1e-6)
        if exact in (0, 1):
            assert (score < 0) == (exact == 1)
    got = [*clf.coef_[0], clf.intercept_[0] + 0.5]
    expected = [float(a + b) for a, b in zip(w_sup, v, strict=True)]
    np.testing.assert_allclose(got, expected, rtol=1e-8)
    np.testing.assert_allclose(clf.supervised_.coef_[0], [float(w) for w in w_sup][:d], rtol=1e-9)
