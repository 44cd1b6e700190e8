"""The study of a fit to a table: everything that a report says, and the files of the fit."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from neverworse.study._study import (
    ColumnFacts,
    ColumnImportance,
    Comparison,
    DataFacts,
    FileFacts,
    Importance,
    ModelFacts,
    Numbers,
    Study,
    Verdict,
)

if TYPE_CHECKING:  # at run time, when a name is first asked for: a report takes no estimators
    from neverworse.study._assess import assess
    from neverworse.study._decision import ThresholdRule
    from neverworse.study._files import OUTPUTS, REPORT, read_study, write_outputs
    from neverworse.study._fit import (
        FitSettings,
        add_unlabeled,
        feature_columns,
        fit_table,
        looks_at,
    )
    from neverworse.study._methods import candidates_named, named
    from neverworse.study.labeling import (
        LABELS,
        Labeling,
        asked_of,
        in_points,
        read_answers,
        stored_labels,
        write_questions,
    )
    from neverworse.study.labeling._server import listening, serve
    from neverworse.study.report import page, write_report

__all__ = [
    "LABELS",
    "OUTPUTS",
    "REPORT",
    "ColumnFacts",
    "ColumnImportance",
    "Comparison",
    "DataFacts",
    "FileFacts",
    "FitSettings",
    "Importance",
    "Labeling",
    "ModelFacts",
    "Numbers",
    "Study",
    "ThresholdRule",
    "Verdict",
    "add_unlabeled",
    "asked_of",
    "assess",
    "candidates_named",
    "feature_columns",
    "fit_table",
    "in_points",
    "listening",
    "looks_at",
    "named",
    "page",
    "read_answers",
    "read_study",
    "serve",
    "stored_labels",
    "write_outputs",
    "write_questions",
    "write_report",
]

_NAMES = {
    "_assess": "assess",
    "_decision": "ThresholdRule",
    "_files": "OUTPUTS REPORT read_study write_outputs",
    "_fit": "FitSettings add_unlabeled feature_columns fit_table looks_at",
    "_methods": "candidates_named named",
    "labeling": "LABELS Labeling asked_of in_points read_answers stored_labels write_questions",
    "labeling._server": "listening serve",
    "report": "page write_report",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    return value
