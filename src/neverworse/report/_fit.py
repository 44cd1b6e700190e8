"""Fit a model to a table of which some rows are labeled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from neverworse._typing import Matrix, Vector
from neverworse.estimators import ProjectedLeastSquaresClassifier
from neverworse.tables import TableClassifier, TableError
from neverworse.tables._errors import nearest
from neverworse.tables._target import Target, find_column, read_target
from neverworse.tables._values import as_text, numbers

Interval = tuple[float, float]


@dataclass(frozen=True)
class FitSettings:
    """What a fit to a table is told.

    Attributes
    ----------
    target : str
        Column of the labels.
    id : str, optional
        Column that names the rows in results.
    weight : str, optional
        Column of the weights of rows.
    drop, categorical : tuples of str
        See `TablePreparation`.
    markers : tuple of str, optional
        What marks unlabeled rows, besides empty cells. If given, no marker is suspected among the
        classes.
    distance : str
        See `ProjectedLeastSquaresClassifier`.
    alpha : float or "loo"
        Ridge penalty of the supervised model, or chosen on the labeled rows.
    prior : mapping of str or None to interval, or "confidence"
        Shares of classes among the unlabeled rows; None stands for the second of two classes.
    """

    target: str
    id: str | None = None
    weight: str | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    markers: tuple[str, ...] | None = None
    distance: str = "all"
    alpha: float | str = "loo"
    prior: Mapping[str | None, Interval] | str = field(default_factory=dict)

    @property
    def text(self) -> frozenset[str]:
        """Columns that hold names, whatever they look like."""
        return frozenset({self.target, *self.categorical, *([] if self.id is None else [self.id])})


@dataclass(frozen=True)
class TableFit:
    """A model, and the rows that it was fitted to.

    Attributes
    ----------
    model : TableClassifier
    target : Target
    features : array of shape (n_rows, n_features)
        Prepared.
    weights : array of shape (n_rows,), optional
    row_names : list of str
        Ids of the unlabeled rows, or their numbers in the table, counted from 1.
    """

    model: TableClassifier
    target: Target
    features: Matrix
    weights: Vector | None
    row_names: Sequence[str]

    @property
    def classifier(self) -> ProjectedLeastSquaresClassifier:
        """The classifier of the features."""
        classifier: ProjectedLeastSquaresClassifier = self.model.estimator_
        return classifier


def fit_table(table: pa.Table, settings: FitSettings) -> TableFit:
    """Fit a model to a table.

    Parameters
    ----------
    table : pyarrow Table
    settings : FitSettings
    """
    target = read_target(table, settings.target, settings.markers)
    labeled = target.labeled
    if labeled.all():
        raise TableError(
            f"All {len(labeled):,} rows have a label, so there is nothing to learn from unlabeled "
            "ones. Leave the target empty where it is not known, or add rows: --unlabeled OTHER."
        )
    weights = None if settings.weight is None else _weights(table, settings.weight)
    names = _row_names(table, settings.id, ~labeled)
    given = [settings.target, settings.id, settings.weight]
    columns = table.drop_columns([name for name in given if name is not None])
    model = TableClassifier(
        ProjectedLeastSquaresClassifier(
            settings.distance,
            alpha=settings.alpha,
            class_prior=_class_prior(settings.prior, target),
            missing_label=np.nan,
        ),
        categorical=list(settings.categorical),
        drop=list(settings.drop),
    )
    try:
        features = model.fit_target(columns, target, weights)
    except TableError:
        raise
    except ValueError as error:
        raise TableError(str(error)) from None
    return TableFit(model, target, features, weights, names)


def add_unlabeled(table: pa.Table, other: pa.Table, target: str, name: str) -> pa.Table:
    """Return the rows of a table and, without labels, those of another.

    Parameters
    ----------
    table, other : pyarrow Tables
    target : str
        Column of the labels; the other table need not have it.
    name : str
        Of the other table, for messages.
    """
    from neverworse.tables._read import stacked

    find_column(table, target, "target")
    if target in other.column_names:
        n_labels = len(other) - other.column(target).null_count
        if n_labels:
            raise TableError(
                f"{name} has {n_labels:,} labels in column {target!r}. To use them, give it as a "
                "table like the first; to ignore them, remove the column."
            )
        other = other.drop_columns(target)
    missing = [n for n in table.column_names if n != target and n not in other.column_names]
    if missing:
        extra = [n for n in other.column_names if n not in table.column_names]
        raise TableError(
            f"{name} lacks the column {missing[0]!r}. Add it, or leave it out of both: --drop "
            f"{missing[0]!r}. {nearest(missing[0], extra) if extra else ''}".rstrip()
        )
    kind = table.schema.field(target).type
    other = other.append_column(target, pa.nulls(len(other), kind))
    return stacked([table, other.select(table.column_names)])


def _weights(table: pa.Table, name: str) -> Vector:
    weights = numbers(name, find_column(table, name, "weight"))
    wrong = ~(weights >= 0.0) | np.isinf(weights)
    if wrong.any():
        row = int(np.argmax(wrong))
        value = "empty" if np.isnan(weights[row]) else f"{weights[row]:g}"
        raise TableError(
            f"The weight in row {row + 1:,} (column {name!r}) is {value}. Weights are numbers that "
            "are not negative."
        )
    return weights


def _row_names(table: pa.Table, name: str | None, unlabeled: Any) -> Sequence[str]:
    if name is None:
        return _Numbers(np.flatnonzero(unlabeled) + 1)
    column = find_column(table, name, "id").filter(pa.array(unlabeled))
    values = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    return ["" if text is None else text for text in as_text(values.combine_chunks())]


class _Numbers(Sequence[str]):
    """Numbers of rows, written only when they are looked at."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return str(self.values[index])


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
