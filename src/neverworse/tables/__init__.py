"""Tables: files of rows with named columns of many types, and the features that they become."""

from neverworse.tables._archive import ModelFileError
from neverworse.tables._classifier import TableClassifier
from neverworse.tables._errors import TableError
from neverworse.tables._file import TableFile
from neverworse.tables._model_file import LoadedModel, load_any_model, load_model, save_model
from neverworse.tables._options import ReadOptions
from neverworse.tables._preparation import TablePreparation
from neverworse.tables._read import found_options, read_table, stream_batches, table_files
from neverworse.tables._stored import StoredTable

__all__ = [
    "LoadedModel",
    "ModelFileError",
    "ReadOptions",
    "StoredTable",
    "TableClassifier",
    "TableError",
    "TableFile",
    "TablePreparation",
    "found_options",
    "load_any_model",
    "load_model",
    "read_table",
    "save_model",
    "stream_batches",
    "table_files",
]
