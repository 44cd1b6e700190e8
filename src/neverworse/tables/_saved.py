"""Predict the rows of tables of any size, and write them, a batch at a time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv, parquet

from neverworse._words import count
from neverworse.tables._classifier import TableClassifier, outputs
from neverworse.tables._errors import TableError, believing, listed, no_column
from neverworse.tables.preparation.features import TablePreparation
from neverworse.tables.preparation.plan_file import text_columns
from neverworse.tables.preparation.values import as_text, check_columns
from neverworse.tables.reading.files import TableFile
from neverworse.tables.reading.options import TEXT, ReadOptions, is_text
from neverworse.tables.reading.tables import check_unique, stream_batches

USING = "The model cannot predict these rows"
MAX_LEVELS = 1000  # that are told apart among new ones
# What spreadsheets take for the beginning of a formula, unless all of it is a number.
FORMULA = r"^[=+\-@\t\r]"
NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


@dataclass
class Noticed:
    """What was noticed while rows were predicted."""

    n_rows: int = 0
    # How many rows each class was predicted for.
    classes: Counter[str] = field(default_factory=Counter)
    expected: tuple[str, ...] = ()  # columns that the model does not use, as is no news
    extra: tuple[str, ...] = ()  # other columns of the table that the model does not know
    # Values of categories that the model was not fitted to.
    new_levels: dict[str, Counter[str]] = field(default_factory=dict)

    def sentences(self) -> Iterator[str]:
        """Yield what people should know."""
        if self.extra:
            were = "was" if len(self.extra) == 1 else "were"
            yield f"{count(len(self.extra), 'column')} {were} ignored: {listed(self.extra)}."
        for name, levels in self.new_levels.items():
            n_rows = sum(levels.values())
            most = [level for level, _ in levels.most_common(3)]
            yield (
                f"Column {name!r} has values that the model does not know, in "
                f"{count(n_rows, 'row')}: {listed(most)}{' ...' if len(levels) > 3 else ''}. They "
                "count as its rare levels or, if it had none, as its most frequent one."
            )


def predict_batches(
    model: TableClassifier,
    files: Sequence[TableFile],
    options: ReadOptions,
    noticed: Noticed,
    *,
    id_name: str | None = None,
    probabilities: bool = False,
) -> Iterator[pa.Table]:
    """Yield the predictions of one batch of rows after another; `noticed` is told what is noticed.

    `id_name` is the column that names the rows; their numbers do otherwise. With `probabilities`,
    those of all classes are added.
    """
    with believing(USING):
        preparation = model.preparation_
        types = column_types(preparation)
        options = replace(options, decimal=options.decimal or preparation.decimal)
        if set(map(type, types)) - {str} or types.keys() != set(preparation.used_names):
            raise TypeError
    if id_name is not None:
        types = {**types, id_name: TEXT}

    def check(file_name: str, names: Sequence[str]) -> None:
        with believing(USING):
            _check_names(file_name, names, preparation, id_name, noticed)

    for file in files:
        for batch in stream_batches(file, options, types, check):
            if batch.num_rows:
                table = pa.Table.from_batches([batch])
                try:
                    with believing(USING):
                        predicted = _predicted(model, table, noticed, id_name, probabilities)
                except TableError as error:
                    raise error.moved(noticed.n_rows) from None
                yield predicted


def column_types(preparation: TablePreparation) -> dict[str, pa.DataType]:
    """Return the types that the text of columns is read as."""
    types = {}
    dates = set(preparation.date_names_)
    texts = text_columns(preparation.plan_, preparation.decimal)
    for name, kind in preparation.types_.items():
        if name in texts:
            types[name] = TEXT
        elif name in dates:
            types[name] = pa.timestamp("us", tz="UTC" if "tz=" in kind else None)
        elif kind == "bool":
            types[name] = pa.bool_()
        elif kind.startswith("time"):
            types[name] = pa.time64("us")
        else:
            types[name] = pa.float64()
    return types


def _check_names(
    file_name: str,
    names: Sequence[str],
    preparation: TablePreparation,
    id_name: str | None,
    noticed: Noticed,
) -> None:
    check_columns(names, preparation.used_names)
    used = {*preparation.used_names, id_name}
    check_unique(file_name, [name for name in names if name in used])
    if id_name is not None and id_name not in names:
        raise no_column(id_name, names, "id")
    known = {*preparation.feature_names_in_, id_name, *noticed.expected}
    noticed.extra = tuple(dict.fromkeys([*noticed.extra, *(n for n in names if n not in known)]))


def _predicted(
    model: TableClassifier,
    table: pa.Table,
    noticed: Noticed,
    id_name: str | None,
    probabilities: bool,
) -> pa.Table:
    for name, levels in model.preparation_.new_levels(table).items():
        counter = noticed.new_levels.setdefault(name, Counter())
        if len(counter) < MAX_LEVELS:
            counter.update(levels)
    features = model.preparation_.transform(table)
    best, scores, shares = outputs(model.estimator_, features)
    names = pa.array([str(name) for name in model.classes_.tolist()])
    if id_name is None:
        row_names = pa.array(np.arange(noticed.n_rows, noticed.n_rows + len(best)) + 1)
    else:
        row_names = id_texts(table.column(id_name))
    columns: dict[str, Any] = {"prediction": names.take(pa.array(best)), "score": scores}
    if probabilities:
        if shares is None:
            problem = "This model has no probabilities."
            raise TableError(problem, "Leave out --probabilities.", code="option")
        columns |= {f"probability: {n}": shares[:, k] for k, n in enumerate(names.to_pylist())}
    columns = with_names(columns, id_name, row_names)
    noticed.n_rows += len(best)
    counts = np.bincount(best, minlength=len(names))
    noticed.classes.update(dict(zip(names.to_pylist(), counts.tolist(), strict=True)))
    return pa.table(columns)


def with_names(columns: Mapping[str, Any], id_name: str | None, names: Any) -> dict[str, Any]:
    """Put the names of rows before other columns, called as in the table unless one of them is."""
    name = "row" if not id_name or id_name in columns else id_name
    return {name: names, **columns}


def id_texts(column: Any) -> pa.Array:
    """Return ids as text, whatever they are in the file: those of several files may differ."""
    plain = column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
    if is_text(plain.type):
        return pc.fill_null(plain.cast(pa.string()), "").combine_chunks()
    return pa.array(["" if text is None else text for text in as_text(plain)], pa.string())


def write_csv(batches: Iterator[pa.Table], file: Any, *, keep_formulas: bool = False) -> None:
    """Write rows as CSV to a file or path.

    Text that a spreadsheet would run as a formula gets an apostrophe before it, which makes text of
    it there, unless formulas are to be kept.
    """
    first, rest = _first(batches if keep_formulas else map(without_formulas, batches))
    with csv.CSVWriter(file, first.schema) as writer:
        for batch in rest:
            writer.write(batch)


def without_formulas(table: pa.Table) -> pa.Table:
    """Return a table with an apostrophe before text, in names as well, that is a formula."""
    names = _quoted(pa.array(table.column_names, pa.string())).to_pylist()
    columns = [_quoted(c) if pa.types.is_string(c.type) else c for c in table.columns]
    return pa.table(columns, names)


def _quoted(column: Any) -> Any:
    formula = pc.match_substring_regex(column, FORMULA)
    number = pc.match_substring_regex(column, NUMBER)
    quote = pc.binary_join_element_wise("'", column, "")
    return pc.if_else(pc.and_not(formula, number), quote, column)


def write_parquet(batches: Iterator[pa.Table], file: Any) -> None:
    """Write rows as Parquet."""
    first, rest = _first(batches)
    with parquet.ParquetWriter(file, first.schema) as writer:
        for batch in rest:
            writer.write(batch)


def write_json_lines(batches: Iterator[pa.Table], file: Any) -> None:
    """Write each row as a JSON object."""
    for batch in _first(batches)[1]:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist())
        file.write("".join(lines).encode())


def _first(batches: Iterator[pa.Table]) -> tuple[pa.Table, Iterator[pa.Table]]:
    """Return the first batch, whose columns all have, and all of them."""
    first = next(batches, None)
    if first is None:
        raise TableError("The table has no rows.")
    return first, _chained(first, batches)


def _chained(first: pa.Table, rest: Iterator[pa.Table]) -> Iterator[pa.Table]:
    yield first
    for batch in rest:
        yield batch.cast(first.schema)
