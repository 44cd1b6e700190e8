import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.linear_model import LinearRegression
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    fbeta_score,
    get_scorer,
    make_scorer,
    r2_score,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.multiclass import type_of_target

from neverworse import LeastSquaresClassifier, ProjectedLeastSquaresClassifier
from neverworse.model_selection import StratifiedLabeledKFold, labeled_scorer
from tests.label_encodings import CODES, ENCODINGS, UNLABELED

LABELED = ~UNLABELED
N = len(CODES)
X = np.random.default_rng(3).normal(size=(N, 3)) + 0.5 * CODES[:, None]
WEIGHTS = np.random.default_rng(4).uniform(0.1, 3.0, N)
CLF = LeastSquaresClassifier().fit(X, CODES)
PREDICTED = CLF.predict(X[LABELED])
ACCURACY = accuracy_score(CODES[LABELED], PREDICTED)


def error_rate(estimator, X, y):
    return np.mean(estimator.predict(X) != y)


def test_the_problem_is_not_trivial():
    assert 0.5 < ACCURACY < 1
    assert CLF.score(X, CODES) < 0.4


# What may be wrapped


@pytest.mark.parametrize(
    ("scoring", "expected"),
    [
        ("accuracy", ACCURACY),
        (None, ACCURACY),
        (make_scorer(accuracy_score), ACCURACY),
        ("roc_auc", roc_auc_score(CODES[LABELED], CLF.decision_function(X[LABELED]))),
        (
            make_scorer(fbeta_score, beta=2),
            fbeta_score(CODES[LABELED], PREDICTED, beta=2),
        ),
        (make_scorer(accuracy_score, greater_is_better=False), -ACCURACY),
        (error_rate, 1 - ACCURACY),
        (lambda estimator, X, y: float(len(y)), LABELED.sum()),
        (labeled_scorer("accuracy"), ACCURACY),
    ],
    ids=["accuracy", "none", "scorer", "auc", "fbeta", "loss", "function", "lambda", "labeled"],
)
def test_scores_of_labeled_rows(scoring, expected):
    assert labeled_scorer(scoring)(CLF, X, CODES) == pytest.approx(expected, abs=1e-12)


def test_several_scorers():
    scorers = labeled_scorer(["accuracy", "roc_auc"])
    assert list(scorers) == ["accuracy", "roc_auc"]
    assert scorers["accuracy"](CLF, X, CODES) == ACCURACY
    assert labeled_scorer(("accuracy",))["accuracy"](CLF, X, CODES) == ACCURACY
    scorers = labeled_scorer({"own": None, "wrong": error_rate}, missing_label=-1)
    assert scorers["own"](CLF, X, CODES) == ACCURACY
    assert scorers["wrong"](CLF, X, CODES) == pytest.approx(1 - ACCURACY)


def test_all_rows_labeled():
    y = np.where(CODES == 1, 1, 0)
    assert labeled_scorer("accuracy")(CLF, X, y) == accuracy_score(y, CLF.predict(X))


def test_predict_proba_and_more_classes():
    truth = np.arange(N) % 3
    y = np.where(UNLABELED, -1, truth)
    nb = GaussianNB().fit(X[LABELED], y[LABELED])
    for scoring in ("neg_log_loss", "f1_macro", "roc_auc_ovr"):
        expected = get_scorer(scoring)(nb, X[LABELED], y[LABELED])
        assert labeled_scorer(scoring)(nb, X, y) == expected


def test_regression():
    y = np.where(UNLABELED, np.nan, X @ [1.0, 2.0, 3.0] + np.arange(N) % 4)
    model = LinearRegression().fit(X[LABELED], y[LABELED])
    expected = r2_score(y[LABELED], model.predict(X[LABELED]))
    assert labeled_scorer("r2")(model, X, y) == expected
    assert labeled_scorer(None)(model, X, pd.Series(y)) == expected


# Labels and rows of all kinds


@pytest.mark.parametrize("name", ENCODINGS)
def test_every_encoding(name):
    y, classes = ENCODINGS[name]
    clf = LeastSquaresClassifier().fit(X, y)
    assert labeled_scorer("accuracy")(clf, X, y) == ACCURACY
    positive = make_scorer(fbeta_score, beta=2, pos_label=classes[1])
    expected = fbeta_score(CODES[LABELED], PREDICTED, beta=2)
    assert labeled_scorer(positive)(clf, X, y) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("array of int8", "i"),
        ("object int None", "i"),
        ("object int -1", "i"),
        ("int and NaN", "f"),
        ("float32", "f"),
        ("object bool None", "b"),
        ("pandas Int64", "i"),
        ("pandas Float64", "f"),
        ("pandas boolean", "b"),
        ("pandas category int", "i"),
        ("pandas category str", "O"),
        ("str and None", "O"),
        ("polars int", "i"),
    ],
)
def test_metrics_get_clean_labels(name, kind):
    seen = []

    def look(estimator, X, y):
        seen.append(y)
        return 0.0

    labeled_scorer(look)(CLF, X, ENCODINGS[name][0])
    assert type(seen[0]) is np.ndarray
    assert seen[0].dtype.kind == kind
    assert type_of_target(seen[0]) == "binary"
    assert seen[0].tolist() == [ENCODINGS[name][1][code] for code in CODES[LABELED]]


@pytest.mark.parametrize(
    "rows",
    [
        X.tolist(),
        X.astype(np.float32),
        sparse.csr_array(X),
        sparse.coo_array(X),
        sparse.csc_matrix(X),
    ],
    ids=["list", "float32", "csr", "coo", "csc"],
)
def test_every_kind_of_rows(rows):
    assert labeled_scorer("accuracy")(CLF, rows, CODES) == ACCURACY


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_data_frames_stay_data_frames(frame):
    rows = frame({name: X[:, i] for i, name in enumerate("abc")})
    seen = []

    def look(estimator, X, y):
        seen.append(X)
        return estimator.score(X, y)

    clf = LeastSquaresClassifier().fit(rows, CODES)
    assert labeled_scorer(look)(clf, rows, CODES) == ACCURACY
    assert type(seen[0]) is frame
    np.testing.assert_array_equal(seen[0].to_numpy(), X[LABELED])


def test_missing_label():
    y = np.where(UNLABELED, 7, np.where(CODES == 1, 1, -1))
    clf = LeastSquaresClassifier(missing_label=7).fit(X, y)
    assert labeled_scorer("accuracy", missing_label=7)(clf, X, y) == ACCURACY
    one_class = np.where(CODES == 1, 1, -1)  # as a fold of a few rows may be
    with pytest.raises(ValueError, match="Pass missing_label=-1"):
        labeled_scorer("accuracy")(CLF, X, one_class)
    found = np.mean(CLF.predict(X[CODES == 1]) == 1)
    assert labeled_scorer("accuracy", missing_label=-1)(CLF, X, one_class) == found


# Keyword arguments


@pytest.mark.parametrize(
    "weights", [WEIGHTS, WEIGHTS.tolist(), pd.Series(WEIGHTS, index=range(N, 0, -1))]
)
@pytest.mark.parametrize("scoring", ["accuracy", None, make_scorer(accuracy_score)], ids=str)
def test_sample_weight(scoring, weights):
    expected = accuracy_score(CODES[LABELED], PREDICTED, sample_weight=WEIGHTS[LABELED])
    assert expected != ACCURACY
    scorer = labeled_scorer(scoring)
    assert scorer(CLF, X, CODES, sample_weight=weights) == pytest.approx(expected)
    assert scorer(CLF, X, CODES, sample_weight=None) == pytest.approx(ACCURACY)


def test_other_keyword_arguments_are_passed_on_as_they_are():
    seen = {}

    def look(estimator, X, y, **more):
        seen.update(more)
        return 0.0

    more = {
        "per_row": pl.Series(range(N)),
        "matrix": np.arange(2 * N).reshape(N, 2),
        "labels": [0, 1],
        "name": "macro",
        "number": 3.0,
        "nothing": None,
    }
    labeled_scorer(look)(CLF, X, CODES, **more)
    assert seen.pop("per_row").to_list() == np.flatnonzero(LABELED).tolist()
    np.testing.assert_array_equal(seen.pop("matrix"), more["matrix"][LABELED])
    assert seen == {name: more[name] for name in seen}
    assert set(seen) == {"labels", "name", "number", "nothing"}


# In searches


def expected_scores(cv, y):
    """Accuracy on the labeled rows of training and test folds, without any scorer."""
    train_scores, test_scores = [], []
    for train, test in cv.split(X, y):
        clf = LeastSquaresClassifier().fit(X[train], y[train])
        for rows, scores in ((train, train_scores), (test, test_scores)):
            known = rows[y[rows] != -1]
            scores.append(np.mean(clf.predict(X[known]) == y[known]))
    return train_scores, test_scores


@pytest.mark.parametrize("cv", [KFold(3), StratifiedLabeledKFold(3)], ids=str)
def test_cross_validate(cv):
    train_scores, test_scores = expected_scores(cv, CODES)
    result = cross_validate(
        LeastSquaresClassifier(),
        X,
        CODES,
        cv=cv,
        scoring=labeled_scorer("accuracy"),
        return_train_score=True,
    )
    np.testing.assert_allclose(result["train_score"], train_scores)
    np.testing.assert_allclose(result["test_score"], test_scores)
    plain = cross_validate(LeastSquaresClassifier(), X, CODES, cv=cv, return_train_score=True)
    assert (plain["train_score"] < result["train_score"]).all()


def test_several_metrics_in_a_search():
    cv = StratifiedLabeledKFold(3)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), ProjectedLeastSquaresClassifier()),
        {"projectedleastsquaresclassifier__alpha": [0.1, 10.0]},
        scoring=labeled_scorer({"acc": "accuracy", "auc": "roc_auc", "wrong": error_rate}),
        refit="auc",
        cv=cv,
        return_train_score=True,
        error_score="raise",
    ).fit(X, CODES)
    results = search.cv_results_
    for part in ("train", "test"):
        np.testing.assert_allclose(
            results[f"mean_{part}_acc"], 1 - results[f"mean_{part}_wrong"], atol=1e-12
        )
    for alpha, found in zip([0.1, 10.0], results["mean_test_auc"], strict=True):
        pipe = make_pipeline(StandardScaler(), ProjectedLeastSquaresClassifier(alpha=alpha))
        assert found == cross_val_score(pipe, X, CODES, cv=cv, scoring="roc_auc").mean()
    assert search.score(X, CODES) == labeled_scorer("roc_auc")(search, X, CODES)


def test_other_estimators():
    clf = SelfTrainingClassifier(GaussianNB()).fit(X, CODES)
    expected = -brier_score_loss(CODES[LABELED], clf.predict_proba(X[LABELED])[:, 1])
    assert labeled_scorer("neg_brier_score")(clf, X, CODES) == pytest.approx(expected)


def weighted_scores(cv, score_weights):
    """Accuracy on labeled test rows, fitted with weights, without any scorer."""
    scores = []
    for train, test in cv.split(X, CODES):
        clf = LeastSquaresClassifier().fit(X[train], CODES[train], sample_weight=WEIGHTS[train])
        known = test[LABELED[test]]
        scores.append(clf.score(X[known], CODES[known], sample_weight=score_weights[known]))
    return scores


@pytest.mark.parametrize("scoring", [None, "accuracy", ["roc_auc", "accuracy"], {"own": None}])
def test_search_with_weights_and_no_metadata_routing(scoring):
    """Newer versions of scikit-learn hand the weights on to scorers that say they take them."""
    scorer = labeled_scorer(scoring)
    cv = KFold(3)  # unlabeled rows in test folds, so that their weights must go
    search = GridSearchCV(
        LeastSquaresClassifier(),
        {"alpha": [0.0]},
        scoring=scorer,
        refit=list(scorer)[-1] if isinstance(scorer, dict) else True,
        cv=cv,
        error_score="raise",
    ).fit(X, CODES, sample_weight=WEIGHTS)
    handed_on = hasattr(make_scorer(accuracy_score), "_accept_sample_weight")
    expected = weighted_scores(cv, WEIGHTS if handed_on else np.ones(N))
    assert search.best_score_ == pytest.approx(np.mean(expected))
    assert not np.allclose(weighted_scores(cv, WEIGHTS), weighted_scores(cv, np.ones(N)))


def test_says_whether_it_takes_weights():
    def weighted(estimator, X, y, sample_weight=None):
        return 0.0

    for scoring, takes in [("accuracy", True), (None, True), (weighted, True), (error_rate, False)]:
        assert labeled_scorer(scoring)._accept_sample_weight() is takes


# Metadata routing


def test_weights_are_routed():
    cv, others = KFold(3), WEIGHTS[::-1]
    with config_context(enable_metadata_routing=True):
        clf = LeastSquaresClassifier().set_fit_request(sample_weight=True)
        plain = get_scorer("accuracy")
        scorer = labeled_scorer(plain.set_score_request(sample_weight=True))
        search = GridSearchCV(clf, {"alpha": [0.0]}, cv=cv, scoring={"one": scorer}, refit="one")
        search.fit(X, CODES, sample_weight=WEIGHTS)

        def scores(scorer, **params):
            return cross_validate(clf, X, CODES, cv=cv, scoring=scorer, params=params)["test_score"]

        weighted = scores(scorer, sample_weight=WEIGHTS)
        aliased = scores(
            labeled_scorer(plain.set_score_request(sample_weight="others")),
            sample_weight=WEIGHTS,
            others=others,
        )
        unweighted = scores(
            labeled_scorer(plain.set_score_request(sample_weight=False)),
            sample_weight=WEIGHTS,
        )
    np.testing.assert_allclose(weighted, weighted_scores(cv, WEIGHTS))
    np.testing.assert_allclose(aliased, weighted_scores(cv, others))
    np.testing.assert_allclose(unweighted, weighted_scores(cv, np.ones(N)))
    assert search.best_score_ == pytest.approx(weighted.mean())
    assert len({weighted.mean(), aliased.mean(), unweighted.mean()}) == 3


def test_routing_is_that_of_the_wrapped_scorer():
    with config_context(enable_metadata_routing=True):
        given = make_scorer(accuracy_score).set_score_request(sample_weight="w")
        scorer = labeled_scorer(given)
        assert scorer.get_metadata_routing().score.requests == {"sample_weight": "w"}
        assert not labeled_scorer(None).get_metadata_routing().score.requests


# Objects


@pytest.mark.parametrize("scoring", ["accuracy", None, error_rate])
def test_pickle_and_clone(scoring):
    scorer = labeled_scorer(scoring, -1)
    for copied in (pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False)):
        assert copied is not scorer
        assert repr(copied) == repr(scorer)
        assert copied(CLF, X, CODES) == scorer(CLF, X, CODES)


def test_copies_keep_what_they_request():
    with config_context(enable_metadata_routing=True):
        scorer = labeled_scorer(get_scorer("accuracy").set_score_request(sample_weight=True))
        for copied in (pickle.loads(pickle.dumps(scorer)), clone(scorer, safe=False)):
            assert copied.get_metadata_routing().score.requests == {"sample_weight": True}


# Bad input


def test_no_labeled_row():
    with pytest.raises(ValueError, match=r"all 30 labels are missing.*cv=LabeledKFold"):
        labeled_scorer("accuracy")(CLF, X, np.full(N, -1))


def test_no_labels_at_all():
    with pytest.raises(ValueError, match="requires y to be passed"):
        labeled_scorer("accuracy")(CLF, X)


def test_lengths_that_differ():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        labeled_scorer("accuracy")(CLF, X, CODES[1:])


@pytest.mark.parametrize(
    ("scoring", "message"),
    [
        ("acuracy", "acuracy"),
        (accuracy_score, "make_scorer"),
        (["accuracy", make_scorer(accuracy_score)], "Pass a dict of scorers"),
        ([None], "Pass a dict"),
        (3, "scoring"),
    ],
    ids=["typo", "metric", "object in list", "None in list", "number"],
)
def test_bad_scoring(scoring, message):
    with pytest.raises(ValueError, match=message):
        labeled_scorer(scoring)


class Constant(RegressorMixin, BaseEstimator):
    def predict(self, X):
        return np.zeros(len(X))


def test_errors_of_the_metric_are_its_own():
    with pytest.raises((AttributeError, ValueError), match="predict_proba"):
        labeled_scorer("neg_log_loss")(Constant(), X, CODES)
