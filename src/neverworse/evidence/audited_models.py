"""The fitted classifiers of an audit: checked, asked for predictions, and recognised."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Mapping
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from neverworse._typing import AnyArray, Indices
from neverworse.evidence.candidates import Named, check_classifier, scores_of_model


def named_candidates(candidate: Any) -> Named:
    """Return the candidates with their names."""
    if not isinstance(candidate, (list, tuple)):
        return [("candidate", candidate)]
    pairs = list(candidate)
    if not pairs or not all(isinstance(p, tuple) and len(p) == 2 for p in pairs):
        raise ValueError(
            "candidate has to be a fitted classifier, or a list of (name, classifier)."
        )
    names = [name for name, _ in pairs]
    if len(set(names)) < len(names) or not all(isinstance(name, str) for name in names):
        raise ValueError(f"Names of candidates have to be different strings. Got: {names!r}")
    return pairs


def check_fitted(name: str, model: Any, loss: str) -> None:
    """Check that a classifier is fitted, and has what its loss takes."""
    if loss == "brier":
        check_classifier(f"The classifier {name!r}", model)
    if not hasattr(model, "predict") or isinstance(model, type):
        raise ValueError(f"{name!r} is no fitted classifier: {model!r}.")
    if hasattr(model, "fit"):
        check_is_fitted(model)
    if not hasattr(model, "classes_"):
        raise ValueError(f"{name!r} ({type(model).__name__}) has no classes_: is it a classifier?")


def shared_classes(baseline: Any, candidates: Named) -> AnyArray:
    """Return the classes, which all classifiers have to share."""
    classes = np.sort(np.asarray(baseline.classes_))
    for name, model in candidates:
        if np.sort(np.asarray(model.classes_)).tolist() != classes.tolist():
            raise ValueError(
                f"{name!r} has the classes {np.asarray(model.classes_).tolist()}, but the baseline "
                f"has {classes.tolist()}. Both have to be fitted to the same classes."
            )
    return classes


def responses(name: str, model: Any, X: Any, loss: str, classes: AnyArray) -> AnyArray:
    """Return codes of predicted classes, or probabilities with a column for each class."""
    if loss == "brier":
        n_rows = len(model.predict_proba(X))
        scores = scores_of_model(name, model, X, "predict_proba", n_rows)
        return scores.T if len(scores) > 1 else np.column_stack([1.0 - scores[0], scores[0]])
    predicted = np.asarray(model.predict(X))
    codes: Indices = np.minimum(np.searchsorted(classes, predicted), len(classes) - 1)
    if (classes[codes] != predicted).any():
        raise ValueError(f"{name!r} predicts classes that are not in its classes_.")
    return codes


def digest(X: Any) -> str:
    """Return a fingerprint of rows: their values, types and order."""
    found = hashlib.blake2b(digest_size=16)
    for part in _parts(X):
        values = np.asarray(part)
        found.update(f"{values.shape} {values.dtype.kind}".encode())
        if values.dtype.kind in "OUST":
            found.update("\x1f".join(map(str, values.ravel().tolist())).encode())
        else:
            found.update(np.ascontiguousarray(values).tobytes())
    return found.hexdigest()


def _parts(X: Any) -> Iterable[Any]:
    """Return the arrays of which rows consist."""
    if sparse.issparse(X):
        rows = X.tocsr()
        return rows.data, rows.indices, rows.indptr, rows.shape
    if hasattr(X, "columns"):
        return list(map(str, X.columns)), *(X[column] for column in X.columns)
    if hasattr(X, "n_rows"):  # rows in files: by their size, and by what the classifiers say
        return ((X.n_rows, X.n_columns),)
    return (X,)


def checked_answers(
    rows: AnyArray,
    labels: AnyArray,
    classes: AnyArray,
    asked: Container[int],
    given: Mapping[int, int],
) -> dict[int, int]:
    """Return codes of labels by row, or say what is wrong with them.

    Parameters
    ----------
    rows, labels : arrays
    classes : array of shape (n_classes,)
    asked : container of int
        Rows that were asked for.
    given : mapping of int to int
        Codes of earlier answers by row.
    """
    if rows.shape != labels.shape or rows.ndim != 1:
        raise ValueError(f"There are {rows.size} rows, but {labels.size} labels.")
    if rows.size and rows.dtype.kind not in "iu":
        raise ValueError("rows have to be integers: positions in X_unlabeled.")
    code_of = {value: code for code, value in enumerate(classes.tolist())}
    answers: dict[int, int] = {}
    for row, label in zip(rows.tolist(), labels.tolist(), strict=True):
        if row not in asked:
            raise ValueError(
                f"Row {row} was not asked for. Only rows that the audit draws at random may "
                "count: labels of rows that people choose would void its guarantee. Label the "
                "rows that next() returns; others may be used to refit the classifiers."
            )
        if label not in code_of:
            raise ValueError(
                f"Row {row} has the label {label!r}, which is none of the classes that the "
                f"classifiers know: {', '.join(map(repr, code_of))}."
            )
        code = code_of[label]
        known = answers.get(row, given.get(row, code))
        if known != code:
            raise ValueError(
                f"Row {row} has the label {label!r}, but was given "
                f"{classes.tolist()[known]!r} before. If that was a mistake, take it back "
                "with withdraw() first."
            )
        answers[row] = code
    return answers
