"""The fit of a model to a table of which some rows are labeled, and the settings of a fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from neverworse._typing import Mask, Matrix, Vector
from neverworse._words import count, nearest
from neverworse.estimators import LeastSquaresClassifierCV, ProjectedLeastSquaresClassifier
from neverworse.rows import Rows
from neverworse.study._methods import AUTO
from neverworse.tables import (
    ColumnPlan,
    DateOrder,
    PlanError,
    StoredTable,
    TableClassifier,
    TableError,
    Target,
    coded,
    count_labels,
    find_column,
    id_texts,
    in_options,
    read_target,
    row_weights,
    stacked,
)

if TYPE_CHECKING:
    from neverworse.study._decision import ThresholdRule

Interval = tuple[float, float]

USUAL_CANDIDATES = ("ICLS", "self-learning", "logistic regression", "random forest")
FEWEST_FOR_LEAKS = 5  # labeled rows for each class: of fewer, chance makes columns that tell


@dataclass(frozen=True)
class FitSettings:
    """The settings of a fit; those of the model are as in `ProjectedLeastSquaresClassifier`."""

    target: str  # column of the labels
    id: str | None = None  # column that names the rows in results
    weight: str | None = None  # column of the weights of rows
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    columns: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # how they are read
    decimal: str | None = None  # decimal mark of numbers in text, as given or detected
    dates: DateOrder | None = None  # what dates begin with that could be read in two ways
    # What marks unlabeled rows, besides empty cells; if given, no class is suspected to be one.
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
    candidates: tuple[str, ...] = USUAL_CANDIDATES  # of the confident step; none: it is left out
    threshold: ThresholdRule | None = None  # of the positive class; None: 0.5
    calibrate: bool = False  # whether probabilities are to be calibrated

    @property
    def is_decided(self) -> bool:
        """Whether classes or probabilities differ from those that the method itself gives."""
        return self.calibrate or str(self.threshold or 0.5) != "0.5"

    @property
    def reading(self) -> dict[str, Any]:
        return {
            "categorical": list(self.categorical),
            "drop": list(self.drop),
            "columns": {name: dict(entry) for name, entry in self.columns.items()},
            "decimal": self.decimal,
            "dates": self.dates,
        }

    @property
    def text(self) -> frozenset[str]:
        """Columns that hold names, whatever they look like."""
        return frozenset({self.target, *self.categorical, *([] if self.id is None else [self.id])})


@dataclass(frozen=True)
class TableFit:
    """A model, and the rows that it was fitted to."""

    model: TableClassifier
    target: Target
    features: Matrix | Rows  # prepared
    weights: Vector | None
    row_names: pa.Array  # ids of the unlabeled rows, or their numbers, counted from 1
    positive: int | None  # the class that precision, recall and the like are about
    notes: tuple[str, ...]  # what people should know about the table
    looks: Mapping[str, str]  # what to look at in columns
    telling: tuple[str, ...]  # columns whose values say which class a labeled row has
    kernel: str  # why the model is linear or not, in words; empty if nobody asked

    @property
    def classifier(self) -> ProjectedLeastSquaresClassifier:
        classifier: ProjectedLeastSquaresClassifier = self.model.estimator_
        return classifier

    @property
    def rows(self) -> tuple[Matrix | Rows, Vector, Vector | None]:
        """Features, codes of the classes (NaN where unlabeled), and weights."""
        return self.features, self.target.codes, self.weights


def fit_table(table: pa.Table | StoredTable, settings: FitSettings) -> TableFit:
    """Fit a model to a table."""
    target = read_target(table, settings.target, settings.markers)
    labeled = target.labeled
    if labeled.all():
        raise TableError(
            f"All {len(labeled):,} rows have a label, so there is nothing to learn from unlabeled "
            "ones. Leave the target empty where it is not known, or add rows: --unlabeled OTHER."
        )
    weights = None if settings.weight is None else _weights(table, settings.weight, labeled)
    positive = _positive(settings.positive, target)
    names = pa.array(np.flatnonzero(~labeled) + 1)
    if settings.id is not None:
        names = id_texts(find_column(table, settings.id, "id").filter(pa.array(~labeled)))
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
    model = TableClassifier(with_kernel(linear, first, len(labeled)), **settings.reading)
    try:
        features = model.fit_target(columns, target, weights)
        if kernel == AUTO:
            kernel, words = better_kernel(linear, features, target, weights)
            if kernel != first:
                model.set_params(estimator=with_kernel(linear, kernel, len(labeled)))
                features = model.fit_target(columns, target, weights)
    except (PlanError, TableError):
        raise
    except ValueError as error:
        raise TableError(in_options(str(error)), code="option") from None
    plans = model.preparation_.plans_
    return TableFit(
        model,
        target,
        features,
        weights,
        row_names=names,
        positive=positive,
        notes=tuple(_notes(target, settings, names, model)),
        looks=looks_at(columns, target, plans),
        telling=telling_columns(columns, target, plans),
        kernel=words,
    )


EXACT_ROWS, LANDMARKS = 1000, 300  # most rows for an exact kernel; otherwise landmarks
# Nine times as many settings are tried for a kernel, of which one may look good by chance: its loss
# has to be this share of the linear one at most.
CLEARLY = 0.95


def with_kernel(
    linear: ProjectedLeastSquaresClassifier, kernel: str, n_rows: int
) -> ProjectedLeastSquaresClassifier:
    """Return the same classifier in the space of a kernel, with its gamma by leave-one-out."""
    if kernel == "linear":
        return linear
    n_components = None if n_rows <= EXACT_ROWS else LANDMARKS
    settings = {"kernel": kernel, "gamma": "loo", "n_components": n_components, "random_state": 0}
    return clone(linear).set_params(**settings)


def better_kernel(
    linear: ProjectedLeastSquaresClassifier,
    features: Matrix | Rows,
    target: Target,
    weights: Vector | None,
) -> tuple[str, str]:
    """Return rbf if its baseline predicts left-out labels clearly better, or linear, and why."""
    losses = {}
    for name in ("linear", "rbf"):
        parameters = with_kernel(linear, name, len(target.codes)).get_params()
        baseline = LeastSquaresClassifierCV(None if linear.alpha == "loo" else [linear.alpha])
        own = baseline.get_params()
        baseline.set_params(**{each: parameters[each] for each in own if each in parameters})
        baseline.fit(features, target.codes, sample_weight=weights)
        losses[name] = float(baseline.loo_brier_.min())
    better = "rbf" if losses["rbf"] < CLEARLY * losses["linear"] else "linear"
    (of_linear, of_rbf), kind = losses.values(), {"linear": "linear", "rbf": "not linear (rbf)"}
    return better, (
        f"The models are {kind[better]}: labeled rows that are left out, one at a time, are "
        f"predicted with a mean squared error of {of_rbf:.4f} by the rbf kernel and "
        f"{of_linear:.4f} by the linear model (rbf is used if its error is 5 % lower)."
    )


def feature_columns(table: pa.Table | StoredTable, settings: FitSettings) -> pa.Table | StoredTable:
    """Return a table without the columns that have another role."""
    given = {settings.target, settings.id, settings.weight}
    return table.select([name for name in table.column_names if name not in given])


def add_unlabeled(table: pa.Table, other: pa.Table, settings: FitSettings, name: str) -> pa.Table:
    """Return the rows of a table and, without labels, those of another, which has a name.

    The other need not have the target, nor columns that are left out.
    """
    target = settings.target
    find_column(table, target, "target")
    if target in other.column_names:
        n_labels = count_labels(other.column(target), settings.markers or ())
        if n_labels:
            raise TableError(
                f"{name} has {count(n_labels, 'label')} in column {target!r}. To use labels, give "
                "it as a table like the first; to ignore them, remove the column."
            )
        other = other.drop_columns(target)
    missing = [
        n for n in table.column_names if n not in {target, *settings.drop, *other.column_names}
    ]
    if missing:
        extra = [n for n in other.column_names if n not in table.column_names]
        raise TableError(
            f"{name} lacks the column {missing[0]!r}. Add it, or leave it out of both: --drop "
            f"{missing[0]!r}. {nearest(missing[0], extra) if extra else ''}".rstrip()
        )
    for absent in table.schema:
        if absent.name not in other.column_names:
            other = other.append_column(absent.name, pa.nulls(len(other), absent.type))
    return stacked([table, other.select(table.column_names)])


def _weights(table: pa.Table, name: str, labeled: Mask) -> Vector:
    weights = row_weights(name, find_column(table, name, "weight"))
    for rows, which in ((labeled, "labeled"), (~labeled, "unlabeled")):
        if not weights[rows].any():
            raise TableError(
                f"The weights (column {name!r}) of all {which} rows are zero. Some must be "
                "positive."
            )
    return weights


def _notes(
    target: Target, settings: FitSettings, names: pa.Array, model: TableClassifier
) -> Iterator[str]:
    """Yield what is suspicious about a table or its fit, though it can be used."""
    n_names = len(names.unique())
    if n_names < len(names):
        yield (
            f"Column {settings.id!r} does not identify rows: {len(names):,} unlabeled rows have "
            f"{n_names:,} different ids."
        )
    folded = {" ".join(name.casefold().split()): name for name in target.class_names}
    if len(folded) < len(target.classes):
        twins = [n for n in target.class_names if n not in folded.values()]
        same = folded[" ".join(twins[0].casefold().split())]
        yield (
            f"The classes {twins[0]!r} and {same!r} are taken to be different. If they are the "
            "same, spell them alike."
        )
    certificate = model.certificate_
    if not (certificate.converged or certificate.stopped_early):
        yield (
            "The projection is not exact: its solver stopped making progress. All statements "
            "about this model still hold, but its guaranteed improvement may be smaller than "
            "possible. A larger penalty may help (--alpha), or leaving out columns that are nearly "
            "copies of others (--drop)."
        )
    if certificate.kernel:
        yield (
            f"Scores are functions of {certificate.kernel}; gamma was chosen by leave-one-out on "
            "the labeled rows. Categories count as indicators of 0 and 1 in distances between "
            "rows, one for each level but the most frequent one."
        )


def telling_columns(
    columns: pa.Table, target: Target, plans: Sequence[ColumnPlan]
) -> tuple[str, ...]:
    """Return the columns, of those that are used, whose values tell the class of labeled rows."""
    used = (plan.name for plan in plans if plan.kind != "dropped")
    return tuple(name for name in used if _tells(columns, name, target))


def looks_at(columns: pa.Table, target: Target, plans: Sequence[ColumnPlan]) -> dict[str, str]:
    """Return what people should look at, by column: what its plan says, and what labels tell."""
    found, n_labeled = {}, int(target.labeled.sum())
    telling = telling_columns(columns, target, plans)
    for plan in plans:
        said = plan.look
        if plan.name in telling:
            said = (
                f"Each value occurs with one class only, in all {n_labeled:,} labeled rows. If it "
                "was made from the target, or is known only where the target is: "
                f"--drop {plan.name!r}."
            )
        if said:
            found[plan.name] = said
    return found


def _tells(columns: pa.Table, name: str, target: Target) -> bool:
    """Whether the few values of a column say which class a labeled row has."""
    known = columns.column(name).filter(pa.array(target.labeled))
    few = FEWEST_FOR_LEAKS * len(target.classes)
    if len(known) < few or pa.types.is_nested(known.type):
        return False
    # For most columns, a few rows rule it out.
    if len(coded(known.slice(0, few))[0]) > 2 * len(target.classes) + 1:
        return False
    codes = coded(known)[1]
    n_pairs = len(np.unique(np.column_stack([codes, target.codes[target.labeled]]), axis=0))
    return len(np.unique(codes)) == n_pairs


def _positive(name: str | None, target: Target) -> int | None:
    """Return which class is the positive one: of two, the rarer, or else the second."""
    names, counts = target.class_names, target.counts()
    if name is None:
        return int(counts[1] <= counts[0]) if len(names) == 2 else None
    if name not in names:
        raise TableError(f"There is no class {name!r} for --positive. {nearest(name, names)}")
    return list(names).index(name)


def _class_prior(prior: Mapping[str | None, Interval] | str, target: Target) -> Any:
    """Return shares of classes in the terms of the estimator, which knows them by number."""
    if isinstance(prior, str):
        return prior
    names = target.class_names
    found = {}
    for name, interval in prior.items():
        if name is None:
            if len(names) != 2:
                raise TableError(
                    f"There are {len(names)} classes: say of which class --prior is the share, for "
                    f"example --prior {names[0]}=0.2..0.4."
                )
            found[1.0] = interval
        elif name not in names:
            raise TableError(f"There is no class {name!r} for --prior. {nearest(name, names)}")
        else:
            found[float(names.index(name))] = interval
    return found or None
