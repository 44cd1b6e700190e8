"""The study of a fit to a table: everything that a report says, in numbers and words."""

from neverworse.study._study import Study

__all__ = ["Study"]
