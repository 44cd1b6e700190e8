import numpy as np
import pytest
import sklearn
from packaging.version import Version
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NearestCentroid

from neverworse.methods import LinearDiscriminantClassifier, NearestMeanClassifier

from .samples import log_joint, make, most_likely, one_hot


def labeled(n_classes=3, d=4, n=60, seed=1):
    X, y, _ = make(n, d, n_classes, n, seed)
    return X, y


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("solver", ["lsqr", "eigen"])
def test_equals_discriminant_analysis_of_scikit_learn(n_classes, solver):
    X, y, _ = make(150, 4, n_classes, 90)
    clf = LinearDiscriminantClassifier().fit(X, y)
    reference = LinearDiscriminantAnalysis(solver=solver).fit(X[y >= 0], y[y >= 0])
    np.testing.assert_allclose(clf.means_, reference.means_, atol=1e-12)
    np.testing.assert_allclose(clf.covariance_, reference.covariance_, atol=1e-12)
    np.testing.assert_allclose(clf.priors_, reference.priors_, atol=1e-15)
    np.testing.assert_allclose(clf.predict_proba(X), reference.predict_proba(X), atol=1e-10)
    np.testing.assert_allclose(np.exp(clf.predict_log_proba(X)), clf.predict_proba(X), atol=1e-15)
    np.testing.assert_array_equal(clf.predict(X), reference.predict(X))
    if n_classes == 2:
        odds = reference.decision_function(X)
        np.testing.assert_allclose(clf.decision_function(X), odds, rtol=1e-8, atol=1e-8)


@pytest.mark.skipif(
    Version(sklearn.__version__) < Version("1.9"),
    reason="this solver divided by the number of rows less that of classes",
)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_decision_function_is_that_of_scikit_learn(n_classes):
    X, y = labeled(n_classes)
    clf = LinearDiscriminantClassifier().fit(X, y)
    reference = LinearDiscriminantAnalysis(solver="svd").fit(X, y)
    np.testing.assert_allclose(clf.decision_function(X), reference.decision_function(X), atol=1e-8)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_nearest_mean_equals_nearest_centroid(n_classes):
    X, y, _ = make(150, 4, n_classes, 90)
    clf = NearestMeanClassifier().fit(X, y)
    reference = NearestCentroid().fit(X[y >= 0], y[y >= 0])
    np.testing.assert_allclose(clf.means_, reference.centroids_, atol=1e-12)
    np.testing.assert_array_equal(clf.predict(X), reference.predict(X))
    expected = np.trace(most_likely(X[y >= 0], one_hot(y[y >= 0], n_classes))[2]) / 4
    np.testing.assert_allclose(clf.covariance_, expected * np.eye(4), atol=1e-12)
    nearest = ((X[:, None] - clf.means_) ** 2).sum(axis=2)
    odds = np.exp(-nearest / (2 * expected))
    np.testing.assert_allclose(clf.predict_proba(X), odds / odds.sum(axis=1, keepdims=True))


def test_two_classes_by_hand():
    # Means 1 and 5; every row is one away from its mean, so the variance is one. Three of four
    # labeled rows in the second class would move the threshold; here it is in the middle.
    X = np.array([[0.0], [2.0], [4.0], [6.0], [100.0]])
    clf = LinearDiscriminantClassifier().fit(X, [0, 0, 1, 1, -1])
    assert clf.means_.ravel().tolist() == [1.0, 5.0]
    np.testing.assert_allclose(clf.covariance_, [[1.0]], rtol=1e-14)
    np.testing.assert_allclose(clf.coef_, [[4.0]])
    np.testing.assert_allclose(clf.intercept_, [-12.0])
    expected = 4 * (np.log(0.5) - 0.5 * np.log(2 * np.pi) - 0.5)
    assert clf.log_likelihood_ == pytest.approx(expected, rel=1e-14)


def test_prior_moves_the_threshold_by_hand():
    X = np.array([[0.0], [2.0], [4.0], [6.0], [4.0], [6.0], [4.0], [6.0]])
    clf = LinearDiscriminantClassifier().fit(X, [0, 0, 1, 1, 1, 1, 1, 1])
    # Log odds 4 x - 12 + log 3.
    np.testing.assert_allclose(clf.decision_function([[3.0]]), [np.log(3.0)])
    given = LinearDiscriminantClassifier(priors=[0.9, 0.1]).fit(X, [0, 0, 1, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(given.decision_function([[3.0]]), [np.log(1 / 9)])
    uniform = LinearDiscriminantClassifier(priors="uniform").fit(X, [0, 0, 1, 1, 1, 1, 1, 1])
    np.testing.assert_allclose(uniform.decision_function([[3.0]]), [0.0], atol=1e-12)


@pytest.mark.parametrize("spherical", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 0.7])
@pytest.mark.parametrize("priors", [None, [0.2, 0.5, 0.3]])
def test_the_penalised_likelihood_is_largest(spherical, alpha, priors):
    X, y = labeled()
    s = np.random.default_rng(3).uniform(0.5, 2.0, len(y))
    covariance = "spherical" if spherical else "full"
    clf = LinearDiscriminantClassifier(covariance=covariance, alpha=alpha, priors=priors)
    clf.fit(X, y, s)

    def objective(priors, means, covariance):
        joint = [
            np.log(p) + multivariate_normal(m, covariance).logpdf(X)
            for p, m in zip(priors, means, strict=True)
        ]
        trace = np.trace(np.linalg.inv(covariance))
        return s @ np.array(joint)[y, np.arange(len(y))] - alpha / 2 * s.sum() * trace

    best = objective(clf.priors_, clf.means_, clf.covariance_)
    assert clf.log_likelihood_ == pytest.approx(best, rel=1e-12)
    rng = np.random.default_rng(5)
    for _ in range(20):
        step = 1e-3 * rng.normal(size=4)
        twist = (
            np.eye(4) * (1 + step[0]) if spherical else np.eye(4) + 1e-3 * rng.normal(size=(4, 4))
        )
        changed = clf.priors_ * np.exp(1e-3 * rng.normal(size=3))
        other = objective(
            clf.priors_ if priors is not None else changed / changed.sum(),
            clf.means_ + 1e-3 * rng.normal(size=(3, 4)),
            twist @ clf.covariance_ @ twist.T,
        )
        assert other < best


@pytest.mark.parametrize("covariance", ["full", "spherical"])
def test_weights_count_as_repeated_rows(covariance):
    X, y = labeled()
    s = np.arange(len(y)) % 3 + 1
    clf = LinearDiscriminantClassifier(covariance=covariance).fit(X, y, s)
    repeated = LinearDiscriminantClassifier(covariance=covariance)
    repeated.fit(np.repeat(X, s, axis=0), np.repeat(y, s))
    np.testing.assert_allclose(clf.coef_, repeated.coef_, rtol=1e-10)
    np.testing.assert_allclose(clf.covariance_, repeated.covariance_, rtol=1e-10)
    assert clf.log_likelihood_ == pytest.approx(repeated.log_likelihood_, rel=1e-12)


@pytest.mark.parametrize("offset", [0.0, 30.0])
def test_log_likelihood(offset):
    X, y = labeled()
    X = X + offset
    clf = LinearDiscriminantClassifier().fit(X, y)
    joint = log_joint(clf, X)
    assert clf.log_likelihood_ == pytest.approx(joint[np.arange(len(y)), y].sum(), rel=1e-12)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classifier", [LinearDiscriminantClassifier, NearestMeanClassifier])
def test_to_sklearn(classifier, n_classes):
    X, y, _ = make(90, 4, n_classes, 60)
    clf = classifier().fit(X, np.array(["a", "b", "c", None], dtype=object)[y])
    plain = clf.to_sklearn()
    assert type(plain) is LinearDiscriminantAnalysis
    np.testing.assert_array_equal(plain.predict(X), clf.predict(X))
    np.testing.assert_allclose(plain.predict_proba(X), clf.predict_proba(X), atol=1e-13)
    np.testing.assert_allclose(plain.decision_function(X), clf.decision_function(X), atol=1e-12)


# Covariances that are singular


def test_constant_columns_are_left_out():
    X, y = labeled()
    clf = LinearDiscriminantClassifier().fit(np.insert(X, 1, 1e8 / 3, axis=1), y)
    reference = LinearDiscriminantClassifier().fit(X, y)
    assert clf.rank_ == reference.rank_ == 4
    assert not clf.coef_[:, 1].any()
    np.testing.assert_allclose(np.delete(clf.coef_, 1, axis=1), reference.coef_, rtol=1e-9)
    assert clf.log_likelihood_ == pytest.approx(reference.log_likelihood_, rel=1e-12)


def test_columns_that_depend_on_each_other():
    X, y = labeled()
    dependent = np.c_[X, X @ [1.0, -2.0, 0.5, 3.0]]
    clf = LinearDiscriminantClassifier().fit(dependent, y)
    reference = LinearDiscriminantClassifier().fit(X, y)
    assert clf.rank_ == 4
    np.testing.assert_allclose(
        clf.predict_proba(dependent), reference.predict_proba(X), rtol=1e-7, atol=1e-9
    )


def test_fewer_rows_than_columns_is_what_scikit_learn_does_on_standardised_columns():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(12, 20)), np.arange(12) % 3
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    clf = LinearDiscriminantClassifier().fit(X, y)
    assert clf.rank_ == 12 - 3
    reference = LinearDiscriminantAnalysis(solver="lsqr").fit(X, y)
    new = rng.normal(size=(30, 20))
    np.testing.assert_allclose(clf.predict_proba(new), reference.predict_proba(new), atol=1e-7)


def test_units_of_columns_do_not_matter_even_where_some_directions_are_left_out():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(12, 20)), np.arange(12) % 3
    units = 10.0 ** rng.integers(-3, 4, 20)
    new = rng.normal(size=(30, 20))
    first = LinearDiscriminantClassifier().fit(X, y).predict_proba(new)
    second = LinearDiscriminantClassifier().fit(X * units, y).predict_proba(new * units)
    np.testing.assert_allclose(first, second, atol=1e-7)


def test_alpha_leaves_nothing_out():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(12, 20)), np.arange(12) % 3
    clf = LinearDiscriminantClassifier(alpha=0.5).fit(X, y)
    assert clf.rank_ == 20
    expected = most_likely(X, one_hot(y, 3), alpha=0.5)[2]
    np.testing.assert_allclose(clf.covariance_, expected, atol=1e-12)


@pytest.mark.parametrize("classifier", [LinearDiscriminantClassifier, NearestMeanClassifier])
@pytest.mark.parametrize(
    "X", [[[0.0, 1.0], [0.0, 2.0], [5.0, 5.0]], np.ones((3, 2))], ids=["one row each", "constant"]
)
def test_no_variance_within_the_classes(classifier, X):
    with pytest.raises(ValueError, match=r"do not vary within their classes.*alpha > 0"):
        classifier().fit(X, [0, 1, -1])
    clf = classifier(alpha=1.0).fit(X, [0, 1, -1])
    assert np.isfinite(clf.predict_proba(X)).all()


@pytest.mark.parametrize("seed", range(5))
def test_rounding_errors_are_no_variance(seed):
    # One labeled row of each class, and a column in which they are equal: of what is left of the
    # variance within the classes after rounding, that column has as much as of the total one.
    X = np.random.default_rng(seed).normal(size=(60, 100))
    X[1, 0] = X[0, 0]
    y = np.r_[0, 1, np.full(58, -1)]
    with pytest.raises(ValueError, match="do not vary within their classes"):
        NearestMeanClassifier().fit(X, y)
    clf = NearestMeanClassifier(alpha=1.0).fit(X, y)
    distances = np.linalg.norm(X[:, None] - X[:2], axis=2)
    np.testing.assert_array_equal(clf.predict(X), distances.argmin(axis=1))


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ([0.5, 0.25, 0.25], "probability for each of the 2 classes, in the order 0, 1"),
        ([0.5, 0.6], "with the sum 1"),
        ([1.0, 0.0], "one positive probability"),
        ([np.nan, 0.5], "one positive probability"),
        ("flat", "'priors' parameter"),
    ],
)
def test_priors_that_cannot_be_used(priors, message):
    X, y = labeled(2)
    with pytest.raises(ValueError, match=message):
        LinearDiscriminantClassifier(priors=priors).fit(X, y)
