"""Figures as parts of a page."""

from __future__ import annotations

import base64
from html import escape

from neverworse.experiments._drawing import Drawing
from neverworse.experiments._rendering import render
from neverworse.study.report._html import Markup, tag

LARGEST_SVG = 500_000  # bytes; drawing more points than fit takes a browser longer than pixels


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
