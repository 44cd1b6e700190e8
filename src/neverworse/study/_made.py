"""A study from what JSON made of it: values of the right types that go together."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Sized
from typing import Any

from neverworse.projection import Certificate
from neverworse.study._study import Study

LARGEST = 2**63  # more than anything that is counted here


def study_from(content: Any) -> Study:
    """Return the study that `Study.to_dict` gave; `ValueError` if it is anything else."""
    study: Study = made(Study, content, "study")
    # Parts that do not go together, which a fit never makes.
    _check_certificate(study.certificate)
    n_classes = len(study.data.classes)
    for scores in study.scores:
        n_bins = len(scores.edges) - 1
        for group in scores.groups:
            _check_lengths("scores", n_bins, group.supervised, group.projected)
    _check_lengths("changes.counts", n_classes, study.changes.counts, *study.changes.counts)
    for curve in (study.unlabeled_curve, study.labeled_curve):
        for line in () if curve is None else curve.lines:
            _check_lengths("a curve", len(curve.sizes) if curve else 0, line.error, line.loss)
    if study.comparison is not None:
        for numbers in study.comparison.all_numbers():
            _check_lengths("numbers", n_classes, numbers.classes, *numbers.confusion)
        methods = [each.method for each in study.comparison.methods]
        for part, name in (("verdict.model", study.verdict.model), ("model", study.model.name)):
            if name not in methods:
                raise ValueError(f"study.{part} is not in the comparison.")
    if study.model.decision is not None and study.model.decision.numbers is not None:
        tested = study.model.decision.numbers
        _check_lengths("numbers", n_classes, tested.classes, *tested.confusion)
    return study


def _check_lengths(what: str, length: int, *lists: Sized) -> None:
    if length < 1 or any(len(one) != length for one in lists):
        raise ValueError(f"The lists of {what} have lengths that do not go together.")


def _check_certificate(content: dict[str, Any]) -> None:
    """Raise `ValueError` unless it is what a certificate gave as a dictionary."""
    names = {field.name for field in dataclasses.fields(Certificate)}
    if set(content) != names | {"holds", "guaranteed_improvement", "summary"}:
        raise ValueError("study.certificate does not have the parts of Certificate.")
    parts = {name: content[name] for name in names}
    if parts["duality_gap"] is None:  # infinite
        parts["duality_gap"] = 0.0
    certificate = made(Certificate, parts, "study.certificate")
    made(str, content["summary"], "study.certificate.summary")
    for derived in ("holds", "guaranteed_improvement"):
        if content[derived] != getattr(certificate, derived):
            raise ValueError(f"study.certificate.{derived} does not follow from its numbers.")


def made(kind: Any, content: Any, where: str) -> Any:
    """Return a value of a type, or raise `ValueError` with where it is something else.

    Whole numbers are counts, so they are not negative, and no number is infinite.

    Parameters
    ----------
    kind : type
        A data class, tuple, dict, literal or union, of such types or of plain ones.
    content : object
        Of dictionaries, lists and scalars.
    where : str
        For messages.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return content
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        if not isinstance(content, dict) or set(content) != set(hints):
            raise ValueError(f"{where} does not have the parts of {_name(kind)}.")
        return kind(**{key: made(hints[key], content[key], f"{where}.{key}") for key in hints})
    if origin in (typing.Union, types.UnionType):
        return _first_of(inner, content, where)
    if origin is tuple:
        return _tuple(inner, content, where)
    if origin is typing.Literal:
        if not isinstance(content, str) or content not in inner:
            raise ValueError(f"{where} is {_shown(content)}.")
        return content
    if origin is dict:
        if not isinstance(content, dict):
            raise ValueError(f"{where} is no object.")
        return {key: made(inner[1], each, f"{where}.{key}") for key, each in content.items()}
    if not _is(kind, content):
        raise ValueError(f"{where} is {_shown(content)}, not {_name(kind)}.")
    return content


def _is(kind: Any, content: Any) -> bool:
    if kind is int:
        return type(content) is int and 0 <= content < LARGEST
    if kind is float:
        return type(content) in (int, float) and abs(content) < float("inf")
    return isinstance(content, kind)


def _tuple(kinds: tuple[Any, ...], content: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(content, list | tuple):
        raise ValueError(f"{where} is no list.")
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(content)
    if len(content) != len(kinds):
        raise ValueError(f"{where} has {len(content)} parts, not {len(kinds)}.")
    pairs = zip(kinds, content, strict=True)
    return tuple(made(kind, each, f"{where}[{k}]") for k, (kind, each) in enumerate(pairs))


def _first_of(kinds: tuple[Any, ...], content: Any, where: str) -> Any:
    """Return a value of the first type that fits."""
    error = None
    for kind in kinds:
        try:
            return made(kind, content, where)
        except ValueError as found:
            error = error or found
    assert error is not None
    raise error


def _shown(content: Any) -> str:
    text = repr(content)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _name(kind: Any) -> str:
    return getattr(kind, "__name__", str(kind))
