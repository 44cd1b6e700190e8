"""Numbers, words and cards for people."""

from __future__ import annotations

from html import escape


def number(value: float) -> str:
    """Return a number with four digits, or all of them before the decimal point."""
    if abs(value) < 1e4:
        return f"{value:.4g}"
    return f"{value:,.0f}" if abs(value) < 1e6 else f"{value:.3e}"


def count(n: int, what: str) -> str:
    """Return a number of things: 1 row, 2 rows."""
    return f"{n:,} {what if n == 1 else what + 's'}"


def plural(count: int) -> str:
    """Return the word for so many rows."""
    return "row" if count == 1 else "rows"


def card(title: str, colour: str, text: str, numbers: list[tuple[str, str]]) -> str:
    """Return HTML for notebooks, a verdict with the numbers behind it."""
    cells = "".join(
        "<tr><td style='text-align:left;padding:.15em 1.5em .15em 0;opacity:.7'>"
        f"{escape(name)}</td><td style='text-align:right;padding:.15em 0;"
        f"font-variant-numeric:tabular-nums'>{escape(value)}</td></tr>"
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
