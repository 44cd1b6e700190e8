"""The files of a fit: all of them are there when they are complete, or none."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
import types
import typing
from collections.abc import Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from neverworse import __version__
from neverworse._files import only_one, scratch_folder, take_places
from neverworse._words import cropped
from neverworse.projection import Certificate
from neverworse.study._choice import Chosen
from neverworse.study._methods import PROJECTED
from neverworse.study._side_by_side import Predicted, ScoredRows
from neverworse.study._study import Study
from neverworse.study.report import write_report
from neverworse.tables import printable, save_model, with_names, write_csv

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
    for curve in (study.unlabeled_curve, study.labeled_curve):
        for line in () if curve is None else curve.lines:
            _check_lengths("a curve", len(curve.sizes) if curve else 0, line.error, line.loss)
    if study.comparison is not None:
        every = [study.comparison.baseline, *(each.numbers for each in study.comparison.methods)]
        for numbers in every:
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
        raise ValueError(f"The lists of {what} have inconsistent lengths.")


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

    Types are data classes, tuples, dictionaries, literals and unions, of such types or of plain
    ones. Whole numbers are counts, so they are not negative, and no number is infinite.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any:
        return content
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        if not isinstance(content, dict) or set(content) != set(hints):
            raise ValueError(f"{where} does not have the parts of {kind.__name__}.")
        return kind(**{key: made(hints[key], content[key], f"{where}.{key}") for key in hints})
    if origin in (typing.Union, types.UnionType):
        errors = []
        for each in inner:
            try:
                return made(each, content, where)
            except ValueError as error:
                errors.append(error)
        raise errors[0]
    if origin is tuple:
        return _tuple(inner, content, where)
    if origin is typing.Literal:
        if not isinstance(content, str) or content not in inner:
            raise ValueError(f"{where} is {cropped(repr(content))}.")
        return content
    if origin is dict:
        if not isinstance(content, dict):
            raise ValueError(f"{where} is not an object.")
        return {key: made(inner[1], each, f"{where}.{key}") for key, each in content.items()}
    if not _is(kind, content):
        name = getattr(kind, "__name__", str(kind))
        raise ValueError(f"{where} is {cropped(repr(content))}, not {name}.")
    return content


def _is(kind: Any, content: Any) -> bool:
    if kind is int:
        return type(content) is int and 0 <= content < LARGEST
    if kind is float:
        return type(content) in (int, float) and abs(content) < float("inf")
    return isinstance(content, kind)


def _tuple(kinds: tuple[Any, ...], content: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(content, list | tuple):
        raise ValueError(f"{where} is not a list.")
    if kinds[-1] is Ellipsis:
        kinds = (kinds[0],) * len(content)
    if len(content) != len(kinds):
        raise ValueError(f"{where} has {len(content)} parts, not {len(kinds)}.")
    pairs = zip(kinds, content, strict=True)
    return tuple(made(kind, each, f"{where}[{k}]") for k, (kind, each) in enumerate(pairs))


MODEL, PREDICTIONS, CERTIFICATE = "model.skops", "predictions.csv", "certificate.json"
STUDY, REPORT = "study.json", "report.html"
NO_FEATURES = ("target", "id", "weight")
OUTPUTS = (MODEL, PREDICTIONS, CERTIFICATE, STUDY, REPORT)


def write_outputs(
    folder: Path,
    chosen: Chosen,
    study: Study,
    scored: ScoredRows,
    id_name: str | None,
    *,
    keep_formulas: bool = False,
) -> list[Path]:
    """Write the model, its predictions, its certificate and its report into a folder.

    Everything is written beside the folder's files first, and takes their places in the end, so
    that files of two fits are never mixed because a disk was full or somebody stopped the program.
    """
    for name in OUTPUTS:
        if (folder / name).is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(folder / name))
    # Somebody else's results may be there before, or come after, but do not get between.
    with only_one(folder, wait=True), scratch_folder(".neverworse-", folder) as scratch:
        facts = {
            "target": study.data.target,
            "no_features": [c.name for c in study.data.columns if c.kind in NO_FEATURES],
            "classes": [facts.name for facts in study.data.classes],
            "n_labeled": study.data.n_labeled,
            "n_unlabeled": study.data.n_unlabeled,
            "model": chosen.facts.name,
            "claim": study.claim if chosen.facts.certified else " ".join(chosen.facts.words),
            "made": study.made,
        }
        sha256 = save_model(
            chosen.model, scratch / MODEL, facts=facts, compiled=chosen.facts.compiled
        )
        rows = iter([predictions(chosen, scored, id_name)])
        write_csv(rows, scratch / PREDICTIONS, keep_formulas=keep_formulas)
        _write_json(scratch / CERTIFICATE, certificate_document(study, sha256))
        _write_json(scratch / STUDY, study.to_dict())
        write_report(study, scratch / REPORT)
        return take_places(folder, OUTPUTS, scratch)


def predictions(chosen: Chosen, scored: ScoredRows, id_name: str | None) -> pa.Table:
    """Return what the chosen and the supervised model say of the unlabeled rows.

    Columns are the id or the number of the row, the class that the chosen model predicts, its score
    for this class, the class that the supervised model predicts with the same threshold, and
    whether the two differ. Of a projected model there is the soft label for the predicted class as
    well, and with more than two classes the soft labels of all of them; of one with a threshold or
    a calibration, there are the probabilities of all classes.
    """
    first, second = chosen.supervised, chosen.codes
    names = pa.array([str(name) for name in scored.classes])
    each, projected = np.arange(len(second)), chosen.facts.name == PROJECTED
    columns: dict[str, Any] = {
        "prediction": names.take(pa.array(second)),
        "score": chosen.scores,
        **({"soft_label": scored.soft_labels[each, second]} if projected else {}),
        "supervised_prediction": names.take(pa.array(first)),
        "changed": first != second,
    }
    if chosen.facts.decision is not None and chosen.probabilities is not None:
        for k, name in enumerate(scored.classes):
            columns[f"probability: {name}"] = chosen.probabilities[:, k]
    if projected and len(scored.classes) > 2:
        for k, name in enumerate(scored.classes):
            columns[f"soft_label: {name}"] = scored.soft_labels[:, k]
    return pa.table(with_names(columns, id_name, scored.row_names))


def read_predictions(path: Path, classes: Sequence[str]) -> tuple[Predicted, Predicted]:
    """Return the supervised and the chosen model, by what they say of the unlabeled rows.

    `ValueError` if `predictions` are something else.
    """
    wanted = dict.fromkeys(["supervised_prediction", "prediction"], pa.string())
    # An apostrophe keeps spreadsheets from taking names for formulas.
    names = pa.array([*classes, *(f"'{name}" for name in classes)])
    try:
        found = csv.read_csv(
            path,
            parse_options=csv.ParseOptions(newlines_in_values=True),
            convert_options=csv.ConvertOptions(include_columns=[*wanted], column_types=wanted),
        )
    except pa.ArrowException as error:
        raise ValueError(f"{path}: {error}") from None
    models = []
    for column in found.columns:
        codes = pc.index_in(column, names)
        if codes.null_count:
            raise ValueError(f"{path} has a class that the study does not have.")
        models.append(Predicted(codes.to_numpy().astype(np.intp) % len(classes), len(classes)))
    supervised, chosen = models
    return supervised, chosen


def certificate_document(study: Study, sha256: str) -> dict[str, Any]:
    """Return the certificate, and what it is about; none if the model has no certificate."""
    content = study.to_dict()
    data, model = content["data"], content["model"]
    shown = ("files", "target", "n_rows", "n_labeled", "n_unlabeled")
    return {
        "claim": study.claim if model["certified"] else " ".join(model["words"]),
        "certificate": study.certificate if model["certified"] else None,
        "audit": model["audit"],
        "ladder": content["ladder"],
        "model": {
            "file": MODEL,
            "sha256": sha256,
            "name": model["name"],
            "certified": model["certified"],
        },
        "data": {key: data[key] for key in shown},
        "settings": study.settings,
        "made": {"with": f"neverworse {study.version}", "at": study.made, "by": study.command},
    }


def read_study(folder: Path) -> Study:
    """Read what `write_outputs` wrote about a fit; `ValueError`, for people, if it is not there."""
    path = folder / STUDY
    if not path.is_file():
        raise ValueError(
            f"{printable(folder)} has no {STUDY}, so it is not a results folder. Give the "
            "--out folder of neverworse fit."
        )
    content = None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return study_from(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{printable(path)} {_origin(content)}: {error} Run neverworse fit again."
        ) from None


def _origin(content: Any) -> str:
    """Say what may be wrong with numbers that cannot be read."""
    version = content.get("version") if isinstance(content, dict) else None
    if not isinstance(version, str) or version == __version__:
        return "is damaged"
    return (
        f"was written by neverworse {printable(version)}, which this one ({__version__}) does not "
        "read"
    )


def _write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    # Half a surrogate pair, which a column name may contain, is no character.
    path.write_bytes(f"{text}\n".encode(errors="replace"))
