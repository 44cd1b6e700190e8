"""One kit for all HTML pages: a base template, macros, a style sheet, and charts as vectors.

A page extends ``page.html`` and imports macros from ``kit.html``. Templates know `name`, `exact`,
`estimate` and the functions of `neverworse._words`. A page is one file that loads nothing. Data are
escaped: only templates and `Markup` are HTML.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from neverworse import _words
from neverworse._palette import DARK, LIGHT, PRINT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["COLOURS", "WIDTH", "Chart", "Markup", "canvas", "digest", "drawing_style"]
__all__ += ["estimate", "exact", "name", "number_axis", "picture", "render"]

SVG = "{http://www.w3.org/2000/svg}"
# Charts are drawn with a placeholder colour for each role in the palette. It becomes a class, whose
# colour in light, dark and print is in the style sheet.
COLOURS = {role: f"#0000{k + 1:02x}" for k, role in enumerate(LIGHT)}
_ROLE_OF = {colour: role for role, colour in COLOURS.items()}
WIDTH = 480  # pixels: two fit side by side on a screen, and one is readable on a phone
RIGHT, BOTTOM = 12, 44  # margins in pixels
LETTERS, SMALL = 12, 11  # font sizes in pixels
STYLE = {
    "font.size": LETTERS,
    "axes.labelsize": LETTERS,
    **dict.fromkeys(("axes.spines.top", "axes.spines.right"), False),
    **dict.fromkeys(("axes.edgecolor", "xtick.color", "ytick.color"), COLOURS["soft"]),
    **dict.fromkeys(("axes.labelcolor", "text.color"), COLOURS["ink"]),
    **dict.fromkeys(("xtick.labelcolor", "ytick.labelcolor"), COLOURS["ink"]),
    **dict.fromkeys(("xtick.labelsize", "ytick.labelsize"), SMALL),
    **dict.fromkeys(("axes.linewidth", "grid.linewidth"), 1.0),
    "grid.color": COLOURS["line"],
    "axes.axisbelow": True,
    "lines.solid_joinstyle": "round",
    "svg.fonttype": "none",
}


def render(room: str, template: str, **content: Any) -> str:
    """Render a template that extends ``page.html``, in the folder ``templates`` of a package.

    The ``page.css`` and ``page.js`` of the package, if there are any, come after those of the kit.
    """
    return _environment(room).get_template(template).render(content)


def picture(png: bytes) -> str:
    """Return a picture as a data URL."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"


@cache
def _environment(room: str) -> Environment:
    """Return the templates of a package, which know those of the kit and its functions."""
    made = Environment(
        loader=ChoiceLoader([PackageLoader(room), PackageLoader(__name__)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=["jinja2.ext.do"],
    )
    style = _colours() + _resources(room, "page.css")
    script = _resources(room, "page.js")
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
    """Return the hash of an inline style sheet or script for a content security policy."""
    found = hashlib.sha256(content.encode("utf-8")).digest()
    return f"sha256-{base64.b64encode(found).decode('ascii')}"


def _resources(room: str, name: str) -> str:
    """Return a file of the kit, followed by that of a package if there is one."""
    found = (files(package).joinpath(name) for package in (__name__, room))
    return "".join(file.read_text("utf-8") for file in found if file.is_file())


def _colours() -> str:
    """Return the palette as a style sheet, with the classes of charts and legends."""
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
    """Return a name from the data, isolated from the text direction of the page."""
    return Markup('<bdi class="name">{}</bdi>').format(content)


def exact(value: float, shown: str | None = None) -> Markup:
    """Return a rounded number with all its digits in an attribute, for scripts and sorting."""
    digits = repr(value if isinstance(value, int) else float(value))
    shown = _words.number(value) if shown is None else shown
    return Markup('<data value="{}">{}</data>').format(digits, shown)


def estimate(found: _words.Interval | None, sign: bool = False) -> Markup:
    """Return an estimate with its interval, or a dash."""
    if found is None:
        return Markup(_words.MISSING)
    value, ends = _words.interval(found, sign).split(" ", 1)
    return exact(found.value, Markup('{} <span class="ends">{}</span>').format(value, ends))


def _options(sentence: str) -> Markup:
    """Return a sentence with options of the command line as code that is not broken at hyphens."""
    marked = re.sub(r"--[a-z][a-z-]*", r'<code class="option">\g<0></code>', str(escape(sentence)))
    return Markup(marked)


@dataclass
class Chart:
    """A figure to be included in a page."""

    figure: Figure
    description: str = ""  # for those who cannot see it
    titles: dict[str, Sequence[str]] = field(default_factory=dict)  # tooltips of markers, by gid
    names: list[str] = field(default_factory=list)  # texts that placeholders stand for

    def placeholder(self, content: str) -> str:
        """Return a placeholder to draw for a text, whose letters the font may not have."""
        self.names.append(content)
        return f"@{len(self.names) - 1}"

    def inline(self, identity: str) -> Markup:
        """Return the figure as an SVG element; its ids start with `identity`."""
        import matplotlib as mpl

        file = io.StringIO()
        with mpl.rc_context({"svg.hashsalt": identity}):
            metadata = {"Date": None}
            self.figure.savefig(file, format="svg", dpi=72, metadata=metadata, transparent=True)
        svg = file.getvalue().replace("xlink:href", "href")
        svg = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{identity}-", svg)
        root = ET.fromstring(svg)
        for group in root.iter(f"{SVG}g"):
            texts = self.titles.get(group.get("id", "").removeprefix(f"{identity}-"), ())
            for marker, text in zip(group.iter(f"{SVG}use"), texts, strict=False):
                ET.SubElement(marker, f"{SVG}title").text = text
        for element in list(root.iter()):
            for child in element.findall(f"{SVG}metadata") + element.findall(f"{SVG}style"):
                element.remove(child)
            placeholder = re.fullmatch(r"@(\d+)", (element.text or "").strip())
            if placeholder:
                element.text = self.names[int(placeholder[1])]
            _restyle(element)
            element.tag = element.tag.removeprefix(SVG)
        box = root.get("viewBox", "")
        width, height = (f"{float(size):.0f}" for size in box.split()[2:])
        root.attrib = {"role": "img", "aria-label": self.description, "viewBox": box}
        root.attrib |= {"width": width, "height": height}
        return Markup(ET.tostring(root, encoding="unicode"))


def _restyle(element: Any) -> None:
    """Turn styles into attributes and classes: pages forbid styles but those of the style sheet."""
    declared = re.findall(r"([\w-]+): *([^;]+)", element.attrib.pop("style", ""))
    styles = {key: value.strip() for key, value in declared if key != "font-family"}
    # Older versions of matplotlib have one style for fonts.
    shorthand = re.match(r"(?:(\d00|bold) )?([\d.]+)px", styles.pop("font", ""))
    if shorthand:
        styles |= {"font-weight": shorthand[1] or "normal", "font-size": shorthand[2]}
    classes = []
    for key, value in styles.items():
        if value in _ROLE_OF:
            classes.append(f"{key[0]}-{_ROLE_OF[value]}")
        else:
            element.set(key, value.removesuffix("px"))
    if classes:
        element.set("class", " ".join(sorted(classes)))


def drawing_style() -> AbstractContextManager[None]:
    """Return a context that draws in the style of the pages, whatever matplotlib's settings are."""
    from matplotlib import style

    return style.context(["default", STYLE])


def canvas(height: float, *, left: float, top: float = 12) -> tuple[Chart, Axes]:
    """Return an empty chart and its axes, to be drawn into within `drawing_style`.

    Sizes are in pixels. Margins are given, not computed: the font is that of the reader.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
    size = 1.0 - (left + RIGHT) / WIDTH, 1.0 - (top + BOTTOM) / height
    ax = figure.add_axes((left / WIDTH, BOTTOM / height, *size))
    ax.tick_params(length=0, pad=6)
    return Chart(figure), ax


def number_axis(axis: Any, n_ticks: int = 5) -> None:
    """Set few ticks, with numbers as in the text."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(n_ticks, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _words.number(value, largest=1e6)))
    axis.grid(True)
