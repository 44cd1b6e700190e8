"""Least squares in the space of a kernel, and its projection, against other computations."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.estimator_checks import parametrize_with_checks

from neverworse import (
    ICLSClassifier,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    LeastSquaresRegressor,
    LeastSquaresRegressorCV,
    ProjectedLeastSquaresClassifier,
    ProjectedLeastSquaresRegressor,
    audit,
)
from neverworse.estimators import _kernels, _projected
from neverworse.methods import SelfLearningClassifier
from tests.fuzz.kernels import checked

KERNELS = [
    ("rbf", {"gamma": 0.3}),
    ("laplacian", {"gamma": 0.2}),
    ("poly", {"gamma": 0.5, "degree": 2, "coef0": 1.5}),
]


def make(n=80, d=4, n_labeled=20, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(n_classes, d))[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def scores(clf, X):
    return clf.decision_function(X) + 0.5


# Against KernelRidge


@pytest.mark.parametrize(("kernel", "settings"), KERNELS)
@pytest.mark.parametrize("alpha", [0.01, 1.0, 100.0])
def test_supervised_and_oracle_are_kernel_ridge(kernel, settings, alpha):
    X, y, truth = make()
    for labels in (y, truth):
        known = labels >= 0
        clf = LeastSquaresClassifier(alpha, kernel=kernel, fit_intercept=False, **settings)
        ridge = KernelRidge(alpha=alpha, kernel=kernel, **settings).fit(X[known], labels[known])
        expected = ridge.predict(X)
        found = scores(clf.fit(X, labels), X)
        assert np.abs(found - expected).max() <= 1e-10 * np.abs(expected).max()


def test_regression_with_weights_is_kernel_ridge():
    X, _, _ = make()
    rng = np.random.default_rng(1)
    y, s = rng.normal(size=len(X)), rng.uniform(0.5, 2.0, len(X))
    reg = LeastSquaresRegressor(0.5, kernel="rbf", gamma=0.3, fit_intercept=False)
    expected = KernelRidge(alpha=0.5, kernel="rbf", gamma=0.3).fit(X, y, sample_weight=s).predict(X)
    assert reg.fit(X, y, sample_weight=s).predict(X) == pytest.approx(expected, rel=1e-10)
    assert reg.dual_coef_.shape == (80,)


# Against the closed form with an intercept, and quadratic programs


class InKernelSpace:
    """Functions k(x)·w + b of all rows, as pairs (w, b), by bordered linear systems."""

    def __init__(self, K, labeled, alpha, fit_intercept=True):
        n = len(K)
        self.K, self.labeled, self.alpha = K, labeled, alpha
        self.one = int(fit_intercept)
        self.rows = np.column_stack([K, np.ones(n)]) if fit_intercept else K
        self.penalty = np.zeros((n + self.one, n + self.one))
        self.penalty[:n, :n] = alpha * K

    def fit(self, used, targets):
        """Return (w, b) for some rows and each column of targets."""
        m = len(used)
        system = np.zeros((m + self.one, m + self.one))
        system[:m, :m] = self.K[np.ix_(used, used)] + self.alpha * np.eye(m)
        system[:m, m:] = system[m:, :m] = 1.0
        right = np.vstack([targets, np.zeros((self.one, targets.shape[1]))])
        solved = np.linalg.solve(system, right)
        found = np.zeros((len(self.K) + self.one, targets.shape[1]))
        found[used], found[len(self.K) :] = solved[:m], solved[m:]
        return found

    def project(self, y, distance):
        """Return half the squared distance of the projection, by Clarabel."""
        clarabel = pytest.importorskip("clarabel")
        n, everything = len(self.K), np.arange(len(self.K))
        known = np.flatnonzero(self.labeled)
        supervised = self.fit(known, y[known, None].astype(float))
        base = self.fit(everything, np.where(self.labeled, y, 0.0)[:, None]) - supervised
        moved = self.fit(everything, np.eye(n)[:, ~self.labeled])
        form = self.rows.T @ self.rows + self.penalty
        if distance == "labeled":
            form = self.rows[known].T @ self.rows[known]
        m = moved.shape[1]
        options = clarabel.DefaultSettings()
        options.verbose = False
        options.tol_gap_abs = options.tol_gap_rel = options.tol_feas = 1e-12
        quadratic = moved.T @ form @ moved
        solution = clarabel.DefaultSolver(
            sparse.csc_matrix(np.triu(0.5 * (quadratic + quadratic.T))),
            (moved.T @ form @ base)[:, 0],
            sparse.csc_matrix(np.vstack([np.eye(m), -np.eye(m)])),
            np.r_[np.ones(m), np.zeros(m)],
            [clarabel.NonnegativeConeT(2 * m)],
            options,
        ).solve()
        v = base[:, 0] + moved @ np.array(solution.x)
        return 0.5 * float(v @ form @ v), supervised[:, 0], form

    def half_square(self, clf, X, kernel, supervised, form):
        """Return the same for what an estimator has found: its (w, b) on its own landmarks."""
        at = np.array([np.flatnonzero((row == X).all(axis=1))[0] for row in clf.landmarks_])
        found = np.zeros_like(supervised)
        found[at] = clf.dual_coef_[0]
        if self.one:
            found[-1] = clf.intercept_[0] + 0.5
        v = found - supervised
        return 0.5 * float(v @ form @ v)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("distance", ["all", "labeled"])
@pytest.mark.parametrize(("kernel", "settings"), KERNELS)
def test_projection_is_that_of_a_quadratic_program(kernel, settings, distance, fit_intercept):
    X, y, _ = make()
    K = pairwise_kernels(X, metric=kernel, **settings)
    space = InKernelSpace(K, y >= 0, 0.05, fit_intercept)
    half, supervised, form = space.project(y, distance)
    clf = ProjectedLeastSquaresClassifier(
        distance,
        alpha=0.05,
        kernel=kernel,
        fit_intercept=fit_intercept,
        tol=1e-12,
        **settings,
    ).fit(X, y)
    # (w, b) of the supervised classifier are not those of the labeled rows, but score the same.
    assert scores(clf.supervised_, X) == pytest.approx(space.rows @ supervised, abs=1e-9)
    found = space.half_square(clf, X, kernel, supervised, form)
    assert found == pytest.approx(half, rel=1e-8, abs=1e-11)
    if distance == "all":
        assert clf.certificate_.guaranteed_improvement == pytest.approx(2 * half, rel=1e-6)


@pytest.mark.parametrize("distance", ["all", "labeled", "unlabeled", "euclidean", "array"])
def test_linear_kernel_is_the_linear_path(distance):
    X, y, _ = make(n=60, d=5)
    points = X[::7] if distance == "array" else distance
    linear = ProjectedLeastSquaresClassifier(points, alpha=0.3, tol=1e-13).fit(X, y)
    clf = ProjectedLeastSquaresClassifier(
        points, alpha=0.3, tol=1e-13, kernel="poly", degree=1, coef0=0, gamma=1.0
    ).fit(X, y)
    assert clf.decision_function(X) == pytest.approx(linear.decision_function(X), abs=1e-9)
    assert clf.certificate_.worst_case == pytest.approx(linear.certificate_.worst_case, abs=1e-9)
    assert len(clf.landmarks_) == 5  # all others are combinations of these


def test_several_classes_with_a_linear_kernel_are_the_linear_path():
    X, y, _ = make(n=90, d=4, n_classes=3)
    linear = ICLSClassifier(alpha=0.3).fit(X, y)
    clf = ICLSClassifier(alpha=0.3, kernel=np.dot).fit(X, y)
    assert clf.decision_function(X) == pytest.approx(linear.decision_function(X), abs=1e-7)
    assert clf.dual_coef_.shape == (3, 4)


# Leave-one-out


@pytest.mark.parametrize("n_classes", [2, 3])
def test_leave_one_out_is_what_refits_give_for_every_gamma(n_classes):
    X, y, _ = make(n=40, n_labeled=8, n_classes=n_classes)
    labeled, alphas = np.flatnonzero(y >= 0), [0.01, 0.3, 10.0]
    clf = LeastSquaresClassifierCV(alphas, kernel="rbf", gamma="loo").fit(X, y)
    best = np.inf
    for gamma in _kernels._gammas(clf, X[labeled]):
        found = []
        for alpha in alphas:
            one = LeastSquaresClassifier(alpha, kernel="rbf", gamma=gamma)
            errors = []
            for i in labeled:
                rest = np.setdiff1d(labeled, [i])
                score = scores(one.fit(X[rest], y[rest]), X[[i]])[0]
                target = float(y[i]) if n_classes == 2 else (np.arange(n_classes) == y[i])
                errors.append(np.sum((score - target) ** 2))
            found.append(np.mean(errors))
        if min(found) < best:
            best, chosen = min(found), (gamma, alphas[int(np.argmin(found))], found)
    assert (clf.gamma_, clf.alpha_) == chosen[:2]
    assert clf.loo_brier_ == pytest.approx(chosen[2], rel=1e-9)


def test_gamma_is_chosen_for_a_given_penalty_as_well():
    X, y, _ = make()
    clf = LeastSquaresClassifierCV([0.3], kernel="laplacian", gamma="loo").fit(X, y)
    given = ProjectedLeastSquaresClassifier(alpha=0.3, kernel="laplacian", gamma="loo").fit(X, y)
    assert given.gamma_ == given.supervised_.gamma_ == clf.gamma_
    reg = LeastSquaresRegressorCV([0.3], kernel="laplacian", gamma="loo").fit(X[y >= 0], y[y >= 0])
    assert reg.gamma_ == clf.gamma_


def test_units_of_the_columns_do_not_change_the_choice():
    X, y, _ = make()
    one = LeastSquaresClassifierCV(kernel="rbf", gamma="loo").fit(X, y)
    other = LeastSquaresClassifierCV(kernel="rbf", gamma="loo").fit(100.0 * X, y)
    assert other.gamma_ == pytest.approx(one.gamma_ / 1e4)
    assert other.decision_function(100.0 * X) == pytest.approx(one.decision_function(X), abs=1e-9)


# The guarantee


def test_never_worse_in_exact_arithmetic():
    found = [checked(seed) for seed in range(250)]  # `make fuzz` tries 5,000
    assert [violation for violation, _ in found if violation is not None] == []
    assert sum(improved for _, improved in found) > 30


# Nyström's features


def test_nystroem_with_all_rows_is_exact():
    X, y, _ = make()
    exact = ProjectedLeastSquaresClassifier(kernel="rbf", alpha=0.1).fit(X, y)
    clf = ProjectedLeastSquaresClassifier(kernel="rbf", alpha=0.1, n_components=100).fit(X, y)
    assert clf.decision_function(X) == pytest.approx(exact.decision_function(X), abs=1e-7)


def test_nystroem_is_the_linear_path_on_its_features():
    X, y, _ = make(n=300)
    clf = ProjectedLeastSquaresClassifier(
        kernel="rbf", gamma=0.1, alpha=0.1, n_components=20, random_state=0
    ).fit(X, y)
    assert clf.landmarks_.shape == (20, 4)
    assert "20 Nyström features of the rbf kernel (gamma 0.1)" in clf.certificate_.summary()
    # The root of the kernel of the landmarks is another basis of the same features.
    values, vectors = np.linalg.eigh(pairwise_kernels(clf.landmarks_, metric="rbf", gamma=0.1))
    root = vectors / np.sqrt(values)
    Z = pairwise_kernels(X, clf.landmarks_, metric="rbf", gamma=0.1) @ root
    linear = ProjectedLeastSquaresClassifier(alpha=0.1).fit(Z, y)
    assert clf.decision_function(X) == pytest.approx(linear.decision_function(Z), abs=1e-7)
    again = ProjectedLeastSquaresClassifier(
        kernel="rbf", gamma=0.1, alpha=0.1, n_components=20, random_state=0
    ).fit(X, y)
    assert (again.landmarks_ == clf.landmarks_).all()


def test_sparse_rows_have_the_same_kernel():
    X, y, _ = make()
    X[np.abs(X) < 1.0] = 0.0
    dense = ProjectedLeastSquaresClassifier(kernel="rbf").fit(X, y)
    clf = ProjectedLeastSquaresClassifier(kernel="rbf").fit(sparse.csr_array(X), y)
    assert clf.decision_function(sparse.csr_array(X)) == pytest.approx(
        dense.decision_function(X), abs=1e-8
    )


# What models can do


def test_precomputed_kernel():
    X, y, _ = make()
    K, at = pairwise_kernels(X, metric="rbf", gamma=0.3), slice(3, 9)
    clf = ProjectedLeastSquaresClassifier(kernel="precomputed", alpha=0.1).fit(K, y)
    named = ProjectedLeastSquaresClassifier(kernel="rbf", gamma=0.3, alpha=0.1).fit(X, y)
    assert clf.decision_function(K[at]) == pytest.approx(named.decision_function(X[at]), abs=1e-9)
    plain = clf.to_sklearn()
    assert plain.decision_function(K[at]) == pytest.approx(clf.decision_function(K[at]), abs=1e-9)
    assert clf.__sklearn_tags__().input_tags.pairwise


@pytest.mark.parametrize("n_classes", [2, 3])
def test_plain_estimators_predict_the_same(n_classes):
    X, y, _ = make(n_classes=n_classes)
    clf = ProjectedLeastSquaresClassifier(kernel="rbf", gamma="loo").fit(X, y)
    plain = clf.to_sklearn()
    assert [step for step, _ in plain.steps] == ["functiontransformer", "ridgeclassifier"]
    assert plain.decision_function(X) == pytest.approx(clf.decision_function(X), abs=1e-12)
    assert (plain.predict(X) == clf.predict(X)).all()
    reg = LeastSquaresRegressor(0.1, kernel="rbf").fit(X, np.where(y < 0, np.nan, y))
    assert reg.to_sklearn().predict(X) == pytest.approx(reg.predict(X), abs=1e-12)


def test_plain_estimators_predict_the_same_far_from_zero():
    X, y, _ = make()
    X += 1e7  # ||x||² - 2 x·z + ||z||² has no digits left
    clf = ProjectedLeastSquaresClassifier(kernel="rbf", gamma=0.3).fit(X, y)
    plain = pickle.loads(pickle.dumps(clf.to_sklearn()))
    assert plain.decision_function(X) == pytest.approx(clf.decision_function(X), abs=1e-12)


def test_degree_that_is_not_whole_is_named():
    X, y, _ = make()
    with pytest.raises(ValueError, match="whole degree"):
        LeastSquaresClassifier(0.1, kernel="poly", degree=2.5, coef0=0.0).fit(X, y)


def test_models_can_be_pickled_and_audited():
    X, y, _ = make()
    clf = ProjectedLeastSquaresClassifier(kernel="rbf").fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    assert (again.decision_function(X) == clf.decision_function(X)).all()
    found = audit(clf, clf.supervised_, X, y, response="score")
    certificate = clf.certificate_
    penalty = found.worst_case - certificate.worst_case  # which an audit of scores has not
    assert found.best_case - certificate.best_case == pytest.approx(penalty, abs=1e-9)


def test_no_coefficients_of_columns():
    X, y, _ = make()
    clf = ProjectedLeastSquaresClassifier(kernel="rbf").fit(X, y)
    assert not hasattr(clf, "coef_")


def test_regression_within_bounds():
    X, y, _ = make(n=120)
    target = np.where(y < 0, np.nan, y)
    reg = ProjectedLeastSquaresRegressor((0.0, 1.0), kernel="rbf", gamma="loo").fit(X, target)
    clf = ProjectedLeastSquaresClassifier(kernel="rbf", gamma="loo").fit(X, y)
    assert reg.predict(X) == pytest.approx(scores(clf, X), abs=1e-9)


def test_self_learning_of_a_kernel_classifier_converges():
    X, y, _ = make(n=120)
    base = LeastSquaresClassifier(0.1, kernel="rbf", gamma=0.2)
    clf = SelfLearningClassifier(base).fit(X, y)
    assert clf.stop_reason_ == "converged"
    full = np.where(y < 0, 0, y)
    full[y < 0] = clf.labels_
    expected = KernelRidgeWithIntercept(0.1, 0.2).fit(X, full)
    assert scores(clf.estimator_, X) == pytest.approx(expected, abs=1e-9)


def test_self_learning_keeps_the_gamma_of_the_labeled_rows():
    X, y, _ = make(n=120)
    clf = SelfLearningClassifier(LeastSquaresClassifierCV(kernel="rbf", gamma="loo")).fit(X, y)
    full = np.where(y < 0, 0, y)
    full[y < 0] = clf.labels_
    chosen = LeastSquaresClassifierCV(kernel="rbf", gamma="loo").fit(X, full)
    given = LeastSquaresClassifierCV(kernel="rbf", gamma=clf.supervised_.gamma_).fit(X, full)
    assert clf.estimator_.gamma_ == clf.supervised_.gamma_ != chosen.gamma_
    assert clf.decision_function(X) == pytest.approx(given.decision_function(X), abs=1e-12)


class KernelRidgeWithIntercept:
    def __init__(self, alpha, gamma):
        self.alpha, self.gamma = alpha, gamma

    def fit(self, X, y):
        K = pairwise_kernels(X, metric="rbf", gamma=self.gamma)
        space = InKernelSpace(K, np.ones(len(X), bool), self.alpha)
        return space.rows @ space.fit(np.arange(len(X)), y[:, None].astype(float))[:, 0]


@parametrize_with_checks(
    [
        ProjectedLeastSquaresClassifier(kernel="rbf", alpha=0.1, missing_label=np.nan),
        LeastSquaresClassifierCV([0.1, 1.0], kernel="rbf", missing_label=np.nan),
        LeastSquaresRegressor(0.1, kernel="laplacian"),
        LeastSquaresClassifier(0.1, kernel="rbf", n_components=5, missing_label=np.nan),
    ],
    expected_failed_checks=lambda estimator: (
        {
            "check_sample_weight_equivalence_on_dense_data": "random landmarks",
            "check_sample_weight_equivalence_on_sparse_data": "random landmarks",
        }
        if estimator.n_components
        else {}
    ),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


# Bad input


def test_kernel_matrix_that_is_not_symmetric():
    X, y, _ = make()
    K = pairwise_kernels(X, metric="rbf")
    K[2, 5] += 0.1
    clf = ProjectedLeastSquaresClassifier(kernel="precomputed")
    with pytest.raises(ValueError, match=r"not symmetric: rows 2 and 5 .*\(K \+ K.T\) / 2"):
        clf.fit(K, y)
    with pytest.raises(ValueError, match=r"square matrix, but X has the shape \(80, 79\)"):
        clf.fit(K[:, :79], y)


def test_negative_eigenvalues():
    X, y, _ = make()
    K = pairwise_kernels(X, metric="sigmoid", gamma=1.0, coef0=-1.0)
    clf = ProjectedLeastSquaresClassifier(kernel="precomputed", alpha=0.1)
    with pytest.raises(ValueError, match="kernel matrix has negative eigenvalues"):
        clf.fit(K, y)
    values, V = np.linalg.eigh(K)
    clf.fit((V * values.clip(0)) @ V.T, y)  # as the message says


def test_eigenvalues_that_are_negative_by_rounding_errors_only():
    X, y, _ = make()
    X[40:] = X[:40]
    K = pairwise_kernels(X, metric="rbf", gamma=0.01)
    assert np.linalg.eigvalsh(K)[0] < 0
    clf = ProjectedLeastSquaresClassifier(kernel="precomputed", alpha=0.1).fit(K, y)
    assert len(clf.landmarks_) <= 40


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"kernel": "precomputed", "gamma": 0.1}, "has no meaning for kernel='precomputed'"),
        ({"kernel": np.dot, "gamma": "loo"}, "has no meaning for kernel="),
        ({"kernel": "rbf", "gamma": "loo", "rcond": 1e-8, "alpha": 1.0}, "takes no rcond"),
        ({"kernel": "sigmoid"}, "'kernel' parameter"),
        ({"kernel": "rbf", "gamma": 0.0}, "'gamma' parameter"),
        ({"kernel": "rbf", "n_components": 0}, "'n_components' parameter"),
    ],
)
def test_settings_that_make_no_sense(settings, words):
    X, y, _ = make()
    with pytest.raises(ValueError, match=words):
        ProjectedLeastSquaresClassifier(**settings).fit(X @ X.T, y)


def test_rows_of_another_width():
    X, y, _ = make()
    clf = ProjectedLeastSquaresClassifier(kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 4"):
        clf.predict(X[:, :3])


def test_too_many_rows_for_an_exact_fit():
    X = np.zeros((5001, 1))
    y = np.r_[0, 1, np.full(4999, -1)]
    with pytest.raises(ValueError, match=r"5,001 labeled and unlabeled rows.*n_components"):
        ProjectedLeastSquaresClassifier(kernel="rbf").fit(X, y)


def test_matrix_in_files(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from neverworse.rows import open_parquet

    parquet.write_table(pa.table({"a": [0.0, 1.0, 2.0], "y": [0, 1, -1]}), tmp_path / "a.parquet")
    data = open_parquet(tmp_path, "y")
    with pytest.raises(TypeError, match=r"precomputed.* needs all rows in memory.*n_components"):
        ProjectedLeastSquaresClassifier(kernel="precomputed").fit(*data)


def test_matrix_in_a_cluster():
    da = pytest.importorskip("dask.array")
    X, y, _ = make()
    K = da.from_array(pairwise_kernels(X, metric="rbf"), chunks=(20, -1))
    with pytest.raises(TypeError, match=r"precomputed.* needs all rows in memory.*n_components"):
        ProjectedLeastSquaresClassifier(kernel="precomputed").fit(K, y)


def test_interpolation_is_said():
    X, y, _ = make(n=30, n_labeled=10)
    clf = ProjectedLeastSquaresClassifier(kernel="rbf", gamma=5.0, alpha=0.0)
    with pytest.warns(UserWarning, match="any labels, so that .* possible labels"):
        clf.fit(X, y)
    clipped = np.clip(scores(clf.supervised_, X), 0.0, 1.0)
    assert scores(clf, X)[y < 0] == pytest.approx(clipped[y < 0], abs=1e-6)


@pytest.mark.filterwarnings("ignore:alpha is 0")
@pytest.mark.parametrize("gamma", [3.0, 30.0, 300.0])
def test_baseline_without_penalty_is_the_shortest_function_through_the_labels(gamma):
    X, y, _ = make()
    known = y >= 0
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, kernel="rbf", gamma=gamma).fit(X, y)
    kernel = pairwise_kernels(X, X[known], metric="rbf", gamma=gamma)
    inverse = np.linalg.inv(kernel[known])
    intercept = (inverse @ y[known]).sum() / inverse.sum()  # minimises (y - b)' inverse (y - b)
    expected = kernel @ inverse @ (y[known] - intercept) + intercept
    np.testing.assert_allclose(scores(clf.supervised_, X), expected, atol=1e-9)


@pytest.mark.parametrize("gamma", [3.0, 10.0])
def test_baseline_without_penalty_on_nystroem_features_reproduces_the_labels(gamma):
    X, y, _ = make(n_labeled=15)
    clf = ProjectedLeastSquaresClassifier(
        alpha=0.0, kernel="rbf", gamma=gamma, n_components=60, random_state=0
    ).fit(X, y)
    np.testing.assert_allclose(scores(clf.supervised_, X[:15]), y[:15], atol=1e-6)


def test_pictures_of_weights_are_refused():
    plots = pytest.importorskip("neverworse.plots")
    X, y, _ = make(d=1)
    clf = ProjectedLeastSquaresClassifier(kernel="rbf").fit(X, y)
    with pytest.raises(ValueError, match="without a kernel"):
        plots.ConstraintSetDisplay.from_estimator(clf, X, y)
    with pytest.raises(TypeError, match="without a kernel"):
        plots.CoefficientShiftDisplay.from_estimator(clf)


def fit_with_and_without_start(monkeypatch, model, *data, **more):
    """Return two fits: from the active set (which must be accepted), and by the general solver."""
    fast = clone(model).fit(*data, **more)
    assert fast.n_iter_ == 1  # the least: the solver made no step
    monkeypatch.setattr(_projected, "start_of_projection", lambda *_: None)
    return fast, model.fit(*data, **more)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("constraint_alpha", ["same", 0.01])
@pytest.mark.parametrize(("gamma", "alpha"), [(0.5, 0.02), (0.05, 0.02), (0.5, 10.0)])
def test_active_set_finds_what_the_solver_finds(
    monkeypatch, gamma, alpha, constraint_alpha, fit_intercept
):
    X, y, _ = make(n=200, d=5)
    s = np.random.default_rng(1).uniform(0.5, 2.0, len(X))
    clf = ProjectedLeastSquaresClassifier(
        kernel="rbf",
        gamma=gamma,
        alpha=alpha,
        constraint_alpha=constraint_alpha,
        fit_intercept=fit_intercept,
    )
    fast, slow = fit_with_and_without_start(monkeypatch, clf, X, y, sample_weight=s)
    found, expected = fast.certificate_, slow.certificate_
    assert found.reason == expected.reason
    assert found.duality_gap <= 1e-9
    assert found.worst_case == pytest.approx(expected.worst_case, rel=1e-8, abs=1e-12)
    assert fast.decision_function(X) == pytest.approx(slow.decision_function(X), abs=1e-7)
    assert fast.soft_labels_ == pytest.approx(slow.soft_labels_, abs=1e-4)


def test_active_set_of_bounded_targets(monkeypatch):
    X, _, _ = make(n=200, d=5)
    rng = np.random.default_rng(1)
    target = np.where(np.arange(200) < 30, rng.uniform(15.0, 25.0, 200), np.nan)
    reg = ProjectedLeastSquaresRegressor((15.0, 25.0), kernel="rbf", gamma=0.2, alpha=0.02)
    fast, slow = fit_with_and_without_start(monkeypatch, reg, X, target)
    assert slow.certificate_.guaranteed_improvement > 0
    assert fast.predict(X) == pytest.approx(slow.predict(X), abs=1e-5)


@pytest.mark.parametrize("what", ["direction", "labels"])
def test_start_that_is_not_the_solution_is_not_taken(monkeypatch, what):
    X, y, _ = make(n=200, d=5)
    clf = ProjectedLeastSquaresClassifier(kernel="rbf", gamma=0.5, alpha=0.02)
    expected = clone(clf).fit(X, y)
    start = _projected.start_of_projection

    def wrong(*problem):
        right = start(*problem)
        if what == "labels":
            return replace(right, labels=right.labels + 1e-3)
        return replace(right, direction=right.direction.scaled(1.0 + 1e-3))

    monkeypatch.setattr(_projected, "start_of_projection", wrong)
    clf.fit(X, y)
    assert clf.n_iter_ > 1  # the solver ran
    assert clf.decision_function(X) == pytest.approx(expected.decision_function(X), abs=1e-7)


def test_distances_of_rows_far_from_zero():
    rng = np.random.default_rng(0)
    near = np.round(rng.normal(size=(20, 2)), 3)
    near = np.vstack([near, near])
    y = np.r_[np.arange(10) % 2, np.full(30, -1)]
    settings = {"kernel": "rbf", "gamma": 10.0, "alpha": 1e-3}
    expected = ProjectedLeastSquaresClassifier(**settings).fit(near, y).decision_function(near)
    clf = ProjectedLeastSquaresClassifier(**settings).fit(near + 2.0**20, y)
    found = clf.decision_function(near + 2.0**20)
    assert found == pytest.approx(expected, abs=1e-4)
    assert (found[:20] == found[20:]).all()  # copies of rows
