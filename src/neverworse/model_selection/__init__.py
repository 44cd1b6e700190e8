"""Splitters, scorers, learning curves and masks for data in which most rows have no label."""

from neverworse.model_selection._learning_curves import learning_curve
from neverworse.model_selection._mask import mask_labels
from neverworse.model_selection._split import (
    GroupLabeledKFold,
    LabeledKFold,
    RepeatedLabeledKFold,
    RepeatedStratifiedLabeledKFold,
    StratifiedGroupLabeledKFold,
    StratifiedLabeledKFold,
)
from neverworse.model_selection._wrappers import WithUnlabeledRows, labeled_scorer

__all__ = ["GroupLabeledKFold", "LabeledKFold", "RepeatedLabeledKFold"]
__all__ += ["RepeatedStratifiedLabeledKFold", "StratifiedGroupLabeledKFold"]
__all__ += ["StratifiedLabeledKFold", "WithUnlabeledRows", "labeled_scorer", "learning_curve"]
__all__ += ["mask_labels"]
