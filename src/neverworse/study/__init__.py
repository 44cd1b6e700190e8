"""The study of a fit to a table: everything that a report says, and the files of the fit."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neverworse.study._study import (
    ColumnFacts,
    Comparison,
    DataFacts,
    FileFacts,
    ModelFacts,
    Numbers,
    Study,
    Verdict,
)

if TYPE_CHECKING:  # at run time, when a name is first asked for: a report takes no estimators
    from neverworse.study._assess import assess
    from neverworse.study._choice import check_choice, named
    from neverworse.study._files import OUTPUTS, REPORT, read_study, write_outputs
    from neverworse.study._fit import add_unlabeled, feature_columns, fit_table, looks_at
    from neverworse.study._settings import FitSettings, ThresholdRule
    from neverworse.study._stacked import candidates_named
    from neverworse.study.labeling import (
        LABELS,
        Labeling,
        in_points,
        read_answers,
        stored_labels,
        write_questions,
    )
    from neverworse.study.labeling._server import listening, serve
    from neverworse.study.report import write_report

__all__ = [
    "LABELS",
    "OUTPUTS",
    "REPORT",
    "ColumnFacts",
    "Comparison",
    "DataFacts",
    "FileFacts",
    "FitSettings",
    "Labeling",
    "ModelFacts",
    "Numbers",
    "Study",
    "ThresholdRule",
    "Verdict",
    "add_unlabeled",
    "assess",
    "candidates_named",
    "check_choice",
    "feature_columns",
    "fit_table",
    "in_points",
    "listening",
    "looks_at",
    "named",
    "read_answers",
    "read_study",
    "serve",
    "stored_labels",
    "write_outputs",
    "write_questions",
    "write_report",
]

_MODULE_OF = {
    **dict.fromkeys(("assess",), "_assess"),
    **dict.fromkeys(("check_choice", "named"), "_choice"),
    **dict.fromkeys(("OUTPUTS", "REPORT", "read_study", "write_outputs"), "_files"),
    **dict.fromkeys(("add_unlabeled", "feature_columns", "fit_table", "looks_at"), "_fit"),
    "candidates_named": "_stacked",
    **dict.fromkeys(("FitSettings", "ThresholdRule"), "_settings"),
    **dict.fromkeys(
        ("LABELS", "Labeling", "in_points", "read_answers", "stored_labels", "write_questions"),
        "labeling",
    ),
    **dict.fromkeys(("listening", "serve"), "labeling._server"),
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value
