"""A sequential audit: decide between two fitted classifiers with as few new labels as possible."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from neverworse._files import write_whole
from neverworse._typing import AnyArray, Indices, Matrix
from neverworse._words import count, number, printed
from neverworse.estimators import predicted_codes, scores_of, shared_classes
from neverworse.evidence.candidates import BASELINE, check_classifier, check_names, moved
from neverworse.evidence.comparisons import (
    NOT_WORSE,
    UNDECIDED,
    WORSE,
    BrierComparison,
    Comparison,
    ErrorComparison,
    random_order,
)

FORMAT = "neverworse sequential audit"
VERSION = 1
_LOSSES = {"error": "error rate", "brier": "Brier score"}


class SequentialAudit:
    r"""Exact comparison of fitted classifiers by labels that are requested one after another.

    The audit draws the rows to label at random. After any number of answers, `verdict_` and
    `interval_` hold with probability `level`: you may look after every label, and stop at any time.
    Nothing is assumed about the classifiers; the statement is about the given unlabeled rows. A
    refitted model has to be audited again. For the statements of several rounds to hold
    simultaneously, use ``level = 1 - delta / 2**i`` in the i-th.

    Parameters
    ----------
    baseline : fitted classifier
    candidate : fitted classifier, or list of (str, fitted classifier)
        What might replace it. Statements about several candidates hold simultaneously.
    X_unlabeled : array-like, sparse matrix, data frame or anything that the classifiers accept
        The rows that the audit is about, without labeled rows that the classifiers were fitted to.
    loss : {"error", "brier"}, default="error"
        "error": the error rate; only rows with different predicted classes need labels. "brier":
        the Brier score of the probabilities, which allows steps between baseline and candidate.
    level : float, default=0.95
        Probability of the statements, between 0 and 1.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Attributes
    ----------
    verdict_ : {"candidate is not worse", "candidate is worse", "undecided"}
        With several candidates: "not worse" if one of them is not worse, "worse" if all are.
    interval_ : tuple of float
        Bounds of the loss of the candidate minus that of the baseline.
    step_ : float
        How far the baseline may be moved towards the candidate.
    model_ : classifier
        The baseline moved by that step: the baseline itself if it is 0, the candidate if it is 1.
    expected_labels_ : int
        Rough forecast of how many more labels a verdict takes.
    candidate_ : str
        The candidate that these attributes describe: the one with the best verdict and then the
        smallest upper bound of its loss.
    results_ : dict of str to object
        The same for every candidate by name ("candidate" if there is only one): `verdict`,
        `interval`, `step` and `expected_labels`; also `n_differing`, the number of rows on which
        the two differ (only their labels matter), and `n_counted`, the number of draws whose label
        has been counted (with the Brier score, a row may be drawn repeatedly).
    n_labels_ : int
        The number of labels so far.
    classes_ : array of shape (n_classes,)

    See Also
    --------
    SafeStackingClassifier : Uses the labels at hand.
    suggest_labels : Rows to label for training.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.tree import DecisionTreeClassifier
    >>> from neverworse import SequentialAudit
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 2))
    >>> truth = X[:, 0] * X[:, 1] > 0
    >>> baseline = LogisticRegression().fit(X[:40], truth[:40])
    >>> candidate = DecisionTreeClassifier(random_state=0).fit(X[:40], truth[:40])
    >>> audit = SequentialAudit(baseline, candidate, X[40:], random_state=0)
    >>> while audit.verdict_ == "undecided":
    ...     rows = audit.next(1)
    ...     audit.record(rows, truth[40:][rows])
    >>> audit.verdict_, audit.n_labels_
    ('candidate is not worse', 25)
    """

    def __init__(
        self,
        baseline: Any,
        candidate: Any,
        X_unlabeled: Any,
        *,
        loss: str = "error",
        level: float = 0.95,
        random_state: Any = None,
    ) -> None:
        if not isinstance(level, (int, float)) or not 0.0 < level < 1.0:
            raise ValueError(f"level={level!r} must be a probability between 0 and 1.")
        if loss not in _LOSSES:
            raise ValueError(f"loss={loss!r} is unknown. Pass 'error' or 'brier'.")
        several = isinstance(candidate, (list, tuple))
        self._named = check_names(candidate) if several else [("candidate", candidate)]
        self._baseline, self._X, self.loss, self.level = baseline, X_unlabeled, loss, level
        models = [*self._named, (BASELINE, baseline)]
        for name, model in models:
            if hasattr(model, "fit"):
                check_is_fitted(model)
            if not (hasattr(model, "predict") and hasattr(model, "classes_")):
                raise TypeError(
                    f"{name!r} is a {type(model).__name__}, not a fitted classifier. Pass one, or "
                    "several candidates as a list of (name, classifier) tuples; those of a dict "
                    "are list(candidates.items())."
                )
            if loss == "brier":
                check_classifier(f"The classifier {name!r}", model)
        self.classes_ = shared_classes([(f"classifier {name!r}", model) for name, model in models])
        self._responses = [self._response(name, model) for name, model in models]
        self._n_rows = len(self._responses[0])
        if not self._n_rows:
            raise ValueError("X_unlabeled has no rows, but an audit asks for labels of some.")
        self._seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        self._asked: dict[int, None] = {}  # rows, in the order in which they were asked for
        self._labels: dict[int, int] = {}  # codes of their labels
        self._count_all()

    def _response(self, name: str, model: Any) -> AnyArray:
        """Return codes of predicted classes, or probabilities with a column for each class."""
        if self.loss == "error":
            return predicted_codes(name, model.predict(self._X), self.classes_)
        found: Matrix = np.asarray(model.predict_proba(self._X), dtype=np.float64)
        found = found[:, np.argsort(model.classes_, kind="stable")]
        every = np.ones(len(found), bool)
        scores_of(name, found, self._X, "predict_proba", self.classes_, every)  # checks them
        return found

    def _count_all(self) -> None:
        """Start again, and count all labels."""
        delta = (1.0 - self.level) / len(self._named)
        *others, base = self._responses
        self.results_: dict[str, Comparison] = {}
        order = random_order(self._seed, self._n_rows) if self.loss == "error" else []
        for k, ((name, _), theirs) in enumerate(zip(self._named, others, strict=True)):
            shared = base, theirs, delta, self._asked
            if self.loss == "error":
                self.results_[name] = ErrorComparison(*shared, len(self.classes_), order)
            else:
                self.results_[name] = BrierComparison(*shared, f"{self._seed} {k}")
        self._count()

    def _count(self) -> None:
        """Count labels that have come in, and describe the best candidate."""

        def rank(name: str) -> tuple[int, float]:
            result = self.results_[name]
            return [NOT_WORSE, UNDECIDED, WORSE].index(result.verdict), result.interval[1]

        for comparison in self.results_.values():
            comparison.count(self._labels)
        self.n_labels_ = len(self._labels)
        self.candidate_ = min(self.results_, key=rank)
        best = self.results_[self.candidate_]
        self.verdict_, self.interval_, self.step_ = best.verdict, best.interval, best.step

    def next(self, n: int = 1) -> Indices:
        """Return rows to label.

        Parameters
        ----------
        n : int, default=1
            Number of rows; fewer are returned if no more labels matter.

        Returns
        -------
        rows : array of int
            Positions in `X_unlabeled`, first of rows that were requested before and have no label.
        """
        if n < 1 or n != int(n):
            raise ValueError(f"n={n!r} must be an integer, at least 1.")
        open_rows = [row for row in self._asked if row not in self._labels][:n]
        undecided = [name for name, c in self.results_.items() if c.verdict == UNDECIDED]
        undecided = undecided or list(self.results_)  # more labels narrow the intervals
        while undecided and len(open_rows) < n:
            for name in list(undecided):
                row = self.results_[name].draw_new()
                if row is None:
                    undecided.remove(name)
                elif len(open_rows) < n:
                    self._asked[row] = None
                    open_rows.append(row)
        return np.array(open_rows, dtype=np.intp)

    def record(self, rows: Any, labels: Any) -> None:
        """Record labels.

        They count in the order of the draws: a label takes effect once all rows drawn before it
        have one. Recording the same label again changes nothing.

        Parameters
        ----------
        rows : int or array-like of int
            Rows that `next` returned.
        labels : scalar or array-like
            The class of each row.
        """
        rows, labels = (np.atleast_1d(np.asarray(given)) for given in (rows, labels))
        if rows.shape != labels.shape or rows.ndim != 1:
            raise ValueError(f"There are {rows.size} rows, but {labels.size} labels.")
        classes = self.classes_.tolist()
        answers: dict[int, int] = {}
        for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
            if row not in self._asked:
                raise ValueError(
                    f"Row {row} was not asked for. Labels of rows that are not drawn at random "
                    "would void the guarantee. Label the rows that next() returns."
                )
            if label not in classes:
                raise ValueError(
                    f"Row {row} has the label {label!r}, which is none of the classes of the "
                    f"classifiers: {', '.join(map(repr, classes))}."
                )
            code = classes.index(label)
            known = answers.setdefault(row, self._labels.get(row, code))
            if known != code:
                raise ValueError(
                    f"Row {row} has the label {label!r}, but was given {classes[known]!r} before. "
                    "To correct that, call withdraw() first."
                )
        self._labels |= answers
        self._count()

    def withdraw(self, rows: Any) -> None:
        """Withdraw mistaken labels; they will be requested again.

        Parameters
        ----------
        rows : int or array-like of int
            Rows whose labels were recorded.
        """
        withdrawn = np.atleast_1d(np.asarray(rows)).tolist()
        for row in withdrawn:
            if row not in self._labels:
                raise ValueError(f"Row {row} has no label that could be withdrawn.")
        for row in withdrawn:
            self._labels.pop(row, None)
        self._count_all()

    @property
    def model_(self) -> Any:
        name, step = self.candidate_, self.step_
        model = dict(self._named)[name]
        if step == 1.0:
            return model
        return moved(self._baseline, [(name, model)], np.array([step]), "predict_proba")

    @property
    def expected_labels_(self) -> int:
        return self.results_[self.candidate_].expected_labels

    def summary(self) -> str:
        """Return the state of the audit as a paragraph."""
        loss, (low, high) = _LOSSES[self.loss], self.interval_
        who = "the candidate" if len(self._named) == 1 else f"the candidate {self.candidate_!r}"
        higher = f"higher than that of the baseline on these {count(self._n_rows, 'row')}"
        likely = f"with probability {self.level:.3g}, the {loss} of {who} is"
        labels = count(self.n_labels_, "label")
        statement = {
            NOT_WORSE: f"Not worse: {likely} not {higher}.",
            WORSE: f"Worse: {likely} {higher}.",
            UNDECIDED: f"Undecided after {labels}: the {loss} of {who} may be {higher}, or not. "
            f"About {self.expected_labels_:,} more labels are likely to decide.",
        }[self.verdict_]
        return printed(
            f"{statement} A two-sided interval of the same probability for the difference reaches "
            f"from {number(low)} to {number(high)}. The two differ on "
            f"{count(self.results_[self.candidate_].n_differing, 'row')}; {labels} so far."
        )

    @cached_property
    def _digest(self) -> str:
        return digest(self._X)

    def state(self) -> dict[str, Any]:
        """Return the state without models and rows, as a dict that JSON can store."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "loss": self.loss,
            "level": self.level,
            "seed": self._seed,
            "classes": self.classes_.tolist(),
            "rows": self._digest,
            "comparisons": {name: c.numbers() for name, c in self.results_.items()},
            "asked": list(self._asked),
            "labels": [[row, code] for row, code in self._labels.items()],
        }

    def save(self, path: Any) -> None:
        """Write the state to a JSON file, atomically: a crash leaves the old one or the new.

        Parameters
        ----------
        path : str or path
            The file, which `load` reads.
        """
        text = json.dumps(self.state(), indent=1) + "\n"
        write_whole(Path(path), lambda file: file.write(text.encode()))

    @classmethod
    def load(cls, path: Any, baseline: Any, candidate: Any, X_unlabeled: Any) -> Self:
        """Continue a saved audit.

        Parameters
        ----------
        path : str or path
            The file that `save` wrote.
        baseline, candidate, X_unlabeled
            The same fitted classifiers and the same rows as before.

        Returns
        -------
        audit : SequentialAudit
        """
        state = json.loads(Path(path).read_text(encoding="utf-8"))
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise ValueError(f"{path} is not a saved audit.")
        if state["version"] != VERSION:
            raise ValueError(f"{path} has version {state['version']}; this reads {VERSION}.")
        audit = cls(baseline, candidate, X_unlabeled, loss=state["loss"], level=state["level"])
        audit._seed = state["seed"]
        audit._count_all()
        mine = audit.state()
        if mine["rows"] != state["rows"]:
            raise ValueError(
                "X_unlabeled is not the table that the audit began with: rows, columns or values "
                "have changed. Restore that table, or begin a new audit."
            )
        same = list(mine["comparisons"]) == list(state["comparisons"]) and all(
            np.allclose(numbers, state["comparisons"][name], rtol=1e-6, atol=1e-9)
            for name, numbers in mine["comparisons"].items()
        )
        if not same or mine["classes"] != state["classes"]:
            raise ValueError(
                "The classifiers are not those that the audit began with: names, classes or "
                "predictions have changed. A refitted model needs a new audit."
            )
        audit._asked |= dict.fromkeys(state["asked"])
        audit._labels |= dict(state["labels"])
        audit._count()
        return audit


def digest(X: Any) -> str:
    """Return a fingerprint of rows: their values, types and order."""
    found = hashlib.blake2b(digest_size=16)
    for part in _parts(X):
        values = np.asarray(part)
        found.update(f"{values.shape} {values.dtype.kind}".encode())
        if values.dtype.kind in "OUST":
            found.update("\x1f".join(map(str, values.ravel().tolist())).encode())
        else:
            found.update(values.tobytes())
    return found.hexdigest()


def _parts(X: Any) -> Iterable[Any]:
    if sparse.issparse(X):
        X = X.tocsr()
        return X.data, X.indices, X.indptr, X.shape
    if hasattr(X, "columns"):
        return list(map(str, X.columns)), *(X[column] for column in X.columns)
    if hasattr(X, "n_rows"):  # rows in files, whose values would have to be read again
        return ((X.n_rows, X.n_columns),)
    return (X,)
