"""The study of a fit to a table: the contents of its report, and its files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from neverworse import _lazily
from neverworse.study._assess import assess
from neverworse.study._files import OUTPUTS, REPORT, STUDY, read_study, write_outputs
from neverworse.study._fit import (
    FitSettings,
    ThresholdRule,
    add_unlabeled,
    feature_columns,
    fit_table,
    leaking_columns,
    looks_at,
)
from neverworse.study._methods import candidates_named, named
from neverworse.study._study import DataFacts, FileFacts, Study
from neverworse.study.labeling import Labeling
from neverworse.study.labeling._shown import (
    LABELS,
    asked_of,
    in_points,
    read_answers,
    write_questions,
)
from neverworse.study.report import page, write_report

if TYPE_CHECKING:  # at run time, when a name is first asked for: its packages are optional
    from neverworse.study.labeling._server import listening, serve

__all__ = ["DataFacts", "FileFacts", "FitSettings", "Study", "ThresholdRule"]
__all__ += ["add_unlabeled", "candidates_named", "named"]
__all__ += ["assess", "feature_columns", "fit_table", "leaking_columns", "looks_at"]
__all__ += ["OUTPUTS", "REPORT", "STUDY", "page", "read_study", "write_outputs", "write_report"]
__all__ += ["LABELS", "Labeling", "asked_of", "in_points", "listening", "read_answers", "serve"]
__all__ += ["write_questions"]

__getattr__ = _lazily(__name__, "labeling._server")
