"""Weak labels: bounds of the label of each row."""

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV

from neverworse import ICLSClassifier, LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.model_selection import StratifiedLabeledKFold
from tests.exact import check_certificate
from tests.problems import KINDS, make_problem
from tests.restricted import Restricted, with_bounds, with_classes

CLASSIFIERS = [LeastSquaresClassifier, ProjectedLeastSquaresClassifier, ICLSClassifier]
every_classifier = pytest.mark.parametrize("classifier", CLASSIFIERS)
projected = pytest.mark.parametrize("classifier", CLASSIFIERS[1:])
ignore_giving_up = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
nan = np.nan


def make(n=100, n_classes=2, n_labeled=20, d=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    truth[:n_classes] = np.arange(n_classes)
    X = rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(n_classes, d))[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth, rng


def around(truth, rng, width, n_classes=2):
    """Bounds that contain the truth: of the second class, or of all."""
    n = len(truth)
    labels = np.eye(n_classes)[truth]
    lower = np.maximum(labels - width * rng.random(labels.shape), 0.0)
    upper = np.minimum(labels + width * rng.random(labels.shape), 1.0)
    bounds = np.stack([lower, upper], axis=2)
    bounds[rng.random(n) < 0.3] = nan
    return bounds[:, 1] if n_classes == 2 else bounds


# Never worse, exactly


@ignore_giving_up
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("weight", [1e12, 1e16, 1e26])
def test_bounds_that_are_all_but_equal_are_bounds(weight, n_classes):
    near = weight**-0.5
    X = np.array([[0.0], [0.0], [0.0], [-near], [near], [1.0]])
    y = np.array([0, 1, n_classes - 1, -1, -1, -1])
    s = np.array([1.0, 1.0, 1.0, weight, weight, 1.0])
    for slope in (-3.0, -1.0, 0.5, 2.0):
        for below, above in ((0.0, 9e-13), (3e-13, 3e-13), (1e-15, 0.0)):
            bounds = np.full((6, n_classes, 2), nan)
            for j in (3, 4):
                at = 0.5 + slope * X[j, 0]
                bounds[j, 1] = at - below, at + above
            given = bounds[:, 1] if n_classes == 2 else bounds
            problem = Restricted(X, y, s, {"alpha": 0.0}, n_classes, given)
            clf = problem.fit()
            check_certificate(clf, problem.exact(clf))
            assert clf.certificate_.n_labeled == 3


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 1 / 3, 0.7, 1.0])
def test_equal_bounds_are_a_soft_label_however_they_are_spelled(share):
    X, y, _, _ = make(n=12, n_labeled=6)
    both = np.full((12, 2, 2), nan)
    both[8] = [[1.0 - share, 1.0 - share], [share, share]]
    for bounds in (both, both[:, 1]):
        clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y, label_bounds=bounds)
        assert clf.certificate_.n_labeled == 7


def test_bounds_whose_squares_vanish_are_refused():
    X, y, _, _ = make()
    bounds = np.full((len(y), 2), nan)
    bounds[50] = 0.0, 1e-120
    with pytest.raises(ValueError, match=r"label_bounds in row 50 differ by 1e-120"):
        ProjectedLeastSquaresClassifier().fit(X, y, label_bounds=bounds)


@ignore_giving_up
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_never_worse_for_the_exact_worst_labels_within_bounds(kind, n_classes):
    rng = np.random.default_rng([n_classes, *kind.encode()])
    improved = 0
    for trial in range(12):
        if improved and trial >= (5 if n_classes == 2 else 3):
            break
        problem = make_problem(kind, rng)
        if n_classes == 2:
            problem = Restricted(problem.X, problem.y, problem.weights, problem.settings, 2)
        else:
            problem = with_classes(problem, rng, int(rng.integers(3, 6)))
        with_bounds(problem, rng)
        for distance in ("all", "unlabeled", "labeled"):
            clf = problem.fit(distance=distance)
            check_certificate(clf, problem.exact(clf))
            improved += clf.certificate_.guaranteed_improvement > 0
    assert improved > 0


@ignore_giving_up
@pytest.mark.parametrize("n_classes", [2, 3])
def test_random_labels_within_bounds_lie_between_the_extremes(n_classes):
    rng = np.random.default_rng(1)
    for _ in range(12):
        problem = make_problem("gaussian", rng)
        problem = with_bounds(with_classes(problem, rng, n_classes), rng)
        clf = problem.fit(constraint_alpha=0.0)
        f, g = (
            np.atleast_2d(m.decision_function(problem.X).T) + 0.5 for m in (clf, clf.supervised_)
        )
        for _ in range(10):
            labels = problem.random_labels(rng)[-len(f) :]
            difference = float(np.sum(problem.s() * ((f - labels) ** 2 - (g - labels) ** 2)))
            slack = 1e-10 * (1 + np.sum(problem.s() * g**2))
            assert clf.certificate_.best_case - slack <= difference
            assert difference <= clf.certificate_.worst_case + slack


@pytest.mark.parametrize("n_classes", [2, 3])
def test_true_labels_within_bounds(n_classes):
    improved = 0
    for seed in range(10):
        X, y, truth, rng = make(n_classes=n_classes, seed=seed, n_labeled=8)
        bounds = around(truth, rng, 0.8, n_classes)
        clf = ProjectedLeastSquaresClassifier().fit(X, y, label_bounds=bounds)
        labels = np.eye(n_classes)[truth] if n_classes > 2 else truth.astype(float)
        f, g = clf.decision_function(X) + 0.5, clf.supervised_.decision_function(X) + 0.5
        difference = np.sum((f - labels) ** 2) - np.sum((g - labels) ** 2)
        assert difference <= clf.certificate_.worst_case + 1e-9
        improved += clf.certificate_.guaranteed_improvement > 0
    assert improved > 5


# What bounds mean


@pytest.mark.parametrize("n_classes", [2, 3])
def test_tighter_bounds_improve_more(n_classes):
    X, y, truth, _ = make(n_classes=n_classes, n_labeled=8)
    labels = np.eye(n_classes)[truth]
    guaranteed = []
    for width in (1.0, 0.7, 0.4, 0.1, 0.01):
        bounds = np.stack([np.maximum(labels - width, 0), np.minimum(labels + width, 1)], axis=2)
        clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y, label_bounds=bounds)
        guaranteed.append(clf.certificate_.guaranteed_improvement)
    assert (np.diff(guaranteed) > 1e-3).all()


@ignore_giving_up
@projected
@pytest.mark.parametrize("n_classes", [2, 3])
def test_bounds_that_say_nothing(classifier, n_classes):
    X, y, _, _ = make(n_classes=n_classes)
    plain = classifier(tol=1e-13).fit(X, y)
    shape = (len(y), n_classes, 2)
    nothing = np.broadcast_to([0.0, 1.0], shape)
    half = np.where(np.arange(len(y)) % 2, nan, 1.0)[:, None, None] * nothing
    for bounds in (np.full(shape, nan), nothing, half):
        clf = classifier(tol=1e-13).fit(X, y, label_bounds=bounds)
        np.testing.assert_allclose(clf.coef_, plain.coef_, atol=1e-9)
        assert clf.certificate_.assumptions.n_bounded == 0
        assert clf.certificate_.assumptions == plain.certificate_.assumptions


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 4])
def test_bounds_that_say_it_all_are_labels(classifier, n_classes):
    X, y, truth, rng = make(n_classes=n_classes)
    told = rng.random(len(y)) < 0.4
    bounds = np.full((len(y), n_classes, 2), nan)
    bounds[told] = np.eye(n_classes)[truth[told]][:, :, None]
    weak = classifier().fit(X, y, label_bounds=bounds)
    strong = classifier().fit(X, np.where(told, truth, y))
    np.testing.assert_allclose(weak.coef_, strong.coef_, atol=1e-10)
    np.testing.assert_allclose(weak.intercept_, strong.intercept_, atol=1e-10)
    if classifier is not LeastSquaresClassifier:
        a, b = weak.certificate_, strong.certificate_
        assert (a.n_labeled, a.n_unlabeled) == (b.n_labeled, b.n_unlabeled)
        assert a.worst_case == pytest.approx(b.worst_case, rel=1e-9, abs=1e-10)
        assert weak.soft_labels_.shape == strong.soft_labels_.shape


@every_classifier
@pytest.mark.parametrize("one_sided", [False, True])
def test_the_largest_share_of_another_class_may_fix_a_label(classifier, one_sided):
    # Two of three classes are excluded: the third is the label.
    X, y, truth, _ = make(n_classes=3, n_labeled=30)
    bounds = np.full((len(y), 3, 2), nan)
    told = np.flatnonzero(y == -1)[::2]
    if one_sided:
        bounds[told, truth[told], 0] = 1.0
    else:
        bounds[told, :, 1] = np.eye(3)[truth[told]]
    clf = classifier().fit(X, y, label_bounds=bounds)
    y[told] = truth[told]
    np.testing.assert_allclose(clf.coef_, classifier().fit(X, y).coef_, atol=1e-10)


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("alpha", [0.0, 2.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_equal_bounds_are_soft_labels(classifier, n_classes, alpha, weighted):
    X, y, _, rng = make(n_classes=n_classes, n_labeled=30)
    told = (y == -1) & (rng.random(len(y)) < 0.5)
    soft = rng.dirichlet(np.ones(n_classes), len(y))
    bounds = np.full((len(y), n_classes, 2), nan)
    bounds[told] = soft[told][:, :, None]
    if n_classes == 2:
        bounds = bounds[:, 1]
    s = rng.uniform(0.5, 2, len(y)) if weighted else np.ones(len(y))
    clf = classifier(alpha=alpha).fit(X, y, sample_weight=s, label_bounds=bounds)
    supervised = getattr(clf, "supervised_", clf)
    target = np.where((y == -1)[:, None], soft, np.eye(n_classes)[y])
    used = told | (y != -1)
    ridge = Ridge(max(alpha, 1e-13), solver="cholesky")
    ridge.fit(X[used], target[used], sample_weight=s[used])
    np.testing.assert_allclose(supervised.coef_, ridge.coef_[-len(supervised.coef_) :], atol=1e-10)
    np.testing.assert_allclose(
        supervised.intercept_ + 0.5, ridge.intercept_[-len(supervised.coef_) :], atol=1e-10
    )
    if classifier is not LeastSquaresClassifier:
        assert clf.certificate_.n_labeled == used.sum()
        assert len(clf.soft_labels_) == np.sum(~used)


@every_classifier
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_rows_with_a_soft_label_are_read(classifier, value):
    X, y, _, _ = make()
    bounds = np.full((len(y), 2), nan)
    bounds[50] = 0.5
    X[50, 1] = value
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        classifier().fit(X, y, label_bounds=bounds)


@projected
def test_all_labels_are_known_softly(classifier):
    X, y, _, rng = make()
    p = rng.random(len(y))
    bounds = np.where((y == -1)[:, None], p[:, None], nan) * np.ones(2)
    clf = classifier().fit(X, y, label_bounds=bounds)
    assert clf.certificate_.reason == "no unlabeled rows"
    np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)
    assert clf.soft_labels_.shape == (0,)


@ignore_giving_up
@projected
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("distance", ["all", "unlabeled"])
def test_soft_labels_stay_within_their_bounds(classifier, n_classes, distance):
    for seed in range(5):
        X, y, truth, rng = make(n_classes=n_classes, seed=seed)
        bounds = around(truth, rng, 0.9, n_classes)
        settings = {} if classifier is ICLSClassifier else {"distance": distance}
        clf = classifier(**settings).fit(X, y, label_bounds=bounds)
        lower, upper = bounds[..., 0], bounds[..., 1]
        fixed = (lower == upper).all(axis=tuple(range(1, lower.ndim)))
        seen = (y == -1) & ~fixed
        soft = clf.soft_labels_
        assert len(soft) == seen.sum()
        assert np.nanmax(lower[seen] - soft) <= 1e-12
        assert np.nanmax(soft - upper[seen]) <= 1e-12
        if n_classes > 2:
            np.testing.assert_allclose(soft.sum(axis=1), 1.0, atol=1e-12)


@projected
def test_two_classes_in_both_shapes(classifier):
    X, y, truth, rng = make()
    second = around(truth, rng, 0.7)
    first = 1.0 - second[:, ::-1]
    both = np.stack([first, second], axis=1)
    only_first = np.stack([first, np.full_like(second, nan)], axis=1)
    expected = classifier().fit(X, y, label_bounds=second)
    for bounds in (both, only_first):
        clf = classifier().fit(X, y, label_bounds=bounds)
        np.testing.assert_allclose(clf.coef_, expected.coef_, atol=1e-10)
        assert clf.certificate_.n_unlabeled == expected.certificate_.n_unlabeled


@projected
def test_one_sided_bounds(classifier):
    X, y, truth, _ = make()
    at_least = np.where(truth[:, None] == 1, [0.6, nan], [nan, 0.4])
    full = np.where(truth[:, None] == 1, [0.6, 1.0], [0.0, 0.4])
    a, b = (classifier().fit(X, y, label_bounds=bounds) for bounds in (at_least, full))
    np.testing.assert_array_equal(a.coef_, b.coef_)
    assert a.certificate_.assumptions.n_bounded == np.sum(y == -1)


@every_classifier
def test_bounds_of_labeled_rows_that_contain_the_label_change_nothing(classifier):
    X, y, _, _ = make(n_classes=3)
    bounds = np.full((len(y), 3, 2), nan)
    for j in np.flatnonzero(y != -1):
        bounds[j, y[j]] = 0.3, 1.0
        bounds[j, (y[j] + 1) % 3] = 0.0, 0.5
    clf, plain = classifier().fit(X, y, label_bounds=bounds), classifier().fit(X, y)
    np.testing.assert_allclose(clf.coef_, plain.coef_, atol=1e-10)


@projected
def test_rows_without_a_weight_may_have_any_bounds(classifier):
    X, y, truth, rng = make()
    bounds = around(truth, rng, 0.6)
    s = np.where((y == -1) & (rng.random(len(y)) < 0.3), 0.0, 1.0)
    a = classifier().fit(X, y, sample_weight=s, label_bounds=bounds)
    b = classifier().fit(X[s > 0], y[s > 0], label_bounds=bounds[s > 0])
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-9)
    other = np.where((s == 0)[:, None], [0.1, 0.2], bounds)
    c = classifier().fit(X, y, sample_weight=s, label_bounds=other)
    np.testing.assert_allclose(a.coef_, c.coef_, atol=1e-9)


def test_lbfgs_gives_the_same():
    X, y, truth, rng = make()
    bounds = around(truth, rng, 0.7)
    exact = ProjectedLeastSquaresClassifier(tol=1e-12).fit(X, y, label_bounds=bounds)
    slow = ProjectedLeastSquaresClassifier(solver="lbfgs").fit(X, y, label_bounds=bounds)
    np.testing.assert_allclose(exact.coef_, slow.coef_, atol=1e-5)
    assert slow.certificate_.holds


# Containers


@every_classifier
@pytest.mark.parametrize("kind", ["list", "frame", "float32", "fortran", "read-only"])
def test_containers(classifier, kind):
    X, y, _, rng = make()
    bounds = np.sort(np.round(rng.random((len(y), 2)) * 8) / 8, axis=1)
    bounds[y != -1] = nan
    expected = classifier().fit(X, y, label_bounds=bounds)
    given = {
        "list": bounds.tolist(),
        "frame": pd.DataFrame(bounds, columns=["low", "high"]),
        "float32": bounds.astype(np.float32),
        "fortran": np.asfortranarray(bounds),
        "read-only": bounds.copy(),
    }[kind]
    if kind == "read-only":
        given.flags.writeable = False
    clf = classifier().fit(X, y, label_bounds=given)
    np.testing.assert_array_equal(clf.coef_, expected.coef_)
    if isinstance(given, np.ndarray):
        np.testing.assert_array_equal(given, bounds.astype(given.dtype))


@every_classifier
def test_sparse_rows(classifier):
    X, y, truth, rng = make(n_classes=3, n_labeled=30)
    X[rng.random(X.shape) < 0.5] = 0.0
    bounds = around(truth, rng, 0.7, 3)
    dense = classifier().fit(X, y, label_bounds=bounds)
    thin = classifier().fit(sparse.csr_array(X), y, label_bounds=bounds)
    np.testing.assert_allclose(dense.coef_, thin.coef_, atol=1e-6)


@projected
def test_grid_search_cuts_bounds_as_it_cuts_rows(classifier):
    X, y, truth, rng = make(n=120, n_labeled=40)
    bounds = around(truth, rng, 0.7)
    search = GridSearchCV(
        classifier(), {"alpha": [0.0, 1.0]}, cv=StratifiedLabeledKFold(3), refit=True
    )
    search.fit(X, y, label_bounds=bounds)
    best = classifier(alpha=search.best_params_["alpha"]).fit(X, y, label_bounds=bounds)
    np.testing.assert_array_equal(search.best_estimator_.coef_, best.coef_)
    assert best.certificate_.assumptions.n_bounded > 0


@every_classifier
def test_bounds_are_routed(classifier):
    X, y, truth, rng = make()
    bounds = around(truth, rng, 0.5)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = classifier().set_fit_request(label_bounds=True)
        search = GridSearchCV(clf, {"alpha": [0.5]}, cv=StratifiedLabeledKFold(2))
        search.fit(X, y, label_bounds=bounds)
    expected = classifier(alpha=0.5).fit(X, y, label_bounds=bounds)
    np.testing.assert_array_equal(search.best_estimator_.coef_, expected.coef_)


# Words


def test_certificate_counts_rows_with_bounds():
    X, y, _, _ = make()
    bounds = np.full((len(y), 2), nan)
    bounds[30:50] = 0.2, 0.9
    bounds[50:60] = 0.0, 1.0
    bounds[60:65] = 0.5
    certificate = ProjectedLeastSquaresClassifier().fit(X, y, label_bounds=bounds).certificate_
    assert certificate.assumptions.n_bounded == 20
    assert certificate.n_labeled == 25
    assert certificate.n_unlabeled == 75
    assert certificate.n_zero + certificate.n_one + certificate.n_fractional == 75
    assert "the 20 with bounds are within their bounds" in certificate.summary()


# Errors


def _with(rows, classes=()):
    """Bounds with some rows replaced; of all classes, if their number is given."""
    bounds = np.full((100, *classes, 2), nan)
    for j, value in rows.items():
        bounds[j] = value
    return bounds


BAD = {
    "cross": (2, _with({40: (0.8, 0.2)}), "cross.*row 40.*from 0.8 to 0.2"),
    "below zero": (2, _with({41: (-0.1, 0.2)}), "leave the range from 0 to 1 in row 41"),
    "above one": (2, _with({42: (0.5, 1.5)}), "leave the range from 0 to 1 in row 42"),
    "percentages": (2, _with({43: (20, 50)}), "leave the range from 0 to 1"),
    "infinite": (2, _with({44: (0.0, np.inf)}), "leave the range from 0 to 1"),
    "low above one, one-sided": (2, _with({45: (1.2, nan)}), "leave the range from 0 to 1"),
    "exclude the label": (2, _with({0: (0.5, 1.0)}), "exclude the label in y in row 0"),
    "soft label of a labeled row": (2, _with({1: (0.9, 0.9)}), "exclude the label in y in row 1"),
    "too few rows": (2, np.full((99, 2), nan), r"shape \(99, 2\).*\(100, 2, 2\) is .* \(100, 2\)"),
    "one column": (2, np.full((100, 1), nan), r"shape \(100, 1\)"),
    "flat": (2, np.full(100, nan), r"shape \(100,\)"),
    "scalar": (2, 0.5, r"shape \(\)"),
    "transposed": (2, np.full((2, 100), nan), r"shape \(2, 100\)"),
    "of two classes": (3, np.full((100, 2), nan), r"shape \(100, 2\), but \(100, 3, 2\)"),
    "class without a label": (
        2,
        np.full((100, 3, 2), nan),
        "classes 0, 1. .*without a labeled row",
    ),
    "more than all": (
        3,
        _with({50: [(0.5, 1), (0.5, 1), (0.1, 1)]}, (3,)),
        "no shares .* that add up to 1 in row 50",
    ),
    "less than all": (
        3,
        _with({51: [(0, 0.3), (0, 0.3), (0, 0.3)]}, (3,)),
        "no shares .* that add up to 1 in row 51",
    ),
    "no class at all": (
        3,
        _with({52: [(nan, 0)] * 3}, (3,)),
        "no shares .* that add up to 1 in row 52",
    ),
    "both classes": (
        2,
        _with({53: [(0.6, 1)] * 2}, (2,)),
        "no shares .* that add up to 1 in row 53",
    ),
    "words": (2, [["low", "high"]] * 100, "could not convert|label_bounds"),
}


@every_classifier
@pytest.mark.parametrize("name", BAD)
def test_bad_bounds(classifier, name):
    n_classes, bounds, message = BAD[name]
    X, y, _, _ = make(n_classes=n_classes)
    y[:2] = 0, 1
    clf = classifier()
    with pytest.raises(ValueError, match=message):
        clf.fit(X, y, label_bounds=bounds)
    with pytest.raises(NotFittedError):
        clf.predict(X)


@every_classifier
def test_bad_bounds_after_a_good_fit(classifier):
    X, y, _, _ = make()
    clf = classifier().fit(X, y)
    with pytest.raises(ValueError, match="cross"):
        clf.fit(X, y, label_bounds=_with({40: (0.8, 0.2)}))
    with pytest.raises(NotFittedError):
        clf.predict(X)


@every_classifier
def test_rounding_errors_are_no_reason_for_an_error(classifier):
    X, y, _, _ = make(n_classes=3)
    bounds = np.full((len(y), 3, 2), nan)
    bounds[60] = np.array([0.1, 0.2, 0.7])[:, None]  # adds up to a little less than one
    bounds[61] = np.array([1 / 3, 1 / 3, 1 / 3 + 1e-15])[:, None]
    bounds[62, :, 0] = 0.3, 0.3, 0.4  # lower bounds that leave no room
    bounds[63, :, 1] = 0.1, 0.2, 0.7
    bounds[64, 0] = 0.1 + 0.2, 0.3  # cross, but for rounding only
    clf = classifier().fit(X, y, label_bounds=bounds)
    if classifier is not LeastSquaresClassifier:
        assert clf.certificate_.n_labeled == 24  # all but the last are soft labels
        soft = clf.soft_labels_
        np.testing.assert_allclose(soft.sum(axis=1), 1.0, atol=1e-12)
        at = np.sum((y == -1)[:64]) - 4
        assert soft[at, 0] == pytest.approx(0.3, abs=1e-12)
