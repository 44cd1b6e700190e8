"""Numbers and words as text: for pages, terminals, notebooks and docstrings."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, Protocol, TypeVar

# What templates know.
__all__ = ["MISSING", "card", "change", "count", "decimal", "interval", "listed", "moment"]
__all__ += ["number", "percent", "points", "short", "signed", "size", "width"]

MINUS = "\N{MINUS SIGN}"
MISSING = "\N{EN DASH}"
ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
WIDE = f"MW@%&{ELLIPSIS}"
ROUNDING = 1e-12  # smaller differences are rounding errors, and written as 0
T = TypeVar("T")

_PLACE = re.compile(r"^\{([\w, ]+)\}$", re.MULTILINE)
# A name, perhaps with a type, and the indented or empty lines after it.
_ENTRY = re.compile(r"^(\w+)(?: : .*)?$(?:\n(?: .*)?$)*", re.MULTILINE)
_SECTION = re.compile(r"^(\w+)\n-+\n.*?(?=\n\n.+\n---|\Z)", re.MULTILINE | re.DOTALL)


def number(value: float, digits: int = 4, largest: float = 1e15) -> str:
    """Return a number with this many significant digits; from `largest` on, with an exponent."""
    if not math.isfinite(value):
        return MISSING if math.isnan(value) else f"{_sign(value)}\N{INFINITY}"
    size = abs(value)
    if size >= largest or 0 < size < 1e-4:
        mantissa, power = f"{size:.{digits - 1}e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".")
        return f"{_sign(value)}{mantissa}e{_sign(int(power))}{abs(int(power))}"
    if size >= 10 ** (digits - 1) or value == int(value):
        return f"{_sign(value)}{size:,.0f}"
    return f"{_sign(value)}{size:,.{digits}g}"


def printed(text: str) -> str:
    """Return text without characters that `print` cannot write on some systems."""
    return text.replace(MINUS, "-").replace("\N{INFINITY}", "inf")


def percent(share: float) -> str:
    """Return a share as a percentage that is shown as zero only if it is."""
    size = 100.0 * abs(share)
    if not math.isfinite(size):
        return MISSING
    if 0.0 < size < 0.01:
        return "<0.01 %" if share > 0 else f">{MINUS}0.01 %"
    decimals = 0 if size >= 99.95 or size == 0 else 1 if size >= 1.0 else 2
    return f"{_sign(share)}{size:,.{decimals}f} %"


def decimal(value: float, decimals: int = 3) -> str:
    """Return a number with fixed decimals, or more if it would look like 0."""
    value = 0.0 if abs(value) < ROUNDING else value
    if not math.isfinite(value) or 0 < abs(value) < 0.5 * 10**-decimals:
        return number(value, 2)
    return f"{_sign(value)}{abs(value):,.{decimals}f}"


def signed(written: str) -> str:
    """Return what `number` or `decimal` wrote, with a plus sign if it is positive."""
    is_positive = written[0].isdigit() and written.strip("0.") != ""
    return f"+{written}" if is_positive else written


def points(share: float, sign: bool = False) -> str:
    """Return a share, or a difference of shares, in percentage points."""
    written = decimal(100.0 * share, 1)
    return signed(written) if sign else written


def size(n_bytes: int) -> str:
    """Return the size of a file."""
    amount, units = float(n_bytes), ["bytes", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{number(amount, 3)} {units[0]}"


def moment(iso: str) -> str:
    """Return a time in UTC, given in ISO 8601, to the minute."""
    return f"{iso[:16].replace('T', ' ')} UTC"


def count(n: int, what: str) -> str:
    """Return a number of things: 1 row, 2 rows."""
    return f"{n:,} {what if n == 1 else what + 's'}"


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def quoted(names: Iterable[str], most: int = 5) -> str:
    """Return names in quotes; of many, the first ones and the number of the others."""
    every = [repr(cropped(name)) for name in names]
    if len(every) <= most:
        return ", ".join(every)
    return f"{', '.join(every[:most])} and {len(every) - most:,} more"


def grouped(notes: Mapping[str, str]) -> dict[str, str]:
    """Return notes, given by column, with the quoted names of the columns that share each."""
    alike: dict[str, list[str]] = {}
    for name, note in notes.items():
        if note:
            alike.setdefault(note, []).append(name)
    return {note: quoted(names) for note, names in alike.items()}


def cropped(text: str, longest: int = 60) -> str:
    """Return the beginning of a long text."""
    return text if len(text) <= longest else f"{text[: longest - 1]}{ELLIPSIS}"


def nearest(name: str, names: Iterable[str]) -> str:
    """Return "Did you mean …?" if one of the names is similar, or else all of them."""
    from difflib import get_close_matches  # slow to import

    every = list(names)
    spelled = {other.casefold().strip(): other for other in reversed(every)}
    close = get_close_matches(name.casefold().strip(), spelled, n=1, cutoff=0.6)
    if close:
        return f"Did you mean {spelled[close[0]]!r}?"
    return f"There are {quoted(every, 12)}." if every else "It has no columns."


def install(extra: str, clone: str = "a clone") -> str:
    """Return how to install an optional extra, without a full stop."""
    return f'Run in {clone} of neverworse: pip install ".[{extra}]"'


class Interval(Protocol):
    """An estimate with its confidence interval."""

    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def interval(found: Interval, sign: bool = False) -> str:
    """Return an estimate with its interval."""
    value, low, high = map(decimal, (found.value, found.low, found.high))
    if sign:
        value, low, high = map(signed, (value, low, high))
    return f"{value} ({low} to {high})"


def change(found: Interval, by: str = "changed by", none: str = "did not change on average") -> str:
    """Return the change of a share in percentage points, or that there was none on average."""
    low, high = (points(end, sign=True) for end in (found.low, found.high))
    if float(f"{100.0 * found.value:.1f}") == 0.0:
        return f"{none} (95 % interval {low} to {high} points)"
    return f"{by} {points(found.value, sign=True)} points (95 % interval {low} to {high})"


def card(title: str, colour: str, text: str, numbers: Sequence[tuple[str, str]]) -> str:
    """Return HTML for notebooks: a verdict with the numbers behind it."""
    cells = "".join(
        f"<tr><td style='text-align:left;padding-right:1.5em;opacity:.7'>{escape(name)}</td>"
        f"<td style='text-align:right'>{escape(value)}</td></tr>"
        for name, value in numbers
    )
    return (
        "<div style='font-family:system-ui,sans-serif;max-width:44em;line-height:1.45;"
        f"border:1px solid rgba(128,128,128,.35);border-left:5px solid {colour};"
        "border-radius:6px;padding:.8em 1.1em;margin:.4em 0'>"
        f"<div style='font-weight:600;color:{colour};margin-bottom:.35em'>{escape(title)}</div>"
        f"<div style='margin-bottom:.6em'>{escape(text)}</div>"
        f"<table style='border-collapse:collapse;font-size:.92em'>{cells}</table></div>"
    )


def short(content: str, longest: float) -> str:
    """Return a name that fits on a line of a chart with room for this many small letters."""
    printable = (" " if unicodedata.category(each) == "Cc" else each for each in content)
    line = " ".join("".join(printable).split())
    if width(line) <= longest:
        return line
    while width(line) > longest - width(ELLIPSIS):
        line = line[:-1]
    return line.rstrip() + ELLIPSIS


def width(line: str) -> float:
    """Return an upper bound of how wide a line is in any font, in small letters."""
    return sum(map(_width, line))


def _width(letter: str) -> float:
    if unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0.0
    if unicodedata.east_asian_width(letter) in "WF":
        return 2.5
    if letter in WIDE:
        return 1.8
    return 1.3 if letter.isupper() or letter in "mw" else 1.0


def _sign(value: float) -> str:
    return MINUS if value < 0 else ""


def documented_like(*sources: Any) -> Callable[[T], T]:
    """Return a decorator that fills in parts of numpydoc docstrings from other docstrings.

    A line ``{alpha, tol}`` stands for the entries of these parameters or attributes, and
    ``{Returns}`` for a whole section, each from the first source that has it.
    """
    from inspect import cleandoc  # slow to import

    entries: dict[str, str] = {}
    for source in reversed(sources):
        text = cleandoc(source.__doc__ or "")
        for part in (_ENTRY, _SECTION):
            entries |= {found[1]: found[0].rstrip() for found in part.finditer(text)}

    def fill(target: T) -> T:
        if target.__doc__:  # Python removes docstrings with -OO
            target.__doc__ = _PLACE.sub(
                lambda names: "\n".join(entries[name] for name in names[1].split(", ")),
                cleandoc(target.__doc__),
            )
        return target

    return fill
