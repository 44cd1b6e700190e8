"""Text for terminals."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence

WIDEST = 88  # longer lines are hard to read, however wide the terminal
NARROWEST = 40
NO_BREAK = "\N{NO-BREAK SPACE}"


def width() -> int:
    """Return how long lines are."""
    return min(WIDEST, max(NARROWEST, shutil.get_terminal_size().columns - 1))


def wrapped(text: str, indent: str = "", hanging: str = "") -> str:
    """Break a paragraph into lines; all but the first begin with `hanging` as well."""
    return _filled(text, indent, indent + hanging)


def labelled(label: str, text: str, indent: int = 12) -> str:
    """Break a paragraph into lines beside a label."""
    return _filled(text, f"{label:<{indent}}", " " * indent)


def _filled(text: str, first: str, others: str) -> str:
    filled = textwrap.fill(
        plain(text).replace(" %", f"{NO_BREAK}%"),
        width(),
        initial_indent=first,
        subsequent_indent=others,
        break_on_hyphens=False,
    )
    return filled.replace(NO_BREAK, " ")


def plain(text: str) -> str:
    """Return text from outside without characters that would move the cursor, or worse."""
    return "".join(c if c.isprintable() else " " for c in text)


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = ()) -> str:
    """Return a table, with columns as wide as they must be.

    Parameters
    ----------
    head : sequence of str
        Titles of the columns.
    rows : sequence of sequences of str
    right : sequence of int
        Columns with numbers, which are aligned to the right.
    """
    cells = [[_cell(cell) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    lines = [
        "  ".join(
            cell.rjust(size) if k in right else cell.ljust(size)
            for k, (cell, size) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    lines.insert(1, "-" * min(width(), max(map(len, lines))))
    return "\n".join(lines)


def _cell(content: str, longest: int = 60) -> str:
    cell = plain(content)
    return cell if len(cell) <= longest else f"{cell[: longest - 1]}…"
