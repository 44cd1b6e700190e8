"""The experiments of the paper, beside what was published."""

from neverworse.experiments._analysis import count_marks, is_tested, published, table, tidy
from neverworse.experiments._experiments import (
    EXPERIMENTS,
    draw_cross_validation,
    draw_labeled,
    principal_components,
)
from neverworse.experiments._findings import (
    agreement_sentence,
    as_text,
    claims_sentence,
    evidence_sentence,
    guarantee_holds,
    guarantee_sentences,
    too_few_repeats,
    totals,
)
from neverworse.experiments._methods import GINV_CUTOFF, METHODS, PROTOCOLS, DesignMatrix
from neverworse.experiments._reproduction import Reproduction, reproduce
from neverworse.experiments._runner import random_numbers

__all__ = [
    "EXPERIMENTS",
    "GINV_CUTOFF",
    "METHODS",
    "PROTOCOLS",
    "DesignMatrix",
    "Reproduction",
    "agreement_sentence",
    "as_text",
    "claims_sentence",
    "count_marks",
    "draw_cross_validation",
    "draw_labeled",
    "evidence_sentence",
    "guarantee_holds",
    "guarantee_sentences",
    "is_tested",
    "principal_components",
    "published",
    "random_numbers",
    "reproduce",
    "table",
    "tidy",
    "too_few_repeats",
    "totals",
]
