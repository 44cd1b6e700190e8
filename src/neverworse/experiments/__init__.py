"""The experiments of the paper, beside what was published."""

from neverworse.experiments._analysis import (
    as_text,
    count_marks,
    headline,
    is_tested,
    published,
    table,
    tidy,
)
from neverworse.experiments._experiments import (
    EXPERIMENTS,
    draw_cross_validation,
    draw_labeled,
    principal_components,
)
from neverworse.experiments._methods import GINV_CUTOFF, PROTOCOLS, counterpart, design_matrix
from neverworse.experiments._reproduction import Reproduction, random_numbers, reproduce

__all__ = ["EXPERIMENTS", "GINV_CUTOFF", "PROTOCOLS", "Reproduction", "counterpart", "tidy"]
__all__ += ["as_text", "count_marks", "draw_cross_validation", "draw_labeled", "headline"]
__all__ += ["is_tested", "principal_components", "published", "random_numbers", "reproduce"]
__all__ += ["design_matrix", "table"]
