"""Expectation propagation: its fixed point, exact answers, active rows, and the gradient."""

import numpy as np
import pytest
from scipy import special, stats
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, WhiteKernel

from neverworse.methods import NullCategoryNoiseModel
from neverworse.methods._null_category_inference import (
    ActiveRows,
    Data,
    NullCategoryNoise,
    choose_active,
    likelihood_and_gradient,
    sample_rows,
)
from tests.methods.null_category.problems import (
    exact_posterior,
    fixed,
    integrated,
    make,
    sampled_posterior,
)


def data(X, sign, width=1.0, max_active=200, tol=1e-10):
    return Data(X, np.asarray(sign, float), NullCategoryNoise(width), max_active, tol, 5000)


def process(X, sign, kernel, **options):
    problem = data(X, sign, **options)
    return problem.process(problem.active(kernel))


def test_fixed_point():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(12, 2))
    sign = np.r_[1.0, -1.0, 1.0, -1.0, np.zeros(8)]
    kernel = ConstantKernel(10.0) * RBF(1.0)
    found = process(X, sign, kernel)
    assert found.approximation.converged
    assert found.approximation.residual <= 1e-10
    sites = found.approximation.sites
    # The same posterior, from the definition.
    K = kernel(X)
    covariance = np.linalg.inv(np.linalg.inv(K + 1e-12 * np.eye(12)) + np.diag(sites[0]))
    centre, variance = found.latent(X)
    np.testing.assert_allclose(centre, covariance @ sites[1], atol=1e-7)
    np.testing.assert_allclose(variance, np.diag(covariance), rtol=1e-7)
    n_held = 0
    for i in range(12):
        # Without the site of the row, and with its likelihood instead.
        precision = 1 / covariance[i, i] - sites[0][i]
        mean = (centre[i] / covariance[i, i] - sites[1][i]) / precision
        _, tilted_mean, tilted_variance = integrated(int(sign[i]), 1.0, mean, 1 / precision)
        assert tilted_mean == pytest.approx(centre[i], abs=1e-6)
        if sites[0][i] > 0.0:
            assert tilted_variance == pytest.approx(variance[i], rel=1e-6)
        else:
            n_held += 1
            assert tilted_variance >= (1 - 1e-6) * variance[i]
    assert 0 < n_held < 8


@pytest.mark.parametrize("n", [600, 3000])
def test_converges_where_many_rows_lie_in_the_null_category(n):
    """All rows pull the boundary together: steps have to be short, and long where none turns."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(n, 2)) + [4, 0] * (np.arange(n) % 2)[:, None]
    y = np.where(np.arange(n) < 12, X[:, 1] > 0, -1)
    clf = fixed(10.0, 3.0).fit(X, y)
    assert clf.converged_
    assert clf.n_iter_ < 400


# Exact answers


@pytest.mark.parametrize("variance", [1.0, 4.0, 10.0])
@pytest.mark.parametrize("width", [0.0, 1.0, 3.0])
@pytest.mark.parametrize(
    ("third", "sign", "tol"), [(0.5, 1, 0.03), (1.2, 1, 0.03), (0.3, 0, 0.06), (1.2, 0, 0.03)]
)
def test_posterior_of_three_rows(variance, width, third, sign, tol):
    X, signs = np.array([[0.0], [1.0], [third]]), [-1, 1, sign]
    kernel = ConstantKernel(variance) * RBF(0.7)
    log_evidence, mean = exact_posterior(kernel(X), signs, width)
    found = process(X, signs, kernel, width=width)
    assert found.approximation.log_evidence == pytest.approx(log_evidence, abs=tol)
    # Every posterior standard deviation is of the order of one.
    np.testing.assert_allclose(found.latent(X)[0], mean, atol=2.1 * tol)


def test_rows_that_have_nothing_to_do_with_each_other_have_a_known_answer():
    X = 100.0 * np.arange(4.0)[:, None]
    v, a = 3.0, 1.0
    clf = fixed(v, 1.0, width=a, tol=1e-12).fit(X, ["no", "yes", None, None])
    u = -a / 2 / np.sqrt(1 + v)  # of both classes, at the prior mean
    known, unknown = special.log_ndtr(u), np.log(2) + special.log_ndtr(u)
    assert clf.log_marginal_likelihood_ == pytest.approx(2 * known + 2 * unknown, rel=1e-12)
    assert clf.supervised_.log_marginal_likelihood_ == pytest.approx(2 * known, rel=1e-12)
    hazard = stats.norm.pdf(u) / stats.norm.cdf(u)
    mean = v * hazard / np.sqrt(1 + v)
    variance = v - v**2 * hazard * (hazard + u) / (1 + v)
    plus = special.ndtr((mean - a / 2) / np.sqrt(1 + variance))
    minus = special.ndtr((-mean - a / 2) / np.sqrt(1 + variance))
    p = plus / (plus + minus)
    expected = [[p, 1 - p], [1 - p, p], [0.5, 0.5], [0.5, 0.5]]
    np.testing.assert_allclose(clf.predict_proba(X), expected, rtol=1e-10)
    assert clf.predict(X[:2]).tolist() == ["no", "yes"]
    np.testing.assert_allclose(clf.decision_function(X[1:2]), np.log(plus / minus), rtol=1e-10)


def test_one_row_may_be_more_likely_to_be_unlabeled():
    """An unlabeled row alone is the mixture of both classes with the weights of the rates."""
    X = 100.0 * np.arange(3.0)[:, None]
    v, a, rates = 3.0, 1.0, (0.2, 0.6)
    clf = fixed(v, 1.0, width=a, unlabeled_rates=rates, tol=1e-12).fit(X, [0, 1, -1])
    one = special.ndtr(-a / 2 / np.sqrt(1 + v))
    expected = np.log(0.8 * one) + np.log(0.4 * one) + np.log((0.2 + 0.6) * one)
    assert clf.log_marginal_likelihood_ == pytest.approx(expected, rel=1e-12)
    _, mean, _ = integrated(0, a, 0.0, v, rates)
    assert mean > 0.5
    # The row's site is of its exact mean; nothing else touches it.
    assert clf._process_.latent(X[2:])[0][0] == pytest.approx(mean, rel=1e-10)
    same = fixed(v, 1.0, width=a, unlabeled_rates=(0.3, 0.3)).fit(X, [0, 1, -1])
    alike = fixed(v, 1.0, width=a).fit(X, [0, 1, -1])
    np.testing.assert_allclose(same.predict_proba(X), alike.predict_proba(X), rtol=1e-12)


@pytest.mark.parametrize("width", [0.0, 1.0])
def test_posterior_of_twenty_rows_by_sampling(width):
    X, y, _ = make(20, 8)
    clf = fixed(10.0, 1.5, width=width).fit(X, y)
    f = sampled_posterior(clf.kernel_(X), np.where(y == -1, 0.0, 2.0 * y - 1.0), width)
    mean, variance = clf._process_.latent(X)
    # Of sampling errors and errors of the approximation, each is about half.
    assert np.abs((mean - f.mean(axis=0)) / f.std(axis=0)).max() < 0.12
    ratio = np.sqrt(variance) / f.std(axis=0)
    assert 0.85 < ratio.min() <= ratio.max() < 1.1
    plus = special.ndtr(f - width / 2).mean(axis=0)
    minus = special.ndtr(-f - width / 2).mean(axis=0)
    np.testing.assert_allclose(clf.predict_proba(X)[:, 1], plus / (plus + minus), atol=0.04)


def test_close_to_the_gaussian_process_of_scikit_learn():
    X, y, _ = make(n=80, n_labeled=80)
    T = np.random.default_rng(1).normal(size=(500, 2)) * 2 + [1.5, 0]
    ours = fixed(10.0, 1.5, width=0.0).fit(X, y).predict_proba(T)[:, 1]
    # A logistic function of 1.7 f is close to a normal distribution function of f.
    kernel = ConstantKernel(1.7**2 * 10.0) * RBF(1.5)
    theirs = GaussianProcessClassifier(kernel, optimizer=None).fit(X, y).predict_proba(T)[:, 1]
    # Laplace's approximation is known to be less certain.
    assert np.abs(ours - theirs).max() < 0.15
    assert np.corrcoef(ours, theirs)[0, 1] > 0.995
    sure = np.abs(theirs - 0.5) > 0.05
    assert ((ours > 0.5) == (theirs > 0.5))[sure].all()


# Active rows


def test_active_rows_that_are_all_rows_approximate_nothing():
    X, _, _ = make(40)
    X = np.vstack([X, X[:10]])
    kernel = RBF(1.0)
    active = choose_active(kernel, X, np.zeros(50, bool), 50)
    assert len(active) <= 40
    factor, own = ActiveRows.of(kernel, X[active]).factor(X)
    np.testing.assert_allclose(factor.T @ factor, kernel(X), atol=1e-9)
    assert own.max() <= 1e-9


def test_posterior_with_few_active_rows_is_that_of_the_covariance_they_stand_for():
    X, y, _ = make(40, 6)
    sign = np.where(y == -1, 0.0, 2.0 * y - 1.0)
    kernel = ConstantKernel(5.0) * RBF(1.0)
    found = process(X, sign, kernel, max_active=8)
    assert len(found.active.rows) == 8
    factor, own = found.active.factor(X)
    assert own.max() > 0.5
    dense = np.linalg.cholesky(factor.T @ factor + np.diag(own + 1e-12)).T
    problem, labeled, start = data(X, sign), sign != 0.0, np.zeros((2, 40))
    alone = problem.take(labeled).propagate(dense[:, labeled], np.zeros(6), np.zeros((2, 6)))
    start[:, labeled] = alone.sites
    expected = problem.propagate(dense, np.zeros(40), start)
    assert found.approximation.log_evidence == pytest.approx(expected.log_evidence, abs=1e-6)
    # At rows that are active, f is h in both.
    rows = own < 1e-10
    assert rows.sum() == 8
    mean, variance = expected.posterior.latent(dense)
    found_mean, found_variance = found.latent(X)
    np.testing.assert_allclose(found_mean[rows], mean[rows], atol=1e-5)
    np.testing.assert_allclose(found_variance[rows], variance[rows], rtol=1e-5)


def test_labeled_rows_are_the_first_active_ones():
    X, _, _ = make(100)
    active = choose_active(RBF(0.1), X, np.arange(100) >= 94, 20)
    assert sorted(active[:6]) == list(range(94, 100))
    assert (active[6:] < 94).all()
    half = choose_active(RBF(0.1), X, np.arange(100) >= 50, 20)
    assert (half[:10] >= 50).all()
    assert (half[10:] < 50).any()


def test_few_active_rows_are_enough_for_a_smooth_function():
    X, y, _ = make(300, 12)
    few, many = fixed(length=3.0, max_active=40).fit(X, y), fixed(length=3.0).fit(X, y)
    assert len(few.active_rows_) == 40 < len(many.active_rows_)
    np.testing.assert_allclose(few.predict_proba(X), many.predict_proba(X), atol=1e-3)
    tiny = fixed(length=3.0, max_active=1).fit(X, y)
    assert tiny.predict_proba(X).shape == (300, 2)


def test_sample_of_rows():
    labeled = np.arange(1000) % 10 == 0
    rng = np.random.RandomState(0)
    sample = sample_rows(labeled, 300, rng)
    assert len(np.unique(sample)) == 300
    assert labeled[sample].sum() == 100
    assert labeled[sample_rows(~labeled, 300, rng)].sum() == 100
    assert labeled[sample_rows(~labeled, 150, rng)].sum() == 75
    assert sample_rows(np.ones(400, bool), 300, rng).size == 300
    np.testing.assert_array_equal(sample_rows(labeled, 1000, rng), np.arange(1000))


def test_many_rows_take_a_sample_that_can_be_repeated():
    X, y, truth = make(2500, 40)
    clf, again, other = (
        NullCategoryNoiseModel(optimize=False, max_active=30, random_state=seed).fit(X, y)
        for seed in (0, 0, 1)
    )
    assert clf.converged_
    np.testing.assert_array_equal(clf.predict_proba(X), again.predict_proba(X))
    assert not np.array_equal(clf.active_rows_, other.active_rows_)
    assert np.abs(clf.predict_proba(X) - other.predict_proba(X)).mean() < 0.01
    assert clf.score(X, truth) > 0.92


def test_white_noise_belongs_to_rows():
    X, y, _ = make(30, 30)
    noisy = NullCategoryNoiseModel(RBF(1.5) + WhiteKernel(3.0), width=0.0, optimize=False)
    # Noise of the variance 1 + 3 is that of the variance 1 with a kernel of a quarter.
    scaled = fixed(0.25, 1.5, width=0.0)
    ours, theirs = noisy.fit(X, y), scaled.fit(X, y)
    assert ours.log_marginal_likelihood_ == pytest.approx(theirs.log_marginal_likelihood_, rel=1e-6)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), rtol=1e-6)


def test_kernels_without_use():
    X, y, _ = make()
    with pytest.raises(ValueError, match="no covariance between rows"):
        NullCategoryNoiseModel(WhiteKernel(), optimize=False).fit(X, y)
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=r"not finite.*Rescale"):
        NullCategoryNoiseModel(DotProduct(), optimize=False).fit(1e200 * X, y)


# The gradient


@pytest.mark.parametrize("max_active", [200, 25])
def test_gradient(max_active):
    X, y, _ = make()
    sign = np.where(y == -1, 0.0, 2.0 * y - 1.0)
    problem = data(X, sign, max_active=max_active)
    kernel = ConstantKernel(4.0) * RBF([1.0, 3.0])
    found, gradient = likelihood_and_gradient(kernel, problem)
    for j, step in enumerate(2e-4 * np.eye(3)):
        values = []
        for theta in (kernel.theta + step, kernel.theta - step):
            active = ActiveRows.of(kernel.clone_with_theta(theta), found.active.rows)
            values.append(problem.process(active).approximation.log_evidence)
        difference = (values[0] - values[1]) / 4e-4
        assert gradient[j] == pytest.approx(difference, rel=0.02, abs=5e-3)
    assert np.abs(gradient).max() > 0.1


def test_marginal_likelihood_is_largest_at_the_kernel_that_was_chosen():
    X, y, _ = make()
    clf = NullCategoryNoiseModel().fit(X, y)
    for step in (-0.2, -0.05, 0.05, 0.2):
        near = clf.kernel_.clone_with_theta(clf.kernel_.theta + step)
        other = NullCategoryNoiseModel(near, optimize=False).fit(X, y)
        assert other.log_marginal_likelihood_ < clf.log_marginal_likelihood_
    same = NullCategoryNoiseModel(clf.kernel_, optimize=False).fit(X, y)
    assert same.log_marginal_likelihood_ == pytest.approx(clf.log_marginal_likelihood_)
