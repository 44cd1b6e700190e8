"""Everything that a report says, as plain numbers and words that fit in a JSON file."""

from __future__ import annotations

import dataclasses
from collections.abc import Sized
from dataclasses import dataclass
from typing import Any, Literal, Self

from neverworse.projection import Certificate
from neverworse.study._made import made

Scalar = str | float | int | bool | None


@dataclass(frozen=True)
class FileFacts:
    """A file that was read."""

    name: str
    n_bytes: int | None
    sha256: str | None


@dataclass(frozen=True)
class ColumnFacts:
    """A column of the table, and how it became features."""

    name: str
    kind: Literal["number", "category", "date", "target", "id", "weight", "dropped"]
    treatment: str
    n_missing: int
    n_features: int
    read_as: str = ""  # how its cells are written, in words
    look: str = ""  # what people should look at, and what they can do about it


@dataclass(frozen=True)
class ClassFacts:
    """A class: its labeled rows, and the unlabeled rows that either model gives to it."""

    name: str
    n_labeled: int
    n_supervised: int
    n_projected: int


@dataclass(frozen=True)
class DataFacts:
    """What was read."""

    files: tuple[FileFacts, ...]
    target: str
    n_rows: int
    n_labeled: int
    n_unlabeled: int
    n_features: int
    classes: tuple[ClassFacts, ...]
    columns: tuple[ColumnFacts, ...]


@dataclass(frozen=True)
class ScoreGroup:
    """Scores of some rows, counted: ``counts[k]`` lie between ``edges[k]`` and ``edges[k + 1]``."""

    name: str  # a class, of which these are the labeled rows; or "unlabeled"
    n_rows: int
    supervised: tuple[int, ...]
    projected: tuple[int, ...]


@dataclass(frozen=True)
class Scores:
    """How rows score for a class: 1 is what its rows should have, 0 what all others should."""

    class_name: str
    edges: tuple[float, ...]
    groups: tuple[ScoreGroup, ...]


@dataclass(frozen=True)
class ChangedRow:
    """An unlabeled row whose predicted class is not that of the supervised model."""

    row: str  # its id, or its number in the table, counted from 1
    supervised: str
    projected: str
    supervised_score: float  # of the class that the projected model predicts
    projected_score: float
    soft_label: float


@dataclass(frozen=True)
class Changes:
    """Predictions of unlabeled rows that changed."""

    n_changed: int
    n_unlabeled: int
    counts: tuple[tuple[int, ...], ...]  # [supervised class][projected class]
    rows: tuple[ChangedRow, ...]  # those that changed most, if there are many


@dataclass(frozen=True)
class Coefficient:
    """A weight before and after, in the units of the feature, and per standard deviation."""

    feature: str
    column: str
    class_name: str
    supervised: float
    projected: float
    supervised_scaled: float
    projected_scaled: float


@dataclass(frozen=True)
class PullRow:
    """An unlabeled row that moved the model."""

    row: str
    share: float  # of the squared distance between the two models
    towards: str  # the class whose score it raised most
    soft_label: float
    supervised_score: float
    projected_score: float


@dataclass(frozen=True)
class Pulls:
    """How much each unlabeled row pulled.

    The squared distance between the supervised and the projected model is a sum over the unlabeled
    rows, of (soft label - supervised score) (projected score - supervised score), and of what the
    penalty contributes. A row may pull back: its share is negative.
    """

    total: float
    penalty_share: float
    n_forwards: int
    n_backwards: int
    shares_of_rows: tuple[float, ...]  # rows in order of their pull, strongest first ...
    shares_of_pull: tuple[float, ...]  # ... and the pull of all rows so far
    rows: tuple[PullRow, ...]  # the strongest


@dataclass(frozen=True)
class CurveLine:
    """Test error and quadratic loss of a method at each size, with standard errors."""

    method: str
    error: tuple[float, ...]
    error_se: tuple[float, ...]
    loss: tuple[float, ...]
    loss_se: tuple[float, ...]


@dataclass(frozen=True)
class Curve:
    """A learning curve on labeled rows that were held out."""

    rows: Literal["unlabeled", "labeled"]  # which rows grow in number
    sizes: tuple[int, ...]
    n_other: int  # labeled rows in training if unlabeled ones grow, unlabeled ones otherwise
    n_repeats: int
    lines: tuple[CurveLine, ...]
    words: str  # what follows from it, in a sentence or two


@dataclass(frozen=True)
class MethodFacts:
    """A method in the comparison, and its difference from the supervised one on the same folds."""

    method: str
    error: float
    error_se: float
    loss: float | None  # quadratic loss per row; of methods whose scores are no labels, None
    loss_se: float | None
    difference: float  # of the errors
    difference_se: float
    p_value: float | None
    guarantee: str
    seconds: float  # of a fit, on average


@dataclass(frozen=True)
class Comparison:
    """Methods compared by cross-validation on labeled rows."""

    n_folds: int
    n_repeats: int
    n_unlabeled: int  # rows that every fit had besides its labeled ones
    methods: tuple[MethodFacts, ...]
    words: str


@dataclass(frozen=True)
class Study:
    """A fit to a table: what was read, what is proved, and what else is worth knowing.

    Parts that could not be computed, for example a comparison where a class has one label only, are
    None, and `notes` says why.
    """

    version: str
    made: str
    command: str
    settings: dict[str, Scalar]
    packages: dict[str, str]
    data: DataFacts
    certificate: dict[str, Any]
    claim: str
    certificate_words: str
    scores: tuple[Scores, ...]
    changes: Changes
    coefficients: tuple[Coefficient, ...]
    intercepts: tuple[Coefficient, ...]
    pulls: Pulls | None
    unlabeled_curve: Curve | None
    labeled_curve: Curve | None
    comparison: Comparison | None
    notes: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists and scalars."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """Return what `to_dict` gave; `ValueError` if it is anything else."""
        study: Self = made(cls, content, "study")
        study._check()
        return study

    def _check(self) -> None:
        """Raise `ValueError` if parts do not go together, which a fit never makes."""
        _check_certificate(self.certificate)
        n_classes = len(self.data.classes)
        for scores in self.scores:
            n_bins = len(scores.edges) - 1
            for group in scores.groups:
                _check_lengths("scores", n_bins, group.supervised, group.projected)
        _check_lengths("changes.counts", n_classes, self.changes.counts, *self.changes.counts)
        if self.pulls is not None:
            n_points = len(self.pulls.shares_of_rows)
            _check_lengths("pulls", n_points, self.pulls.shares_of_pull)
        for curve in (self.unlabeled_curve, self.labeled_curve):
            for line in () if curve is None else curve.lines:
                parts = (line.error, line.error_se, line.loss, line.loss_se)
                _check_lengths("a curve", len(curve.sizes) if curve else 0, *parts)


def _check_lengths(what: str, length: int, *lists: Sized) -> None:
    if length < 1 or any(len(one) != length for one in lists):
        raise ValueError(f"The lists of {what} have lengths that do not go together.")


def _check_certificate(content: dict[str, Any]) -> None:
    """Raise `ValueError` unless it is what a certificate gave as a dictionary."""
    names = {field.name for field in dataclasses.fields(Certificate)}
    if set(content) != names | {"holds", "guaranteed_improvement", "summary"}:
        raise ValueError("study.certificate does not have the parts of Certificate.")
    parts = {name: content[name] for name in names}
    if parts["duality_gap"] is None:  # infinite
        parts["duality_gap"] = 0.0
    certificate = made(Certificate, parts, "study.certificate")
    made(str, content["summary"], "study.certificate.summary")
    for derived in ("holds", "guaranteed_improvement"):
        if content[derived] != getattr(certificate, derived):
            raise ValueError(f"study.certificate.{derived} does not follow from its numbers.")
