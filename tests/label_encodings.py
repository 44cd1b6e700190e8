"""The same labels in every encoding that is understood."""

import numpy as np
import pandas as pd
import polars as pl

# 30 rows, labeled and unlabeled ones interleaved; -1 is "no label".
CODES = np.tile([0, -1, 1, -1, -1, 1, 0, -1, -1, -1], 3)
UNLABELED = CODES == -1
X = np.random.default_rng(3).normal(size=(30, 3)) + CODES[:, None]


def labels(zero, one, missing):
    return [missing if code < 0 else (zero, one)[code] for code in CODES]


def objects(zero, one, missing):
    y = np.empty(len(CODES), dtype=object)
    y[:] = labels(zero, one, missing)
    return y


# name: (y, classes), all with missing_label="auto" and all the same labels
ENCODINGS = {
    "list of int": (labels(0, 1, -1), [0, 1]),
    "tuple of int": (tuple(labels(0, 1, -1)), [0, 1]),
    "other int classes": (labels(2, 7, -1), [2, 7]),
    "negative class": (labels(-5, 3, -1), [-5, 3]),
    "int and None": (labels(0, 1, None), [0, 1]),
    "int and NaN": (labels(0, 1, np.nan), [0.0, 1.0]),
    "list of float": (labels(0.0, 1.0, np.nan), [0.0, 1.0]),
    "float and None": (labels(0.0, 1.0, None), [0.0, 1.0]),
    "float64": (np.array(labels(0.0, 1.0, np.nan)), [0.0, 1.0]),
    "float32": (np.array(labels(0.0, 1.0, np.nan), np.float32), [0.0, 1.0]),
    "float16": (np.array(labels(0.0, 1.0, np.nan), np.float16), [0.0, 1.0]),
    "str and None": (labels("a", "b", None), ["a", "b"]),
    "str and NaN": (labels("a", "b", np.nan), ["a", "b"]),
    "str and NA": (labels("a", "b", pd.NA), ["a", "b"]),
    "str and -1": (labels("a", "b", -1), ["a", "b"]),
    "bool and None": (labels(False, True, None), [False, True]),
    "object int -1": (objects(0, 1, -1), [0, 1]),
    "object int None": (objects(0, 1, None), [0, 1]),
    "object int NaN": (objects(0, 1, float("nan")), [0, 1]),
    "object int NA": (objects(0, 1, pd.NA), [0, 1]),
    "object float NA": (objects(0.0, 1.0, pd.NA), [0.0, 1.0]),
    "object NumPy int": (objects(np.int8(0), np.int64(1), None), [0, 1]),
    "object str NaN": (objects("a", "b", float("nan")), ["a", "b"]),
    "object NumPy str": (objects(np.str_("a"), "b", None), ["a", "b"]),
    "object bool -1": (objects(False, True, -1), [False, True]),
    "object bool None": (objects(False, True, None), [False, True]),
    "object NumPy bool": (objects(np.False_, np.True_, None), [False, True]),
    "pandas int64": (pd.Series(labels(0, 1, -1)), [0, 1]),
    "pandas index": (pd.Index(labels(0, 1, -1)), [0, 1]),
    "pandas other index": (pd.Series(labels(0, 1, -1), index=range(50, 20, -1)), [0, 1]),
    "pandas float64": (pd.Series(labels(0.0, 1.0, np.nan)), [0.0, 1.0]),
    "pandas object": (pd.Series(labels("a", "b", None), dtype=object), ["a", "b"]),
    "pandas Int64": (pd.Series(labels(0, 1, pd.NA), dtype="Int64"), [0, 1]),
    "pandas Int64 -1": (pd.Series(labels(0, 1, -1), dtype="Int64"), [0, 1]),
    "pandas Int8": (pd.Series(labels(0, 1, pd.NA), dtype="Int8"), [0, 1]),
    "pandas Float64": (pd.Series(labels(0.0, 1.0, pd.NA), dtype="Float64"), [0.0, 1.0]),
    "pandas boolean": (pd.Series(labels(False, True, pd.NA), dtype="boolean"), [False, True]),
    "pandas string": (pd.Series(labels("a", "b", pd.NA), dtype="string"), ["a", "b"]),
    "pandas str": (pd.Series(labels("a", "b", None), dtype="str"), ["a", "b"]),
    "pandas array": (pd.array(labels(0, 1, pd.NA), dtype="Int64"), [0, 1]),
    "pandas arrow": (pd.Series(labels("a", "b", None), dtype="string[pyarrow]"), ["a", "b"]),
    "pandas category str": (pd.Series(labels("a", "b", None), dtype="category"), ["a", "b"]),
    "pandas category int": (pd.Series(labels(0, 1, None), dtype="category"), [0, 1]),
    "pandas category -1": (pd.Series(labels(0, 1, -1), dtype="category"), [0, 1]),
    "pandas unordered categories": (
        pd.Categorical(labels("a", "b", None), categories=["b", "unused", "a"]),
        ["a", "b"],
    ),
    "polars int": (pl.Series(labels(0, 1, None)), [0, 1]),
    "polars int -1": (pl.Series(labels(0, 1, -1)), [0, 1]),
    "polars str": (pl.Series(labels("a", "b", None)), ["a", "b"]),
    "polars bool": (pl.Series(labels(False, True, None)), [False, True]),
    "polars float NaN": (pl.Series(labels(0.0, 1.0, float("nan"))), [0.0, 1.0]),
    "polars float null": (pl.Series(labels(0.0, 1.0, None)), [0.0, 1.0]),
    "polars categorical": (pl.Series(labels("a", "b", None), dtype=pl.Categorical), ["a", "b"]),
    "polars enum": (pl.Series(labels("a", "b", None), dtype=pl.Enum(["b", "a"])), ["a", "b"]),
    **{
        f"array of {dtype}": (np.array(labels(0, 1, -1), dtype), [0, 1])
        for dtype in ("int8", "int16", "int32", "int64")
    },
}
