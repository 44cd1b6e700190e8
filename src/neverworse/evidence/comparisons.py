"""Comparisons of two fitted classifiers on unlabeled rows, by labels of rows drawn at random.

Labels are fixed but unknown; only the order of the draws is random. Labels count in that order,
whenever they come in, so that it does not matter which rows are easy to label.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from neverworse._typing import AnyArray, Indices, Mask, Matrix
from neverworse.evidence.candidates import Named, check_classifier
from neverworse.evidence.e_processes import DrawnWithoutReplacement, DrawnWithReplacement, n_until

NOT_WORSE, WORSE, UNDECIDED = "candidate is not worse", "candidate is worse", "undecided"

# Consecutive draws of known rows after which the remaining rows are given up as too unlikely.
MOST_REPEATS = 100_000
# The number of draws that the prior expectation of a forecast counts as.
PRIOR_DRAWS = 10
# Differences of probabilities below this are rounding errors.
SAME = 1e-12


class AuditResult:
    """A candidate against the baseline: the state of their audit.

    In subclasses, `draw` returns a row by its position in the order of draws, `count` counts labels
    up to the first drawn row without one, and there are `interval`, `step` and `expected_labels`,
    which `SequentialAudit` describes.
    """

    draw: Callable[[int], int | None]
    _process: Any  # the evidence of the labels so far

    def __init__(self, differs: Mask, delta: float, asked: Collection[int]) -> None:
        self._differs, self._asked = differs, asked
        self.n_differing = int(np.count_nonzero(differs))
        self._log_threshold = math.log(1.0 / delta)
        self.verdict = UNDECIDED if self.n_differing else NOT_WORSE
        self._position = 0  # of the last draw that was new

    @property
    def n_counted(self) -> int:
        return self._process.n_drawn

    def _n_open(self) -> int:
        """Return the number of rows that differ and have not been asked for."""
        return self.n_differing - sum(bool(self._differs[row]) for row in self._asked)

    def draw_new(self) -> int | None:
        """Return the next drawn row that has not been asked for, if there is one."""
        if self._n_open():
            for position in range(self._position, self._position + MOST_REPEATS):
                row = self.draw(position)
                if row not in self._asked:
                    self._position = position
                    return row
        return None


class ErrorComparison(AuditResult):
    """Error rates, by rows that get different classes, drawn without replacement.

    A label shows that the candidate is right (1), that the baseline is right (0), or, with more
    than two classes, neither (½). The candidate has no more errors than the baseline exactly if
    these numbers add up to at least half the number of rows. Classifiers are given by the codes of
    their predicted classes; `order` is a random order of all rows.
    """

    def __init__(
        self,
        baseline: Indices,
        candidate: Indices,
        n_classes: int,
        order: Sequence[int],
        delta: float,
        asked: Collection[int] = (),
    ) -> None:
        super().__init__(baseline != candidate, delta, asked)
        self._baseline, self._candidate = baseline, candidate
        self._order = [row for row in order if self._differs[row]]
        m = self.n_differing
        unit = 1.0 if n_classes == 2 else 0.5
        self._process = DrawnWithoutReplacement(m, unit, self._log_threshold)
        # The largest sum with which the candidate is worse, and the smallest with which it is not.
        self._worse = math.ceil(m / 2.0 / unit - 1.0) * unit
        self._not_worse = self._worse + unit

    def draw(self, number: int) -> int | None:
        return self._order[number] if number < len(self._order) else None

    def count(self, labels: Mapping[int, int]) -> None:
        while (row := self.draw(self.n_counted)) is not None and row in labels:
            hits = labels[row] == self._candidate[row], labels[row] == self._baseline[row]
            self._process.observe(0.5 + 0.5 * hits[0] - 0.5 * hits[1])
            if self.verdict == UNDECIDED:
                if self._process.log_e(self._worse, above=True) >= self._log_threshold:
                    self.verdict = NOT_WORSE
                elif self._process.log_e(self._not_worse, above=False) >= self._log_threshold:
                    self.verdict = WORSE

    @property
    def interval(self) -> tuple[float, float]:
        m, n = self.n_differing, len(self._baseline)
        return (m - 2.0 * self._process.high) / n, (m - 2.0 * self._process.low) / n

    @property
    def step(self) -> float:
        return float(self.verdict == NOT_WORSE)

    @property
    def expected_labels(self) -> int:
        if self.verdict != UNDECIDED:
            return 0
        return self._process.forecast(self._worse, self._not_worse)

    def numbers(self) -> list[float]:
        """Return numbers that identify the comparison."""
        codes = np.stack([self._baseline, self._candidate])
        return [float(self.n_differing), *map(float, codes @ np.arange(1, codes.shape[1] + 1))]


class BrierComparison(AuditResult):
    r"""Brier scores, by rows drawn with probabilities in proportion to what their label can change.

    With probabilities g and c = g + t, moving by a changes the squared loss of a row with the
    class y by :math:`a^2 \lVert t \rVert^2 - 2a (t_y - t \cdot g)`. Only :math:`t_y` is unknown;
    it lies between the smallest and the largest entry of t. Drawn with probabilities in proportion
    to that range, with replacement, its position in the range is a number between 0 and 1 whose
    mean θ gives the sum over all rows: one unknown for every step a. Classifiers are given by their
    probabilities, with a column for each class.
    """

    def __init__(
        self, baseline: Matrix, candidate: Matrix, seed: str, delta: float, asked: Collection[int]
    ) -> None:
        t = candidate - baseline
        self._lowest = t.min(axis=1)
        ranges = t.max(axis=1) - self._lowest
        ranges[ranges < SAME] = 0.0
        super().__init__(ranges > 0.0, delta, asked)
        self._t, self._ranges = t, ranges
        # The Brier score of two classes is that of one column.
        self._scale = (0.5 if t.shape[1] == 2 else 1.0) / len(t)
        self._squares = float(np.sum(t**2))
        self._offset = float(np.sum(self._lowest) - np.sum(t * baseline))
        self._range = float(ranges.sum())
        self._rows = np.flatnonzero(ranges)
        self._edges = np.cumsum(ranges[self._rows])
        self._random = random.Random(seed)  # the same draws in every version of Python
        self._drawn: list[int] = []
        self._process = DrawnWithReplacement(self._log_threshold)
        self._known: dict[int, float] = {}  # of counted rows, their positions in the range

    def draw(self, number: int) -> int | None:
        if not self.n_differing:
            return None
        while number >= len(self._drawn):
            at = np.searchsorted(self._edges, self._random.random() * self._edges[-1], "right")
            self._drawn.append(int(self._rows[min(int(at), len(self._rows) - 1)]))
        return self._drawn[number]

    def count(self, labels: Mapping[int, int]) -> None:
        repeats = 0
        while repeats < MOST_REPEATS and len(self._known) < self.n_differing:
            row = self.draw(self.n_counted)
            if row is None or row not in labels:
                break
            repeats += 1
            if row not in self._known:
                repeats = 0
                self._process.update()
                low, whole = self._lowest[row], self._ranges[row]
                self._known[row] = float((self._t[row, labels[row]] - low) / whole)
            self._process.observe(self._known[row])
        self._process.update()
        if self.verdict == UNDECIDED:
            low, high = self.interval
            self.verdict = NOT_WORSE if high <= 0.0 else WORSE if low > 0.0 else UNDECIDED

    @property
    def interval(self) -> tuple[float, float]:
        low, high = self._bounds()
        return self._change(high), self._change(low)

    @property
    def step(self) -> float:
        if not self.n_differing:
            return 1.0
        gain = self._offset + self._range * self._bounds()[0]
        return float(np.clip(gain / self._squares, 0.0, 1.0))

    def _bounds(self) -> tuple[float, float]:
        """Return bounds of θ: those of the process, and what the labels so far make certain."""
        if not self.n_differing:
            return 0.0, 0.0
        rows = np.fromiter(self._known, np.intp)
        shares = self._ranges[rows] / self._range
        certain = float(shares @ np.fromiter(self._known.values(), np.float64))
        missing = 1.0 - float(shares.sum()) if len(rows) < self.n_differing else 0.0
        low = max(self._process.low, certain)
        return low, max(low, min(self._process.high, certain + max(missing, 0.0)))

    def _change(self, theta: float) -> float:
        """Return the change of the loss per row from the baseline to the candidate."""
        return self._scale * (self._squares - 2.0 * (self._offset + self._range * theta))

    @property
    def expected_labels(self) -> int:
        if self.verdict != UNDECIDED or not self._n_open():
            return 0
        process, boundary = self._process, (self._squares / 2.0 - self._offset) / self._range
        # The mean if the probabilities of the candidate, or those of the baseline, were right.
        side = 0.5 if process.total >= boundary * process.n_drawn else -0.5
        prior = boundary + side * self._squares / self._range
        theta = (process.total + PRIOR_DRAWS * prior) / (process.n_drawn + PRIOR_DRAWS)
        evidence = process.log_e(boundary, process.total, process.n_drawn)
        draws = min(n_until(self._log_threshold - evidence, theta, boundary), MOST_REPEATS)
        shares = np.minimum(self._ranges / self._range, 1.0 - SAME)
        shares[list(self._asked)] = 0.0
        new = -np.expm1(draws * np.log1p(-shares))
        return max(1, round(float(new.sum())))

    def numbers(self) -> list[float]:
        """Return numbers that identify the comparison."""
        return [float(self.n_differing), self._squares, self._offset, self._range]


Comparison = ErrorComparison | BrierComparison


def shared_classes(named: Named, loss: str) -> AnyArray:
    """Return the classes of fitted classifiers; raise an error if they are not the same."""
    for name, model in named:
        if hasattr(model, "fit"):
            check_is_fitted(model)
        if not (hasattr(model, "predict") and hasattr(model, "classes_")):
            raise TypeError(
                f"{name!r} is a {type(model).__name__}, not a fitted classifier. Pass one, or "
                "several candidates as a list of (name, classifier) tuples; those of a dict are "
                "list(candidates.items())."
            )
        if loss == "brier":
            check_classifier(f"The classifier {name!r}", model)
    classes, *others = (np.sort(np.asarray(model.classes_)) for _, model in named)
    for (name, _), own in zip(named[1:], others, strict=True):
        if own.tolist() != classes.tolist():
            raise ValueError(
                f"{name!r} has the classes {own.tolist()}, but the baseline has "
                f"{classes.tolist()}. Both must be fitted to the same classes."
            )
    return classes


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
