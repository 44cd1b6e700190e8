"""Everything that a report says, as plain numbers and words that fit in a JSON file."""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass
from typing import Any, Literal, Self

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
        return _made(cls, content, "study")


def _made(kind: Any, content: Any, where: str) -> Any:
    """Return a value of a type from what JSON made of it, or say where it is something else."""
    origin = typing.get_origin(kind)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        if not isinstance(content, dict) or set(content) != set(hints):
            raise ValueError(f"{where} does not have the parts of {_name(kind)}.")
        return kind(**{key: _made(hints[key], content[key], f"{where}.{key}") for key in hints})
    if origin in (typing.Union, types.UnionType):
        return _first_of(typing.get_args(kind), content, where)
    if origin is tuple:
        if not isinstance(content, list | tuple):
            raise ValueError(f"{where} is no list.")
        item = typing.get_args(kind)[0]
        return tuple(_made(item, each, f"{where}[{k}]") for k, each in enumerate(content))
    if origin is typing.Literal:
        if content not in typing.get_args(kind):
            raise ValueError(f"{where} is {content!r}.")
        return content
    if origin is dict:
        if not isinstance(content, dict):
            raise ValueError(f"{where} is no object.")
        return content
    accepted = (int, float) if kind is float else kind
    if not isinstance(content, accepted):
        raise ValueError(f"{where} is {content!r}, not {_name(kind)}.")
    return content


def _first_of(kinds: tuple[Any, ...], content: Any, where: str) -> Any:
    if content is None and type(None) in kinds:
        return None
    others = [kind for kind in kinds if kind is not type(None)]
    return _made(others[0], content, where)


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))
