"""Where a table lies: a file, compressed or not, or standard input."""

from __future__ import annotations

import contextlib
import io
import lzma
import os
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from neverworse.tables._errors import TableError, nearest
from neverworse.tables._sniff import HEAD_BYTES, Compression, Format, compression_of, format_of

STDIN = "-"


class TableFile:
    """A file with a table, opened as often as necessary; standard input and pipes, once.

    Parameters
    ----------
    path : str
        Of the file, or "-" for standard input.

    Attributes
    ----------
    watch : callable or None
        Called with all bytes that are read from a pipe, uncompressed; may raise.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        if path != STDIN and not Path(path).exists():
            raise _not_there(path)
        self.once = path == STDIN or not Path(path).is_file()
        self.watch: Callable[[bytes], None] | None = None
        self._opened = False
        self._handles = contextlib.ExitStack()
        self._before = self._state()
        if not self._first_bytes:
            raise empty(self)

    @property
    def name(self) -> str:
        """How messages call it."""
        return "standard input" if self.path == STDIN else printable(self.path)

    @cached_property
    def compression(self) -> Compression | None:
        """How it is compressed."""
        return compression_of(self._first_bytes, self.name)

    @cached_property
    def head(self) -> bytes:
        """The first bytes of the table, uncompressed."""
        if self.compression is None:
            return self._first_bytes
        if not self.once:
            with self.explained(), self.stream() as stream:
                return _first_of(stream)
        if self.compression == "zip":
            raise TableError(f"A ZIP archive cannot be read from {self.name}. Give the file.")
        # What else is in the pipe must stay there.
        with self._worded(), self._uncompressed(io.BytesIO(self._first_bytes)) as stream:
            return _first_of(stream)

    @cached_property
    def format(self) -> Format:
        """What it is."""
        return format_of(self.head, self.name)

    def native(self) -> Any:
        """Return what PyArrow reads fastest: the path, if there is nothing to uncompress."""
        if not self.once and self.compression is None and self.path.isprintable():
            return self.path
        return self.stream()

    def stream(self) -> Any:
        """Return the uncompressed bytes as an open file."""
        if not self.once:
            return self._uncompressed(self._handles.enter_context(Path(self.path).open("rb")))
        if self._opened:
            raise TableError(f"{self.name} can be read only once. Save the table in a file.")
        self._opened = True
        rest = _Rejoined(self._first_bytes, self._pipe)
        stream = self._uncompressed(io.BufferedReader(rest, HEAD_BYTES))
        if self.watch is None:
            return stream
        return io.BufferedReader(_Watched(stream, self.watch), HEAD_BYTES)

    def pieces(self, n: int, size: int) -> list[bytes]:
        """Return pieces from all over the file, if it can be read anywhere."""
        length = 0 if self.once or self.compression is not None else Path(self.path).stat().st_size
        if length <= HEAD_BYTES:
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
            with self._worded():
                yield
        finally:
            self._handles.close()
        self.check_unchanged()

    @contextlib.contextmanager
    def _worded(self) -> Iterator[None]:
        """Turn what libraries raise for broken files into one sentence."""
        try:
            yield
        except TableError:
            raise
        except (EOFError, lzma.LZMAError, zipfile.BadZipFile, zlib.error) as error:
            raise TableError(
                f"{self.name} is damaged or incomplete: {_first_line(error)}"
            ) from None
        except RuntimeError as error:  # of zipfile: a password, or a method that it does not know
            raise TableError(
                f"{self.name} cannot be unpacked here: {_first_line(error)} Unpack it first."
            ) from None
        except UnicodeDecodeError:
            raise not_decoded(self) from None
        except (pa.ArrowException, OSError, ValueError) as error:
            if isinstance(error, pa.ArrowInvalid) and "straddl" in str(error):
                raise too_long(self) from None
            if isinstance(error, OSError) and error.errno is not None and error.strerror:
                raise
            raise TableError(f"{self.name} cannot be read: {_first_line(error)}") from None

    def check_unchanged(self) -> None:
        """Raise if the file is not what it was when it was opened."""
        if self._state() != self._before:
            raise TableError(f"{self.name} changed while it was read. Run this again.")

    def _state(self) -> tuple[int, int] | None:
        if self.once:
            return None
        found = Path(self.path).stat()
        return found.st_size, found.st_mtime_ns

    @cached_property
    def _first_bytes(self) -> bytes:
        if self.once:
            return _first_of(self._pipe)
        with Path(self.path).open("rb") as file:
            return _first_of(file)

    @cached_property
    def _pipe(self) -> Any:
        """What can be read from front to back only."""
        if self.path != STDIN:
            return self._handles.enter_context(Path(self.path).open("rb"))
        if sys.stdin is None or sys.stdin.isatty():
            raise TableError("There is no table in standard input. Give a file, or pipe one in.")
        return sys.stdin.buffer

    def _uncompressed(self, file: Any) -> Any:
        if self.compression is None:
            return file
        if self.compression == "xz":
            return lzma.open(file)
        if self.compression == "zip":
            return _only_member(self.name, file)
        return pa.CompressedInputStream(pa.PythonFile(file, mode="rb"), self.compression)


def printable(path: str | os.PathLike[str]) -> str:
    """Return the name of a file as text, though names may be any bytes."""
    return os.fsencode(path).decode("utf-8", "replace")


def _not_there(path: str) -> TableError:
    folder = Path(path).parent
    if not folder.is_dir():
        return TableError(f"There is no folder {printable(folder)}. Check the path.")
    others = [printable(other.name) for other in folder.iterdir() if other.is_file()]
    hint = nearest(printable(Path(path).name), others) if others else ""
    hint = hint if hint.startswith("Did you mean") else "Check the name and the folder."
    return TableError(f"There is no file {printable(path)}. {hint}")


def empty(file: TableFile) -> TableError:
    """Say that there is nothing in a file."""
    return TableError(f"{file.name} is empty. Give a table with names of columns and rows.")


def not_decoded(file: TableFile) -> TableError:
    """Say that the text has another encoding."""
    return TableError(
        f"{file.name} is not UTF-8 text. Name its encoding, for example --encoding cp1252 "
        "(Windows) or --encoding utf-16 (text from Excel)."
    )


def too_long(file: TableFile) -> TableError:
    """Say that a row is longer than what is read at a time."""
    return TableError(
        f"{file.name} has a row that is too long to be read. Look for a cell with a very long "
        "text, or for a quotation mark without its partner."
    )


class _Rejoined(io.RawIOBase):
    """A stream of which the first bytes were read already."""

    def __init__(self, head: bytes, rest: Any) -> None:
        self._head = io.BytesIO(head)
        self._rest = rest

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._head.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(content)] = content
        return len(content)


class _Watched(io.RawIOBase):
    """A stream that shows somebody what is read from it."""

    def __init__(self, stream: Any, watch: Callable[[bytes], None]) -> None:
        self._stream = stream
        self._watch = watch

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        content = self._stream.read(len(buffer))
        self._watch(content)
        buffer[: len(content)] = content
        return len(content)


def _first_of(stream: Any) -> bytes:
    """Read the first bytes; what is incomplete after them is no error yet."""
    parts: list[bytes] = []
    missing = HEAD_BYTES
    while missing:
        try:
            part = stream.read(missing)
        except (EOFError, OSError, zipfile.BadZipFile, lzma.LZMAError):
            if parts:
                break
            raise
        if not part:
            break
        parts.append(part)
        missing -= len(part)
    return b"".join(parts)


def _only_member(name: str, file: Any) -> Any:
    archive = zipfile.ZipFile(file)
    # Not is_dir, which fails for a name that is empty.
    members = [info for info in archive.infolist() if not info.filename.endswith("/")]
    members = [info for info in members if not info.filename.startswith("__MACOSX/")]
    if len(members) != 1:
        raise TableError(
            f"{name} holds {len(members)} files. Unpack it, and give the tables that you mean."
        )
    return archive.open(members[0])


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") + "." if lines else f"{type(error).__name__}."
