"""The sequential audit: decisions, steps, intervals, state in files, and what it refuses."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import brier_score_loss, zero_one_loss
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from neverworse import SequentialAudit

UNDECIDED, NOT_WORSE, WORSE = "undecided", "candidate is not worse", "candidate is worse"


class Fixed(ClassifierMixin, BaseEstimator):
    """A fitted classifier that knows its answers; X has their positions."""

    def __init__(self, probabilities, classes=None):
        self.probabilities = np.asarray(probabilities, dtype=float)
        self.classes_ = np.arange(self.probabilities.shape[1]) if classes is None else classes

    def predict_proba(self, X):
        return self.probabilities[np.asarray(X)[:, 0].astype(int)]

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]


def opposed(m, k, n=None):
    """Two classifiers that differ on m of n rows, of which the candidate is right on k."""
    n = m if n is None else n
    truth = np.zeros(n, dtype=int)
    truth[:k] = 1  # where the two differ, the candidate says 1
    candidate = np.zeros(n, dtype=int)
    candidate[:m] = 1
    X = np.arange(n)[:, None]
    return Fixed(np.eye(2)[np.zeros(n, int)]), Fixed(np.eye(2)[candidate]), X, truth


def labeled_until_decided(audit, truth, most=10**6):
    while audit.verdict_ == UNDECIDED and audit.n_labels_ < most:
        rows = audit.next(1)
        audit.record(rows, truth[rows])
    return audit


def learned(loss, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(260, 2))
    truth = (X[:, 0] * X[:, 1] > 0).astype(int) + (n_classes == 3) * (X[:, 0] > 0.5)
    baseline = LogisticRegression().fit(X[:60], truth[:60])
    candidate = DecisionTreeClassifier(max_depth=4, random_state=0).fit(X[:60], truth[:60])
    audit = SequentialAudit(baseline, candidate, X[60:], loss=loss, random_state=seed)
    return audit, baseline, candidate, X[60:], truth[60:]


def loss_of(loss, model, X, truth):
    if loss == "error":
        return zero_one_loss(truth, model.predict(X))
    n_classes = len(model.classes_)
    errors = np.eye(n_classes)[truth] - model.predict_proba(X)
    return np.mean(np.sum(errors**2, axis=1)) / (2 if n_classes == 2 else 1)


@pytest.mark.parametrize("m", [25, 40])
def test_wrong_decisions_at_the_boundary_are_rare(m):
    """2,000 runs each, also with 300 rows: `python benchmarks/evidence.py audit`."""
    wrong = 0
    for seed in range(100):
        baseline, candidate, X, truth = opposed(m, -(-m // 2) - 1)
        audit = SequentialAudit(baseline, candidate, X, random_state=seed)
        wrong += labeled_until_decided(audit, truth).verdict_ == NOT_WORSE
    assert wrong <= 10  # more have a probability of 1 % at the limit of 5 %


@pytest.mark.parametrize("m", [40, 300])
def test_a_clearly_better_candidate_takes_few_labels(m):
    counts = []
    for seed in range(60):
        baseline, candidate, X, truth = opposed(m, round(0.8 * m))
        audit = labeled_until_decided(
            SequentialAudit(baseline, candidate, X, random_state=seed), truth
        )
        counts.append(audit.n_labels_)
    assert np.median(counts) <= 18


def test_all_labels_decide_for_certain():
    for m, k, verdict in [(1, 1, NOT_WORSE), (2, 1, NOT_WORSE), (3, 1, WORSE), (4, 2, NOT_WORSE)]:
        baseline, candidate, X, truth = opposed(m, k, n=10)
        audit = labeled_until_decided(
            SequentialAudit(baseline, candidate, X, random_state=0), truth
        )
        assert audit.verdict_ == verdict


def test_only_rows_that_get_different_classes_are_asked_for():
    baseline, candidate, X, _ = opposed(5, 3, n=50)
    audit = SequentialAudit(baseline, candidate, X, random_state=0)
    assert sorted(audit.next(50)) == [0, 1, 2, 3, 4]
    assert audit.results_["candidate"].n_differing == 5


def test_equal_predictions_need_no_label():
    baseline, _, X, _ = opposed(5, 3)
    for loss in ("error", "brier"):
        audit = SequentialAudit(baseline, baseline, X, loss=loss)
        assert (audit.verdict_, audit.interval_) == (NOT_WORSE, (0.0, 0.0))
        assert audit.expected_labels_ == 0
        assert len(audit.next(3)) == 0


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["error", "brier"])
def test_interval_shrinks_to_the_true_difference(loss, n_classes):
    audit, baseline, candidate, X, truth = learned(loss, n_classes)
    true = loss_of(loss, candidate, X, truth) - loss_of(loss, baseline, X, truth)
    width = np.inf
    while len(rows := audit.next(20)):
        audit.record(rows, truth[rows])
        low, high = audit.interval_
        assert low - 1e-12 <= true <= high + 1e-12
        assert high - low <= width + 1e-12
        width = high - low
    assert audit.interval_ == pytest.approx((true, true))
    assert audit.verdict_ == NOT_WORSE


def test_brier_score_is_that_of_scikit_learn():
    audit, baseline, candidate, X, truth = learned("brier")
    while len(rows := audit.next(200)):
        audit.record(rows, truth[rows])
    scores = [brier_score_loss(truth, m.predict_proba(X)[:, 1]) for m in (candidate, baseline)]
    assert audit.interval_[0] == pytest.approx(scores[0] - scores[1])


@pytest.mark.parametrize("n_classes", [2, 3])
def test_step_minimises_the_loss_once_all_labels_are_known(n_classes):
    audit, baseline, candidate, X, truth = learned("brier", n_classes)
    while len(rows := audit.next(200)):
        audit.record(rows, truth[rows])
    g, c = (m.predict_proba(X) for m in (baseline, candidate))
    grid = np.linspace(0, 1, 2001)
    target = np.eye(n_classes)[truth]
    losses = [np.sum((g + a * (c - g) - target) ** 2) for a in grid]
    assert audit.step_ == pytest.approx(grid[np.argmin(losses)], abs=1e-3)
    np.testing.assert_allclose(audit.model_.predict_proba(X), g + audit.step_ * (c - g), atol=1e-12)


def test_moved_model_is_not_worse_while_labels_come_in():
    for seed in range(10):
        audit, baseline, _, X, truth = learned("brier", seed=seed)
        for _ in range(5):
            rows = audit.next(10)
            audit.record(rows, truth[rows])
            assert loss_of("brier", audit.model_, X, truth) <= loss_of("brier", baseline, X, truth)


def test_model_is_baseline_or_candidate_for_errors():
    audit, baseline, candidate, _, truth = learned("error")
    assert audit.step_ == 0.0
    assert audit.model_ is baseline
    labeled_until_decided(audit, truth)
    assert audit.step_ == 1.0
    assert audit.model_ is candidate


def test_draws_of_the_brier_score_are_in_proportion_to_the_differences():
    n = 8
    shift = np.linspace(0.05, 0.4, n)
    X = np.arange(n)[:, None]
    baseline = Fixed(np.full((n, 2), 0.5))
    candidate = Fixed(np.column_stack([0.5 - shift, 0.5 + shift]))
    first = [
        SequentialAudit(baseline, candidate, X, loss="brier", random_state=seed).next(1)[0]
        for seed in range(2000)
    ]
    np.testing.assert_allclose(
        np.bincount(first, minlength=n) / 2000, shift / shift.sum(), atol=0.03
    )


def test_neither_right_counts_half_for_several_classes():
    """With three classes, rows where both are wrong change nothing in the difference."""
    n = 40
    X = np.arange(n)[:, None]
    baseline, candidate = (Fixed(np.eye(3)[np.full(n, k)]) for k in (0, 1))
    audit = SequentialAudit(baseline, candidate, X, random_state=0)
    rows = audit.next(n)
    audit.record(rows, np.full(n, 2))
    assert audit.interval_ == (0.0, 0.0)
    assert audit.verdict_ == NOT_WORSE


def test_several_candidates_need_more_evidence_and_share_labels():
    m = 100
    baseline, candidate, X, truth = opposed(m, 85)
    alone = labeled_until_decided(SequentialAudit(baseline, candidate, X, random_state=3), truth)
    twins = [(name, candidate) for name in "abcd"]
    together = SequentialAudit(baseline, twins, X, random_state=3)
    labeled_until_decided(together, truth)
    assert alone.n_labels_ < together.n_labels_ <= 3 * alone.n_labels_
    results = together.results_
    assert {result.n_counted for result in results.values()} == {together.n_labels_}


def test_the_best_of_several_candidates_is_named():
    n = 120
    X = np.arange(n)[:, None]
    truth = np.zeros(n, int)
    baseline = Fixed(np.eye(2)[(np.arange(n) < 60).astype(int)])
    right, wrong = Fixed(np.eye(2)[truth]), Fixed(np.eye(2)[np.ones(n, int)])
    audit = SequentialAudit(baseline, [("wrong", wrong), ("right", right)], X, random_state=0)
    labeled_until_decided(audit, truth)
    assert audit.candidate_ == "right"
    assert audit.model_ is right
    assert audit.results_["wrong"].verdict != NOT_WORSE


def test_answers_count_in_the_order_of_the_draws():
    """Otherwise people who skip hard rows would decide which ones count."""
    baseline, candidate, X, truth = opposed(30, 25)
    audit = SequentialAudit(baseline, candidate, X, random_state=0)
    rows = audit.next(10)
    audit.record(rows[1:], truth[rows[1:]])
    assert audit.results_["candidate"].n_counted == 0
    np.testing.assert_array_equal(audit.next(1), rows[:1])  # what is open is asked for again
    audit.record(rows[0], truth[rows[0]])
    assert audit.results_["candidate"].n_counted == 10


def test_the_same_answer_twice_counts_once():
    baseline, candidate, X, truth = opposed(30, 25)
    audit = SequentialAudit(baseline, candidate, X, random_state=0)
    rows = audit.next(4)
    audit.record(rows, truth[rows])
    before = audit.interval_
    audit.record(rows, truth[rows])
    assert (audit.interval_, audit.n_labels_) == (before, 4)


def test_withdrawn_answers_leave_no_trace():
    audit, _, _, _, truth = learned("error")
    rows = audit.next(6)
    audit.record(rows[:5], truth[rows[:5]])
    before = audit.state(), audit.interval_
    audit.record(rows[5], 1 - truth[rows[5]])
    audit.withdraw(rows[5])
    assert (audit.state(), audit.interval_) == before
    audit.record(rows[5], truth[rows[5]])
    with pytest.raises(ValueError, match="has no label"):
        audit.withdraw([rows[0], next(k for k in range(200) if k not in rows)])
    assert audit.n_labels_ == 6


@pytest.mark.parametrize("loss", ["error", "brier"])
def test_an_audit_goes_on_from_its_file_as_if_never_interrupted(loss, tmp_path):
    audit, baseline, candidate, X, truth = learned(loss)
    for _ in range(4):
        rows = audit.next(3)
        audit.record(rows, truth[rows])
    open_rows = audit.next(2)
    audit.save(tmp_path / "audit.json")
    again = SequentialAudit.load(tmp_path / "audit.json", baseline, candidate, X)
    assert again.state() == json.loads((tmp_path / "audit.json").read_text())
    np.testing.assert_array_equal(again.next(2), open_rows)
    for _ in range(5):
        rows = audit.next(3)
        np.testing.assert_array_equal(again.next(3), rows)
        for each in (audit, again):
            each.record(rows, truth[rows])
        assert again.interval_ == audit.interval_
        assert again.verdict_ == audit.verdict_


def test_a_changed_table_is_refused(tmp_path):
    audit, baseline, candidate, X, _ = learned("error")
    audit.save(tmp_path / "audit.json")
    changed = X.copy()
    changed[0, 0] += 1e-9
    for other in (changed, X[:-1], X[::-1]):
        with pytest.raises(ValueError, match="not the table"):
            SequentialAudit.load(tmp_path / "audit.json", baseline, candidate, other)


@pytest.mark.parametrize("loss", ["error", "brier"])
def test_a_refitted_model_is_refused(loss, tmp_path):
    audit, baseline, candidate, X, truth = learned(loss)
    audit.save(tmp_path / "audit.json")
    refitted = DecisionTreeClassifier(max_depth=2).fit(X, truth)
    with pytest.raises(ValueError, match="needs a new audit"):
        SequentialAudit.load(tmp_path / "audit.json", baseline, refitted, X)
    with pytest.raises(ValueError, match="names, classes or predictions"):
        SequentialAudit.load(tmp_path / "audit.json", baseline, [("tree", candidate)], X)


def test_files_that_hold_no_audit_are_refused(tmp_path):
    _, *models, X, _ = learned("error")
    for text, words in [("{", "line 1"), ("[1]", "not a saved"), ("{}", "not a saved")]:
        (tmp_path / "audit.json").write_text(text)
        with pytest.raises(ValueError, match=words):
            SequentialAudit.load(tmp_path / "audit.json", *models, X)


@pytest.mark.parametrize("make", [sparse.csr_array, pd.DataFrame, np.asarray])
def test_tables_of_all_kinds_are_recognised(make, tmp_path):
    rng = np.random.default_rng(0)
    X, truth = rng.normal(size=(50, 3)), np.arange(50) % 2
    models = [LogisticRegression(C=c).fit(make(X), truth) for c in (1.0, 1e-4)]
    SequentialAudit(*models, make(X)).save(tmp_path / "audit.json")
    SequentialAudit.load(tmp_path / "audit.json", *models, make(X))
    with pytest.raises(ValueError, match="not the table"):
        SequentialAudit.load(tmp_path / "audit.json", *models, make(X + 1))


def test_classes_may_be_strings():
    audit, *_ = learned("error")
    baseline, candidate, X, truth = opposed(20, 18)
    names = np.array(["no", "yes"])
    for model in (baseline, candidate):
        model.classes_ = names
    audit = labeled_until_decided(SequentialAudit(baseline, candidate, X), names[truth])
    assert audit.verdict_ == NOT_WORSE


def test_forecast_is_near_what_it_takes():
    baseline, candidate, X, truth = opposed(200, 160)
    audit = SequentialAudit(baseline, candidate, X, random_state=1)
    assert 5 <= audit.expected_labels_ <= 60
    rows = audit.next(8)
    audit.record(rows, truth[rows])
    expected = audit.expected_labels_
    labeled_until_decided(audit, truth)
    assert 0 < expected <= 100
    assert audit.expected_labels_ == 0


def test_summary_says_what_is_known():
    audit, _, _, _, truth = learned("brier")
    assert "Undecided" in audit.summary()
    assert "more labels are likely to decide" in audit.summary()
    audit.summary().encode("cp1252")  # Windows, which has no minus sign
    row = audit.next()
    audit.record(row, truth[row])
    assert "Undecided after 1 label: the Brier score" in audit.summary()
    labeled_until_decided(audit, truth)
    assert audit.summary().startswith("Not worse: with probability 0.95, the Brier score")


def test_rows_that_were_not_asked_for_are_refused():
    baseline, candidate, X, truth = opposed(30, 25)
    audit = SequentialAudit(baseline, candidate, X, random_state=0)
    asked = audit.next(2)
    other = next(row for row in range(30) if row not in asked)
    with pytest.raises(ValueError, match="would void the guarantee"):
        audit.record([asked[0], other], truth[[asked[0], other]])
    assert audit.n_labels_ == 0  # all or nothing


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda rows: (rows, [7, 0]), "none of the classes"),
        (lambda rows: (rows, [0]), "There are 2 rows, but 1 labels"),
        (lambda rows: ([rows[0], rows[0]], [0, 1]), "withdraw"),
        (lambda rows: ([0.5, 1.0], [0, 1]), "Row 0.5 was not asked for"),
    ],
)
def test_bad_answers_are_refused(answer, words):
    baseline, candidate, X, _ = opposed(30, 25)
    audit = SequentialAudit(baseline, candidate, X, random_state=0)
    with pytest.raises(ValueError, match=words):
        audit.record(*answer(audit.next(2)))


def test_contradicting_answers_are_refused():
    baseline, candidate, X, _ = opposed(30, 25)
    audit = SequentialAudit(baseline, candidate, X, random_state=0)
    row = audit.next(1)
    audit.record(row, 1)
    with pytest.raises(ValueError, match="was given 1 before"):
        audit.record(row, 0)


def test_what_cannot_be_audited_is_refused():
    baseline, candidate, X, truth = opposed(30, 25)
    three = Fixed(np.eye(3)[truth])
    svm = LinearSVC().fit(X, truth)
    cases = [
        ((baseline, candidate, X, {"level": 1.0}), ValueError, "between 0 and 1"),
        ((baseline, candidate, X, {"loss": "log"}), ValueError, "loss='log' is unknown"),
        ((baseline, candidate, X[:0], {}), ValueError, "no rows"),
        ((baseline, three, X, {}), ValueError, "same classes"),
        ((baseline, [], X, {}), ValueError, "list of"),
        ((baseline, [("a", candidate), ("a", candidate)], X, {}), ValueError, "unique names"),
        ((baseline, svm, X, {"loss": "brier"}), ValueError, "CalibratedClassifierCV"),
        ((baseline, LogisticRegression(), X, {}), NotFittedError, "not fitted"),
        ((baseline, {"a": candidate}, X, {}), TypeError, r"is a dict.*list\(candidates.items"),
        ((baseline, [("a", 3)], X, {}), TypeError, "'a' is a int, not a fitted classifier"),
        ((None, candidate, X, {"loss": "brier"}), TypeError, "'baseline' is a NoneType"),
        ((baseline, LinearRegression().fit(X, truth), X, {}), TypeError, "not a fitted classifier"),
    ]
    for (base, other, rows, settings), error, words in cases:
        with pytest.raises(error, match=words):
            SequentialAudit(base, other, rows, **settings)
    for n in (0, 2.5):
        with pytest.raises(ValueError, match="an integer, at least 1"):
            SequentialAudit(baseline, candidate, X).next(n)
