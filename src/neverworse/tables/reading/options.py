"""How tables are to be read, and which of their values are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

# Words for missing values, in all formats: those that pandas and PyArrow write or understand.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)
TEXT = pa.dictionary(pa.int32(), pa.string())  # names, as they are read from CSV


@dataclass(frozen=True)
class ReadOptions:
    """What the reader of a table is told, where it should not find out by itself.

    Attributes
    ----------
    delimiter : str, optional
        Between the cells of delimited text.
    encoding : str, optional
        Of text.
    decimal : {".", ","}, optional
        Before the decimals of numbers in text.
    missing : tuple of str
        Further words that mean a missing value.
    sheet : str, optional
        Of a workbook; the first one otherwise.
    text : frozenset of str
        Columns that hold names, whatever they look like.
    """

    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    missing: tuple[str, ...] = ()
    sheet: str | None = None
    text: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise ValueError(f"decimal is '.' or ',', not {self.decimal!r}.")

    @property
    def words(self) -> tuple[str, ...]:
        """All words that mean a missing value."""
        return (*MISSING, *self.missing)


def is_text(kind: pa.DataType) -> bool:
    """Whether values are strings, or refer to a dictionary of strings."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)
    )


def spells_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def with_nulls(rows: Any, words: Sequence[str]) -> Any:
    """Make words that mean a missing value null, in a table or a batch.

    Spaces around them do not matter, and a number is the same in all spellings.
    """
    spelled = [float(word) for word in words if spells_number(word) and float(word) == float(word)]
    for k, field in enumerate(rows.schema):
        column = rows.column(k)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        if is_text(field.type):
            kept = [_without_words(chunk, words) for chunk in chunks]
        elif spelled and (pa.types.is_integer(field.type) or pa.types.is_floating(field.type)):
            numbers = pa.array(spelled)
            kept = [_without(chunk, chunk.cast("f8", safe=False), numbers) for chunk in chunks]
        else:
            continue
        if any(new is not old for new, old in zip(kept, chunks, strict=True)):
            whole = pa.chunked_array(kept) if isinstance(column, pa.ChunkedArray) else kept[0]
            rows = rows.set_column(k, field.name, whole)
    return rows


def _without_words(chunk: pa.Array, words: Sequence[str]) -> pa.Array:
    coded = pa.types.is_dictionary(chunk.type)
    texts = chunk.dictionary if coded else chunk
    trimmed, known = pc.utf8_trim_whitespace(texts), pa.array(words).cast(texts.type)
    if not coded:
        return _without(chunk, trimmed, known)
    found = pc.is_in(trimmed, known)
    if not pc.any(found).as_py():
        return chunk
    kept = pc.if_else(found.take(chunk.indices), pa.scalar(None, chunk.indices.type), chunk.indices)
    return pa.DictionaryArray.from_arrays(kept, texts, ordered=chunk.type.ordered)


def _without(chunk: pa.Array, values: pa.Array, missing: pa.Array) -> pa.Array:
    found = pc.is_in(values, missing)
    if not pc.any(found).as_py():
        return chunk
    return pc.if_else(found, pa.scalar(None, chunk.type), chunk)
