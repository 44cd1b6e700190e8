"""What all classifiers of neverworse have in common, for the support vector classifiers."""

import numpy as np
import pytest
import sklearn
from scipy import sparse
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from neverworse import audit
from neverworse.methods import L2SVMClassifier, SafeSVMClassifier, TransductiveSVMClassifier
from neverworse.model_selection import StratifiedLabeledKFold, labeled_scorer
from tests.estimators.callbacks import Callback
from tests.methods.svm.problems import make

VARIANTS = {
    "supervised": (L2SVMClassifier, {}),
    "switching": (TransductiveSVMClassifier, {}),
    "annealing": (TransductiveSVMClassifier, {"method": "annealing"}),
    "safe": (SafeSVMClassifier, {"n_samples": 4, "random_state": 0}),
}
every_variant = pytest.mark.parametrize("variant", VARIANTS)
semi_supervised = pytest.mark.parametrize("variant", ["switching", "annealing", "safe"])


def new(variant, **options):
    cls, given = VARIANTS[variant]
    return cls(**{**given, **options})


# Parameters


@every_variant
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("alpha", 0.0),
        ("alpha", -1.0),
        ("alpha", np.nan),
        ("alpha", "large"),
        ("scaling", "median"),
        ("fit_intercept", "yes"),
        ("penalise_intercept", "yes"),
        ("tol", 0.0),
        ("max_iter", 0),
    ],
)
def test_parameters_out_of_range(variant, name, value):
    X, y, _ = make()
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
        new(variant, **{name: value}).fit(X, y)


@semi_supervised
@pytest.mark.parametrize(
    ("name", "value"),
    [("unlabeled_weight", 0.0), ("positive_fraction", 1.1), ("positive_fraction", -0.1)],
)
def test_parameters_of_unlabeled_rows_out_of_range(variant, name, value):
    X, y, _ = make()
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
        new(variant, **{name: value}).fit(X, y)


@pytest.mark.parametrize(
    ("clf", "name"),
    [
        (TransductiveSVMClassifier(method="swapping"), "method"),
        (TransductiveSVMClassifier(max_switches=0), "max_switches"),
        (SafeSVMClassifier(n_samples=0), "n_samples"),
        (SafeSVMClassifier(n_separators=0), "n_separators"),
        (SafeSVMClassifier(risk=-1.0), "risk"),
        (SafeSVMClassifier(fraction_tolerance=2.0), "fraction_tolerance"),
        (SafeSVMClassifier(random_state="now"), "random_state"),
    ],
)
def test_parameters_of_one_classifier_out_of_range(clf, name):
    X, y, _ = make()
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter"):
        clf.fit(X, y)


# Labels


@semi_supervised
def test_more_than_two_classes_are_an_error_that_names_the_fix(variant):
    X, y, _ = make(n_classes=3)
    with pytest.raises(ValueError, match=r"Only binary .* 3 classes.*one classifier for each"):
        new(variant).fit(X, y)


@pytest.mark.parametrize("variant", ["switching", "annealing"])
def test_the_fix_for_more_than_two_classes(variant):
    X, y, truth = make(n=300, n_labeled=30, n_classes=3, seed=1)
    scores = [
        new(variant).fit(X, np.where(y < 0, -1, y == k)).decision_function(X) for k in range(3)
    ]
    accuracy = np.mean(np.argmax(scores, axis=0) == truth)
    assert accuracy > 0.6
    assert accuracy > np.mean(L2SVMClassifier().fit(X, y).predict(X) == truth) - 0.1


# Input


@every_variant
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"penalise_intercept": True}])
def test_sparse_equals_dense(variant, options):
    X, y, _ = make(d=6)
    X[np.random.default_rng(1).random(X.shape) < 0.5] = 0.0
    s = np.linspace(0.5, 2.0, len(y))
    reference = new(variant, **options).fit(X, y, s)
    for container in (sparse.csr_matrix, sparse.coo_array):
        clf = new(variant, **options).fit(container(X), y, s)
        np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(
            clf.decision_function(container(X)), reference.decision_function(X), atol=1e-7
        )


@every_variant
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_float32_is_added_up_in_float64(variant, container):
    X, y, _ = make()
    single = X.astype(np.float32)
    clf = new(variant).fit(container(single), y)
    reference = new(variant).fit(single.astype(np.float64), y)
    np.testing.assert_allclose(clf.coef_, reference.coef_, rtol=1e-6)
    assert clf.coef_.dtype == np.float64


@every_variant
def test_rows_that_threads_share(variant):
    X, y, _ = make(n=3000, d=100, n_labeled=600)
    clf = new(variant).fit(X, y)
    assert clf.converged_
    order = np.random.default_rng(0).permutation(3000)
    if variant != "safe":  # its random labels belong to positions
        again = new(variant).fit(X[order], y[order])
        np.testing.assert_allclose(again.coef_, clf.coef_, rtol=1e-3, atol=1e-5)


@every_variant
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("row", [3, -1])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_nan_or_infinity(variant, value, row, container):
    X, y, _ = make()
    X[row, 1] = value
    with pytest.raises(ValueError, match=r"Input X contains (NaN|infinity)"):
        new(variant).fit(container(X), y)


@every_variant
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_squares_that_overflow(variant, container):
    X, y, _ = make()
    with pytest.raises(ValueError, match=r"X are so large .* Rescale the columns"):
        new(variant).fit(container(1e200 * X), y)


@semi_supervised
def test_squares_of_an_unlabeled_row_that_overflow(variant):
    X, y, _ = make()
    X[-1] *= 1e200
    with pytest.raises(ValueError, match=r"X are so large .* Rescale the columns"):
        new(variant).fit(X, y)


@every_variant
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s, y: np.r_[-1.0, s[1:]], "Negative values"),
        (lambda s, y: np.r_[np.nan, s[1:]], "contains NaN"),
        (lambda s, y: s[:-1], "sample_weight.shape"),
        (lambda s, y: (y == 1).astype(float), "one class only"),
    ],
    ids=["negative", "NaN", "short", "one class"],
)
def test_weights_that_cannot_be_used(variant, change, message):
    X, y, _ = make()
    with pytest.raises(ValueError, match=message):
        new(variant).fit(X, y, change(np.ones(120), y))


@every_variant
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (lambda y: np.full(120, np.nan), "no labeled row"),
        (lambda y: np.where(y < 0, None, "a"), "one class only"),
        (lambda y: y[:-1], "inconsistent numbers"),
        (lambda y: y + 0.5, "continuous"),
        (lambda y: None, "y"),
    ],
    ids=["no labels", "one class", "short", "continuous", "None"],
)
def test_labels_that_cannot_be_used(variant, labels, message):
    X, y, _ = make()
    clf = new(variant).fit(X, y)
    with pytest.raises(ValueError, match=message):
        clf.fit(X, labels(y))
    with pytest.raises(NotFittedError):
        clf.predict(X)


@every_variant
def test_fit_changes_nothing(variant):
    X, y, _ = make()
    for data in (X, np.asfortranarray(X), X + 1e8, np.c_[X, X[:, 0]]):
        s = np.linspace(0.0, 2.0, 120)
        before = [a.tobytes() for a in (data, y, s)]
        new(variant).fit(data, y, s).predict(data)
        assert [a.tobytes() for a in (data, y, s)] == before


@every_variant
@pytest.mark.parametrize("d", [4, 1200])
def test_fit_changes_nothing_in_a_sparse_matrix(variant, d):
    dense, y, _ = make()
    # Neither sorted nor without duplicates: what SciPy likes to tidy up in place.
    data = np.c_[dense[:, ::-1], dense[:, 0]].ravel()
    columns = np.tile([3, 2, 1, 0, 0], 120)
    X = sparse.csr_matrix((data, columns, np.arange(0, 601, 5)), shape=(120, d))
    before = [a.tobytes() for a in (X.data, X.indices, X.indptr)]
    clf = new(variant).fit(X, y)
    assert [a.tobytes() for a in (X.data, X.indices, X.indptr)] == before
    dense[:, 0] *= 2.0  # what the duplicates add up to
    reference = new(variant).fit(dense, y)
    np.testing.assert_allclose(clf.coef_[:, :4], reference.coef_, rtol=1e-4, atol=1e-6)


# Composition


@every_variant
def test_plain_scikit_learn_classifier_with_the_same_weights(variant):
    X, y, _ = make()
    clf = new(variant).fit(X, y)
    plain = clf.to_sklearn()
    np.testing.assert_allclose(plain.decision_function(X), clf.decision_function(X), atol=1e-12)
    np.testing.assert_array_equal(plain.predict(X), clf.predict(X))


@every_variant
def test_grid_search_in_a_pipeline(variant):
    X, y, truth = make()
    name = VARIANTS[variant][0].__name__.lower()
    search = GridSearchCV(
        make_pipeline(StandardScaler(), new(variant)),
        {f"{name}__alpha": [0.01, 1.0]},
        cv=StratifiedLabeledKFold(3),
        scoring=labeled_scorer("accuracy"),
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.score(X, truth) > 0.6


@every_variant
def test_sample_weight_is_routed_through_a_pipeline(variant):
    X, y, _ = make()
    s = np.linspace(0.1, 3.0, len(y))
    with sklearn.config_context(enable_metadata_routing=True):
        clf = new(variant).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler(with_mean=False, with_std=False), clf)
        pipeline[0].set_fit_request(sample_weight=False)
        pipeline.fit(X, y, sample_weight=s)
    expected = new(variant).fit(X, y, s)
    np.testing.assert_allclose(pipeline[-1].coef_, expected.coef_, rtol=1e-9)
    assert not np.allclose(expected.coef_, new(variant).fit(X, y).coef_)


@every_variant
def test_audit_of_calibrated_probabilities(variant):
    X, y, _ = make(n=200, n_labeled=80)
    labeled = y >= 0

    def calibrated(clf):
        frozen = FrozenEstimator(clf.fit(X, y))
        return CalibratedClassifierCV(frozen).fit(X[labeled], y[labeled])

    found = audit(calibrated(new(variant)), calibrated(L2SVMClassifier(10.0)), X, y)
    assert found.response == "predict_proba"
    assert found.best_case < 0.0 < found.worst_case
    with pytest.raises(ValueError, match=r"predict_proba.*CalibratedClassifierCV"):
        audit(new(variant).fit(X, y), L2SVMClassifier().fit(X, y), X, y)


# Progress, and fits that do not come to an end


@every_variant
def test_verbose_writes_lines(variant, capsys):
    X, y, _ = make()
    new(variant, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    stage = {
        "supervised": "Newton step",
        "switching": "weight 1 of unlabeled rows (96 rows)",
        "annealing": "temperature 10 (96 rows)",
        "safe": "separator 4 of 4 (96 rows)",
    }[variant]
    assert any(stage in line for line in lines)
    new(variant).fit(X, y)
    assert not capsys.readouterr().err


@every_variant
def test_callback_may_stop_it(variant):
    pytest.importorskip("sklearn.callback")
    X, y, _ = make()
    clf = new(variant).set_callbacks(Callback(lambda stage: True)).fit(X, y)
    assert not clf.converged_
    assert np.isfinite(clf.decision_function(X)).all()
