"""Results on disk: every finished repeat is there, whatever happens to the program afterwards.

One file for each experiment and data set has a header and a line for each repeat, in the order in
which they were finished. Every line starts with a checksum of its rest. A line that a killed
program did not finish is dropped; a file that is damaged otherwise is set aside, and what is intact
in it is kept.
"""

from __future__ import annotations

import json
import os
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from neverworse.experiments._experiments import Record

Say = Callable[[str], None]


class Store:
    """The repeats of one experiment on one data set.

    Parameters
    ----------
    path : Path
        The file; its folder is made if need be.
    header : dict
        What the results depend on. Results with another header are not reused.
    say : callable
        Told what was wrong with the file, if anything.

    Attributes
    ----------
    repeats : dict of int to list of records
        What is on disk.
    """

    def __init__(self, path: Path, header: dict[str, Any], say: Say) -> None:
        self._path = path
        self._header = header
        self.repeats: dict[int, list[Record]] = {}
        path.parent.mkdir(parents=True, exist_ok=True)
        problem = self._read() if path.exists() else None
        if problem:
            aside = _set_aside(path)
            kept = (
                f"{len(self.repeats)} intact repeats are kept" if self.repeats else "starting anew"
            )
            say(f"{path}: {problem}. It was set aside as {aside.name}; {kept}.")
        self._write_all()

    def append(self, repeat: int, records: list[Record]) -> None:
        """Store a finished repeat at once."""
        self.repeats[repeat] = records
        with self._path.open("ab") as file:
            file.write(_line({"repeat": repeat, "records": records}))
            file.flush()
            os.fsync(file.fileno())

    def _read(self) -> str | None:
        """Read what is intact; return what is wrong with the file."""
        content = self._path.read_bytes()
        finished, newline, _ = content.rpartition(b"\n")
        if not newline:
            return "it has no line that was finished"
        first, *lines = finished.split(b"\n")
        header = _parse(first)
        if not isinstance(header, dict):
            return "its header is damaged"
        if header != self._header:
            different = [key for key in self._header if header.get(key) != self._header[key]]
            return f"its results were made with another {' and '.join(different) or 'header'}"
        damaged = 0
        for line in lines:
            entry = _parse(line)
            if _is_repeat(entry):
                self.repeats[entry["repeat"]] = entry["records"]
            else:
                damaged += 1
        damaged += self._drop_others()
        return f"{damaged} of {len(lines)} repeats are damaged" if damaged else None

    def _drop_others(self) -> int:
        """Drop repeats that did not measure what most did; return how many they are."""
        measured = {repeat: _measured(records) for repeat, records in self.repeats.items()}
        most = Counter(measured.values()).most_common(1)
        others = [repeat for repeat, names in measured.items() if names != most[0][0]]
        for repeat in others:
            del self.repeats[repeat]
        return len(others)

    def _write_all(self) -> None:
        """Write all that is known, under another name first."""
        lines = [_line(self._header)]
        lines += [
            _line({"repeat": repeat, "records": records})
            for repeat, records in self.repeats.items()
        ]
        temporary = self._path.with_suffix(".tmp")
        temporary.write_bytes(b"".join(lines))
        temporary.replace(self._path)


def _measured(records: list[Record]) -> frozenset[Any]:
    """Return the methods, what was measured of each, and in what kinds of values."""
    return frozenset(
        (record["method"], *sorted((name, type(value).__name__) for name, value in record.items()))
        for record in records
    )


def _line(entry: Any) -> bytes:
    text = json.dumps(entry).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _parse(line: bytes) -> Any:
    """Return what a line says, or None if its checksum is wrong."""
    checksum, _, text = line.partition(b" ")
    if checksum != b"%08x" % zlib.crc32(text):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # a checksum is no signature
        return None


def _is_repeat(entry: Any) -> bool:
    """Whether a line has what `Store.append` writes, whoever wrote it."""
    if not isinstance(entry, dict) or entry.keys() != {"repeat", "records"}:
        return False
    repeat, records = entry["repeat"], entry["records"]
    if type(repeat) is not int or repeat < 0 or not isinstance(records, list) or not records:
        return False
    return all(
        isinstance(record, dict)
        and isinstance(record.get("method"), str)
        and all(isinstance(value, str | int | float | None) for value in record.values())
        for record in records
    )


def _set_aside(path: Path) -> Path:
    """Rename a file to a name that is free."""
    k = 1
    while (aside := path.with_name(f"{path.name}.damaged-{k}")).exists():
        k += 1
    return path.rename(aside)
