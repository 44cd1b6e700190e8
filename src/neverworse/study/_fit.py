"""The fit of a model to a table of which some rows are labeled, and the settings of a fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from sklearn.base import clone
from sklearn.metrics import roc_curve

from neverworse import tables
from neverworse._typing import Mask, Matrix, Vector
from neverworse._words import count, nearest
from neverworse.estimators import ProjectedLeastSquaresClassifier
from neverworse.rows import Rows
from neverworse.study._held_out import Interval, taken
from neverworse.study._methods import AUTO

USUAL_CANDIDATES = ("ICLS", "self-learning", "logistic regression", "random forest")
MIN_ROWS_FOR_LEAKS = 5  # labeled rows for each class: with fewer, columns look like leaks by chance
MAX_COPIES = 0.1  # share of labeled rows that equal another one by chance, at most
MAX_COMPARED = 100_000  # labeled rows that are compared for that
EXACT_ROWS, LANDMARKS = 1000, 300  # most rows for an exact kernel; otherwise landmarks
# Nine times as many settings are tried for a kernel, of which one may look good by chance: its loss
# has to be this share of the linear one at most.
CLEARLY = 0.95
TIE = 1e-12  # criteria that differ by less are equal but for rounding


@dataclass(frozen=True)
class ThresholdRule:
    """How the threshold of the positive one of two classes is chosen on held-out labeled rows."""

    kind: Literal["fixed", "balanced", "f1", "cost"] = "fixed"
    value: float = 0.5  # the threshold, if it is given
    miss: float = 1.0  # cost of a missed row of the positive class
    alarm: float = 1.0  # cost of a false alarm

    @classmethod
    def parse(cls, text: str) -> ThresholdRule:
        """Return the rule that an option of the command line means, or raise `ValueError`."""
        with suppress(ValueError):
            if text in ("balanced", "f1"):
                return cls("f1" if text == "f1" else "balanced")
            if text.startswith("cost="):
                miss, alarm = map(float, text.removeprefix("cost=").split(":"))
                if all(0.0 < each < np.inf for each in (miss, alarm)):
                    return cls("cost", miss=miss, alarm=alarm)
            elif 0.0 < float(text) < 1.0:
                return cls(value=float(text))
        raise ValueError(
            "--threshold is a probability between 0 and 1, balanced, f1 or cost=5:1 (both costs "
            f"must be positive), not {text!r}."
        )

    def __str__(self) -> str:
        if self.kind == "cost":
            return f"cost={self.miss:g}:{self.alarm:g}"
        return f"{self.value:g}" if self.kind == "fixed" else self.kind

    def threshold(self, probabilities: Vector, positive: Mask, weights: Vector) -> float:
        """Return the best threshold, half-way between two probabilities or beyond all of them.

        Of equally good thresholds, the middle one is returned.
        """
        if self.kind == "fixed":
            return self.value
        false_rates, true_rates, found = roc_curve(
            positive, probabilities, sample_weight=weights, drop_intermediate=False
        )
        n_positive, n_negative = weights[positive].sum(), weights[~positive].sum()
        hits, alarms = n_positive * true_rates, n_negative * false_rates
        costs = self.miss * (n_positive - hits) + self.alarm * alarms
        criterion = {
            "balanced": true_rates - false_rates,
            "f1": 2.0 * hits / (hits + alarms + n_positive),
            "cost": -costs / (self.miss * n_positive + self.alarm * n_negative),
        }[self.kind]
        edges = np.concatenate([[1.0], found[1:], [0.0]])
        upper, lower = edges[:-1], edges[1:]
        thresholds = 0.5 * (upper + lower)
        thresholds = np.where(thresholds > lower, thresholds, upper)  # adjacent numbers
        criterion[0] = criterion[0] if lower[0] < 1.0 else -np.inf  # no threshold is above 1
        best = np.flatnonzero(criterion >= criterion.max() - TIE)
        return float(thresholds[best[(len(best) - 1) // 2]])


@dataclass(frozen=True)
class FitSettings:
    """The settings of a fit; those of the model are as in `ProjectedLeastSquaresClassifier`."""

    target: str  # column of the labels
    id: str | None = None  # column that names the rows in results
    weight: str | None = None  # column of the weights of rows
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # a reading plan
    decimal: str | None = None  # decimal mark of numbers in text, as given or detected
    dates: tables.DateOrder | None = None  # order of ambiguous dates
    # Marks unlabeled rows, besides empty cells; if given, no class is suspected to be a marker.
    markers: tuple[str, ...] | None = None
    distance: str = "all"
    alpha: float | str = "loo"
    constraint_alpha: float | str = "same"
    # Shares of classes among the unlabeled rows, or "confidence"; None is the second of two.
    prior: Mapping[str | None, Interval] | str = field(default_factory=dict)
    class_weight: str | None = None
    kernel: str = "linear"  # or "rbf", "laplacian", or "auto": linear or rbf by leave-one-out
    # The class that precision, recall and the like are about; if None, the rarer one of two.
    positive: str | None = None
    model: str = AUTO  # or the name of a method
    candidates: tuple[str, ...] = USUAL_CANDIDATES  # of the stacked model; none: there is none
    threshold: ThresholdRule = ThresholdRule()  # of the positive class; by default, 0.5
    calibrate: bool = False

    @property
    def is_decided(self) -> bool:
        """Whether a threshold or a calibration changes what the method itself predicts."""
        return self.calibrate or self.threshold != ThresholdRule()

    @property
    def reading(self) -> dict[str, Any]:
        names = "categorical", "drop", "columns", "decimal", "dates"
        return {name: getattr(self, name) for name in names}

    @property
    def text(self) -> frozenset[str]:
        """Columns that are read as text, even if they look like numbers."""
        return frozenset({self.target, *self.categorical, *([] if self.id is None else [self.id])})


@dataclass(frozen=True)
class TableFit:
    """A model, and the rows that it was fitted to."""

    model: tables.TableClassifier
    target: tables.Target
    features: Matrix | Rows  # prepared
    weights: Vector | None
    row_names: pa.Array  # ids of the unlabeled rows, or their numbers, counted from 1
    positive: int | None  # the class that precision, recall and the like are about
    notes: tuple[str, ...]  # warnings about the table
    looks: Mapping[str, str]  # warnings about columns
    leaks: tuple[str, ...]  # columns that determine the class of every labeled row
    kernel: str  # why the model is linear or not; empty if the kernel was given

    @property
    def classifier(self) -> ProjectedLeastSquaresClassifier:
        return self.model.estimator_

    @property
    def rows(self) -> tuple[Matrix | Rows, Vector, Vector | None]:
        """Features, codes of the classes (NaN where unlabeled), and weights."""
        return self.features, self.target.codes, self.weights


def fit_table(table: pa.Table | tables.StoredTable, settings: FitSettings) -> TableFit:
    """Fit a model to a table."""
    target = tables.read_target(table, settings.target, settings.markers)
    labeled, weights = target.labeled, None
    if settings.weight is not None:
        found = tables.find_column(table, settings.weight, "weight")
        weights = tables.row_weights(settings.weight, found)
    if labeled.all() or (weights is not None and not weights[~labeled].any()):
        raise tables.TableError(
            f"All {len(labeled):,} rows have a label, or a weight of zero, so there is nothing to "
            "learn from unlabeled ones. Leave the target empty where it is not known, or add rows: "
            "--unlabeled OTHER."
        )
    names = pa.array(np.flatnonzero(~labeled) + 1)
    if settings.id is not None:
        ids = tables.find_column(table, settings.id, "id")
        names = tables.id_texts(ids.filter(pa.array(~labeled)))
    counts, positive = target.counts(), None
    if settings.positive is not None:
        positive = _code(settings.positive, target, "positive")
    elif len(counts) == 2:
        positive = int(counts[1] <= counts[0])
    columns = feature_columns(table, settings)
    linear = ProjectedLeastSquaresClassifier(
        settings.distance,
        alpha=settings.alpha,
        constraint_alpha=settings.constraint_alpha,
        class_prior=_class_prior(settings.prior, target),
        class_weight=settings.class_weight,
        missing_label=np.nan,
    )
    kernel, words = settings.kernel, ""
    first = "linear" if kernel == AUTO else kernel
    model = tables.TableClassifier(_with_kernel(linear, first, len(labeled)), **settings.reading)
    try:
        features = model.fit_target(columns, target, weights)
        if kernel == AUTO:
            kernel, words = _better_kernel(linear, features, target, weights)
            if kernel != first:
                model.set_params(estimator=_with_kernel(linear, kernel, len(labeled)))
                features = model.fit_target(columns, target, weights)
    except (tables.PlanError, tables.TableError):
        raise
    except ValueError as error:
        raise tables.TableError(tables.in_options(str(error)), code="option") from None
    plans = model.preparation_.plans_
    leaks, notes = leaking_columns(columns, target, plans), tuple(_notes(target, features, model))
    looks = looks_at(plans, leaks)
    return TableFit(
        model, target, features, weights, names, positive, notes, looks, leaks, kernel=words
    )


def _with_kernel(
    linear: ProjectedLeastSquaresClassifier, kernel: str, n_rows: int
) -> ProjectedLeastSquaresClassifier:
    """Return the classifier with a kernel, whose gamma is chosen by leave-one-out."""
    if kernel == "linear":
        return linear
    n_components = None if n_rows <= EXACT_ROWS else LANDMARKS
    settings = {"kernel": kernel, "gamma": "loo", "n_components": n_components, "random_state": 0}
    return clone(linear).set_params(**settings)


def _better_kernel(
    linear: ProjectedLeastSquaresClassifier,
    features: Matrix | Rows,
    target: tables.Target,
    weights: Vector | None,
) -> tuple[str, str]:
    """Return "rbf" if its leave-one-out error is clearly lower, otherwise "linear", and why."""
    losses = {}
    for name in ("linear", "rbf"):
        model = clone(_with_kernel(linear, name, len(target.codes))).set_params(alpha="loo")
        baseline = model._baseline()
        baseline.alphas = None if linear.alpha == "loo" else [linear.alpha]
        baseline.fit(features, target.codes, sample_weight=weights)
        losses[name] = float(baseline.loo_brier_.min())
    better = "rbf" if losses["rbf"] < CLEARLY * losses["linear"] else "linear"
    kind = {"linear": "linear", "rbf": "not linear (rbf)"}[better]
    return better, (
        f"The models are {kind}: labeled rows that are left out, one at a time, are predicted with "
        f"a mean squared error of {losses['rbf']:.4f} by the rbf kernel and {losses['linear']:.4f} "
        "by the linear model (rbf is used if its error is 5 % lower)."
    )


def feature_columns(
    table: pa.Table | tables.StoredTable, settings: FitSettings
) -> pa.Table | tables.StoredTable:
    """Return a table without the columns that have another role."""
    given = {settings.target, settings.id, settings.weight}
    return table.select([name for name in table.column_names if name not in given])


def add_unlabeled(table: pa.Table, other: pa.Table, settings: FitSettings, name: str) -> pa.Table:
    """Return a table with the rows of another one, which has no labels and a name for messages."""
    target = settings.target
    tables.find_column(table, target, "target")
    if target in other.column_names:
        n_labels = tables.count_labels(other.column(target), settings.markers or ())
        if n_labels:
            raise tables.TableError(
                f"{name} has {count(n_labels, 'label')} in column {target!r}. To use labels, give "
                "it as a table like the first; to ignore them, remove the column."
            )
        other = other.drop_columns(target)
    needed = [each for each in table.column_names if each not in (target, *settings.drop)]
    missing = [each for each in needed if each not in other.column_names]
    if missing:
        extra = [each for each in other.column_names if each not in table.column_names]
        raise tables.TableError(
            f"{name} lacks the column {missing[0]!r}. Add it, or leave it out of both: --drop "
            f"{missing[0]!r}. {nearest(missing[0], extra) if extra else ''}".rstrip()
        )
    for absent in table.schema:
        if absent.name not in other.column_names:
            other = other.append_column(absent.name, pa.nulls(len(other), absent.type))
    return tables.stacked([table, other.select(table.column_names)])


def _notes(
    target: tables.Target, features: Matrix | Rows, model: tables.TableClassifier
) -> Iterator[str]:
    """Yield warnings about a table and its fit."""
    X = taken(features, np.flatnonzero(target.labeled)[:MAX_COMPARED])
    n_copies = len(X) - len({row.tobytes() for row in X})
    if n_copies > MAX_COPIES * len(X):
        yield (
            f"{n_copies:,} of {count(len(X), 'labeled row')} equal another one in all features. "
            "If they are copies, held-out rows are seen in training, and all numbers of held-out "
            "rows are too good: keep one row of each."
        )
    if model.certificate_.kernel:
        yield (
            f"Scores are functions of {model.certificate_.kernel}; gamma was chosen by "
            "leave-one-out. Categories count as indicators of 0 and 1 in distances between rows."
        )


def leaking_columns(
    columns: pa.Table, target: tables.Target, plans: Sequence[tables.ColumnPlan]
) -> tuple[str, ...]:
    """Return the columns in use whose values determine the class of every labeled row."""
    used = (plan.name for plan in plans if plan.kind != "dropped")
    return tuple(name for name in used if _leaks(columns.column(name), target))


def _leaks(column: pa.ChunkedArray, target: tables.Target) -> bool:
    known, n_classes = column.filter(pa.array(target.labeled)), len(target.classes)
    few = MIN_ROWS_FOR_LEAKS * n_classes
    if len(known) < few or pa.types.is_nested(known.type):
        return False
    if len(tables.coded(known.slice(0, few))[0]) > 2 * n_classes + 1:
        return False  # the first rows rule out most columns
    codes = tables.coded(known)[1]
    n_pairs = len(np.unique(np.column_stack([codes, target.codes[target.labeled]]), axis=0))
    return len(np.unique(codes)) == n_pairs


def looks_at(plans: Sequence[tables.ColumnPlan], leaks: Sequence[str]) -> dict[str, str]:
    """Return warnings by column: those of its plan, or that it may leak the target."""
    leak = (
        "Each value occurs with one class only, in all labeled rows. If it was made from the "
        "target, or is known only where the target is: --drop {!r}."
    )
    looks = {plan.name: plan.look for plan in plans if plan.look or plan.name in leaks}
    return looks | {name: leak.format(name) for name in leaks}


def _code(name: str, target: tables.Target, option: str) -> int:
    names = target.class_names
    if name not in names:
        raise tables.TableError(
            f"There is no class {name!r} for --{option}. {nearest(name, names)}"
        )
    return list(names).index(name)


def _class_prior(prior: Mapping[str | None, Interval] | str, target: tables.Target) -> Any:
    """Return shares of classes by their codes, as the estimator takes them."""
    if isinstance(prior, str):
        return prior
    names = target.class_names
    if None in prior and len(names) != 2:
        raise tables.TableError(
            f"There are {len(names)} classes: name the class of --prior, for "
            f"example --prior {names[0]}=0.2..0.4."
        )
    shares = {
        1.0 if name is None else float(_code(name, target, "prior")): interval
        for name, interval in prior.items()
    }
    return shares or None
