"""The files of a fit: all of them are there when they are complete, or none."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from neverworse import __version__
from neverworse._files import only_one, scratch_folder, take_places
from neverworse.study._choice import Chosen
from neverworse.study._made import study_from
from neverworse.study._methods import PROJECTED
from neverworse.study._scored import ScoredRows
from neverworse.study._study import Study
from neverworse.study.report._page import write_report
from neverworse.tables import printable, save_model, with_names, write_csv

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

    Returns
    -------
    paths : list of Path
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
    row_names: Any = getattr(scored.row_names, "values", scored.row_names)
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
    return pa.table(with_names(columns, id_name, pa.array(row_names)))


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
    """Read what `write_outputs` wrote about a fit.

    Raises
    ------
    ValueError
        If the folder has no such file, or it is damaged. The message is meant for people.
    """
    path = folder / STUDY
    if not path.is_file():
        raise ValueError(
            f"{printable(folder)} has no {STUDY}, so it is no folder of results. Give what was "
            "--out of neverworse fit."
        )
    content = None
    try:
        content = json.loads(path.read_text(encoding="utf-8"), parse_constant=_no_number)
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


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number.")


def _write_json(path: Path, content: Any) -> None:
    text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
    # Half a surrogate pair, which a column name may contain, is no character.
    path.write_bytes(f"{text}\n".encode(errors="replace"))
