"""The report of a fit to a table: its numbers, and the page that shows them."""

from neverworse.report._page import page, write_report
from neverworse.report._study import Study

__all__ = ["Study", "page", "write_report"]
