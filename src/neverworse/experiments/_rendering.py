"""From figures to files: the same figure always gives the same bytes."""

from __future__ import annotations

import io
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

FORMATS = ("png", "svg", "pdf")
DOTS_PER_INCH = 200
# Without a date. The fonts of a PDF can be edited, and the text of an SVG looks the same anywhere.
METADATA: dict[str, dict[str, Any]] = {
    "png": {"Software": None},
    "svg": {"Date": None},
    "pdf": {"CreationDate": None},
}
SETTINGS = {"svg.hashsalt": "neverworse", "svg.fonttype": "path", "pdf.fonttype": 42}


def render(figure: Figure, kind: str) -> bytes:
    """Return a figure as the content of a file.

    Parameters
    ----------
    figure : Figure
    kind : {"png", "svg", "pdf"}
    """
    file = io.BytesIO()
    with mpl.rc_context(SETTINGS):
        figure.savefig(file, format=kind, dpi=DOTS_PER_INCH, metadata=METADATA[kind])
    return file.getvalue()
