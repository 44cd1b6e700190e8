"""What is known about the shares of classes among the unlabeled rows."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from neverworse import ICLSClassifier, ProjectedLeastSquaresClassifier
from neverworse.model_selection import StratifiedLabeledKFold, mask_labels
from tests.exact import check_certificate, share_program
from tests.problems import KINDS, make_problem
from tests.restricted import Restricted, with_classes, with_shares

projected = pytest.mark.parametrize("classifier", [ProjectedLeastSquaresClassifier, ICLSClassifier])
ignore_giving_up = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def make(n=120, n_classes=2, n_labeled=12, d=3, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n)
    truth[:n_classes] = np.arange(n_classes)
    X = rng.normal(size=(n, d)) + 1.2 * rng.normal(size=(n_classes, d))[truth]
    return X, np.where(np.arange(n) < n_labeled, truth, -1), truth, rng


def shares_of(truth, y, n_classes):
    """The true shares of the classes among the unlabeled rows."""
    return np.bincount(truth[y == -1], minlength=n_classes) / np.sum(y == -1)


def difference(clf, X, labels, n_classes, rows=slice(None)):
    """The loss of the classifier less that of the supervised one, for some labels."""
    hot = np.eye(n_classes)[labels] if n_classes > 2 else labels.astype(float)
    f, g = clf.decision_function(X) + 0.5, clf.supervised_.decision_function(X) + 0.5
    return float(np.sum(((f - hot) ** 2 - (g - hot) ** 2)[rows]))


# Never worse, exactly


@ignore_giving_up
@pytest.mark.parametrize("kind", KINDS)
def test_never_worse_for_the_exact_worst_labels_of_two_classes(kind):
    rng = np.random.default_rng(list(kind.encode()))
    improved = 0
    for trial in range(8):
        if improved and trial >= 5:
            break
        problem = make_problem(kind, rng)
        problem = Restricted(problem.X, problem.y, problem.weights, problem.settings, 2)
        if with_shares(problem, rng).shares is None:
            continue
        for distance in ("all", "unlabeled", "labeled"):
            clf = problem.fit(distance=distance)
            check_certificate(clf, problem.exact(clf))
            improved += clf.certificate_.guaranteed_improvement > 0
    assert improved > 0


@ignore_giving_up
@pytest.mark.parametrize("kind", KINDS)
def test_never_worse_for_the_exact_worst_labels_of_several_classes(kind):
    rng = np.random.default_rng(list(kind.encode()))
    improved = 0
    for trial in range(6):
        if improved and trial >= 3:
            break
        problem = with_classes(make_problem(kind, rng), rng, int(rng.integers(3, 6)))
        if with_shares(problem, rng).shares is None:
            continue
        for distance in ("all", rng.choice(["unlabeled", "labeled"])):
            clf = problem.fit(distance=str(distance))
            check_certificate(clf, problem.exact(clf))
            improved += clf.certificate_.guaranteed_improvement > 0
    assert improved > 0


@ignore_giving_up
@pytest.mark.parametrize("n_classes", [2, 4])
def test_labels_with_such_shares_lie_between_the_extremes(n_classes):
    rng = np.random.default_rng(1)
    for _ in range(10):
        problem = with_classes(make_problem("gaussian", rng), rng, n_classes)
        if with_shares(problem, rng).shares is None:
            continue
        clf = problem.fit(constraint_alpha=0.0)
        s, seen = problem.s(), problem.open()
        f, g = (
            np.atleast_2d(m.decision_function(problem.X).T) + 0.5 for m in (clf, clf.supervised_)
        )
        lower, upper = problem.float_bounds()
        low, high = problem.shares.T * s[seen].sum()
        for _ in range(5):
            labels = problem.random_labels(rng)
            toward = rng.normal(size=labels[:, seen].shape)
            labels[:, seen] = share_program(
                toward, s[seen], lower[:, seen], upper[:, seen], low, high
            )[1]
            hot = labels[-len(f) :]
            value = float(np.sum(s * ((f - hot) ** 2 - (g - hot) ** 2)))
            slack = 1e-9 * (1 + np.sum(s * g**2))
            assert clf.certificate_.best_case - slack <= value
            assert value <= clf.certificate_.worst_case + slack


@pytest.mark.parametrize("n_classes", [2, 3])
def test_the_certificate_is_tight(n_classes):
    rng = np.random.default_rng(2)
    checked = 0
    for kind in ("gaussian", "many labels", "binary features"):
        for _ in range(5):
            problem = with_classes(make_problem(kind, rng), rng, n_classes)
            if with_shares(problem, rng).shares is None:
                continue
            certificate, exact = (clf := problem.fit()).certificate_, problem.exact(clf)
            worst, best = exact.extremes()
            slack = 1e-8 * (abs(certificate.worst_case) + abs(certificate.best_case))
            slack += 3 * certificate.rounding_bound
            assert certificate.worst_case - float(worst) <= slack
            assert float(best) - certificate.best_case <= slack
            checked += certificate.reason == ""
    assert checked > 7


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("room", [0.0, 0.05])
def test_true_labels_are_no_worse_if_the_prior_is_true(n_classes, room):
    for seed in range(10):
        X, y, truth, _ = make(n_classes=n_classes, seed=seed)
        shares = shares_of(truth, y, n_classes)
        prior = np.column_stack([np.maximum(shares - room, 0), np.minimum(shares + room, 1)])
        clf = ProjectedLeastSquaresClassifier(class_prior=prior).fit(X, y)
        assert clf.certificate_.holds
        assert difference(clf, X, truth, n_classes) <= clf.certificate_.worst_case + 1e-9


# Every way to say it


@ignore_giving_up
@projected
def test_forms_for_two_classes(classifier):
    X, y, _, _ = make()
    names = np.array(["no", "yes", None], dtype=object)
    low, high = 0.3, 0.45
    forms = [
        (low, high),
        np.array([[1 - high, 1 - low], [low, high]]),
        {"yes": (low, high)},
        {"no": (1 - high, 1 - low)},
        {"yes": [low, 1.0], "no": np.array([1 - high, 1.0])},
        {np.str_("yes"): (low, high), "no": (0, 1)},
    ]
    fits = [classifier(alpha=0.0, class_prior=form, tol=1e-13).fit(X, names[y]) for form in forms]
    for form, clf in zip(forms, fits, strict=True):
        np.testing.assert_allclose(clf.coef_, fits[0].coef_, atol=1e-9, err_msg=str(form))
        ((name, lower, upper),) = clf.certificate_.assumptions.class_prior
        assert name == "yes"
        assert (lower, upper) == (pytest.approx(low), pytest.approx(high))
    plain = classifier(alpha=0.0).fit(X, names[y])
    assert not np.allclose(plain.coef_, fits[0].coef_, atol=1e-3)


@ignore_giving_up
@projected
@pytest.mark.parametrize("number", [0.4, np.float32(0.4), np.array(0.4)])
def test_a_number_is_a_point(classifier, number):
    X, y, _, _ = make()
    share = float(number)
    a = classifier(class_prior=number).fit(X, y)
    b = classifier(class_prior=(share, share)).fit(X, y)
    c = classifier(class_prior={1: share}).fit(X, y)
    d = classifier(class_prior=np.array([[1 - share] * 2, [share] * 2])).fit(X, y)
    for clf in (b, c, d):
        np.testing.assert_allclose(clf.coef_, a.coef_, atol=1e-7)
    assert a.soft_labels_.mean() == pytest.approx(share, abs=1e-8)


@ignore_giving_up
@projected
def test_forms_for_several_classes(classifier):
    X, y, truth, _ = make(n_classes=3)
    names = np.array(["red", "green", "blue", None], dtype=object)
    shares = shares_of(truth, y, 3)
    order = [2, 1, 0]  # blue, green and red among the codes
    sorted_shares = shares[order]
    forms = [
        sorted_shares,
        list(sorted_shares),
        np.column_stack([sorted_shares, sorted_shares]),
        dict(zip(["red", "green", "blue"], shares, strict=True)),
        {"green": shares[1], "red": (shares[0], shares[0])},  # the third follows
    ]
    fits = [classifier(class_prior=form, tol=1e-12).fit(X, names[y]) for form in forms]
    for form, clf in zip(forms, fits, strict=True):
        np.testing.assert_allclose(clf.coef_, fits[0].coef_, atol=1e-6, err_msg=str(form))
        np.testing.assert_allclose(clf.soft_labels_.mean(axis=0), sorted_shares, atol=1e-7)
        assert [name for name, _, _ in clf.certificate_.assumptions.class_prior] == [
            "blue",
            "green",
            "red",
        ]


@ignore_giving_up
@projected
def test_intervals_of_several_classes_are_met(classifier):
    for seed in range(5):
        X, y, truth, rng = make(n_classes=4, seed=seed, n_labeled=16)
        s = rng.uniform(0.2, 2, len(y))
        seen = y == -1
        share = np.array([s[seen & (truth == k)].sum() for k in range(4)]) / s[seen].sum()
        prior = np.column_stack([np.maximum(share - 0.03, 0), share + 0.03])
        clf = classifier(class_prior=prior).fit(X, y, sample_weight=s)
        got = clf.soft_labels_.T @ s[seen] / s[seen].sum()
        assert (got >= prior[:, 0] - 1e-7).all()
        assert (got <= prior[:, 1] + 1e-7).all()
        assert clf.certificate_.assumptions.task == "multiclass"


@ignore_giving_up
@projected
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_prior_that_says_nothing(classifier, n_classes):
    X, y, _, _ = make(n_classes=n_classes)
    plain = classifier().fit(X, y)
    priors = [{}, {0: (0, 1)}, np.array([[0.0, 1.0]] * n_classes)]
    if n_classes == 2:
        priors += [(0, 1), (0.0, 1.0)]
    for prior in priors:
        clf = classifier(class_prior=prior).fit(X, y)
        np.testing.assert_array_equal(clf.coef_, plain.coef_)
        assert clf.certificate_.assumptions == plain.certificate_.assumptions


@ignore_giving_up
@pytest.mark.parametrize("n_classes", [2, 3])
def test_narrower_priors_improve_more(n_classes):
    X, y, truth, _ = make(n_classes=n_classes)
    shares = shares_of(truth, y, n_classes)
    guaranteed = []
    for room in (1.0, 0.3, 0.1, 0.03, 0.01, 0.0):
        prior = np.column_stack([np.maximum(shares - room, 0), np.minimum(shares + room, 1)])
        clf = ProjectedLeastSquaresClassifier(class_prior=prior).fit(X, y)
        guaranteed.append(clf.certificate_.guaranteed_improvement)
    assert (np.diff(guaranteed) >= -1e-8).all()
    assert guaranteed[-1] > guaranteed[0] + 1e-3


@projected
@pytest.mark.parametrize("share", [0, 1, 0.0, 1.0])
def test_all_unlabeled_rows_are_of_one_of_two_classes(classifier, share):
    X, y, _, _ = make()
    clf = classifier(alpha=0.0, class_prior=share).fit(X, y)
    assert clf.certificate_.converged
    np.testing.assert_allclose(clf.soft_labels_, share, atol=1e-9)
    E = np.column_stack([X, np.ones(len(X))])
    w = np.linalg.lstsq(E, np.where(y == -1, share, y).astype(float), rcond=None)[0]
    np.testing.assert_allclose(clf.coef_[0], w[:-1], atol=1e-8)
    # There is one labeling only, so that the worst case is the best case.
    certificate = clf.certificate_
    assert certificate.worst_case == pytest.approx(certificate.best_case, abs=1e-7)
    labels = np.where(y == -1, share, y)
    assert difference(clf, X, labels, 2) == pytest.approx(certificate.worst_case, abs=1e-7)


@projected
@pytest.mark.parametrize("n", [60, 9000])
def test_all_unlabeled_rows_are_of_one_of_several_classes(classifier, n):
    X, y, _, _ = make(n=n, n_classes=3)
    clf = classifier(alpha=0.0, class_prior={2: 1.0}).fit(X, y)
    certificate = clf.certificate_
    assert certificate.converged
    labels = np.where(y == -1, 2, y)
    E = np.column_stack([X, np.ones(n)])
    w = np.linalg.lstsq(E, np.eye(3)[labels], rcond=None)[0]
    np.testing.assert_allclose(clf.coef_, w[:-1].T, atol=1e-7)
    value = difference(clf, X, labels, 3)
    assert certificate.worst_case == pytest.approx(value, rel=1e-6)
    assert certificate.best_case == pytest.approx(value, rel=1e-6)


@projected
def test_a_class_without_unlabeled_rows(classifier):
    X, y, _, _ = make(n_classes=3)
    clf = classifier(class_prior={0: 0.0}).fit(X, y)
    np.testing.assert_allclose(clf.soft_labels_[:, 0], 0.0, atol=1e-9)
    assert clf.certificate_.converged


@ignore_giving_up
@projected
@pytest.mark.parametrize("n_classes", [2, 3])
def test_shares_are_weighted(classifier, n_classes):
    X, y, truth, rng = make(n_classes=n_classes, n=60)
    repeats = rng.integers(1, 4, len(y))
    seen = y == -1
    shares = np.bincount(truth[seen], repeats[seen], n_classes) / repeats[seen].sum()
    prior = np.column_stack([np.maximum(shares - 0.02, 0), shares + 0.02])
    weighted = classifier(class_prior=prior, tol=1e-14).fit(X, y, sample_weight=repeats)
    repeated = classifier(class_prior=prior, tol=1e-14).fit(
        np.repeat(X, repeats, axis=0), np.repeat(y, repeats)
    )
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-8)


@projected
@pytest.mark.parametrize("prior", [0.3, (0.1, 0.2), {1: 0.5}, "confidence"])
def test_nothing_is_unlabeled(classifier, prior):
    X, _, truth, _ = make()
    clf = classifier(class_prior=prior).fit(X, truth)
    assert clf.certificate_.reason == "no unlabeled rows"
    assert clf.certificate_.assumptions.class_prior == ()
    np.testing.assert_array_equal(clf.coef_, clf.supervised_.coef_)


@projected
@pytest.mark.parametrize("prior", [30, (0.4, 0.1), {"x": 0.5}, "guess", [0.1, 0.2, 0.3]])
def test_a_wrong_prior_is_wrong_even_if_nothing_is_unlabeled(classifier, prior):
    X, _, truth, _ = make()
    with pytest.raises(ValueError, match="class_prior"):
        classifier(class_prior=prior).fit(X, truth)


@projected
def test_together_with_bounds(classifier):
    X, y, truth, _ = make()
    bounds = np.full((len(y), 2), np.nan)
    bounds[60:] = np.where(truth[60:, None] == 1, [0.4, 1.0], [0.0, 0.6])
    bounds[y != -1] = np.nan
    share = shares_of(truth, y, 2)[1]
    alone = classifier(class_prior=(share - 0.05, share + 0.05)).fit(X, y)
    both = clone(alone).fit(X, y, label_bounds=bounds)
    seen = y == -1
    assert np.nanmax(bounds[seen, 0] - both.soft_labels_) <= 1e-9
    assert np.nanmax(both.soft_labels_ - bounds[seen, 1]) <= 1e-9
    assert share - 0.05 - 1e-9 <= both.soft_labels_.mean() <= share + 0.05 + 1e-9
    if classifier is ProjectedLeastSquaresClassifier:
        assert (
            both.certificate_.guaranteed_improvement
            >= alone.certificate_.guaranteed_improvement - 1e-9
        )
    text = both.certificate_.summary()
    assert "60 with bounds" in text
    assert "class 1 makes up between" in text


@projected
def test_soft_labels_are_no_part_of_the_share(classifier):
    # Rows whose bounds are equal count as labeled, so that the share is among the others.
    X, y, _, _ = make()
    bounds = np.full((len(y), 2), np.nan)
    bounds[90:] = 1.0
    clf = classifier(class_prior=0.25).fit(X, y, label_bounds=bounds)
    assert len(clf.soft_labels_) == 78
    assert clf.soft_labels_.mean() == pytest.approx(0.25, abs=1e-7)


def test_grid_search_over_priors():
    X, y, truth, _ = make(n=300, n_labeled=60)
    share = shares_of(truth, y, 2)[1]
    grid = {"class_prior": [None, share, (share - 0.1, share + 0.1), {1: share}, "confidence"]}
    search = GridSearchCV(ProjectedLeastSquaresClassifier(), grid, cv=StratifiedLabeledKFold(3))
    search.fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.certificate_.holds


def test_the_prior_is_left_alone():
    X, y, _, _ = make(n_classes=3)
    prior = np.array([[0.1, 0.5], [0.2, 0.6], [0.0, 1.0]])
    clf = ProjectedLeastSquaresClassifier(class_prior=prior)
    clf.fit(X, y)
    assert clf.class_prior is prior
    np.testing.assert_array_equal(prior, [[0.1, 0.5], [0.2, 0.6], [0.0, 1.0]])
    assert clone(clf).get_params()["class_prior"] is not None


@projected
@pytest.mark.parametrize("form", [list, np.array, pd.Series])
def test_two_shares_are_those_of_the_two_classes(classifier, form):
    X, y, _, _ = make()
    shares = classifier(class_prior=form([0.7, 0.3])).fit(X, y)
    of_second = classifier(class_prior=0.3).fit(X, y)
    np.testing.assert_allclose(shares.coef_, of_second.coef_, atol=1e-12)
    ((_, low, high),) = shares.certificate_.assumptions.class_prior
    assert (low, high) == (0.3, 0.3)


def test_an_array_of_shares_may_ascend():
    X, y, _, _ = make()
    clf = ProjectedLeastSquaresClassifier(class_prior=np.array([0.3, 0.7])).fit(X, y)
    assert clf.certificate_.assumptions.class_prior == (("1", 0.7, 0.7),)


def test_prior_as_a_series():
    X, y, truth, _ = make(n_classes=3)
    shares = shares_of(truth, y, 3)
    a = ProjectedLeastSquaresClassifier(class_prior=pd.Series(shares)).fit(X, y)
    b = ProjectedLeastSquaresClassifier(class_prior=shares).fit(X, y)
    np.testing.assert_array_equal(a.coef_, b.coef_)


# Confidence


def _interval(certificate, name):
    found = {n: (low, high) for n, low, high in certificate.assumptions.class_prior}
    return found.get(name, (0.0, 1.0))


@pytest.mark.parametrize(("n_classes", "level"), [(2, 0.95), (2, 0.6), (3, 0.95)])
def test_confidence_covers_the_truth(n_classes, level):
    n, n_labeled, trials = 90, 30, 60
    rng = np.random.default_rng(2)
    truth = np.repeat([0, 1, 2], [36, 30, 24]) % n_classes
    X = rng.normal(size=(n, 1)) + truth[:, None]
    clf = ProjectedLeastSquaresClassifier(class_prior="confidence", prior_level=level, tol=1e-6)
    covered = narrow = 0
    for _ in range(trials):
        y = np.full(n, -1)
        labeled = rng.permutation(n)[:n_labeled]
        y[labeled] = truth[labeled]
        clf.fit(X, y)
        shares = shares_of(truth, y, n_classes)
        intervals = [_interval(clf.certificate_, str(k)) for k in range(n_classes)]
        if n_classes == 2:
            intervals[0] = 1 - intervals[1][1], 1 - intervals[1][0]
        contained = all(
            low - 1e-12 <= share <= high + 1e-12
            for share, (low, high) in zip(shares, intervals, strict=True)
        )
        covered += contained
        narrow += intervals[1][1] - intervals[1][0] < 0.6
        assert clf.certificate_.holds
        if contained:
            assert difference(clf, X, truth, n_classes) <= clf.certificate_.worst_case + 1e-9
    assert narrow == trials  # or the coverage would mean nothing
    assert covered / trials >= level - 3 * np.sqrt(level * (1 - level) / trials)


def test_confidence_inverts_the_hypergeometric_test():
    n, n_labeled = 200, 30
    X, _, truth, _ = make(n=n)
    y = mask_labels(truth, n_labeled=n_labeled, random_state=3)
    x = int(np.sum(y == 1))
    level = 0.9
    kept = [
        m
        for m in range(n + 1)
        if stats.hypergeom(n, m, n_labeled).cdf(x) > (1 - level) / 2
        and stats.hypergeom(n, m, n_labeled).sf(x - 1) > (1 - level) / 2
    ]
    clf = ProjectedLeastSquaresClassifier(class_prior="confidence", prior_level=level).fit(X, y)
    ((name, low, high),) = clf.certificate_.assumptions.class_prior
    assert name == "1"
    assert low * (n - n_labeled) == pytest.approx(min(kept) - x)
    assert high * (n - n_labeled) == pytest.approx(max(kept) - x)
    assert clf.certificate_.assumptions.prior_level == level


def test_more_confidence_is_more_conservative():
    X, y, _, _ = make(n=300, n_labeled=60)
    found = []
    for level in (0.1, 0.5, 0.9, 0.99, 0.999999):
        clf = ProjectedLeastSquaresClassifier(class_prior="confidence", prior_level=level)
        certificate = clf.fit(X, y).certificate_
        low, high = _interval(certificate, "1")
        found.append((high - low, -certificate.guaranteed_improvement))
        assert f"probability of at least {level:.4g}" in certificate.summary()
    width, negative = np.array(found).T
    assert (np.diff(width) > 0).all()
    assert (np.diff(negative) >= -1e-9).all()


@projected
def test_confidence_knows_equal_weights_and_absent_rows(classifier):
    X, y, _, rng = make()
    s = np.where(rng.random(len(y)) < 0.2, 0.0, 2.5)
    s[:12] = 2.5
    a = classifier(class_prior="confidence").fit(X, y, sample_weight=s)
    b = classifier(class_prior="confidence").fit(X[s > 0], y[s > 0])
    assert a.certificate_.assumptions == b.certificate_.assumptions
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-8)


@projected
def test_confidence_together_with_bounds(classifier):
    X, y, truth, _ = make()
    bounds = np.full((len(y), 2), np.nan)
    bounds[80:] = np.where(truth[80:, None] == 1, [0.5, 1.0], [0.0, 0.5])
    clf = classifier(class_prior="confidence").fit(X, y, label_bounds=bounds)
    assert clf.certificate_.assumptions.n_bounded == 40
    assert clf.certificate_.assumptions.prior_level == 0.95


# Errors

X2, Y2, _, _ = make()
X3, Y3, _, _ = make(n_classes=3)
Y3_NAMES = np.array(["red", "green", "blue", None], dtype=object)[Y3]

BAD = {
    "a percentage": (Y2, 30, "not percentages"),
    "percentages": (Y2, (20, 40), "not percentages"),
    "negative": (Y2, -0.2, "numbers from 0 to 1"),
    "above one": (Y2, (0.5, 1.2), "numbers from 0 to 1"),
    "NaN": (Y2, np.nan, "class_prior"),
    "crossing": (Y2, (0.6, 0.2), r"tuple \(low, high\)"),
    "shares as a tuple": (Y2, (0.7, 0.3), r"a tuple \(low, high\) an interval"),
    "shares or an interval": (Y2, [0.3, 0.7], r"may be two shares or an interval.*a tuple"),
    "an interval as a list": (Y2, [0.3, 0.5], r"a tuple \(low, high\) an interval"),
    "an interval as an array": (
        Y2,
        np.array([0.3, 0.5]),
        r"add up to between 0.8 and 0.8.*a tuple \(low, high\) is",
    ),
    "beyond floats": (Y2, 10**400, "too large"),
    "crossing in a dict": (Y2, {0: (0.6, 0.2)}, r"intervals \(low, high\)"),
    "three numbers for two classes": (Y2, (0.2, 0.3, 0.5), "The classes in y are 0, 1"),
    "unknown string": (Y2, "balanced", "is 'balanced'.*'confidence'"),
    "wrong type": (Y2, object(), "is <object"),
    "ragged": (Y2, [0.1, [0.2, 0.3]], "add up to between 0.3 and 0.4"),
    "unknown class": (Y2, {7: 0.3}, "names the class 7. The classes in y are 0, 1"),
    "class as a string": (Y2, {"1": 0.3}, "names the class '1'"),
    "the missing label": (Y2, {-1: 0.3}, "names the class -1"),
    "interval the wrong way round": (Y2, (0.8, 0.2), "for class 1, whose first end is above the"),
    "percentage": (Y2, 30.0, "30.0 for class 1, no share.*not percentages"),
    "words in a dict": (Y2, {1: "many"}, "'many' for class 1.*numbers"),
    "three numbers in a dict": (Y2, {1: (0.1, 0.2, 0.3)}, "numbers"),
    "None in a dict": (Y2, {1: None}, "None for class 1.*numbers"),
    "shares of two classes that do not add up": (Y2, {0: 0.3, 1: 0.3}, "add up to"),
    "one number for three classes": (Y3, 0.3, r"is 0.3. The classes in y are 0, 1, 2"),
    "two numbers for three classes": (Y3, (0.2, 0.4), "one for each class"),
    "four shares for three classes": (Y3, [0.25] * 4, "one for each class"),
    "shares that add up to less": (Y3, [0.2, 0.3, 0.4], "add up to between 0.9 and 0.9"),
    "shares that add up to more": (Y3, [0.4, 0.4, 0.4], "add up to between 1.2 and 1.2"),
    "intervals below one": (Y3, [(0, 0.2), (0, 0.3), (0, 0.4)], "between 0 and 0.9"),
    "intervals above one": (Y3, [(0.5, 1), (0.4, 1), (0.3, 1)], "between 1.2 and"),
    "transposed": (Y3, [[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]], "one for each class"),
    "unknown of three": (Y3_NAMES, {"purple": 0.1}, "'purple'. The classes in y are 'blue'"),
    "too much in a dict": (Y3_NAMES, {"red": 0.7, "blue": 0.6}, "infeasible"),
}


@projected
@pytest.mark.parametrize("name", BAD)
def test_bad_priors(classifier, name):
    y, prior, message = BAD[name]
    clf = classifier(class_prior=prior)
    with pytest.raises(ValueError, match=message):
        clf.fit(X2, y)
    with pytest.raises(NotFittedError):
        clf.predict(X2)


@projected
def test_infeasible_priors_name_what_is_feasible(classifier):
    bounds = np.full((len(Y2), 2), np.nan)
    bounds[12:66] = 0.8, 1.0  # half of the unlabeled rows
    with pytest.raises(ValueError, match=r"class 1 .* 0\.2 and 0\.3.* 0\.4 to 1 only"):
        classifier(class_prior=(0.2, 0.3)).fit(X2, Y2, label_bounds=bounds)
    with pytest.raises(ValueError, match=r"infeasible.* 0\.4 to 1 only"):
        classifier(class_prior=0.39).fit(X2, Y2, label_bounds=bounds)
    clf = classifier(class_prior=0.4).fit(X2, Y2, label_bounds=bounds)  # just possible
    lowest = np.r_[np.full(54, 0.8), np.zeros(54)]
    np.testing.assert_allclose(clf.soft_labels_, lowest, atol=1e-6)


@projected
def test_bounds_and_shares_that_are_impossible_together_only(classifier):
    # Half of the rows are of the classes 0 and 1, the other half of 2 and 3: each class alone may
    # have a share of one half, but two of them must not have more between them.
    X, y, _, _ = make(n_classes=4)
    bounds = np.full((len(y), 4, 2), np.nan)
    unlabeled = np.flatnonzero(y == -1)
    bounds[unlabeled[::2], 2:, 1] = 0.0
    bounds[unlabeled[1::2], :2, 1] = 0.0
    with pytest.raises(ValueError, match="infeasible together with label_bounds"):
        classifier(class_prior=[0.3, 0.3, 0.2, 0.2]).fit(X, y, label_bounds=bounds)
    clf = classifier(class_prior=[0.3, 0.2, 0.1, 0.4]).fit(X, y, label_bounds=bounds)
    np.testing.assert_allclose(clf.soft_labels_.mean(axis=0), [0.3, 0.2, 0.1, 0.4], atol=1e-6)


@ignore_giving_up
def test_shares_that_can_be_met_are_no_error():
    # The exact shares of labels that are within their bounds: nothing is wrong with them.
    for seed in range(8):
        X, y, truth, rng = make(n=60, n_classes=4, seed=seed)
        labels = np.eye(4)[truth]
        bounds = np.stack([labels, labels], axis=2) + rng.uniform(0, 0.7, (60, 4, 1)) * [-1, 1]
        bounds = np.clip(bounds, 0.0, 1.0)
        prior = shares_of(truth, y, 4)
        clf = ProjectedLeastSquaresClassifier(alpha=0.0, class_prior=prior, max_iter=500)
        clf.fit(X, y, label_bounds=bounds)
        assert clf.certificate_.holds
        assert difference(clf, X, truth, 4) <= clf.certificate_.worst_case + 1e-9


@projected
@pytest.mark.parametrize("value", [0.0, 1.0, -0.5, 95, "high", None, np.nan])
def test_prior_level_out_of_range(classifier, value):
    with pytest.raises(ValueError, match="prior_level"):
        classifier(class_prior="confidence", prior_level=value).fit(X2, Y2)


@projected
def test_confidence_needs_labels_that_can_be_counted(classifier):
    bounds = np.full((len(Y2), 2), np.nan)
    bounds[50] = 0.5
    with pytest.raises(ValueError, match=r"soft labels .* cannot be counted"):
        classifier(class_prior="confidence").fit(X2, Y2, label_bounds=bounds)
    s = np.linspace(1, 2, len(Y2))
    with pytest.raises(ValueError, match=r"another sample_weight .* cannot be counted"):
        classifier(class_prior="confidence").fit(X2, Y2, sample_weight=s)


@projected
@pytest.mark.parametrize("prior", [0.4, (0.2, 0.4), "confidence"])
def test_lbfgs_knows_no_prior(classifier, prior):
    with pytest.raises(ValueError, match="solver='exact'"):
        classifier(class_prior=prior, solver="lbfgs").fit(X2, Y2)


@projected
def test_lbfgs_knows_two_classes_only(classifier):
    with pytest.raises(ValueError, match="two classes"):
        classifier(solver="lbfgs").fit(X3, Y3)
    classifier(solver="lbfgs", class_prior=(0, 1)).fit(X2, Y2)  # says nothing
