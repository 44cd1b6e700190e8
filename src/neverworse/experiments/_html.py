"""Pieces of HTML."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape

from neverworse.experiments._drawing import Drawing
from neverworse.experiments._rendering import render

LARGEST_SVG = 500_000  # bytes; drawing more points than fit takes a browser longer than pixels


class Markup(str):
    """Text that is HTML already; so is what is added to it."""

    __slots__ = ()

    def __add__(self, other: str) -> Markup:
        return Markup(str(self) + text(other))


def text(content: object) -> Markup:
    """Return content as HTML: as it is if it is markup, escaped otherwise."""
    return content if isinstance(content, Markup) else Markup(escape(str(content), quote=False))


def tag(name: str, *content: object, **attributes: object) -> Markup:
    """Return an element.

    Parameters
    ----------
    name : str
    *content
        What is in it, see `text`.
    **attributes
        A trailing underscore is dropped, and others are hyphens; those that are None are left out.
    """
    listed = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{listed}>{''.join(map(text, content))}</{name}>")


def section(identity: str, title: str, *content: object) -> Markup:
    """Return a part of the page, with a heading that links can lead to."""
    return tag("section", tag("h2", title), *(text(part) + "\n" for part in content), id=identity)


def table(
    caption: str,
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    numbers_from: int = 1,
) -> Markup:
    """Return a table that scrolls by itself where the page is narrow.

    Parameters
    ----------
    caption : str
    head : sequence
        Titles of the columns.
    rows : iterable of sequences
        Their first cells name them.
    numbers_from : int
        Columns from this one on are aligned to the right.
    """
    names = [tag("th", cell, scope="col", class_=_side(k, numbers_from)) for k, cell in _each(head)]
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(tag("td", cell, class_=_side(k, numbers_from)) for k, cell in _each(row) if k > 0),
        )
        + "\n"
        for row in rows
    ]
    whole = tag(
        "table",
        tag("thead", tag("tr", *names)),
        tag("tbody", *body),
        aria_label=caption,
    )
    # The caption stays where it is while the table scrolls; who has no mouse can scroll as well.
    scrolling = tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label=caption)
    return tag("p", caption, class_="caption") + scrolling


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """Return names and what they are."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", what)) for name, what in pairs))


def figure(drawing: Drawing) -> Markup:
    """Return a figure that is part of the page itself: vectors, or pixels if these are many."""
    content, kind = render(drawing.figure, "svg"), "svg+xml"
    if len(content) > LARGEST_SVG:
        content, kind = render(drawing.figure, "png"), "png"
    width, height = (round(96 * inches) for inches in drawing.figure.get_size_inches())
    source = f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"
    image = Markup(
        f'<img src="{source}" alt="{escape(drawing.description)}" width="{width}" '
        f'height="{height}">'
    )
    return tag("figure", image, tag("figcaption", drawing.title))


def _each(row: Sequence[object]) -> Iterable[tuple[int, object]]:
    return enumerate(row)


def _side(column: int, numbers_from: int) -> str | None:
    return "number" if column >= numbers_from else None
