"""Displays, drawn with matplotlib, which is imported only when needed."""

from neverworse.plots._constraint_set import ConstraintSetDisplay
from neverworse.plots._display import UnlabeledLearningCurveDisplay
from neverworse.plots._fitted import CertificateDisplay, CoefficientShiftDisplay

__all__ = ["CertificateDisplay", "CoefficientShiftDisplay", "ConstraintSetDisplay"]
__all__ += ["UnlabeledLearningCurveDisplay"]
