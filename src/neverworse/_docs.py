"""Docstrings that share entries: written in one place, and complete in `help()`."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

_PLACE = re.compile(r"^\{([\w, ]+)\}$", re.MULTILINE)
_ENTRY = re.compile(r"(\w+)( : |$)")


def documented_like(*sources: Any) -> Callable[[T], T]:
    """Fill in entries of a numpydoc docstring that other docstrings have already.

    A line ``{alpha, tol}`` among the parameters or attributes stands for the entries of these
    names. Each comes from the first of the sources that has it.
    """
    entries: dict[str, str] = {}
    for source in reversed(sources):
        entries |= _entries(source.__doc__ or "")

    def fill(target: T) -> T:
        if target.__doc__:  # Python removes docstrings with -OO
            target.__doc__ = _PLACE.sub(
                lambda names: "\n".join(entries[name] for name in names[1].split(", ")),
                inspect.cleandoc(target.__doc__),
            )
        return target

    return fill


def _entries(docstring: str) -> dict[str, str]:
    """Return the entries of all lists in a docstring, by their names."""
    entries: dict[str, str] = {}
    name = None
    for line in inspect.cleandoc(docstring).splitlines():
        if found := _ENTRY.match(line):
            name = found[1]
            entries[name] = line
        elif name is not None and (not line or line.startswith(" ")):
            entries[name] += f"\n{line}"
        else:
            name = None
    return {name: entry.rstrip() for name, entry in entries.items()}
