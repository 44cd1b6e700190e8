"""How tables are to be read."""

from __future__ import annotations

from dataclasses import dataclass

# Words for missing values, in all formats: those that pandas and PyArrow write or understand.
MISSING = (
    *("", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN"),
    *("N/A", "NA", "NULL", "NaN", "n/a", "nan", "null"),
)


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
