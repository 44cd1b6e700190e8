"""What labels show beyond a certificate, and which rows to label.

`neverworse.audit` states what is certain, `SequentialAudit` what is probable after a few new
labels, `SafeStackingClassifier` what the labels at hand show in large samples.
"""

from neverworse.estimators import Audit
from neverworse.evidence.candidates import (
    CodedClassifier,
    MovedClassifier,
    default_candidates,
    moved,
)
from neverworse.evidence.confident_step import Direction, Evidence
from neverworse.evidence.design import suggest_labels
from neverworse.evidence.safe_stacking import FEWEST_LABELS, SafeStackingClassifier
from neverworse.evidence.sequential_audit import SequentialAudit

# Classes besides arrays that fitted models consist of: a model file may contain them.
FITTED_PARTS = (Audit, CodedClassifier, Direction, Evidence, MovedClassifier)

__all__ = [
    "FEWEST_LABELS",
    "Evidence",
    "SafeStackingClassifier",
    "SequentialAudit",
    "default_candidates",
    "moved",
    "suggest_labels",
]
