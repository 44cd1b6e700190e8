"""Weights in a sum over rows that depend on the scores of the rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from neverworse._typing import Vector

# ``weigh(t, rows)``: the weights of the rows in a slice, from their scores t.
Weigh = Callable[[Vector, slice], Vector]


@dataclass(frozen=True)
class RowWeigh:
    """A `Weigh` that can be cut into pieces, to be sent where the rows are.

    A closure would take whole arrays with it; of this, `at` takes what belongs to some rows.

    Attributes
    ----------
    function : callable
        ``function(t, *known)``; defined at the top of a module, so that it can be pickled.
    known : tuple
        What it knows about every row: arrays with the rows last, objects with a method `at`, None.
    """

    function: Callable[..., Vector]
    known: tuple[Any, ...]

    def at(self, rows: slice) -> RowWeigh:
        """Return the same for some rows."""
        return RowWeigh(self.function, tuple(_at(one, rows) for one in self.known))

    def __call__(self, t: Vector, rows: slice) -> Vector:
        return self.function(t, *(_at(one, rows) for one in self.known))


def _at(known: Any, rows: slice) -> Any:
    if known is None:
        return None
    return known.at(rows) if hasattr(known, "at") else known[..., rows]
