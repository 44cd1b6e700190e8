"""Files with tables, compressed or not, and standard input; their first bytes tell the format."""

from __future__ import annotations

import contextlib
import lzma
import os
import sys
import weakref
import zipfile
import zlib
from collections.abc import Iterator
from functools import cached_property, partial
from pathlib import Path, PurePath
from typing import Any, Literal

import pyarrow as pa

from neverworse._files import scratch_folder
from neverworse.tables._errors import TableError

Format = Literal["csv", "parquet", "arrow", "json lines", "excel"]

STDIN = "-"
# Enough for the signature of any format, and for the first lines of a very wide table.
HEAD_BYTES = 1 << 20
COPY_BYTES = 1 << 20  # at a time
BINARY_SUFFIXES = (".parquet", ".feather", ".arrow", ".xlsx")
EXCEL = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")
ZIP = b"PK\x03\x04"
XZ = b"\xfd7zXZ\x00"
COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"BZh": "bz2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
}
BINARY: dict[bytes, Format] = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"FEA1": "arrow",
    b"\xd0\xcf\x11\xe0": "excel",
    ZIP: "excel",
}
# What libraries raise for damaged files. Their words help only if they are about text, if PyArrow
# does not support a feature, or if zipfile asks for a password (a RuntimeError).
DAMAGED = (EOFError, OSError, pa.ArrowException, lzma.LZMAError, zipfile.BadZipFile, zlib.error)
NOT_UTF8 = (
    "is not UTF-8 text.",
    "Name its encoding, for example --encoding cp1252 (Windows) or --encoding utf-16 (Excel).",
)
# Words of PyArrow about text, for which it has no code, and what we say instead.
PYARROW_MESSAGES = {
    "invalid UTF8": NOT_UTF8,
    "straddl": (
        "has a row that is too long to be read.",
        "Look for a cell with very long text, or for an unmatched quotation mark.",
    ),
}


class TableFile:
    """A file with a table; `plain` is where its uncompressed bytes are, `path` what was given."""

    def __init__(self, path: str) -> None:
        if path != STDIN and not Path(path).exists():
            fix = "Check the name and the folder."
            raise TableError(f"There is no file {printable(path)}.", fix, code="file")
        if Path(path).is_dir():
            fix = "Name the tables in it."
            raise TableError(f"{printable(path)} is a folder.", fix, code="file")
        self.name = "standard input" if path == STDIN else printable(path)
        self.once = path == STDIN or not Path(path).is_file()  # a pipe
        self._copies = contextlib.ExitStack()
        weakref.finalize(self, self._copies.close)
        # PyArrow does not open files of every name.
        self.plain = self._copied(path) if self.once or not path.isprintable() else path
        self.path = self.plain if self.once else path
        self._before = self._state()
        with self.explained(), Path(self.plain).open("rb") as file:
            uncompressed = self._uncompressed(file)
            self.plain = self._copy(uncompressed) if uncompressed else self.plain
        if not self.head:
            raise self.empty()

    def error(self, problem: str, fix: str = "") -> TableError:
        """Return an error about the file; the message begins with its name."""
        return TableError(f"{self.name} {problem}", fix, code="file")

    def empty(self) -> TableError:
        return self.error("is empty.", "Give a table with column names and rows.")

    @property
    def head(self) -> bytes:
        """The first bytes of the table."""
        with Path(self.plain).open("rb") as file:
            return file.read(HEAD_BYTES)

    @cached_property
    def format(self) -> Format:
        """The format that the first bytes show; where they do not, the name decides."""
        if known := signature(self.head, BINARY):
            return known
        suffixes = [suffix.lower() for suffix in PurePath(self.name).suffixes]
        if suffixes and suffixes[-1] in BINARY_SUFFIXES:
            problem = f"is not a {suffixes[-1]} file, whatever its name says."
            raise self.error(problem, "Save it again.")
        start = self.head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
        is_json = start == b"{" or (start == b"[" and ".csv" not in suffixes)
        return "json lines" if is_json else "csv"

    @contextlib.contextmanager
    def explained(self) -> Iterator[None]:
        """Turn errors into one sentence; at the end, check that the file is what it was."""
        try:
            yield
        except TableError:
            raise
        except (RuntimeError, ValueError, *DAMAGED) as error:
            if isinstance(error, OSError) and error.errno is not None and error.strerror:
                raise
            raise self._explanation(error) from error
        self.check_unchanged()

    def check_unchanged(self) -> None:
        """Raise if the file is not what it was when it was opened."""
        if self._state() != self._before:
            raise self.error("changed while it was being read.", "Run this again.")

    def _explanation(self, error: Exception) -> TableError:
        if isinstance(error, UnicodeError):
            return self.error(*NOT_UTF8)
        words = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        is_text = "format" in vars(self) and self.format in ("csv", "json lines")
        if is_text and isinstance(error, pa.ArrowInvalid):
            for word, known in PYARROW_MESSAGES.items():
                if word in words:
                    return self.error(*known)
        elif isinstance(error, DAMAGED) and not isinstance(error, pa.ArrowNotImplementedError):
            return self.error("is damaged or incomplete.", "Save or copy it again.")
        return self.error(f"cannot be read: {words}.")

    def _state(self) -> tuple[int, int]:
        found = Path(self.path).stat()
        return found.st_size, found.st_mtime_ns

    def _copied(self, path: str) -> str:
        if path != STDIN:
            with Path(path).open("rb") as file:
                return self._copy(file)
        if sys.stdin is None or sys.stdin.isatty():
            fix = "Give a file, or pipe one in."
            raise TableError("There is no table in standard input.", fix, code="file")
        return self._copy(sys.stdin.buffer)

    def _copy(self, source: Any) -> str:
        """Copy bytes to a file that is removed along with this object."""
        copy = self._copies.enter_context(scratch_folder("neverworse-")) / "table"
        with copy.open("wb") as file:
            # What there is at a time: a program that waits for more can be interrupted.
            for part in iter(partial(source.read1, COPY_BYTES), b""):
                file.write(part)
        return str(copy)

    def _uncompressed(self, file: Any) -> Any:
        """Return the uncompressed bytes of a file; None if it is not compressed."""
        head = self.head
        if head.startswith(XZ):
            return lzma.open(file)
        # A workbook is a ZIP archive as well.
        is_workbook = PurePath(self.name).suffix.lower() in EXCEL or b"[Content_Types].xml" in head
        if head.startswith(ZIP) and not is_workbook:
            archive = zipfile.ZipFile(file)
            # Not is_dir, which fails for a name that is empty.
            names = [info for info in archive.infolist() if not info.filename.endswith("/")]
            members = [info for info in names if not info.filename.startswith("__MACOSX/")]
            if len(members) != 1:
                fix = "Unpack it, and name the tables to read."
                raise self.error(f"holds {len(members)} files.", fix)
            return archive.open(members[0])
        codec = signature(head, COMPRESSED)
        return codec and pa.CompressedInputStream(pa.PythonFile(file, mode="rb"), codec)


def printable(path: str | os.PathLike[str]) -> str:
    """Return the name of a file as text, though names may be any bytes."""
    return os.fsencode(path).decode("utf-8", "replace")


def signature(head: bytes, signatures: dict[bytes, Any]) -> Any:
    """Return the value of the signature that the first bytes have, if any."""
    return next((what for mark, what in signatures.items() if head.startswith(mark)), None)
