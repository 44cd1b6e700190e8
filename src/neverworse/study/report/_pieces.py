"""Pieces that several sections of a report are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

from neverworse.projection.words import count
from neverworse.study.report._canvas import Look, looks
from neverworse.study.report._html import Markup, table, tag
from neverworse.study.report._svg import Chart, inline
from neverworse.study.report._words import name

LONGEST_TABLE = 500  # rows; more of them are slow to draw, and nobody reads them
ON_PAPER = 40  # rows; the style sheet hides others in print
LARGEST_MATRIX = 12  # classes; more do not fit on a page
SCROLLS_FROM = 16  # rows; longer tables have a height, and scroll


def side_by_side(*parts: object) -> Markup:
    """Return parts beside each other where there is room."""
    return tag("div", *(tag("div", part) for part in parts), class_="pair")


def drawing(chart: Chart, identity: str, caption: object = None) -> Markup:
    """Return a chart, with a line about it if need be."""
    below = [] if caption is None else [tag("figcaption", caption)]
    return tag("figure", inline(chart, identity), *below, class_="chart")


def legend(methods: Iterable[str]) -> Markup:
    """Return which symbol and colour is which method."""
    return tag("ul", *(_key(each, look) for each, look in looks(methods).items()), class_="legend")


def _key(method: str, look: Look) -> Markup:
    symbol = tag("span", look.symbol, class_=f"key-{look.role}", aria_hidden="true")
    return tag("li", symbol, " ", name(method))


def long_table(
    caption: str,
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    numbers_from: int,
    n_all: int,
    rest: str,
) -> Markup:
    """Return a table that can be sorted and filtered, and says what it leaves out.

    Parameters
    ----------
    caption, head, rows, numbers_from
        See `neverworse.study.report._html.table`. Rows that are not shown are not asked for.
    n_all : int
        How many rows there are.
    rest : str
        Where those are that are not shown.
    """
    shown = list(islice(rows, LONGEST_TABLE))
    if n_all > len(shown):
        caption += f" The {len(shown):,} first of {n_all:,}; {rest}"
    kind = "sortable long" if len(shown) > SCROLLS_FROM else "sortable"
    made = table(caption, head, shown, numbers_from=numbers_from, kind=kind)
    if len(shown) > ON_PAPER:
        hidden = count(len(shown) - ON_PAPER, "more row")
        made += tag("p", f"Not on paper: {hidden} of this table.", class_="paper soft")
    return made
