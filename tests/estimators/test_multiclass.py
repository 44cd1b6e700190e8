"""More than two classes: the interface, the guarantee, and scikit-learn around it."""

import os
import pickle
import subprocess
import sys
import textwrap
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from neverworse import ICLSClassifier, LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.model_selection import StratifiedLabeledKFold, labeled_scorer
from tests.exact import check_certificate
from tests.problems import KINDS, distances, make_problem
from tests.restricted import Restricted, with_classes

CLASSIFIERS = [LeastSquaresClassifier, ProjectedLeastSquaresClassifier, ICLSClassifier]
every_classifier = pytest.mark.parametrize("classifier", CLASSIFIERS)
projected = pytest.mark.parametrize("classifier", CLASSIFIERS[1:])
ignore_giving_up = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def make(n=120, n_classes=3, n_labeled=20, d=4, seed=0):
    """Rows of several classes, of which the first have a label."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    truth[:n_classes] = np.arange(n_classes)
    X = rng.normal(size=(n, d)) + 1.5 * rng.normal(size=(n_classes, d))[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth


def loss(scores, labels, n_classes, weights=None):
    """The quadratic loss of scores, summed over the classes."""
    hot = np.eye(n_classes)[labels]
    s = np.ones(len(labels)) if weights is None else weights
    return float(s @ ((scores - hot) ** 2).sum(axis=1))


def test_the_rows_of_these_tests_are_not_a_trivial_case():
    X, y, _ = make()
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    assert clf.certificate_.guaranteed_improvement > 0.1
    assert ICLSClassifier(alpha=0.0).fit(X, y).certificate_.reason == ""


# Never worse, exactly


@ignore_giving_up
@pytest.mark.parametrize("kind", KINDS)
def test_never_worse_for_the_exact_worst_labeling(kind):
    rng = np.random.default_rng(list(kind.encode()))
    improved = 0
    for trial in range(8):
        if improved and trial >= 4:
            break
        problem = with_classes(make_problem(kind, rng), rng, int(rng.integers(3, 6)))
        for distance in distances(rng, problem.X.shape[1]):
            clf = problem.fit(distance=distance)
            check_certificate(clf, problem.exact(clf))
            improved += clf.certificate_.guaranteed_improvement > 0
    assert improved > 0


@pytest.mark.parametrize("kind", ["gaussian", "ties", "outliers", "rank deficient"])
@pytest.mark.parametrize("limit", [{"max_iter": 1}, {"max_iter": 4}, {"max_time": 0.0}])
def test_stopped_early_is_never_worse_either(kind, limit):
    rng = np.random.default_rng(1)
    for _ in range(8):
        problem = with_classes(make_problem(kind, rng), rng, 3)
        clf = problem.fit(**limit)
        check_certificate(clf, problem.exact(clf))


def test_random_labelings_lie_between_the_extremes():
    rng = np.random.default_rng(2)
    for seed in range(10):
        X, y, _ = make(seed=seed, n_classes=4)
        s = rng.uniform(0.1, 3, len(y))
        clf = ProjectedLeastSquaresClassifier().fit(X, y, sample_weight=s)
        f, g = clf.decision_function(X) + 0.5, clf.supervised_.decision_function(X) + 0.5
        low, high = clf.certificate_.supervised_loss
        for _ in range(20):
            labels = np.where(y == -1, rng.integers(0, 4, len(y)), y)
            supervised = loss(g, labels, 4, s)
            difference = loss(f, labels, 4, s) - supervised
            assert clf.certificate_.best_case <= difference + 1e-9
            assert difference <= clf.certificate_.worst_case + 1e-9
            assert low - 1e-9 <= supervised <= high + 1e-9


def test_true_labels_of_iris():
    X, truth = load_iris(return_X_y=True)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        labeled = np.concatenate(
            [rng.choice(np.flatnonzero(truth == k), 4, False) for k in range(3)]
        )
        y = np.full(len(truth), -1)
        y[labeled] = truth[labeled]
        clf = ProjectedLeastSquaresClassifier().fit(X, y)
        f, g = clf.decision_function(X) + 0.5, clf.supervised_.decision_function(X) + 0.5
        improvement = clf.certificate_.guaranteed_improvement
        assert loss(f, truth, 3) <= loss(g, truth, 3) - improvement + 1e-9


# The interface


@every_classifier
@pytest.mark.parametrize("n_classes", [3, 5, 12])
def test_shapes(classifier, n_classes):
    X, y, truth = make(n=200, n_classes=n_classes, n_labeled=60, d=6)
    clf = classifier().fit(X, y)
    assert clf.coef_.shape == (n_classes, 6)
    assert clf.intercept_.shape == (n_classes,)
    np.testing.assert_array_equal(clf.classes_, np.arange(n_classes))
    assert clf.decision_function(X).shape == (200, n_classes)
    assert clf.predict_proba(X).shape == (200, n_classes)
    assert clf.predict(X).shape == (200,)
    np.testing.assert_allclose(
        clf.decision_function(X), X @ clf.coef_.T + clf.intercept_, atol=1e-12
    )
    np.testing.assert_array_equal(clf.predict(X), clf.decision_function(X).argmax(axis=1))
    assert clf.score(X, truth) > 2 / n_classes
    if classifier is not LeastSquaresClassifier:
        assert clf.soft_labels_.shape == (140, n_classes)
        assert clf.supervised_.coef_.shape == (n_classes, 6)
        assert clf.certificate_.assumptions.task == "multiclass"
        assert clf.certificate_.n_labeled == 60
        assert clf.certificate_.n_unlabeled == 140
        assert clf.certificate_.converged


@every_classifier
def test_two_classes_keep_their_shapes(classifier):
    X, y, _ = make(n_classes=2)
    clf = classifier().fit(X, y)
    assert clf.coef_.shape == (1, 4)
    assert clf.intercept_.shape == (1,)
    assert clf.decision_function(X).shape == (120,)
    assert clf.predict_proba(X).shape == (120, 2)
    if classifier is not LeastSquaresClassifier:
        assert clf.soft_labels_.shape == (100,)
        assert clf.sparse_soft_labels_.shape == (100, 1)


@every_classifier
def test_class_names_in_any_order(classifier):
    X, y, _ = make()
    names = np.array(["pear", "apple", "fig", None], dtype=object)
    clf = classifier().fit(X, names[y])
    plain = classifier().fit(X, y)
    assert list(clf.classes_) == ["apple", "fig", "pear"]
    order = [1, 2, 0]  # apple, fig and pear among the codes
    np.testing.assert_allclose(clf.coef_, plain.coef_[order], atol=1e-8)
    assert set(clf.predict(X)) == {"apple", "fig", "pear"}
    np.testing.assert_array_equal(clf.predict(X), names[plain.predict(X)])
    np.testing.assert_allclose(clf.predict_proba(X), plain.predict_proba(X)[:, order], atol=1e-8)


@every_classifier
@pytest.mark.parametrize("kind", ["float", "nullable", "categorical", "string list"])
def test_kinds_of_labels(classifier, kind):
    X, y, _ = make()
    plain = classifier().fit(X, y)
    given = {
        "float": np.where(y == -1, np.nan, y),
        "nullable": pd.array(np.where(y == -1, None, y), dtype="Int64"),
        "categorical": pd.Series(pd.Categorical(np.where(y == -1, None, np.array(list("abc"))[y]))),
        "string list": [None if v == -1 else "abc"[v] for v in y],
    }[kind]
    clf = classifier().fit(X, given)
    np.testing.assert_allclose(clf.coef_, plain.coef_, rtol=1e-12)
    assert len(clf.classes_) == 3


@every_classifier
@pytest.mark.parametrize("alpha", [0.0, 0.1, 10.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_supervised_is_ridge_on_one_hot_targets(classifier, alpha, fit_intercept):
    X, y, _ = make(n_labeled=40, n_classes=4)
    s = np.linspace(0.5, 2, len(y))
    labeled = y != -1
    ridge = Ridge(max(alpha, 1e-12), fit_intercept=fit_intercept, solver="cholesky")
    ridge.fit(X[labeled], np.eye(4)[y[labeled]], sample_weight=s[labeled])
    clf = classifier(alpha=alpha, fit_intercept=fit_intercept).fit(X, y, sample_weight=s)
    supervised = getattr(clf, "supervised_", clf)
    np.testing.assert_allclose(supervised.coef_, ridge.coef_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(
        supervised.intercept_ + 0.5, ridge.intercept_ + np.zeros(4), atol=1e-9
    )


@projected
def test_scores_add_up_to_one_with_an_intercept(classifier):
    # One-hot targets do, and so do soft labels; least squares keeps that.
    X, y, _ = make(n_classes=5, n_labeled=30)
    clf = classifier().fit(X, y)
    np.testing.assert_allclose((clf.decision_function(X) + 0.5).sum(axis=1), 1.0, atol=1e-9)


@ignore_giving_up
@projected
def test_soft_labels_reproduce_the_weights(classifier):
    X, y, _ = make(n_classes=4, n_labeled=12)
    clf = classifier(alpha=0.0, tol=1e-12).fit(X, y)
    soft = clf.soft_labels_
    assert soft.min() >= 0
    assert soft.max() <= 1
    np.testing.assert_allclose(soft.sum(axis=1), 1.0, atol=1e-12)
    target = np.eye(4)[np.maximum(y, 0)]
    target[y == -1] = soft
    w = np.linalg.lstsq(np.column_stack([X, np.ones(len(X))]), target, rcond=None)[0]
    np.testing.assert_allclose(clf.coef_, w[:-1].T, atol=1e-6)
    np.testing.assert_allclose(clf.intercept_ + 0.5, w[-1], atol=1e-6)
    certificate = clf.certificate_
    whole = int((soft == 1).any(axis=1).sum())
    assert (certificate.n_one, certificate.n_fractional) == (whole, len(soft) - whole)
    assert certificate.n_zero == 0
    assert 0 < certificate.n_fractional < 4 * 5 + 4  # no more than there are weights


@projected
@pytest.mark.parametrize("n_classes", [2, 3, 300])
def test_sparse_soft_labels(classifier, n_classes):
    X, y, _ = make(n=330, n_classes=n_classes, n_labeled=max(30, n_classes))
    clf = classifier(max_iter=3).fit(X, y)
    thin, full = clf.sparse_soft_labels_, clf.soft_labels_
    assert sparse.issparse(thin)
    assert thin.shape == (len(full), 1 if n_classes == 2 else n_classes)
    np.testing.assert_array_equal(thin.toarray(), full.reshape(len(full), -1))
    assert thin.nnz == np.count_nonzero(full)
    np.testing.assert_array_equal(full, clf.soft_labels_)  # a new array of the same numbers
    full[:] = 7.0
    assert clf.soft_labels_.max() <= 1.0


@projected
@pytest.mark.parametrize("name", ["soft_labels_", "sparse_soft_labels_"])
def test_soft_labels_before_fit(classifier, name):
    with pytest.raises(NotFittedError):
        getattr(classifier(), name)


def test_fitted_classifiers_stay_small():
    # Soft labels of millions of rows should not weigh as much as the rows. Here two classes cannot
    # be improved against each other, and could share thousands of rows.
    X, y, _ = make(n=20_000, n_classes=4, n_labeled=100, d=3)
    clf = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y)
    assert clf.certificate_.n_fractional < 4 * 4 + 4  # no more than there are weights
    assert len(pickle.dumps(clf)) < 3 * 20_000


@every_classifier
def test_a_class_with_one_labeled_row(classifier):
    X, y, truth = make(n_classes=4, n_labeled=40)
    y[(y == 3) & (np.cumsum(y == 3) > 1)] = -1
    assert np.sum(y == 3) == 1
    clf = classifier().fit(X, y)
    assert 3 in clf.classes_
    if classifier is ProjectedLeastSquaresClassifier:
        f, g = clf.decision_function(X) + 0.5, clf.supervised_.decision_function(X) + 0.5
        known = np.where(y == -1, truth, y)
        assert loss(f, known, 4) <= loss(g, known, 4) + clf.certificate_.worst_case + 1e-9


@projected
def test_one_labeled_row_of_each_class(classifier):
    X, y, _ = make(n_classes=5, n_labeled=5)
    clf = classifier().fit(X, y)
    assert len(clf.classes_) == 5
    assert clf.certificate_.converged


@every_classifier
def test_a_class_whose_labeled_rows_have_no_weight(classifier):
    X, y, _ = make()
    s = (y != 2).astype(float)
    with pytest.raises(ValueError, match="each of the 3 classes a positive weight"):
        classifier().fit(X, y, sample_weight=s)


@ignore_giving_up
@every_classifier
def test_integer_weights_are_repeated_rows(classifier):
    X, y, _ = make(n_labeled=30)
    repeats = np.random.default_rng(3).integers(1, 4, len(y))
    settings = {"alpha": 0.0}
    if classifier is not LeastSquaresClassifier:
        settings["tol"] = 1e-14
    weighted = classifier(**settings).fit(X, y, sample_weight=repeats)
    repeated = classifier(**settings).fit(np.repeat(X, repeats, axis=0), np.repeat(y, repeats))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)
    np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-8)
    if classifier is not LeastSquaresClassifier:
        assert weighted.certificate_.worst_case == pytest.approx(
            repeated.certificate_.worst_case, abs=1e-8
        )


@ignore_giving_up
@every_classifier
@pytest.mark.parametrize("container", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_sparse_equals_dense(classifier, container):
    X, y, _ = make(n=150, n_classes=4, n_labeled=40, d=6)
    X[np.random.default_rng(4).random(X.shape) < 0.6] = 0.0
    settings = {} if classifier is LeastSquaresClassifier else {"tol": 1e-14}
    dense, thin = classifier(**settings).fit(X, y), classifier(**settings).fit(container(X), y)
    np.testing.assert_allclose(dense.coef_, thin.coef_, atol=1e-8)
    np.testing.assert_allclose(
        dense.decision_function(X), thin.decision_function(container(X)), atol=1e-8
    )
    np.testing.assert_allclose(thin.predict_proba(container(X)), dense.predict_proba(X), atol=1e-8)


@every_classifier
def test_float32_is_added_up_in_float64(classifier):
    X, y, _ = make(n=300, n_labeled=30)
    X = X.astype(np.float32)
    single, double = classifier().fit(X, y), classifier().fit(X.astype(np.float64), y)
    np.testing.assert_allclose(single.coef_, double.coef_, rtol=1e-8, atol=1e-10)
    assert single.coef_.dtype == np.float64
    assert single.predict_proba(X).dtype == np.float64


# Probabilities


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_probabilities_are_nearest_to_the_scores(classifier, n_classes):
    rng = np.random.default_rng(5)
    X, y, _ = make(n_classes=n_classes, n_labeled=30)
    clf = classifier().fit(X, y)
    wild = np.vstack([X, 3 * X, 50 * X])
    p, scores = clf.predict_proba(wild), clf.decision_function(wild) + 0.5
    if n_classes == 2:
        scores = np.column_stack([1.0 - scores, scores])
    assert p.min() >= 0
    assert p.max() <= 1
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    inside = scores.min(axis=1) >= 0
    assert 0 < inside.sum() < len(inside)
    np.testing.assert_allclose(p[inside], scores[inside], atol=1e-9)
    own = np.sum((p - scores) ** 2, axis=1)
    for _ in range(50):  # no other probabilities are nearer
        other = rng.dirichlet(np.ones(n_classes), len(p))
        other = p + rng.choice([1e-3, 1.0]) * (other - p)
        assert (np.sum((other - scores) ** 2, axis=1) >= own - 1e-9 * (1 + own)).all()


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3, 6])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_probabilities_are_never_farther_from_a_label(classifier, n_classes, fit_intercept):
    X, y, truth = make(n_classes=n_classes, n_labeled=30)
    clf = classifier(fit_intercept=fit_intercept).fit(X, y)
    p, scores = clf.predict_proba(X), clf.decision_function(X) + 0.5
    if n_classes == 2:
        p, scores = p[:, 1:], scores[:, None]
    corners = np.eye(n_classes) if n_classes > 2 else np.array([[0.0], [1.0]])
    for corner in corners:
        to_p, to_score = np.sum((p - corner) ** 2, axis=1), np.sum((scores - corner) ** 2, axis=1)
        assert (to_p <= to_score + 1e-12).all()
    brier = brier_score_loss(truth, clf.predict_proba(X), labels=np.arange(n_classes))
    hot = corners[truth]
    assert brier <= np.mean(np.sum((scores - hot) ** 2, axis=1)) + 1e-12


@every_classifier
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("far", [1e6, 1e16, 1e20, 1e150])
def test_probabilities_of_rows_far_away(classifier, n_classes, far):
    X, y, _ = make(n_classes=n_classes, n_labeled=30)
    clf = classifier().fit(X, y)
    p = clf.predict_proba(far * X)
    np.testing.assert_allclose(p.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(clf.classes_[p.argmax(axis=1)], clf.predict(far * X))


@every_classifier
def test_probabilities_agree_with_the_prediction(classifier):
    X, y, _ = make(n_classes=4, n_labeled=30)
    clf = classifier().fit(X, y)
    p = clf.predict_proba(X)
    largest = p[np.arange(len(p)), clf.predict(X)]
    np.testing.assert_allclose(largest, p.max(axis=1))


# Plain scikit-learn classifiers


@every_classifier
@pytest.mark.parametrize(
    ("n_classes", "kind"),
    [(2, "bool"), *product([2, 3, 7], ["int", "str", "object"])],
)
def test_to_sklearn_predicts_the_same(classifier, n_classes, kind):
    X, y, _ = make(n_classes=n_classes, n_labeled=40)
    if kind == "str":
        y = [None if v == -1 else f"class {v}" for v in y]
    elif kind == "object":
        y = np.array(
            [np.nan if v == -1 else ("x", "y", "z", "u", "v", "w", "t")[v] for v in y], object
        )
    elif kind == "bool":
        y = np.array([None if v == -1 else bool(v) for v in y], object)
    clf = classifier().fit(X, y)
    plain = clf.to_sklearn()
    assert type(plain) is RidgeClassifier
    np.testing.assert_array_equal(plain.classes_, clf.classes_)
    np.testing.assert_array_equal(plain.predict(X), clf.predict(X))
    np.testing.assert_allclose(plain.decision_function(X), clf.decision_function(X), atol=1e-12)
    thin = sparse.csr_array(X)
    np.testing.assert_array_equal(plain.predict(thin), clf.predict(X))
    assert plain.n_features_in_ == 4
    assert plain.score(X, clf.predict(X)) == 1.0


@every_classifier
def test_to_sklearn_is_independent(classifier):
    X, y, _ = make()
    clf = classifier().fit(X, y)
    plain = clf.to_sklearn()
    plain.coef_ += 1.0
    plain.intercept_ += 1.0
    assert not np.allclose(plain.coef_, clf.coef_)
    assert not np.allclose(plain.intercept_, clf.intercept_)
    refitted = clone(plain).fit(X[y != -1], y[y != -1])  # a classifier like any other
    assert refitted.score(X[y != -1], y[y != -1]) > 0.7


@every_classifier
def test_to_sklearn_keeps_the_names_of_columns(classifier):
    X, y, _ = make()
    frame = pd.DataFrame(X, columns=list("abcd"))
    clf = classifier().fit(frame, y)
    plain = clf.to_sklearn()
    assert list(plain.feature_names_in_) == list("abcd")
    np.testing.assert_array_equal(plain.predict(frame), clf.predict(frame))
    with pytest.raises(ValueError, match="feature names"):
        plain.predict(frame[list("dcba")])
    assert not hasattr(classifier().fit(X, y).to_sklearn(), "feature_names_in_")


@every_classifier
def test_to_sklearn_before_fit(classifier):
    with pytest.raises(NotFittedError):
        classifier().to_sklearn()


def test_to_sklearn_works_where_neverworse_is_not_installed(tmp_path):
    names, cases = np.array(["a", "b", "c", None], dtype=object), []
    for n_classes in (2, 3):
        X, y, _ = make(n_classes=n_classes)
        frame = pd.DataFrame(X, columns=list("pqrs"))
        clf = ProjectedLeastSquaresClassifier().fit(frame, names[y])
        plain = clf.to_sklearn()
        cases.append((plain, X, list(plain.predict(frame)), clf.decision_function(frame)))
    (tmp_path / "models.pkl").write_bytes(pickle.dumps(cases))
    program = textwrap.dedent(
        """
        import pickle, sys
        class Blocked:
            def find_spec(self, name, path=None, target=None):
                if name.split(".")[0] == "neverworse":
                    raise ImportError("neverworse is blocked")
        sys.meta_path.insert(0, Blocked())
        try:
            import neverworse
        except ImportError:
            pass
        else:
            sys.exit("not blocked")
        import numpy as np, pandas as pd
        with open(sys.argv[1], "rb") as file:
            cases = pickle.load(file)
        for model, X, expected, scores in cases:
            frame = pd.DataFrame(X, columns=list("pqrs"))
            assert list(model.predict(frame)) == expected
            np.testing.assert_allclose(model.decision_function(frame), scores, atol=1e-12)
        assert "neverworse" not in sys.modules
        print("fine")
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "models.pkl")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "fine"


# Around it


@every_classifier
def test_pickle_and_clone(classifier):
    X, y, _ = make(n_classes=4)
    clf = classifier(alpha=0.1).fit(X, y)
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))
    if classifier is not LeastSquaresClassifier:
        np.testing.assert_array_equal(again.soft_labels_, clf.soft_labels_)
        assert again.certificate_ == clf.certificate_
    fresh = clone(clf)
    with pytest.raises(NotFittedError):
        fresh.predict(X)
    np.testing.assert_array_equal(fresh.fit(X, y).coef_, clf.coef_)


@every_classifier
def test_refit_with_another_number_of_classes(classifier):
    X, y, _ = make(n_classes=4, n_labeled=40)
    clf = classifier().fit(X, y)
    two = np.where(y == -1, -1, y % 2)
    clf.fit(X, two)
    np.testing.assert_array_equal(clf.coef_, classifier().fit(X, two).coef_)
    assert clf.coef_.shape == (1, 4)
    assert clf.predict_proba(X).shape == (len(X), 2)


@every_classifier
def test_cross_validate_with_folds_of_labeled_rows(classifier):
    X, y, truth = make(n=300, n_labeled=60)
    names = np.array(["a", "b", "c", None], dtype=object)
    result = cross_validate(
        classifier(),
        X,
        names[y],
        cv=StratifiedLabeledKFold(4),
        scoring=["accuracy", "neg_brier_score"],
        return_estimator=True,
    )
    assert result["test_accuracy"].mean() == pytest.approx(
        classifier().fit(X, names[y]).score(X, names[truth]), abs=0.15
    )
    assert (result["test_neg_brier_score"] > -0.67).all()
    assert all(list(clf.classes_) == ["a", "b", "c"] for clf in result["estimator"])


@every_classifier
def test_grid_search_in_a_pipeline(classifier):
    X, y, truth = make(n=200, n_labeled=60)
    name = classifier.__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), classifier()),
        {f"{name}__alpha": [0.0, 1.0, 1e6]},
        cv=StratifiedLabeledKFold(3),
        scoring=labeled_scorer("accuracy"),
    )
    search.fit(X, y)
    assert search.best_params_[f"{name}__alpha"] < 1e6
    assert search.score(X[y == -1], truth[y == -1]) > 0.6
    assert search.predict_proba(X).shape == (200, 3)


@every_classifier
def test_calibration_with_folds_of_labeled_rows(classifier):
    X, y, truth = make(n=400, n_labeled=120)
    labeled = y != -1
    # Labels only: folds of labeled rows, as for any classifier.
    clf = CalibratedClassifierCV(classifier(), cv=StratifiedKFold(3)).fit(X[labeled], y[labeled])
    p = clf.predict_proba(X)
    assert p.shape == (400, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert np.mean(clf.classes_[p.argmax(axis=1)] == truth) > 0.6


def test_many_classes_with_few_rows():
    rng = np.random.default_rng(6)
    n_classes, n = 12, 150
    y = np.r_[np.arange(n_classes), np.full(n - n_classes, -1)]
    X = rng.normal(size=(n, 3))
    problem = Restricted(X, y, None, {}, n_classes)
    clf = problem.fit()
    assert clf.certificate_.converged
    check_certificate(clf, problem.exact(clf))


def test_certificate_in_words():
    X, y, _ = make()
    certificate = ProjectedLeastSquaresClassifier(alpha=0.0).fit(X, y).certificate_
    text = certificate.summary()
    assert text.startswith("Never worse")
    assert "summed over the classes" in text
    assert f"Imputed labels: {certificate.n_one} of one class, " in text
    assert "100 unlabeled rows" in text
    assert "Never worse" in certificate._repr_html_()
    assert certificate.to_dict()["assumptions"]["task"] == "multiclass"
