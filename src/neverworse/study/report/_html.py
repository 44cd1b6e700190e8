"""Pieces of HTML, and the page around them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence
from html import escape


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


def contents(links: Iterable[tuple[str, str]]) -> Markup:
    """Return links to sections, given their identities and titles."""
    items = (tag("li", tag("a", title, href=f"#{identity}")) for identity, title in links)
    return tag("nav", tag("ul", *items), aria_label="Contents")


def table(
    caption: str,
    head: Sequence[object],
    rows: Iterable[Sequence[object]],
    *,
    numbers_from: int = 1,
    kind: str | None = None,
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
    kind : str, optional
        Classes of the box that the table is in, for style sheets and scripts.
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
    classes = f"scroll {kind}" if kind else "scroll"
    scrolling = tag("div", whole, class_=classes, tabindex=0, role="region", aria_label=caption)
    return tag("p", caption, class_="caption") + scrolling


def facts(pairs: Iterable[tuple[str, object]]) -> Markup:
    """Return names and what they are."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", what)) for name, what in pairs))


def document(title: str, body: Iterable[str], style: str, script: str = "") -> str:
    """Return a page that needs nothing else, and that loads and runs nothing else.

    Parameters
    ----------
    title : str
    body : iterable of str
        What is in it, as HTML.
    style : str
        Its only style sheet: attributes named ``style`` have no effect.
    script : str
        Its only script, if any.
    """
    policy = [
        "default-src 'none'",
        "img-src data:",
        f"style-src '{_digest(style)}'",
        *([f"script-src '{_digest(script)}'"] if script else []),
        "base-uri 'none'",
        "form-action 'none'",
    ]
    head = "\n".join(
        [
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{"; ".join(policy)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',  # or browsers ask for one
            tag("title", title),
            f"<style>{style}</style>",
        ]
    )
    content = "\n".join(body)
    after = f"<script>{script}</script>\n" if script else ""
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n'
        f"<body>\n<main>\n{content}\n</main>\n{after}</body>\n</html>\n"
    )


def _digest(content: str) -> str:
    """Return how a content security policy names an inline style sheet or script."""
    found = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(found).decode('ascii')}"


def _each(row: Sequence[object]) -> Iterable[tuple[int, object]]:
    return enumerate(row)


def _side(column: int, numbers_from: int) -> str | None:
    return "number" if column >= numbers_from else None
