"""From the columns of a table to features and labels: notation, plans, values, preparation."""

from neverworse.tables.preparation.features import TablePreparation, takes_tables
from neverworse.tables.preparation.plan import ColumnPlan, check_readable
from neverworse.tables.preparation.plan_file import (
    KINDS,
    PlanError,
    describe,
    read_plan,
    text_columns,
)
from neverworse.tables.preparation.recognise import DateOrder, found_options
from neverworse.tables.preparation.target import (
    Target,
    count_labels,
    label_texts,
    read_target,
)
from neverworse.tables.preparation.values import (
    as_table,
    as_text,
    check_columns,
    check_known,
    coded,
    find_column,
    numbers,
    row_weights,
)

__all__ = [
    "KINDS",
    "ColumnPlan",
    "DateOrder",
    "PlanError",
    "TablePreparation",
    "Target",
    "as_table",
    "as_text",
    "check_columns",
    "check_known",
    "check_readable",
    "coded",
    "count_labels",
    "describe",
    "find_column",
    "found_options",
    "label_texts",
    "numbers",
    "read_plan",
    "read_target",
    "row_weights",
    "takes_tables",
    "text_columns",
]
