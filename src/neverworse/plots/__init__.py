"""Displays for people who look: drawn with matplotlib, which is imported only when needed."""

from neverworse.plots._constraint_set import ConstraintSetDisplay

__all__ = ["ConstraintSetDisplay"]
