"""Tables as JSON, of which the depth is checked before they are parsed."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np

from neverworse.tables._errors import TableError

DEEPEST = 100  # lists and objects in each other; a row of plain cells is 1 deep
_OTHERS = bytes(set(range(256)) - set(b'[]{}"\n\r'))
_ESCAPED = re.compile(rb"\\.", re.DOTALL)


class Shallow(io.RawIOBase):
    """The bytes of a JSON file; those that nest too deeply are refused when they are read.

    PyArrow's parser calls itself for every level, and crashes the process when its stack is full.
    It may begin anew after any line, so the depth is the largest that it could see from any
    bracket on, and no string goes on after a line break.

    Parameters
    ----------
    stream : binary file
    name : str
        Of the file, for messages.
    """

    def __init__(self, stream: Any, name: str) -> None:
        self._stream = stream
        self._name = name
        self._backslash = b""  # the last byte, if what it escapes is in the next block
        self._quoted = False
        self._depth = 0  # above the lowest so far

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read some bytes, if they are not too deep."""
        content = self._stream.read(len(buffer))
        self._check(content)
        buffer[: len(content)] = content
        return len(content)

    def _check(self, content: bytes) -> None:
        plain = _ESCAPED.sub(b"", self._backslash + content)
        self._backslash = plain[-1:] if plain.endswith(b"\\") else b""
        marks = np.frombuffer(plain.translate(None, _OTHERS), np.uint8)
        if not len(marks):
            return
        quotes = np.cumsum(marks == ord('"')) + self._quoted
        breaks = (marks == ord("\n")) | (marks == ord("\r"))
        before = np.maximum.accumulate(np.where(breaks, quotes, 0))  # those of earlier lines
        quoted = (quotes - before) % 2 == 1
        opening = (marks == ord("[")) | (marks == ord("{"))
        closing = (marks == ord("]")) | (marks == ord("}"))
        steps = opening.astype(np.int64) - closing
        steps[quoted] = 0
        levels = np.cumsum(steps) + self._depth
        depths = levels - np.minimum(np.minimum.accumulate(levels), 0)
        if depths.max() > DEEPEST:
            raise TableError(
                f"{self._name} nests lists and objects more than {DEEPEST} deep, as no table does. "
                "Give rows of plain values, such as {'age': 31}."
            )
        self._quoted, self._depth = bool(quoted[-1]), int(depths[-1])
