"""The study of a fit to a table: everything that a report says, and the files of the fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neverworse import _lazily
from neverworse.study._study import (
    ColumnFacts,
    Comparison,
    DataFacts,
    FileFacts,
    ModelFacts,
    Numbers,
    Study,
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
    from neverworse.study.labeling import Labeling
    from neverworse.study.labeling._server import listening, serve
    from neverworse.study.labeling._shown import (
        LABELS,
        asked_of,
        in_points,
        read_answers,
        stored_labels,
        write_questions,
    )
    from neverworse.study.report import page, write_report

__all__ = ["ColumnFacts", "Comparison", "DataFacts", "FileFacts", "ModelFacts", "Numbers", "Study"]
__all__ += ["FitSettings", "ThresholdRule", "add_unlabeled", "candidates_named", "named"]
__all__ += ["assess", "feature_columns", "fit_table", "looks_at"]
__all__ += ["OUTPUTS", "REPORT", "page", "read_study", "write_outputs", "write_report"]
__all__ += ["LABELS", "Labeling", "asked_of", "in_points", "listening", "read_answers", "serve"]
__all__ += ["stored_labels", "write_questions"]

__getattr__ = _lazily(
    __name__,
    {
        "_assess": "assess",
        "_decision": "ThresholdRule",
        "_files": "OUTPUTS REPORT read_study write_outputs",
        "_fit": "FitSettings add_unlabeled feature_columns fit_table looks_at",
        "_methods": "candidates_named named",
        "labeling": "Labeling",
        "labeling._server": "listening serve",
        "labeling._shown": "LABELS asked_of in_points read_answers stored_labels write_questions",
        "report": "page write_report",
    },
)
