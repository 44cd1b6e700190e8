"""One kit for all pages: a template around them, macros for their parts, one style sheet.

A page extends ``page.html`` and imports macros from ``kit.html``. Numbers and names are written by
`name`, `exact`, `estimate` and the functions of `neverworse._words`, which all templates know.

A page is one file that loads nothing and runs nothing but its own script, in light, dark and print.
What comes from outside is text, whatever it looks like: only templates and `Markup` are HTML.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from neverworse import _words
from neverworse._palette import DARK, LIGHT, PRINT
from neverworse.pages._svg import COLOURS, Chart

__all__ = [
    "COLOURS",
    "Chart",
    "Markup",
    "digest",
    "estimate",
    "exact",
    "name",
    "picture",
    "render",
]

OPTION = re.compile(r"--[a-z][a-z-]*")


def render(room: str, template: str, **content: Any) -> str:
    """Return a page that needs nothing else.

    Parameters
    ----------
    room : str
        The package in whose folder ``templates`` the template is. Its own ``page.css`` and
        ``page.js``, if there are any, come after those of the kit.
    template : str
        Name of a template that extends ``page.html``.
    **content
        What the template is about.
    """
    return _environment(room).get_template(template).render(content)


def picture(content: bytes, kind: str) -> str:
    """Return the address of a picture that is part of the page itself.

    Parameters
    ----------
    content : bytes
    kind : {"png", "svg+xml"}
    """
    return f"data:image/{kind};base64,{base64.b64encode(content).decode('ascii')}"


@cache
def _environment(room: str) -> Environment:
    """Return where the templates of a room find those of the kit, and all words."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(room), PackageLoader(__name__)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=["jinja2.ext.do"],
    )
    style = _colours() + _resource(__name__, "page.css")
    script = _resource(__name__, "page.js")
    if room != __name__:
        style, script = style + _resource(room, "page.css"), script + _resource(room, "page.js")
    made.globals.update(
        name=name,
        exact=exact,
        estimate=estimate,
        style=Markup(style),
        script=Markup(script),
        digests={"style": digest(style), "script": digest(script)},
        **{name: getattr(_words, name) for name in _words.__all__},
    )
    made.filters.update(name=name, options=_options)
    return made


def digest(content: str) -> str:
    """Return how a content security policy names an inline style sheet or script."""
    found = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(found).decode('ascii')}"


def _resource(room: str, name: str) -> str:
    found = files(room).joinpath(name)
    return found.read_text("utf-8") if found.is_file() else ""


def _colours() -> str:
    """Return the palette as a style sheet, and the classes that charts and legends have."""
    light, dark, on_paper = (
        " ".join(f"--{role}: {colour};" for role, colour in palette.items())
        for palette in (LIGHT, DARK, PRINT)
    )
    classes = "".join(
        f".{start}-{role} {{ {kind}: var(--{role}); }}\n"
        for role in COLOURS
        for start, kind in (("f", "fill"), ("s", "stroke"), ("key", "color"))
    )
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
        f"@media print {{ :root {{ color-scheme: light; {on_paper} }} }}\n{classes}"
    )


def name(content: str) -> Markup:
    """Return a name from outside, kept apart from the direction in which the page is written."""
    return Markup('<bdi class="name">{}</bdi>').format(content)


def exact(value: float, shown: str | None = None) -> Markup:
    """Return a number for the eye that carries all its digits, for scripts and sorting."""
    digits = repr(value if isinstance(value, int) else float(value))
    shown = _words.number(value) if shown is None else shown
    return Markup('<data value="{}">{}</data>').format(digits, shown)


def estimate(found: _words.Interval | None, sign: bool = False) -> Markup:
    """Return an estimate with its interval, or a dash."""
    if found is None:
        return Markup(_words.MISSING)
    return exact(found.value, _words.interval(found, sign))


def _options(sentence: str) -> Markup:
    """Return a sentence in which options of the command line are not broken at their hyphens."""
    return Markup(OPTION.sub(r'<code class="option">\g<0></code>', str(escape(sentence))))
