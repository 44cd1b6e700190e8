"""The contents of a report, as plain numbers and text that fit in a JSON file."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

Scalar = str | float | int | bool | None
VerdictKind = Literal[
    "projected", "nothing to gain", "supervised", "stacked", "another method", "undecided"
]


@dataclass(frozen=True)
class FileFacts:
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
    read_as: str = ""  # how its cells are written
    look: str = ""  # a warning, and how to heed it


@dataclass(frozen=True)
class ClassFacts:
    """A class: its labeled rows, and the unlabeled rows that each model predicts to be of it."""

    name: str
    n_labeled: int
    n_supervised: int
    n_projected: int


@dataclass(frozen=True)
class DataFacts:
    files: tuple[FileFacts, ...]
    target: str
    n_rows: int
    n_labeled: int
    n_unlabeled: int
    n_features: int
    classes: tuple[ClassFacts, ...]
    positive: str | None  # the class that precision, recall and F1 are about
    columns: tuple[ColumnFacts, ...]


@dataclass(frozen=True)
class ScoreGroup:
    """Histograms of the scores of some rows, with the bins of `Scores.edges`."""

    name: str  # the class, other classes, or "unlabeled"
    n_rows: int
    supervised: tuple[int, ...]
    projected: tuple[int, ...]


@dataclass(frozen=True)
class Scores:
    """Scores for a class, which should be 1 for its rows and 0 for all others."""

    class_name: str
    edges: tuple[float, ...]
    groups: tuple[ScoreGroup, ...]


@dataclass(frozen=True)
class ChangedRow:
    """An unlabeled row for which the projected model predicts another class."""

    row: str  # its id, or its number in the table, counted from 1
    supervised: str
    projected: str
    supervised_score: float  # of the class that the projected model predicts
    projected_score: float
    soft_label: float


@dataclass(frozen=True)
class Changes:
    n_changed: int
    n_unlabeled: int
    rows: tuple[ChangedRow, ...]  # if there are many, those that changed most


@dataclass(frozen=True)
class Coefficient:
    """A weight of both models, per original unit of the feature and per standard deviation."""

    feature: str
    column: str
    class_name: str
    supervised: float
    projected: float
    supervised_scaled: float
    projected_scaled: float


@dataclass(frozen=True)
class Estimate:
    """An estimate from held-out rows, with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 if clearly above zero, -1 if clearly below, 0 if neither."""
        return int(self.low > 0.0) - int(self.high < 0.0)


@dataclass(frozen=True)
class CurveLine:
    """Test error and quadratic loss of a method at each size."""

    method: str
    error: tuple[Estimate, ...]
    loss: tuple[Estimate, ...]


@dataclass(frozen=True)
class Curve:
    rows: Literal["unlabeled", "labeled"]  # which rows grow in number
    sizes: tuple[int, ...]
    n_other: int  # labeled rows in training if unlabeled ones grow, unlabeled ones otherwise
    n_repeats: int
    lines: tuple[CurveLine, ...]
    error_step: Estimate  # change of the projected model's error by the last step
    words: str  # the conclusion

    @property
    def is_one_line(self) -> bool:
        """Whether the lines of all methods coincide."""
        return len({(line.error, line.loss) for line in self.lines}) == 1


@dataclass(frozen=True)
class ClassNumbers:
    """How well a class is predicted on held-out rows."""

    name: str
    n_labeled: int
    precision: Estimate | None  # None if no row was predicted to be of the class
    recall: Estimate
    f1: Estimate


@dataclass(frozen=True)
class CalibrationBin:
    """Held-out rows with about the same predicted probability of the positive class."""

    predicted: float  # on average
    observed: Estimate  # the share of rows that are of the class


@dataclass(frozen=True)
class Numbers:
    """How well a method predicts held-out rows; None where it lacks the probabilities."""

    error: Estimate
    balanced_accuracy: Estimate
    auc: Estimate | None  # of more than two classes: the mean of each against all others
    brier: Estimate | None
    log_loss: Estimate | None
    classes: tuple[ClassNumbers, ...]
    confusion: tuple[tuple[float, ...], ...]  # [true class][predicted class], mean over repeats
    calibration: tuple[CalibrationBin, ...] | None  # of the positive class

    def of(self, name: str | None) -> ClassNumbers | None:
        return next((each for each in self.classes if each.name == name), None)

    def measures(self, positive: str | None) -> Iterator[tuple[str, str, Estimate | None]]:
        """Yield the name of each number, the class that it is about if any, and its estimate."""
        names = "error", "balanced accuracy", "AUC", "Brier score", "log loss"
        values = self.error, self.balanced_accuracy, self.auc, self.brier, self.log_loss
        yield from ((name, "", value) for name, value in zip(names, values, strict=True))
        found = self.of(positive)
        if found is not None:
            yield "precision", found.name, found.precision
            yield "recall", found.name, found.recall
            yield "F1", found.name, found.f1


@dataclass(frozen=True)
class MethodFacts:
    """A method in the comparison, and its differences from the supervised one on the same folds."""

    method: str
    guarantee: str
    numbers: Numbers
    error_difference: Estimate | None  # None for the supervised one itself
    brier_difference: Estimate | None
    loss_difference: Estimate | None  # None if scores are not on the 0/1 scale


@dataclass(frozen=True)
class Comparison:
    """Methods compared by cross-validation on labeled rows."""

    n_folds: int
    n_repeats: int
    n_labeled: int  # rows that were held out in turn
    n_unlabeled: int  # rows that every fit had besides its labeled ones
    majority: str  # the class with most labels
    baseline: Numbers  # of predicting it always, with the shares of the classes as probabilities
    methods: tuple[MethodFacts, ...]
    failures: dict[str, str]  # methods that could not be fitted, and why
    words: str

    def of(self, method: str) -> MethodFacts:
        return next(each for each in self.methods if each.method == method)


@dataclass(frozen=True)
class Importance:
    """How much the Brier score of held-out rows rises if a column is shuffled among them."""

    model: str
    increases: dict[str, Estimate]  # by column, the largest first


@dataclass(frozen=True)
class CandidateFacts:
    name: str
    step: float  # how far the supervised model was moved towards it: 1 is the candidate itself
    difference: float  # out-of-fold Brier score minus that of the supervised model


@dataclass(frozen=True)
class ConfidentFacts:
    """How far the labels allow the supervised model to be moved towards candidates."""

    candidates: tuple[CandidateFacts, ...]
    level: float
    n_labeled: int
    n_unlabeled: int  # rows that the statement is about
    is_sample: bool  # whether they are a sample of all unlabeled rows
    expected_change: float  # of the Brier score
    largest_change: float  # its upper confidence bound: never positive

    @property
    def chosen(self) -> tuple[CandidateFacts, ...]:
        """The candidates that the model was moved towards."""
        return tuple(each for each in self.candidates if each.step > 0.0)


@dataclass(frozen=True)
class Rung:
    """A rung of the ladder of evidence: what is known with a given strength."""

    strength: Literal["certain", "confident", "undecided"]
    found: bool  # whether anything is
    words: tuple[str, ...]


@dataclass(frozen=True)
class Verdict:
    kind: VerdictKind
    model: str  # the method that is recommended, by its name in the comparison
    headline: str
    quality: str | None  # how good it is on held-out rows; None if that is not known
    reasons: tuple[str, ...]
    cautions: tuple[str, ...]  # what else to know before it is used
    advice: tuple[str, ...]  # what could give a better model


@dataclass(frozen=True)
class AuditFacts:
    """Bounds of the difference to the supervised model on the unlabeled rows."""

    response: str  # what was compared: "predict_proba"
    worst_case: float  # the largest difference of the losses, per row; negative is better
    best_case: float
    holds: bool
    words: str


@dataclass(frozen=True)
class DecisionFacts:
    """Threshold and calibration of a model, chosen on held-out labeled rows."""

    rule: str  # as the command line has it
    positive: str | None  # the class that the threshold is about
    threshold: float | None  # of its probability; None if the largest probability decides
    calibrated: bool
    numbers: Numbers  # by nested cross-validation
    words: tuple[str, ...]


@dataclass(frozen=True)
class ModelFacts:
    name: str  # as in the comparison
    certified: bool  # whether the certificate is about this model
    compiled: bool  # whether its file can be opened with --trust-compiled only
    words: tuple[str, ...]
    decision: DecisionFacts | None  # None if classes and probabilities are those of the method
    audit: AuditFacts

    @property
    def has_threshold(self) -> bool:
        """Whether its threshold is not the usual one."""
        return self.decision is not None and self.decision.threshold is not None

    def numbers(self, comparison: Comparison) -> Numbers:
        """Return how well it predicts held-out rows, with its threshold."""
        return comparison.of(self.name).numbers if self.decision is None else self.decision.numbers


@dataclass(frozen=True)
class Study:
    """A fit to a table; parts that could not be computed are None, and `notes` says why."""

    version: str
    made: str
    command: str
    settings: dict[str, Scalar]
    packages: dict[str, str]
    data: DataFacts
    verdict: Verdict
    ladder: tuple[Rung, ...]
    confident: ConfidentFacts | None
    certificate: dict[str, Any]
    claim: str
    certificate_words: str
    scores: tuple[Scores, ...]
    changes: Changes
    coefficients: tuple[Coefficient, ...]
    intercepts: tuple[Coefficient, ...]
    importance: Importance | None  # of a model that is neither the supervised nor the projected one
    unlabeled_curve: Curve | None
    labeled_curve: Curve | None
    comparison: Comparison | None
    notes: tuple[str, ...]
    model: ModelFacts

    @property
    def numbers(self) -> Numbers | None:
        """How well the model in the file predicts held-out rows; None if that is not known."""
        return None if self.comparison is None else self.model.numbers(self.comparison)

    def to_dict(self) -> dict[str, Any]:
        content = dataclasses.asdict(self)
        return content | {"sha256": checksum(content)}


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of content of a JSON file."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    # Half a surrogate pair, which a column name may contain, is no character.
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()
