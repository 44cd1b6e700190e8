"""Figures, tables and the page that are made of the results."""

from neverworse.experiments.report.page import save

__all__ = ["save"]
