"""The report of a study: one page, and the files beside it."""

from neverworse.study.report._page import page, write_report

__all__ = ["page", "write_report"]
