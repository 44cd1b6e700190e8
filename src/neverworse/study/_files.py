"""The files of a fit: all of them are there when they are complete, or none."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import types
import typing
from errno import EISDIR
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from neverworse import __version__
from neverworse._files import only_one, scratch_folder, take_places
from neverworse._words import cropped
from neverworse.study._methods import PROJECTED
from neverworse.study._study import Study, checksum
from neverworse.study.report import write_report
from neverworse.tables import printable, save_model, with_names, write_csv

if TYPE_CHECKING:
    from neverworse.study._assess import ScoredRows
    from neverworse.study._choice import Chosen

LARGEST = 2**63  # more than anything that is counted here


def study_from(content: Any) -> Study:
    """Return the study that `Study.to_dict` gave; `ValueError` if it is anything else."""
    if isinstance(content, dict):
        content = dict(content)
        if content.pop("sha256", None) != checksum(content):
            raise ValueError("It was changed after the fit, or written by another version.")
    study: Study = from_json(Study, content, "study")
    return study


def from_json(kind: Any, content: Any, where: str) -> Any:
    """Return content of a JSON file as a type; `ValueError` names what has another type.

    Integers are counts, which are not negative, and no number is infinite.
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, types.UnionType):
        first, *others = inner  # None comes last
        for each in others:
            with contextlib.suppress(ValueError):
                return from_json(each, content, where)
        return from_json(first, content, where)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        if isinstance(content, dict) and set(content) == set(hints):
            parts = {key: from_json(hints[key], content[key], f"{where}.{key}") for key in hints}
            return kind(**parts)
    elif origin is dict and isinstance(content, dict):
        return {key: from_json(inner[1], each, f"{where}.{key}") for key, each in content.items()}
    elif origin is tuple and isinstance(content, list | tuple):
        kinds = inner[:1] * len(content) if inner[-1] is Ellipsis else inner
        if len(content) == len(kinds):
            places = (f"{where}[{k}]" for k in range(len(content)))
            return tuple(map(from_json, kinds, content, places))
    elif _is_plain(kind, content):
        return content
    name = getattr(kind, "__name__", str(kind))
    raise ValueError(f"{where} is {cropped(repr(content))}, not {name}.")


def _is_plain(kind: Any, content: Any) -> bool:
    if typing.get_origin(kind) is typing.Literal:
        return content in typing.get_args(kind)
    if kind is int:
        return type(content) is int and 0 <= content < LARGEST
    if kind is float:
        return type(content) in (int, float) and abs(content) < float("inf")
    return kind is Any or (isinstance(kind, type) and isinstance(content, kind))


MODEL, PREDICTIONS, CERTIFICATE = "model.skops", "predictions.csv", "certificate.json"
STUDY, REPORT = "study.json", "report.html"
NO_FEATURES = ("target", "id", "weight")
DATA_FACTS = ("files", "target", "n_rows", "n_labeled", "n_unlabeled")  # in the certificate
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
    """Write all files of a fit, or none, so that files of two fits are never mixed."""
    for path in (folder / name for name in OUTPUTS):
        if path.is_dir():
            raise IsADirectoryError(EISDIR, os.strerror(EISDIR), str(path))
    data, model = study.data, chosen.facts
    facts = {
        "target": data.target,
        "no_features": [each.name for each in data.columns if each.kind in NO_FEATURES],
        "classes": [each.name for each in data.classes],
        "n_labeled": data.n_labeled,
        "n_unlabeled": data.n_unlabeled,
        "model": model.name,
        "claim": study.claim if model.certified else " ".join(model.words),
        "made": study.made,
    }
    # Another run may write the same folder before or after, but not at the same time.
    with only_one(folder, wait=True), scratch_folder(".neverworse-", folder) as scratch:
        sha256 = save_model(chosen.model, scratch / MODEL, facts=facts, compiled=model.compiled)
        rows = iter([predictions(chosen, scored, id_name)])
        write_csv(rows, scratch / PREDICTIONS, keep_formulas=keep_formulas)
        _write_json(scratch / CERTIFICATE, certificate_document(study, sha256))
        _write_json(scratch / STUDY, study.to_dict())
        write_report(study, scratch / REPORT)
        return take_places(folder, OUTPUTS, scratch)


def predictions(chosen: Chosen, scored: ScoredRows, id_name: str | None) -> pa.Table:
    """Return the table of the predictions for the unlabeled rows.

    A projected model has soft labels; one with a threshold or a calibration has probabilities.
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
    if chosen.facts.decision is not None:
        for k, name in enumerate(scored.classes):
            columns[f"probability: {name}"] = chosen.probabilities[:, k]
    return pa.table(with_names(columns, id_name, scored.row_names))


def certificate_document(study: Study, sha256: str) -> dict[str, Any]:
    """Return the certificate, if the model has one, and what it is about."""
    content = study.to_dict()
    data, model = content["data"], content["model"]
    certified = model["certified"]
    return {
        "claim": study.claim if certified else " ".join(model["words"]),
        "certificate": study.certificate if certified else None,
        "audit": model["audit"],
        "ladder": content["ladder"],
        "model": {"file": MODEL, "sha256": sha256, "name": model["name"], "certified": certified},
        "data": {key: data[key] for key in DATA_FACTS},
        "settings": study.settings,
        "made": {"with": f"neverworse {study.version}", "at": study.made, "by": study.command},
    }


def read_study(folder: Path) -> Study:
    """Read the study of a fit from its results folder, or raise `ValueError`."""
    path, content = folder / STUDY, None
    if not path.is_file():
        raise ValueError(
            f"{printable(folder)} has no {STUDY}, so it is not a results folder. Give the "
            "--out folder of neverworse fit."
        )
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return study_from(content)
    except (ValueError, RecursionError) as error:
        version = content.get("version") if isinstance(content, dict) else None
        problem = "is damaged"
        if isinstance(version, str) and version != __version__:
            problem = (
                f"was written by neverworse {printable(version)}, which this one ({__version__}) "
                "does not read"
            )
        raise ValueError(
            f"{printable(path)} {problem}: {error} Run neverworse fit again."
        ) from None


def _write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    # Half a surrogate pair, which a column name may contain, is no character.
    path.write_bytes(f"{text}\n".encode(errors="replace"))
