"""Audit saved models on a table, each in the form that it knows rows in."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

from neverworse._typing import AnyArray
from neverworse.estimators import Audit, audit
from neverworse.tables._classifier import TableClassifier
from neverworse.tables._errors import ModelFileError, TableError, believing, in_options
from neverworse.tables.preparation.plan_file import text_columns
from neverworse.tables.preparation.target import label_texts
from neverworse.tables.preparation.values import (
    check_columns,
    check_known,
    find_column,
    numbers,
    row_weights,
)
from neverworse.tables.reading.options import ReadOptions, spells_number

USING = "A model cannot predict this table"


class OnTable:
    """A fitted classifier that predicts the rows of a certain table, with classes as text.

    Models that were made by others know rows as an array or a data frame, and classes as numbers
    or booleans; here all of them can be compared.
    """

    def __init__(self, model: Any, table: pa.Table) -> None:
        if not hasattr(model, "classes_"):
            problem = f"A {type(model).__name__} is no classifier, so it has no classes."
            raise TableError(problem, code="option")
        self.estimator_ = model
        classes = spelled(model.classes_)
        # As text, classes may be in another order: 10 is before 2.
        self._order = np.argsort(classes)
        self.classes_ = classes[self._order]
        self._rows = _rows_for(model, table)

    def predict(self, X: Any) -> AnyArray:  # noqa: ARG002
        """Return the classes of all rows."""
        return spelled(self.estimator_.predict(self._rows))

    def __getattr__(self, name: str) -> Any:
        # Only what the model has: an audit looks for it.
        if name not in ("predict_proba", "decision_function"):
            raise AttributeError(name)
        method = getattr(self.__dict__["estimator_"], name)
        return lambda _: self._in_order(np.asarray(method(self._rows)))

    def _in_order(self, scores: AnyArray) -> AnyArray:
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

    `markers` mark unlabeled rows besides empty cells, `weight` is the column of the weights of
    rows, and columns in `ignored` are no features; for `settings` see `neverworse.audit`.
    """
    texts, codes = label_texts(find_column(table, target, "target"), markers)
    labels = np.array([*(None if text is None else _spelled(text) for text in texts)], object)
    weights = None if weight is None else row_weights(weight, find_column(table, weight, "weight"))
    check_known(table.column_names, ignored, "drop")
    rows = table.drop_columns({target, *ignored, *([] if weight is None else [weight])})
    if isinstance(settings.get("class_prior"), dict):
        shares = settings["class_prior"].items()
        settings["class_prior"] = {_spelled(name): share for name, share in shares}
    with believing(USING):
        both = _on_table(candidate, rows), _on_table(baseline, rows)
    try:
        with believing(USING, ValueError, TypeError):
            return audit(
                both[0],
                both[1],
                rows,
                labels[codes],
                sample_weight=weights,
                missing_label=None,
                **settings,
            )
    except (TableError, ModelFileError):
        raise
    except (ValueError, TypeError) as error:
        raise TableError(in_options(str(error)), code="option") from None


def _on_table(model: Any, table: pa.Table) -> OnTable:
    """Return a model of this table, of a class with the name that messages should say."""
    named: type[OnTable] = type(type(model).__name__, (OnTable,), {})
    return named(model, table)


def reading_of(model: Any, options: ReadOptions) -> ReadOptions:
    """Return options for a table that a model is to predict: it is read as the model knows rows."""
    if not isinstance(model, TableClassifier):
        return options
    with believing(USING):
        preparation = model.preparation_
        decimal = options.decimal or preparation.decimal
        text = options.text | text_columns(preparation.plan_, decimal)
        return replace(options, decimal=decimal, text=text)


def spelled(classes: Any) -> AnyArray:
    """Return classes as text, the same for 1, 1.0, "1" and for True, "true"."""
    return np.array([_spelled(value) for value in np.asarray(classes).tolist()], object)


def _spelled(value: Any) -> str:
    text = str(value).strip()
    if text.casefold() in ("true", "false"):
        return text.casefold()
    if spells_number(text) and float(text).is_integer() and abs(float(text)) < 2.0**53:
        return str(int(float(text)))
    return text


def _rows_for(model: Any, table: pa.Table) -> Any:
    """Return rows as the model knows them: a table, a data frame, or an array."""
    if isinstance(model, TableClassifier):
        return table
    kind = type(model).__name__
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        check_columns(table.column_names, list(names))
        if find_spec("pandas") is None:
            raise TableError(
                f"This {kind} was fitted to a data frame, and needs pandas, not installed here.",
                "Run: pip install pandas",
                code="option",
            )
        return table.select(list(names)).to_pandas()
    expected = getattr(model, "n_features_in_", table.num_columns)
    if expected != table.num_columns:
        raise TableError(
            f"This {kind} was fitted to {expected:,} columns without names, but the table has "
            f"{table.num_columns:,} besides the target.",
            "Leave others out: --drop.",
            code="column",
        )
    return np.column_stack([numbers(n, table.column(n)) for n in table.column_names])
