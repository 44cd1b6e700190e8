"""Fit a model to a table of which some rows are labeled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from neverworse._typing import Mask, Matrix, Vector
from neverworse._words import count
from neverworse.estimators import ProjectedLeastSquaresClassifier
from neverworse.projection import Certificate
from neverworse.rows import Rows
from neverworse.study._settings import FitSettings, Interval
from neverworse.tables import (
    ColumnPlan,
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
    nearest,
    read_target,
    row_weights,
    stacked,
)

FEWEST_FOR_LEAKS = 5  # labeled rows for each class: of fewer, chance makes columns that tell


@dataclass(frozen=True)
class TableFit:
    """A model, and the rows that it was fitted to."""

    model: TableClassifier
    target: Target
    features: Matrix | Rows  # prepared
    weights: Vector | None
    row_names: Sequence[str]  # ids of the unlabeled rows, or their numbers, counted from 1
    positive: int | None  # the class that precision, recall and the like are about
    notes: tuple[str, ...] = ()  # what people should know about the table
    looks: Mapping[str, str] = field(default_factory=dict)  # what to look at in columns
    telling: tuple[str, ...] = ()  # columns whose values say which class a labeled row has

    @property
    def classifier(self) -> ProjectedLeastSquaresClassifier:
        """The classifier of the features."""
        classifier: ProjectedLeastSquaresClassifier = self.model.estimator_
        return classifier


def fit_table(table: pa.Table | StoredTable, settings: FitSettings) -> TableFit:
    """Fit a model to a table.

    Parameters
    ----------
    table : pyarrow Table or StoredTable
    settings : FitSettings
    """
    target = read_target(table, settings.target, settings.markers)
    labeled = target.labeled
    if labeled.all():
        raise TableError(
            f"All {len(labeled):,} rows have a label, so there is nothing to learn from unlabeled "
            "ones. Leave the target empty where it is not known, or add rows: --unlabeled OTHER."
        )
    weights = None if settings.weight is None else _weights(table, settings.weight, labeled)
    positive = _positive(settings.positive, target)
    names = _row_names(table, settings.id, ~labeled)
    columns = feature_columns(table, settings)
    model = TableClassifier(
        ProjectedLeastSquaresClassifier(
            settings.distance,
            alpha=settings.alpha,
            constraint_alpha=settings.constraint_alpha,
            class_prior=_class_prior(settings.prior, target),
            class_weight=settings.class_weight,
            missing_label=np.nan,
        ),
        **settings.reading,
    )
    try:
        features = model.fit_target(columns, target, weights)
    except (PlanError, TableError):
        raise
    except ValueError as error:
        raise TableError(in_options(str(error)), code="option") from None
    notes = (*_notes(target, settings, names), *_solver_notes(model.certificate_))
    plans = model.preparation_.plans_
    looks, telling = looks_at(columns, target, plans), telling_columns(columns, target, plans)
    return TableFit(model, target, features, weights, names, positive, notes, looks, telling)


def feature_columns(table: pa.Table | StoredTable, settings: FitSettings) -> pa.Table | StoredTable:
    """Return a table without the columns that have another role."""
    given = {settings.target, settings.id, settings.weight}
    return table.select([name for name in table.column_names if name not in given])


def add_unlabeled(table: pa.Table, other: pa.Table, settings: FitSettings, name: str) -> pa.Table:
    """Return the rows of a table and, without labels, those of another.

    Parameters
    ----------
    table, other : pyarrow Tables
        The other need not have the target, nor columns that are left out.
    settings : FitSettings
    name : str
        Of the other table, for messages.
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
    there = {target, *other.column_names}
    for dropped in settings.drop:
        if dropped in table.column_names and dropped not in there:
            other = other.append_column(dropped, pa.nulls(len(other)))
            there.add(dropped)
    missing = [n for n in table.column_names if n not in there]
    if missing:
        extra = [n for n in other.column_names if n not in table.column_names]
        raise TableError(
            f"{name} lacks the column {missing[0]!r}. Add it, or leave it out of both: --drop "
            f"{missing[0]!r}. {nearest(missing[0], extra) if extra else ''}".rstrip()
        )
    kind = table.schema.field(target).type
    other = other.append_column(target, pa.nulls(len(other), kind))
    return stacked([table, other.select(table.column_names)])


def _weights(table: pa.Table, name: str, labeled: Mask) -> Vector:
    weights = row_weights(name, find_column(table, name, "weight"))
    for rows, which in ((labeled, "labeled"), (~labeled, "unlabeled")):
        if not weights[rows].any():
            raise TableError(
                f"The weights (column {name!r}) of all {which} rows are zero. Some must count."
            )
    return weights


def _row_names(table: pa.Table, name: str | None, unlabeled: Any) -> Sequence[str]:
    if name is None:
        return _Numbers(np.flatnonzero(unlabeled) + 1)
    column = find_column(table, name, "id").filter(pa.array(unlabeled))
    names: list[str] = id_texts(column).to_pylist()
    return names


def _notes(target: Target, settings: FitSettings, names: Sequence[str]) -> Iterator[str]:
    """Yield what is suspicious about a table, though it can be used."""
    if settings.id is not None and len(set(names)) < len(names):
        yield (
            f"Column {settings.id!r} does not tell rows apart: {len(names):,} unlabeled rows have "
            f"{len(set(names)):,} different ids."
        )
    folded = {" ".join(name.casefold().split()): name for name in target.class_names}
    if len(folded) < len(target.classes):
        twins = [n for n in target.class_names if n not in folded.values()]
        same = folded[" ".join(twins[0].casefold().split())]
        yield f"The classes {twins[0]!r} and {same!r} are two: spell them alike if they are one."


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
                f"Each value goes with one class only, in all {n_labeled:,} labeled rows. If it "
                "was made from the target, or is known only where the target is: "
                f"--drop {plan.name!r}."
            )
        if said:
            found[plan.name] = said
    return found


def _solver_notes(certificate: Certificate) -> Iterator[str]:
    """Yield what may help a solver that gave up."""
    if not (certificate.converged or certificate.stopped_early):
        yield (
            "The projection is not exact: its solver made no more progress. All that is said about "
            "this model is true all the same, but its certain improvement may be smaller than "
            "possible. A larger penalty may help (--alpha), or leaving out columns that say nearly "
            "the same as others (--drop)."
        )


def _tells(columns: pa.Table, name: str, target: Target) -> bool:
    """Whether the few values of a column say which class a labeled row has."""
    known = columns.column(name).filter(pa.array(target.labeled))
    few = FEWEST_FOR_LEAKS * len(target.classes)
    if len(known) < few or pa.types.is_nested(known.type):
        return False
    # Most columns are told from few rows not to be of this kind.
    if len(coded(known.slice(0, few))[0]) > 2 * len(target.classes) + 1:
        return False
    codes = coded(known)[1]
    n_pairs = len(np.unique(np.column_stack([codes, target.codes[target.labeled]]), axis=0))
    return len(np.unique(codes)) == n_pairs


class _Numbers(Sequence[str]):
    """Numbers of rows, written only when they are looked at."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: Any) -> Any:
        return str(self.values[index])


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
