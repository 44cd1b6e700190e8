"""Uses of saved models: predictions, a batch of rows at a time, and audits on tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

from neverworse._typing import AnyArray
from neverworse._words import count, quoted
from neverworse.estimators import Audit, audit
from neverworse.tables._classifier import TableClassifier, id_texts, outputs, with_names
from neverworse.tables._errors import ModelFileError, TableError, believing, in_options
from neverworse.tables.preparation import TablePreparation, label_texts, row_weights
from neverworse.tables.preparation.columns import check_columns, check_known, find_column, numbers
from neverworse.tables.preparation.notation import DATES, Reading
from neverworse.tables.preparation.plan import from_entry, text_columns
from neverworse.tables.reading import check_unique, stream_batches
from neverworse.tables.reading.files import TableFile
from neverworse.tables.reading.formats import TEXT, ReadOptions, written

USING = "The model cannot predict these rows"
AUDITING = "A model cannot predict this table"
MAX_LEVELS = 1000  # of new ones that are counted separately


@dataclass
class Noticed:
    """What was noticed while rows were predicted: counts, unknown columns and levels."""

    n_rows: int = 0
    # How many rows each class was predicted for.
    classes: Counter[str] = field(default_factory=Counter)
    expected: tuple[str, ...] = ()  # columns that the model is known not to use
    extra: tuple[str, ...] = ()  # other columns of the table that the model does not know
    # Values of categories that the model was not fitted to.
    new_levels: dict[str, Counter[str]] = field(default_factory=dict)

    def sentences(self) -> Iterator[str]:
        if self.extra:
            yield f"Ignored {count(len(self.extra), 'column')}: {quoted(self.extra)}."
        for name, levels in self.new_levels.items():
            n_rows = sum(levels.values())
            most = [level for level, _ in levels.most_common(3)]
            yield (
                f"Column {name!r} has values that the model has not seen, in "
                f"{count(n_rows, 'row')}: {quoted(most)}{' ...' if len(levels) > 3 else ''}. They "
                "are treated as rare levels or, if there were none, as the most frequent one."
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
    """Yield predictions of one batch of rows after another; rows have ids, or else numbers."""
    ids = [] if id_name is None else [id_name]
    with believing(USING):
        preparation = model.preparation_.with_decimal(options.decimal)
        used = preparation.used_names
        options = replace(options, decimal=preparation.decimal)
        types = dict.fromkeys(ids, TEXT) | _types(preparation, options.decimal or ".")
        if set(map(type, used)) - {str}:
            raise TypeError

    def check(file_name: str, names: Sequence[str]) -> None:
        with believing(USING):
            check_columns(names, used)
            check_unique(file_name, [name for name in names if name in {*used, *ids}])
            check_known(names, ids, "id")
            known = {*preparation.feature_names_in_, *ids, *noticed.expected, *noticed.extra}
            noticed.extra += tuple(name for name in names if name not in known)

    def predicted(table: pa.Table) -> pa.Table:
        for name, levels in preparation.new_levels(table).items():
            counter = noticed.new_levels.setdefault(name, Counter())
            if len(counter) < MAX_LEVELS:
                counter.update(levels)
        features = preparation.transform(table, first_row=noticed.n_rows)
        best, scores, shares = outputs(model.estimator_, features)
        names = [str(name) for name in model.classes_.tolist()]
        columns = {"prediction": pa.array(names).take(pa.array(best)), "score": scores}
        if probabilities:
            if shares is None:
                fix = "Leave out --probabilities."
                raise TableError("This model has no probabilities.", fix, code="option")
            columns |= {f"probability: {name}": shares[:, k] for k, name in enumerate(names)}
        row_names = np.arange(noticed.n_rows, noticed.n_rows + len(best)) + 1
        id_column = pa.array(row_names) if id_name is None else id_texts(table.column(id_name))
        noticed.n_rows += len(best)
        counts = np.bincount(best, minlength=len(names)).tolist()
        noticed.classes.update(dict(zip(names, counts, strict=True)))
        return pa.table(with_names(columns, id_name, id_column))

    for file in files:
        for batch in stream_batches(file, options, types, check):
            if batch.num_rows:
                with believing(USING):
                    found = predicted(batch)
                yield found


def _types(preparation: TablePreparation, decimal: str) -> dict[str, pa.DataType]:
    """Return the types that PyArrow converts text to; the text of other columns is parsed later."""
    types = dict.fromkeys(preparation.used_names, TEXT)
    for name in types:
        reading, native = from_entry(name, preparation.plan_[name]), preparation.types_[name]
        if reading == Reading("number", decimal) and not native.startswith(("bool", "time")):
            types[name] = pa.float64()
        elif reading == DATES:
            # The nine digits of a nanosecond cannot be read in another unit.
            unit = "ns" if native.startswith("timestamp[ns") else "us"
            types[name] = pa.timestamp(unit, "UTC" if "tz=" in native else None)
    return types


# Audits


class OnTable:
    """Any fitted classifier as one that predicts the rows of a fixed table, with text classes."""

    def __init__(self, model: Any, table: pa.Table) -> None:
        if not hasattr(model, "classes_"):
            problem = f"A {type(model).__name__} is not a classifier: it has no classes."
            raise TableError(problem, code="option")
        self.estimator_ = model
        classes = spelled(model.classes_)
        # As text, classes may be in another order: 10 is before 2.
        self._order = np.argsort(classes)
        self.classes_ = classes[self._order]
        self._rows = _rows_for(model, table)
        for name in ("predict_proba", "decision_function"):
            if hasattr(model, name):  # an audit looks for it
                setattr(self, name, partial(self._in_order, getattr(model, name)))

    def predict(self, X: Any) -> AnyArray:  # noqa: ARG002
        return spelled(self.estimator_.predict(self._rows))

    def _in_order(self, method: Callable[[Any], Any], X: Any) -> AnyArray:  # noqa: ARG002
        scores = np.asarray(method(self._rows))
        if scores.ndim == 2:
            return scores[:, self._order]
        return scores if self._order[0] == 0 else -scores


def audit_table(
    candidate: Any,
    baseline: Any,
    table: pa.Table,
    target: str,
    *,
    markers: tuple[str, ...] = (),
    weight: str | None = None,
    ignored: tuple[str, ...] = (),
    **settings: Any,
) -> Audit:
    """Compare two fitted classifiers on a table of which some rows have a label, in `target`.

    `markers` mark unlabeled rows besides empty cells, `weight` is a column of weights, and columns
    in `ignored` are no features; for `settings` see `neverworse.audit`.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from neverworse.tables import TableClassifier, audit_table
    >>> table = pa.table({"age": [20, 30, 40, 50], "label": ["young", "young", None, "old"]})
    >>> clf = TableClassifier().fit(table.drop_columns("label"), table["label"].to_pylist())
    >>> audit_table(clf, clf, table, "label").worst_case  # of a model against itself
    0.0
    """
    texts, codes = label_texts(find_column(table, target, "target"), markers)
    labels = spelled(np.array(texts, object))
    weights = None if weight is None else row_weights(weight, find_column(table, weight, "weight"))
    check_known(table.column_names, ignored, "drop")
    rows = table.drop_columns({target, *ignored, *([] if weight is None else [weight])})
    prior = settings.get("class_prior")
    if isinstance(prior, dict):
        settings["class_prior"] = dict(zip(spelled(list(prior)), prior.values(), strict=True))
    with believing(AUDITING):
        # Messages name the types of the models.
        new, old = (type(type(m).__name__, (OnTable,), {})(m, rows) for m in (candidate, baseline))
    try:
        with believing(AUDITING, ValueError, TypeError):
            return audit(
                new, old, rows, labels[codes], sample_weight=weights, missing_label=None, **settings
            )
    except (TableError, ModelFileError):
        raise
    except (ValueError, TypeError) as error:
        raise TableError(in_options(str(error)), code="option") from None


def reading_of(model: Any, options: ReadOptions) -> ReadOptions:
    """Return options to read a table with as the model was fitted."""
    if not isinstance(model, TableClassifier):
        return options
    with believing(AUDITING):
        preparation = model.preparation_.with_decimal(options.decimal)
        text = options.text | text_columns(preparation.plan_, preparation.decimal)
        return replace(options, decimal=preparation.decimal, text=text)


def spelled(classes: Any) -> AnyArray:
    """Return classes as text, the same for 1, 1.0, "1" and for True, "true"; None stays."""
    values = np.asarray(classes).tolist()
    texts = [None if value is None else written(value) for value in values]
    lower = [text and text.casefold() for text in texts]
    pairs = zip(texts, lower, strict=True)
    return np.array([low if low in ("true", "false") else text for text, low in pairs], object)


def _rows_for(model: Any, table: pa.Table) -> Any:
    """Return rows as the model knows them: a table, a data frame, or an array."""
    if isinstance(model, TableClassifier):
        return table
    kind = type(model).__name__
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        check_columns(table.column_names, list(names))
        if find_spec("pandas") is None:
            problem = f"This {kind} was fitted to a data frame, which needs pandas."
            raise TableError(problem, "Run: pip install pandas", code="option")
        return table.select(list(names)).to_pandas()
    expected = getattr(model, "n_features_in_", table.num_columns)
    if expected != table.num_columns:
        problem = f"This {kind} needs {expected:,} columns, but there are {table.num_columns:,}."
        raise TableError(problem, "Leave out those that are no features: --drop.", code="column")
    return np.column_stack([numbers(n, table.column(n)) for n in table.column_names])
