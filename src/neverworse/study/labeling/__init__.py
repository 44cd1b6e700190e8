"""Labels after a fit: which rows to label, what the answers decide, and the files of both."""

from neverworse.study.labeling._labeling import LABELS, Labeling, stored_labels
from neverworse.study.labeling._sheet import read_answers, write_questions
from neverworse.study.labeling._standing import Standing, in_points

__all__ = [
    "LABELS",
    "Labeling",
    "Standing",
    "in_points",
    "read_answers",
    "stored_labels",
    "write_questions",
]
