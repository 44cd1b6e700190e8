"""Weights of classes: those of labeled rows, in the baseline, the projection and the guarantee."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.utils.class_weight import compute_class_weight

from neverworse import (
    ICLSClassifier,
    LeastSquaresClassifier,
    LeastSquaresClassifierCV,
    ProjectedLeastSquaresClassifier,
)
from neverworse.methods import SelfLearningClassifier
from tests.exact import ExactLosses, check_certificate
from tests.problems import KINDS, make_problem
from tests.rationals import label_ranges

SUPERVISED = [LeastSquaresClassifier(0.3), LeastSquaresClassifierCV()]
SEMI = [
    ProjectedLeastSquaresClassifier(),
    ProjectedLeastSquaresClassifier(alpha=0.0),
    ProjectedLeastSquaresClassifier("unlabeled", alpha=0.1),
    ICLSClassifier(alpha=0.1),
]


def make(n_classes=2, seed=0, n=160):
    """Rows of which a fifth is labeled, mostly of the first class."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_classes, n, p=[0.8, *[0.2 / (n_classes - 1)] * (n_classes - 1)])
    X = rng.normal(size=(n, 3)) + np.eye(3)[truth % 3]
    truth[: 2 * n_classes] = np.repeat(np.arange(n_classes), 2)
    return X, np.where(np.arange(n) < n // 5, truth, -1)


def row_weights(y, factors, weights=1.0):
    """What weights by class are as weights of rows."""
    return weights * np.where(y == -1, 1.0, np.asarray(factors)[y])


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", SUPERVISED + SEMI, ids=repr)
@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.25, 1: 3.0}])
def test_is_the_same_as_weights_of_labeled_rows(estimator, class_weight, n_classes):
    X, y = make(n_classes)
    given = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    labeled = y != -1
    if class_weight == "balanced":
        sums = np.bincount(y[labeled], given[labeled])
        factors = given[labeled].sum() / (n_classes * sums)
    else:
        factors = [0.25, 3.0, 1.0]
    clf = type(estimator)(**{**estimator.get_params(), "class_weight": class_weight})
    clf.fit(X, y, sample_weight=given)
    same = estimator.fit(X, y, sample_weight=row_weights(y, factors, given))
    np.testing.assert_allclose(clf.coef_, same.coef_, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(clf.intercept_, same.intercept_, rtol=1e-7, atol=1e-10)
    plain = type(estimator)(**{**estimator.get_params(), "class_weight": None})
    plain.fit(X, y, sample_weight=given)
    assert np.abs(clf.intercept_ - plain.intercept_).max() > 0.01


@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.5, 1: 4.0}])
def test_scikit_learns_ridge_classifier_weighs_alike(class_weight):
    X, y = make()
    X, y = X[y != -1], y[y != -1]
    clf = LeastSquaresClassifier(0.75, class_weight=class_weight).fit(X, y)
    # Its targets are -1 and 1, twice ours.
    theirs = RidgeClassifier(alpha=0.75, class_weight=class_weight, solver="cholesky").fit(X, y)
    np.testing.assert_allclose(2.0 * clf.coef_[0], np.ravel(theirs.coef_), rtol=1e-9)
    np.testing.assert_allclose(2.0 * clf.intercept_, theirs.intercept_, rtol=1e-9)


def test_balanced_weights_are_those_of_scikit_learn_and_leave_the_sum():
    X, y = make(3)
    clf = ProjectedLeastSquaresClassifier(class_weight="balanced").fit(X, y)
    known = y[y != -1]
    expected = compute_class_weight("balanced", classes=np.arange(3), y=known)
    names, found = zip(*clf.certificate_.class_weight, strict=True)
    assert names == ("0", "1", "2")
    np.testing.assert_allclose(found, expected)
    assert np.asarray(found)[known].sum() == pytest.approx(len(known))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("class_weight", ["balanced", {0: 0.01, 1: 7.0}])
def test_never_worse_in_weighted_loss_for_the_exact_worst_labeling(class_weight):
    rng = np.random.default_rng(5)
    improved = 0
    for kind in KINDS * 2:
        problem = make_problem(kind, rng)
        for distance in ("all", "unlabeled", "labeled"):
            clf = problem.fit(distance=distance, class_weight=class_weight)
            factors = [weight for _, weight in clf.certificate_.class_weight]
            weights = row_weights(problem.y, factors, problem.weights_or(1.0))
            check_certificate(
                clf, ExactLosses.of(clf, problem.X, *label_ranges(problem.y, 2), weights)
            )
            improved += clf.certificate_.guaranteed_improvement > 0
    assert improved > 10


def test_never_worse_with_several_classes_weighted():
    improved = 0
    for seed in range(6):
        X, y = make(4, seed, n=100)
        X = np.sinh(1.5 * X)  # far-off rows are what improvement comes from
        clf = ProjectedLeastSquaresClassifier(alpha=0.1, class_weight="balanced").fit(X, y)
        factors = [weight for _, weight in clf.certificate_.class_weight]
        weights = row_weights(y, factors)
        check_certificate(clf, ExactLosses.of(clf, X, *label_ranges(y, 4), weights))
        improved += clf.certificate_.guaranteed_improvement > 0
    assert improved > 2


def test_the_certificate_names_the_weighted_loss():
    X, y = make()
    X = np.sinh(1.5 * X)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0, class_weight={1: 4.5}).fit(X, y)
    words = "squared loss (labeled rows weighted by class: 0 1, 1 4.5) on all 160"
    assert words in clf.certificate_.summary()
    plain = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y).certificate_
    assert plain.class_weight == ()
    assert "weighted" not in plain.summary()
    # Labeled rows are no part of this loss.
    unlabeled = ProjectedLeastSquaresClassifier("unlabeled", class_weight="balanced").fit(X, y)
    assert "weighted" not in unlabeled.certificate_.summary()


def test_more_weight_finds_more_of_a_rare_class():
    X, y = make(n=2000)
    plain, balanced = (
        ProjectedLeastSquaresClassifier(class_weight=weight).fit(X, y)
        for weight in (None, "balanced")
    )
    assert (balanced.predict(X) == 1).sum() > 1.5 * (plain.predict(X) == 1).sum()


def test_soft_labels_of_rows_keep_their_weight():
    X, y = make()
    bounds = np.full((len(y), 2), np.nan)
    bounds[-1] = 0.5, 0.5
    clf = LeastSquaresClassifier(0.1, class_weight={0: 9.0, 1: 9.0}).fit(X, y, label_bounds=bounds)
    same = LeastSquaresClassifier(0.1).fit(X, y, row_weights(y, [9.0, 9.0]), bounds)
    np.testing.assert_allclose(clf.coef_, same.coef_, rtol=1e-9)


def test_self_learning_weighs_the_classes_of_all_labels_so_far():
    X, y = make()
    clf = SelfLearningClassifier(LeastSquaresClassifier(0.1, class_weight="balanced")).fit(X, y)
    labels = np.where(y == -1, 0, y)
    labels[y == -1] = clf.labels_
    same = LeastSquaresClassifier(0.1, class_weight="balanced").fit(X, labels)
    np.testing.assert_allclose(clf.estimator_.coef_, same.coef_, rtol=1e-9)


@pytest.mark.parametrize("weight", [0.0, -1.0, np.inf, np.nan, "much", None])
@pytest.mark.parametrize("estimator", SUPERVISED + SEMI[:1], ids=lambda e: type(e).__name__)
def test_weights_that_are_no_positive_numbers_are_refused(estimator, weight):
    clf = type(estimator)(class_weight={0: 1.0, 1: weight})
    with pytest.raises(ValueError, match=r"class_weight is .* for class 1, but has to be a number"):
        clf.fit(*make())


def test_classes_without_labels_are_treated_as_in_scikit_learn():
    X, y = make()
    extra = {0: 1.0, 1: 2.0, 2: 3.0}
    clf = LeastSquaresClassifier(class_weight=extra).fit(X, y)
    assert clf.coef_.shape == (1, 3)
    known = y != -1
    LogisticRegression(class_weight=extra).fit(X[known], y[known])
    for estimator in (LeastSquaresClassifier(), LogisticRegression()):
        wrong = estimator.set_params(class_weight={0: 1.0, 2: 3.0})
        with pytest.raises(ValueError, match="class_weight"):
            wrong.fit(X[known], y[known])


def test_other_words_than_balanced_are_refused():
    with pytest.raises(ValueError, match="class_weight"):
        LeastSquaresClassifier(class_weight="even").fit(*make())
