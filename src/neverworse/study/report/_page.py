"""``report.html``: a study of a table as one page that needs nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

from neverworse._files import write_whole
from neverworse.study._study import Study
from neverworse.study.report import (
    _sections_about,
    _sections_choice,
    _sections_evidence,
    _sections_model,
    _sections_verdict,
)
from neverworse.study.report._canvas import drawing_style
from neverworse.study.report._html import Markup, contents, document, section, tag

# In the order of the questions of somebody who has to use the model, and then to defend it.
SECTIONS: dict[str, tuple[str, Callable[[Study], Iterator[Markup]]]] = {
    "numbers": ("How good it is", _sections_verdict.numbers),
    "model": ("The model in the file", _sections_choice.model),
    "comparison": ("Other methods", _sections_evidence.comparison),
    "curves": ("Is more data worth it?", _sections_evidence.curves),
    "importance": ("What matters most", _sections_model.importance),
    "coefficients": ("Weights, the largest first", _sections_model.coefficients),
    "changes": ("Predictions that changed", _sections_model.changes),
    "notes": ("Notes", _sections_about.notes),
    "certificate": ("What is proved", _sections_about.certificate),
    "meaning": ("What “never worse” means", _sections_about.meaning),
    "scores": ("How the classes score", _sections_model.scores),
    "data": ("Data", _sections_about.data),
    "reproduction": ("How to reproduce this", _sections_about.reproduction),
}


def page(study: Study) -> str:
    """Return a study as one HTML page: no network, light and dark, fit for print.

    Parameters
    ----------
    study : Study
    """
    titles = {
        identity: title for identity, (title, _) in SECTIONS.items() if _is_there(study, identity)
    }
    with drawing_style():
        body = [
            _sections_verdict.headline(study),
            contents(titles.items()),
            *(section(key, title, *SECTIONS[key][1](study)) for key, title in titles.items()),
            tag("footer", tag("p", f"Made by neverworse {study.version}.", class_="soft")),
        ]
    sheets = "".join(_resource(name) for name in ("page.css", "study.css"))
    title = f"{study.data.target}: report of neverworse"
    return document(title, body, sheets, _resource("report.js"))


def write_report(study: Study, path: str | Path) -> None:
    """Write `page` to a file, whole or not at all.

    Parameters
    ----------
    study : Study
    path : path
        Where; what is there is replaced.
    """
    # Half a surrogate pair, which a column name may contain, is no character.
    content = page(study).encode("utf-8", errors="replace")
    write_whole(Path(path), lambda file: file.write(content))


def _is_there(study: Study, identity: str) -> bool:
    """Return whether a study has what a section is about."""
    if identity == "notes":
        return bool(study.notes) or any(
            getattr(study, part) is None for part in _sections_about.PARTS
        )
    if identity == "numbers":
        return study.comparison is not None
    if identity == "changes":
        return study.changes.n_changed > 0
    if identity == "curves":
        return study.unlabeled_curve is not None or study.labeled_curve is not None
    return getattr(study, identity, True) is not None


def _resource(name: str) -> str:
    return files("neverworse.study.report").joinpath(name).read_text("utf-8")
