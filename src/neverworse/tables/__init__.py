"""Tables: files of rows with named columns of many types, and the features that they become."""

from neverworse.tables._audit import audit_table, reading_of
from neverworse.tables._classifier import (
    DecidedClassifier,
    TableClassifier,
    calibrated,
    calibration_scores,
    fitted_features,
    outputs,
)
from neverworse.tables._errors import (
    ModelFileError,
    TableError,
    UnreadableColumnsError,
    believing,
    grouped,
    in_options,
    listed,
    nearest,
)
from neverworse.tables._model_file import LoadedModel, load_any_model, load_model, save_model
from neverworse.tables._predict import (
    Noticed,
    id_texts,
    predict_batches,
    with_names,
    write_csv,
    write_json_lines,
    write_parquet,
)
from neverworse.tables.preparation.features import TablePreparation
from neverworse.tables.preparation.plan import ColumnPlan, check_readable
from neverworse.tables.preparation.plan_file import (
    KINDS,
    PlanError,
    describe,
    read_plan,
    text_columns,
)
from neverworse.tables.preparation.recognise import DateOrder, found_options
from neverworse.tables.preparation.target import Target, count_labels, read_target
from neverworse.tables.preparation.values import coded, find_column, row_weights
from neverworse.tables.reading.files import TableFile, printable
from neverworse.tables.reading.large import StoredTable, is_large, store
from neverworse.tables.reading.options import ReadOptions
from neverworse.tables.reading.tables import read_table, stacked, stream_batches, table_files

# Classes of which fitted models consist besides estimators and arrays: none of this room.
FITTED_PARTS: tuple[type, ...] = ()

__all__ = [
    "FITTED_PARTS",
    "KINDS",
    "ColumnPlan",
    "DateOrder",
    "DecidedClassifier",
    "LoadedModel",
    "ModelFileError",
    "Noticed",
    "PlanError",
    "ReadOptions",
    "StoredTable",
    "TableClassifier",
    "TableError",
    "TableFile",
    "TablePreparation",
    "Target",
    "UnreadableColumnsError",
    "audit_table",
    "believing",
    "calibrated",
    "calibration_scores",
    "check_readable",
    "coded",
    "count_labels",
    "describe",
    "find_column",
    "fitted_features",
    "found_options",
    "grouped",
    "id_texts",
    "in_options",
    "is_large",
    "listed",
    "load_any_model",
    "load_model",
    "nearest",
    "outputs",
    "predict_batches",
    "printable",
    "read_plan",
    "read_table",
    "read_target",
    "reading_of",
    "row_weights",
    "save_model",
    "stacked",
    "store",
    "stream_batches",
    "table_files",
    "text_columns",
    "with_names",
    "write_csv",
    "write_json_lines",
    "write_parquet",
]
