"""A sequential audit: decide between two fitted classifiers with as few new labels as possible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from neverworse._files import write_whole
from neverworse._typing import Indices
from neverworse._words import count, number, printed
from neverworse.evidence.candidates import BASELINE, moved, responses
from neverworse.evidence.comparisons import (
    MOST_REPEATS,
    NOT_WORSE,
    UNDECIDED,
    WORSE,
    AuditResult,
    BrierComparison,
    Comparison,
    ErrorComparison,
    checked_answers,
    digest,
    named_candidates,
    shared_classes,
)
from neverworse.evidence.e_processes import random_order

FORMAT = "neverworse sequential audit"
VERSION = 1
_LOSSES = {"error": "error rate", "brier": "Brier score"}


class SequentialAudit:
    r"""Exact comparison of fitted classifiers by labels that are asked for one after another.

    The rows to label are drawn at random, by the audit. After any number of answers, `verdict_`
    and `interval_` hold with probability `level`: one may look after every label, and stop when
    one likes. Nothing is assumed about the labels that the classifiers were fitted to, nor about
    the classifiers; the statement is about the unlabeled rows at hand.

    Parameters
    ----------
    baseline : fitted classifier
    candidate : fitted classifier, or list of (str, fitted classifier)
        What might replace it. All statements about several hold together.
    X_unlabeled : array-like, sparse matrix, data frame or anything that the classifiers accept
        The rows that the audit is about, without those that the classifiers were fitted to.
    loss : {"error", "brier"}, default="error"
        "error": error rates. Only rows that get different classes are asked for. "brier": Brier
        scores, of probabilities, and steps in between.
    level : float, default=0.95
        Probability of the statements, between 0 and 1.
    random_state : int, RandomState instance or None, default=None
        Of the draws.

    Attributes
    ----------
    verdict_ : {"candidate is not worse", "candidate is worse", "undecided"}
        Of several candidates: not worse if one of them is, worse if all of them are.
    interval_ : tuple of float
        Bounds of the loss of the candidate less that of the baseline.
    step_ : float
        How far the baseline may be moved towards the candidate.
    model_ : classifier
        The baseline, moved by that step. Where the step is 0, it is the baseline; where it is 1,
        the candidate.
    expected_labels_ : int
        How many more labels a verdict is likely to take.
    candidate_ : str
        The candidate that these are about: the one with the smallest upper bound of its loss.
    results_ : dict of str to AuditResult
        The same for every candidate by name ("candidate" if there is only one).
    n_labels_ : int
        The number of labels so far.
    classes_ : array of shape (n_classes,)

    See Also
    --------
    SafeStackingClassifier : Uses the labels that are there.
    suggest_labels : Labels for training, not for deciding.

    Notes
    -----
    A refitted model has no verdict until it is audited again. For all of several rounds to hold
    together, let the i-th have ``level = 1 - delta / 2**i``.

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
            raise ValueError(f"level={level!r} has to be a probability between 0 and 1.")
        if loss not in _LOSSES:
            raise ValueError(f"loss={loss!r} is unknown. Pass 'error' or 'brier'.")
        self._named = named_candidates(candidate)
        self._baseline, self._X, self.loss, self.level = baseline, X_unlabeled, loss, level
        models = [(BASELINE, baseline), *self._named]
        self.classes_ = shared_classes(models, loss)
        self._responses = [
            responses(name, model, X_unlabeled, loss, self.classes_) for name, model in models
        ]
        self._n_rows = len(self._responses[0])
        if not self._n_rows:
            raise ValueError(
                "X_unlabeled has no rows: an audit is about unlabeled rows, and asks for labels of "
                "some of them."
            )
        self._seed = int(check_random_state(random_state).randint(np.iinfo(np.int32).max))
        self._asked: dict[int, int] = {}  # rows, in the order in which they were asked for
        self._labels: dict[int, int] = {}  # codes of their labels
        self._rows_digest: str | None = None
        self._start()

    def _start(self) -> None:
        """Begin to count: afterwards, no label has been counted."""
        delta = (1.0 - self.level) / len(self._named)
        base, *others = self._responses
        self._comparisons: dict[str, Comparison] = {}
        order = random_order(self._seed, self._n_rows) if self.loss == "error" else []
        for k, ((name, _), theirs) in enumerate(zip(self._named, others, strict=True)):
            if self.loss == "error":
                found: Comparison = ErrorComparison(base, theirs, len(self.classes_), order, delta)
            else:
                found = BrierComparison(base, theirs, f"{self._seed} {k}", delta)
            self._comparisons[name] = found
        self._cursors = dict.fromkeys(self._comparisons, 0)

    def next(self, n: int = 1) -> Indices:
        """Return rows to label: first those that were asked for before and have no answer yet.

        Parameters
        ----------
        n : int, default=1

        Returns
        -------
        rows : array of int
            Positions in `X_unlabeled`. Fewer than `n` if no more labels matter.
        """
        if n < 1 or n != int(n):
            raise ValueError(f"n={n!r} has to be a whole number, at least 1.")
        open_rows = [row for row in self._asked if row not in self._labels][:n]
        undecided = [name for name, c in self._comparisons.items() if c.verdict == UNDECIDED]
        undecided = undecided or list(self._comparisons)  # more labels narrow the intervals
        while undecided and len(open_rows) < n:
            for name in list(undecided):
                row = self._draw_new(name)
                if row is None:
                    undecided.remove(name)
                elif len(open_rows) < n:
                    self._asked[row] = len(self._asked)
                    open_rows.append(row)
        return np.array(open_rows, dtype=np.intp)

    def _draw_new(self, name: str) -> int | None:
        """Return the next row in the draws of a candidate that has not been asked for."""
        comparison = self._comparisons[name]
        if not comparison.n_open(self._asked):
            return None
        start = self._cursors[name]
        for position in range(start, start + MOST_REPEATS):
            row = comparison.draw(position)
            if row is None:
                return None
            if row not in self._asked:
                self._cursors[name] = position
                return row
        return None

    def record(self, rows: Any, labels: Any) -> None:
        """Take answers: labels of rows that were asked for.

        Labels count in the order of the draws: an answer has its effect when all rows drawn before
        have one too. The same answer again changes nothing.

        Parameters
        ----------
        rows : int or array-like of int
            Positions in `X_unlabeled`, as `next` returned them.
        labels : label or array-like
            Their classes.
        """
        rows, labels = (np.atleast_1d(np.asarray(given)) for given in (rows, labels))
        self._labels |= checked_answers(rows, labels, self.classes_, self._asked, self._labels)
        for comparison in self._comparisons.values():
            comparison.count(self._labels)

    def withdraw(self, rows: Any) -> None:
        """Take answers back that were mistaken; the rows are asked for again.

        Parameters
        ----------
        rows : int or array-like of int
        """
        withdrawn = np.atleast_1d(np.asarray(rows)).tolist()
        for row in withdrawn:
            if row not in self._labels:
                raise ValueError(f"Row {row} has no answer that could be withdrawn.")
        for row in withdrawn:
            self._labels.pop(row, None)
        self._start()
        for comparison in self._comparisons.values():
            comparison.count(self._labels)

    @property
    def results_(self) -> dict[str, AuditResult]:
        """What is known about every candidate, by name."""
        return {name: each.result(self._asked) for name, each in self._comparisons.items()}

    @property
    def candidate_(self) -> str:
        """The candidate with the smallest upper bound of its loss; one that is not worse first."""
        return min(
            self._comparisons,
            key=lambda name: (
                [NOT_WORSE, UNDECIDED, WORSE].index(self._comparisons[name].verdict),
                self._comparisons[name].interval[1],
            ),
        )

    @property
    def verdict_(self) -> str:
        """The verdict at this moment."""
        return self._comparisons[self.candidate_].verdict

    @property
    def interval_(self) -> tuple[float, float]:
        """Bounds of the loss of `candidate_` less that of the baseline."""
        return self._comparisons[self.candidate_].interval

    @property
    def step_(self) -> float:
        """How far the baseline may be moved towards `candidate_`."""
        return self._comparisons[self.candidate_].step

    @property
    def model_(self) -> Any:
        """The baseline, moved by the step."""
        name, step = self.candidate_, self.step_
        model = dict(self._named)[name]
        if step == 1.0:
            return model
        return moved(self._baseline, [(name, model)], np.array([step]), "predict_proba")

    @property
    def expected_labels_(self) -> int:
        """How many more labels a verdict is likely to take."""
        return self._comparisons[self.candidate_].forecast(self._asked)

    @property
    def n_labels_(self) -> int:
        """The number of labels so far."""
        return len(self._labels)

    def summary(self) -> str:
        """Return the state of the audit as a paragraph for people."""
        name, (low, high) = self.candidate_, self.interval_
        result, loss = self._comparisons[name], _LOSSES[self.loss]
        n, m = self._n_rows, result.n_differing
        who = "the candidate" if len(self._named) == 1 else f"the candidate {name!r}"
        higher = f"higher than that of the baseline on these {count(n, 'row')}"
        likely = f"with probability {self.level:.3g}, the {loss} of {who} is"
        told = {
            NOT_WORSE: f"Not worse: {likely} not {higher}.",
            WORSE: f"Worse: {likely} {higher}.",
            UNDECIDED: f"Undecided: after {count(self.n_labels_, 'label')}, it is open whether the "
            f"{loss} of {who} is {higher}.",
        }[result.verdict]
        text = (
            f"{told} A two-sided interval of the same probability for the difference reaches from "
            f"{number(low)} to {number(high)}. The two differ on {count(m, 'row')}, of which "
            f"{self.n_labels_:,} {'has' if self.n_labels_ == 1 else 'have'} been labeled."
        )
        if result.verdict == UNDECIDED:
            text += f" About {self.expected_labels_:,} more are likely to decide."
        return printed(text)

    def state(self) -> dict[str, Any]:
        """Return everything but models and rows, to be written as JSON.

        Returns
        -------
        state : dict
        """
        if self._rows_digest is None:
            self._rows_digest = digest(self._X)
        return {
            "format": FORMAT,
            "version": VERSION,
            "loss": self.loss,
            "level": self.level,
            "seed": self._seed,
            "classes": self.classes_.tolist(),
            "rows": self._rows_digest,
            "comparisons": {name: c.numbers() for name, c in self._comparisons.items()},
            "asked": list(self._asked),
            "labels": [[row, code] for row, code in self._labels.items()],
        }

    def save(self, path: Any) -> None:
        """Write the state of the audit to a JSON file.

        Parameters
        ----------
        path : str or path
            Written as a whole: a crash leaves the file before, or the new one.
        """
        text = json.dumps(self.state(), indent=1) + "\n"
        write_whole(Path(path), lambda file: file.write(text.encode()))

    @classmethod
    def load(cls, path: Any, baseline: Any, candidate: Any, X_unlabeled: Any) -> Self:
        """Go on with an audit that was saved.

        Parameters
        ----------
        path : str or path
        baseline, candidate, X_unlabeled
            As before: the same fitted classifiers and the same rows, in the same order.

        Returns
        -------
        audit : SequentialAudit
        """
        try:
            state = json.loads(Path(path).read_text(encoding="utf-8"))
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is no JSON: {error}.") from None
        if not isinstance(state, dict) or state.get("format") != FORMAT:
            raise ValueError(f"{path} is no saved audit.")
        if state["version"] != VERSION:
            raise ValueError(f"{path} has version {state['version']}; this reads {VERSION}.")
        audit = cls(baseline, candidate, X_unlabeled, loss=state["loss"], level=state["level"])
        audit._resume(state)
        return audit

    def _resume(self, state: dict[str, Any]) -> None:
        self._seed = state["seed"]
        self._start()
        mine = self.state()
        if mine["rows"] != state["rows"]:
            raise ValueError(
                "X_unlabeled is not the table that the audit began with: rows, columns or values "
                "have changed. Its labels belong to the rows of that table. Restore it, or begin a "
                "new audit."
            )
        same = list(mine["comparisons"]) == list(state["comparisons"]) and all(
            np.allclose(numbers, state["comparisons"][name], rtol=1e-6, atol=1e-9)
            for name, numbers in mine["comparisons"].items()
        )
        if not same or mine["classes"] != state["classes"]:
            raise ValueError(
                "The classifiers are not those that the audit began with: names, classes or "
                "predictions have changed. A refitted model has no verdict until it is audited "
                "again: begin a new audit."
            )
        self._asked = {row: k for k, row in enumerate(state["asked"])}
        self._labels = dict(state["labels"])
        for comparison in self._comparisons.values():
            comparison.count(self._labels)
