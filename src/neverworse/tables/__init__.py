"""Tables: files of rows with named columns of many types, and the features that they become."""

from neverworse.tables._classifier import (
    DecidedClassifier,
    TableClassifier,
    calibrated,
    calibration_scores,
    fitted_features,
    id_texts,
    outputs,
    with_names,
    write_csv,
    write_json_lines,
    write_parquet,
)
from neverworse.tables._errors import ModelFileError, PlanError, TableError, believing, in_options
from neverworse.tables._model_file import LoadedModel, load_model, save_model
from neverworse.tables._saved import Noticed, audit_table, predict_batches, reading_of
from neverworse.tables.preparation import (
    TablePreparation,
    Target,
    count_labels,
    read_target,
    row_weights,
)
from neverworse.tables.preparation.columns import DateOrder, coded, find_column, found_options
from neverworse.tables.preparation.notation import KINDS
from neverworse.tables.preparation.plan import (
    ColumnPlan,
    check_readable,
    describe,
    read_plan,
    text_columns,
)
from neverworse.tables.reading import StoredTable, is_large, read_table, stacked, store, table_files
from neverworse.tables.reading.files import TableFile, printable
from neverworse.tables.reading.formats import ReadOptions

__all__ = ["DecidedClassifier", "TableClassifier", "calibrated", "calibration_scores"]
__all__ += ["fitted_features", "id_texts", "outputs", "with_names"]
__all__ += ["write_csv", "write_json_lines", "write_parquet"]
__all__ += ["ModelFileError", "PlanError", "TableError", "believing", "in_options"]
__all__ += ["LoadedModel", "load_model", "save_model"]
__all__ += ["Noticed", "audit_table", "predict_batches", "reading_of"]
__all__ += ["TablePreparation", "Target", "count_labels", "read_target", "row_weights"]
__all__ += ["KINDS", "ColumnPlan", "DateOrder", "check_readable", "coded", "describe"]
__all__ += ["find_column", "found_options", "read_plan", "text_columns"]
__all__ += ["ReadOptions", "StoredTable", "TableFile", "is_large", "printable"]
__all__ += ["read_table", "stacked", "store", "table_files"]
