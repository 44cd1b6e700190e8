"""From certain to confident: what labels show beyond a certificate, and which ones to ask for.

A ladder of evidence, each rung with its exact statement: `neverworse.audit` (certain),
`SequentialAudit` (with probability, exact, for a few new labels), `SafeStackingClassifier` (with
probability, in large samples, for the labels at hand). `suggest_labels` says which rows to label
for training.
"""

from neverworse.estimators import Audit
from neverworse.evidence.candidates import (
    CodedClassifier,
    MovedClassifier,
    default_candidates,
    fit_to_rows,
    labeled_folds,
    moved,
    out_of_fold,
)
from neverworse.evidence.comparisons import AuditResult
from neverworse.evidence.confident_step import Evidence, find_step
from neverworse.evidence.design import LabelSuggestions, suggest_labels
from neverworse.evidence.safe_stacking import FEWEST_LABELS, SafeStackingClassifier
from neverworse.evidence.sequential_audit import SequentialAudit

# Classes of which fitted models consist besides arrays: a model file may contain them.
FITTED_PARTS = (Audit, CodedClassifier, Evidence, MovedClassifier)

__all__ = [
    "FEWEST_LABELS",
    "FITTED_PARTS",
    "AuditResult",
    "Evidence",
    "LabelSuggestions",
    "SafeStackingClassifier",
    "SequentialAudit",
    "default_candidates",
    "find_step",
    "fit_to_rows",
    "labeled_folds",
    "moved",
    "out_of_fold",
    "suggest_labels",
]
