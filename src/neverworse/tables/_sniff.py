"""What kind of file this is: from its first bytes, which know better than its name."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

from neverworse.tables._errors import TableError

Format = Literal["csv", "parquet", "arrow", "arrow stream", "json lines", "json", "excel"]
Compression = Literal["gzip", "bz2", "zstd", "lz4", "xz", "zip"]

# Enough for the signature of any format, and for the first lines of a very wide table.
HEAD_BYTES = 1 << 20
DELIMITERS = (",", "\t", ";", "|")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")

# The first member of an archive that is a document of LibreOffice, not compressed.
ODS = b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"

_COMPRESSED: tuple[tuple[bytes, Compression], ...] = (
    (b"\x1f\x8b", "gzip"),
    (b"BZh", "bz2"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xfd7zXZ\x00", "xz"),
)
_BINARY: tuple[tuple[bytes, Format], ...] = (
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"FEA1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow stream"),
    (b"\xd0\xcf\x11\xe0", "excel"),
)
# Files that people try, and what to do instead.
_REFUSED = (
    (b"\x89HDF", "an HDF5 file"),
    (b"%PDF", "a PDF"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"SQLite format 3", "an SQLite database"),
    (b"\x80\x04", "a pickle"),
    (b"\x80\x05", "a pickle"),
    (b"$FL2", "an SPSS file"),
)
_BOMS = ((b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"), (b"\xef\xbb\xbf", "utf-8"))


def compression_of(head: bytes, name: str) -> Compression | None:
    """Return how the bytes of a file are compressed."""
    for signature, compression in _COMPRESSED:
        if head.startswith(signature):
            return compression
    # A workbook is a ZIP archive as well.
    if head.startswith(b"PK\x03\x04") and PurePath(name).suffix.lower() not in EXCEL:
        is_workbook = b"[Content_Types].xml" in head or head[30:].startswith(ODS)
        return None if is_workbook else "zip"
    return None


def format_of(head: bytes, name: str) -> Format:
    """Return the format of a file from the first of its bytes, uncompressed.

    Parameters
    ----------
    head : bytes
    name : str
        Of the file, for messages, and where the bytes leave it open.
    """
    for signature, what in _REFUSED:
        if head.startswith(signature):
            raise TableError(f"{name} is {what}. Export the table as CSV or Parquet.")
    for signature, known in _BINARY:
        if head.startswith(signature):
            return known
    if head.startswith(b"PK\x03\x04"):
        return "excel"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    suffixes = {suffix.lower() for suffix in PurePath(name).suffixes}
    if start == b"{":
        return "json lines"
    if start == b"[" and ".csv" not in suffixes:
        return "json"
    return "csv"


def encoding_of(head: bytes) -> str | None:
    """Return the encoding that the first bytes announce, if they do."""
    return next((encoding for mark, encoding in _BOMS if head.startswith(mark)), None)


def delimiter_of(text: str) -> str:
    """Return what separates the columns: what splits the first lines into as many parts each."""
    lines = text.splitlines()[:50]
    if len(text) >= HEAD_BYTES // 4 and len(lines) > 1:
        lines = lines[:-1]  # perhaps cut off
    votes = [(_vote(lines, delimiter), delimiter) for delimiter in DELIMITERS]
    best = max(votes, key=lambda vote: (vote[0].share, vote[0].n_columns))
    return best[1] if best[0].n_columns > 1 else ","


@dataclass(frozen=True)
class _Vote:
    share: float
    n_columns: int


def _vote(lines: list[str], delimiter: str) -> _Vote:
    """Return which share of the lines has as many columns as the first, if that is several."""
    try:
        widths = [
            len(row) for row in csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter)
        ]
    except csv.Error:
        return _Vote(0.0, 0)
    widths = [width for width in widths if width]
    if not widths or widths[0] < 2:
        return _Vote(0.0, 1)
    return _Vote(sum(width == widths[0] for width in widths) / len(widths), widths[0])
