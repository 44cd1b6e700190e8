"""``report.html``: a study of a table as one page that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from neverworse._files import write_whole
from neverworse.pages import render
from neverworse.study._study import Coefficient, ModelFacts, Study, VerdictKind
from neverworse.study.report import _charts, _rows
from neverworse.study.report._canvas import drawing_style, looks
from neverworse.tables import grouped

# In the order of the questions of somebody who has to use the model, and then to defend it. Each
# has a template of its name.
SECTIONS = {
    "numbers": "How good it is",
    "model": "The model in the file",
    "comparison": "Other methods",
    "curves": "Is more data worth it?",
    "importance": "What matters most",
    "coefficients": "Weights, the largest first",
    "changes": "Predictions that changed",
    "notes": "Notes",
    "certificate": "What is proved",
    "meaning": "What “never worse” means",
    "scores": "How the classes score",
    "data": "Data",
    "reproduction": "How to reproduce this",
}
PARTS = {
    "unlabeled_curve": "the learning curve over unlabeled rows",
    "labeled_curve": "the learning curve over labeled rows",
    "comparison": "the comparison of methods",
}
# What the badge says, and its colour: green is for a projected model that is to be used.
BADGES: dict[VerdictKind, tuple[str, str]] = {
    "projected": ("Never worse", "good"),
    "nothing to gain": ("Same as supervised", "neutral"),
    "supervised": ("Worse on held-out rows", "bad"),
    "stacked": ("Likely better, not certain", "neutral"),
    "another method": ("Another method is better", "neutral"),
    "undecided": ("Not guaranteed", "bad"),
}
UNPROVED = ("Better on held-out rows, not guaranteed", "neutral")
LARGEST_MATRIX = 12  # classes; more do not fit on a page
MOST_SCORES = 12  # classes whose scores are drawn
MOST_WEIGHTS = 20  # weights that are drawn


def page(study: Study) -> str:
    """Return a study as one HTML page: no network, light and dark, fit for print."""
    missing = [what for part, what in PARTS.items() if getattr(study, part) is None]
    absent = {
        "numbers": study.comparison is None,
        "curves": study.unlabeled_curve is None and study.labeled_curve is None,
        "changes": not study.changes.n_changed,
        "notes": not study.notes and not missing,
    }
    standing = _standing(study)
    is_unproved = study.verdict.kind == "projected" and standing != "never worse"
    weights = sorted(study.coefficients, key=_effect, reverse=True)
    positive = study.data.positive
    of_positive = [each for each in weights if positive in (None, each.class_name)]
    with drawing_style():
        return render(
            "neverworse.study.report",
            "report.html",
            study=study,
            sections={
                key: title
                for key, title in SECTIONS.items()
                if not absent.get(key, getattr(study, key, True) is None)
            },
            badge=UNPROVED if is_unproved else BADGES[study.verdict.kind],
            missing=missing,
            standing=standing,
            to_look_at=grouped({each.name: each.look for each in study.data.columns}),
            weights=weights,
            n_weights=len(of_positive),
            drawn_weights=[each for each in of_positive[:MOST_WEIGHTS] if _effect(each) > 0],
            moved=any(each.supervised != each.projected for each in weights),
            several=len(study.data.classes) > 2,
            cut=_cut(study.model),
            charts=_charts,
            looks=looks,
            rows=_rows,
            LARGEST_MATRIX=LARGEST_MATRIX,
            MOST_SCORES=MOST_SCORES,
            MOST_WEIGHTS=MOST_WEIGHTS,
        )


def write_report(study: Study, path: str | Path) -> None:
    """Write `page` to a file, whole or not at all; what is there is replaced."""
    # Half a surrogate pair, which a column name may contain, is no character.
    content = page(study).encode("utf-8", errors="replace")
    write_whole(Path(path), lambda file: file.write(content))


def _standing(study: Study) -> str:
    """Return what the certificate says, in a word."""
    if study.certificate["reason"]:
        return "same"
    return "never worse" if study.certificate["holds"] else "not guaranteed"


def _cut(model: ModelFacts) -> dict[str, Any]:
    """Return from which least squares score on a class is predicted, and by whom."""
    found = model.decision
    if found is None:
        return {"score": 0.5, "is_of_file": True}
    is_score = model.name in ("supervised", "projected") and not found.calibrated
    score = found.threshold if is_score and found.threshold is not None else 0.5
    return {"score": score, "is_of_file": is_score}


def _effect(each: Coefficient) -> float:
    return max(abs(each.projected_scaled), abs(each.supervised_scaled))
