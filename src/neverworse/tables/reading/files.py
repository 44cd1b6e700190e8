"""Where a table lies: a file, compressed or not, or standard input; and what kind of file it is.

Its first bytes tell, which know better than its name.
"""

from __future__ import annotations

import contextlib
import csv
import io
import lzma
import os
import shutil
import sys
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path, PurePath
from typing import Any, Literal

import pyarrow as pa

from neverworse._files import scratch_folder
from neverworse._words import nearest
from neverworse.tables._errors import TableError

Format = Literal["csv", "parquet", "arrow", "arrow stream", "json lines", "excel"]
Compression = Literal["gzip", "bz2", "zstd", "lz4", "xz", "zip"]

STDIN = "-"
# Enough for the signature of any format, and for the first lines of a very wide table.
HEAD_BYTES = 1 << 20
DELIMITERS = (",", "\t", ";", "|")
BINARY_SUFFIXES = (".parquet", ".feather", ".arrow", ".xlsx")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
ZIP = b"PK\x03\x04"
# The first member of an archive that is a document of LibreOffice, not compressed.
ODS = b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"
COMPRESSED: dict[bytes, Compression] = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"\xfd7zXZ\x00": "xz",
}
BINARY: dict[bytes, Format] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "arrow",
    b"\xff\xff\xff\xff": "arrow stream",
    b"\xd0\xcf\x11\xe0": "excel",
    ZIP: "excel",
}
# What libraries raise for files that are damaged; zipfile, for a password: RuntimeError.
UNREADABLE = (
    *(EOFError, OSError, RuntimeError, ValueError),
    *(lzma.LZMAError, pa.ArrowException, zipfile.BadZipFile, zlib.error),
)
BOMS = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8"}


class TableFile:
    """A file with a table, opened as often as necessary.

    Parameters
    ----------
    path : str
        Of the file, or "-" for standard input.

    Attributes
    ----------
    path : str
        Of the file, or of a temporary copy of standard input or of a named pipe.
    once : bool
        Whether it is such a copy.
    """

    def __init__(self, path: str) -> None:
        if path != STDIN and not Path(path).exists():
            raise _not_there(path)
        self.name = "standard input" if path == STDIN else printable(path)
        self.once = path == STDIN or not Path(path).is_file()
        self._handles = contextlib.ExitStack()
        self.path = self._copied(path) if self.once else path
        self._before = self._state()
        if not self._first_bytes:
            raise self.empty()

    def error(self, problem: str, fix: str = "") -> TableError:
        """Return what is wrong with the file, of which a message says the name first."""
        return TableError(f"{self.name} {problem}", fix, code="file")

    def empty(self) -> TableError:
        return self.error("is empty.", "Give a table with column names and rows.")

    def not_decoded(self) -> TableError:
        return self.error(
            "is not UTF-8 text.",
            "Name its encoding, for example --encoding cp1252 (Windows) or --encoding utf-16 (text "
            "from Excel).",
        )

    def too_long(self) -> TableError:
        return self.error(
            "has a row that is too long to be read.",
            "Look for a cell with very long text, or for an unmatched quotation mark.",
        )

    @cached_property
    def compression(self) -> Compression | None:
        head = self._first_bytes
        # A workbook is a ZIP archive as well.
        if head.startswith(ZIP) and PurePath(self.name).suffix.lower() not in EXCEL:
            is_workbook = b"[Content_Types].xml" in head or head[30:].startswith(ODS)
            return None if is_workbook else "zip"
        return signature(head, COMPRESSED)

    @cached_property
    def head(self) -> bytes:
        """The first bytes of the table, uncompressed."""
        if self.compression is None:
            return self._first_bytes
        with self.explained(), self.stream() as stream:
            head: bytes = stream.read(HEAD_BYTES)
            return head

    @cached_property
    def format(self) -> Format:
        """What it is; the name decides where the bytes leave it open."""
        known = signature(self.head, BINARY)
        if known:
            return known
        suffix = PurePath(self.name).suffix.lower()
        if suffix in BINARY_SUFFIXES:
            raise self.error(f"is not a {suffix} file, whatever its name says.", "Save it again.")
        start = self.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        suffixes = {suffix.lower() for suffix in PurePath(self.name).suffixes}
        is_json = start == b"{" or (start == b"[" and ".csv" not in suffixes)
        return "json lines" if is_json else "csv"

    def native(self) -> Any:
        """Return what PyArrow reads fastest: the path, if there is nothing to uncompress."""
        if self.compression is None and self.path.isprintable():
            return self.path
        return self.stream()

    def stream(self) -> Any:
        """Return the uncompressed bytes as an open file."""
        return self._uncompressed(self._handles.enter_context(Path(self.path).open("rb")))

    def pieces(self, n: int, size: int) -> list[bytes]:
        """Return pieces from all over the file, if it is large and not compressed."""
        length = Path(self.path).stat().st_size
        if self.compression is not None or length <= HEAD_BYTES:
            return []
        found = []
        with Path(self.path).open("rb") as file:
            for k in range(n):
                file.seek((length - size) * (k + 1) // n)
                found.append(file.read(size))
        return found

    def seekable(self) -> Any:
        """Return a path or bytes in memory, for formats that are not read from front to back."""
        source = self.native()
        return source if isinstance(source, str) else pa.BufferReader(source.read())

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors into one sentence; in the end, close the file and see that it stayed."""
        try:
            yield
        except TableError:
            raise
        except UnicodeDecodeError:
            raise self.not_decoded() from None
        except UNREADABLE as error:
            if isinstance(error, pa.ArrowInvalid) and is_too_long(error):
                raise self.too_long() from None
            if isinstance(error, OSError) and error.errno is not None and error.strerror:
                raise
            raise self.error(f"cannot be read: {_first_line(error)}") from None
        finally:
            self._handles.close()
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Raise if the file is not what it was when it was opened."""
        if self._state() != self._before:
            raise self.error("changed while it was being read.", "Run this again.")

    def _state(self) -> tuple[int, int]:
        found = Path(self.path).stat()
        return found.st_size, found.st_mtime_ns

    @cached_property
    def _first_bytes(self) -> bytes:
        with Path(self.path).open("rb") as file:
            return file.read(HEAD_BYTES)

    def _copied(self, path: str) -> str:
        """Copy what can be read only once to a file that goes when this object does."""
        if path == STDIN and (sys.stdin is None or sys.stdin.isatty()):
            fix = "Give a file, or pipe one in."
            raise TableError("There is no table in standard input.", fix, code="file")
        kept = contextlib.ExitStack()
        weakref.finalize(self, kept.close)
        copy = kept.enter_context(scratch_folder("neverworse-")) / "table"
        with copy.open("wb") as file:
            if path == STDIN:
                shutil.copyfileobj(sys.stdin.buffer, file)
            else:
                with Path(path).open("rb") as pipe:
                    shutil.copyfileobj(pipe, file)
        return str(copy)

    def _uncompressed(self, file: Any) -> Any:
        if self.compression is None:
            return file
        if self.compression == "xz":
            return lzma.open(file)
        if self.compression == "zip":
            return self._only_member(file)
        return pa.CompressedInputStream(pa.PythonFile(file, mode="rb"), self.compression)

    def _only_member(self, file: Any) -> Any:
        archive = zipfile.ZipFile(file)
        # Not is_dir, which fails for a name that is empty.
        members = [
            info
            for info in archive.infolist()
            if not (info.filename.endswith("/") or info.filename.startswith("__MACOSX/"))
        ]
        if len(members) != 1:
            fix = "Unpack it, and name the tables to read."
            raise self.error(f"holds {len(members)} files.", fix)
        return archive.open(members[0])


def delimiter_of(text: str) -> str:
    """Return what separates the columns: what splits the first lines into as many parts each."""
    lines = text.splitlines()[:50]
    if len(text) >= HEAD_BYTES // 4 and len(lines) > 1:
        lines = lines[:-1]  # perhaps cut off

    def vote(delimiter: str) -> tuple[float, int]:
        """Return the share of lines with as many columns as the first, and that number."""
        try:
            rows = csv.reader(io.StringIO("\n".join(lines)), delimiter=delimiter)
            widths = [len(row) for row in rows if row]
        except csv.Error:
            return 0.0, 0
        if not widths or widths[0] < 2:
            return 0.0, 1
        return sum(width == widths[0] for width in widths) / len(widths), widths[0]

    best = max(DELIMITERS, key=vote)
    return best if vote(best)[1] > 1 else ","


def printable(path: str | os.PathLike[str]) -> str:
    """Return the name of a file as text, though names may be any bytes."""
    return os.fsencode(path).decode("utf-8", "replace")


def is_too_long(error: pa.ArrowInvalid) -> bool:
    """Whether PyArrow means a row that is longer than what is read at a time: only words say so."""
    return "straddl" in str(error)


def _not_there(path: str) -> TableError:
    folder = Path(path).parent
    if not folder.is_dir():
        problem = f"There is no folder {printable(folder)}."
        return TableError(problem, "Check the path.", code="file")
    others = [printable(other.name) for other in folder.iterdir() if other.is_file()]
    hint = nearest(printable(Path(path).name), others)
    hint = hint if hint.startswith("Did you mean") else "Check the name and the folder."
    return TableError(f"There is no file {printable(path)}.", hint, code="file")


def signature(head: bytes, signatures: dict[bytes, Any]) -> Any:
    """Return what the first bytes are the signature of, None if of nothing."""
    return next((what for mark, what in signatures.items() if head.startswith(mark)), None)


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") + "." if lines else f"{type(error).__name__}."
