"""One kit for all pages: a template around them, macros for their parts, one style sheet.

A page extends ``page.html`` and imports macros from ``kit.html``. Numbers and names are written by
`name`, `exact`, `estimate` and the functions of `neverworse._words`, which all templates know.

A page is one file that loads nothing and runs nothing but its own script, in light, dark and print.
What comes from outside is text, whatever it looks like: only templates and `Markup` are HTML.
"""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
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

__all__ = ["COLOURS", "SMALL", "WIDTH", "Chart", "Markup", "canvas", "digest", "drawing_style"]
__all__ += ["estimate", "exact", "name", "number_axis", "picture", "render"]

SVG = "http://www.w3.org/2000/svg"
SHAPES = ("path", "use", "rect")

# Figures are drawn in roles, not in colours: each role has a number that matplotlib takes for a
# colour, and becomes a class. The style sheet says how it looks in light, dark and print.
ROLES = (
    *("ink", "soft", "line", "ground", "supervised", "projected", "third", "fourth", "fifth"),
    *("sixth", "hover"),
)
COLOURS = {role: f"#0000{k + 1:02x}" for k, role in enumerate(ROLES)}
_ROLE_OF = {colour: role for role, colour in COLOURS.items()}

# What matplotlib writes as a style, and what can be written as attributes. A page whose security
# policy allows no styles but its own sheet ignores style attributes.
_KEPT = {"stroke-width", "stroke-dasharray", "stroke-dashoffset", "stroke-linejoin"}
_KEPT |= {"stroke-linecap", "stroke-opacity", "fill-opacity", "opacity"}
_KEPT |= {"font-size", "font-weight", "text-anchor"}

WIDTH = 480  # pixels: two beside each other on a screen; one fills a telephone, still readable
LETTERS, SMALL = 12, 11  # height of text in pixels
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


def picture(png: bytes) -> str:
    """Return the address of a picture that is part of the page itself."""
    return f"data:image/png;base64,{base64.b64encode(png).decode('ascii')}"


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


# Charts: from figures to vectors inside a page, which gives them their colours.


@dataclass
class Chart:
    """A figure, and what becomes of it in a page.

    Attributes
    ----------
    figure : Figure
    description : str
        What somebody who cannot see it should know.
    titles : dict of str to str or list of str
        What to say when the mouse is over an artist, by its gid; a list has one text for each of
        its shapes.
    names : list of str
        Texts from outside. In the figure they are placeholders: their letters may not be in the
        font, and are none of matplotlib's business.
    """

    figure: Figure
    description: str = ""
    titles: dict[str, str | Sequence[str]] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)

    def placeholder(self, content: str) -> str:
        """Return what to write into the figure instead of a text from outside."""
        self.names.append(content)
        return f"@{len(self.names) - 1}"

    def inline(self, identity: str) -> Markup:
        """Return the figure as an SVG element.

        Parameters
        ----------
        identity : str
            What its identities start with; another one for each figure of a page.
        """
        # Identities are unique in the page; all texts from outside are still placeholders.
        svg = _rendered(self.figure, identity).replace("xlink:href", "href")
        svg = re.sub(r'( id="|href="#|url\(#)', rf"\g<1>{identity}-", svg)
        root = ET.fromstring(svg)
        for parent in root.iter():
            for child in list(parent):
                if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                    parent.remove(child)
        for group in root.iter(f"{{{SVG}}}g"):
            title = self.titles.get(group.get("id", "").removeprefix(f"{identity}-"))
            shapes = [group] if isinstance(title, str) else list(_shapes(group))
            texts = [title] if isinstance(title, str) else title or ()
            # Shapes outside the axes are not drawn: then nobody knows which one is which.
            if len(shapes) == len(texts):
                for shape, text in zip(shapes, texts, strict=True):
                    _set_title(shape, text)
        for element in root.iter():
            placeholder = re.fullmatch(r"@(\d+)", (element.text or "").strip())
            if placeholder:
                element.text = self.names[int(placeholder[1])]
            _restyle(element)
            element.tag = element.tag.removeprefix(f"{{{SVG}}}")
        box = root.get("viewBox", "")
        width, height = (f"{float(size):.0f}" for size in box.split()[2:])
        root.attrib.clear()
        root.attrib |= {"role": "img", "aria-label": self.description, "viewBox": box}
        root.attrib |= {"width": width, "height": height}
        return Markup(ET.tostring(root, encoding="unicode"))


def _rendered(figure: Figure, salt: str) -> str:
    import matplotlib as mpl

    file = io.StringIO()
    with mpl.rc_context({"svg.hashsalt": salt}):
        figure.savefig(file, format="svg", dpi=72, metadata={"Date": None}, transparent=True)
    return file.getvalue()


def _shapes(group: Any) -> Iterator[Any]:
    for child in group:
        if child.tag == f"{{{SVG}}}g":
            yield from _shapes(child)
        elif child.tag.removeprefix(f"{{{SVG}}}") in SHAPES:
            yield child


def _set_title(element: Any, content: str) -> None:
    if not content:
        return
    title = ET.Element(f"{{{SVG}}}title")
    title.text = content
    element.insert(0, title)


def _restyle(element: Any) -> None:
    """Write styles as attributes and classes, and positions with as many digits as can be seen."""
    styles = dict(
        part.split(":", 1) for part in element.attrib.pop("style", "").split(";") if ":" in part
    )
    styles = {key.strip(): value.strip() for key, value in styles.items()}
    classes = []
    for kind in ("fill", "stroke"):
        value = styles.pop(kind, None)
        if value == "none":
            element.set(kind, "none")
        elif value is not None:
            classes.append(f"{kind[0]}-{_ROLE_OF[value]}")
    # Older versions of matplotlib write fonts in one go.
    shorthand = re.match(r"(?:(\d00|bold) )?([\d.]+)px", styles.pop("font", ""))
    if shorthand:
        element.set("font-weight", shorthand[1] or "normal")
        element.set("font-size", shorthand[2])
    for key, value in styles.items():
        if key in _KEPT:
            element.set(key, value.removesuffix("px"))
    if classes:
        element.set("class", " ".join(classes))
    for key in ("d", "x", "y", "width", "height", "transform"):
        if key in element.attrib:
            element.set(key, _rounded(element.get(key)))


def _rounded(positions: str) -> str:
    rounded = re.sub(
        r"-?\d+\.\d+", lambda found: f"{float(found[0]):.2f}".rstrip("0").rstrip("."), positions
    )
    return " ".join(rounded.split())


@contextmanager
def drawing_style() -> Iterator[None]:
    """Draw in the style of the pages, whatever matplotlib's settings are elsewhere."""
    from matplotlib import style

    with style.context(["default", STYLE]):
        yield


def canvas(
    height: float, *, left: float = 56, right: float = 12, top: float = 12, bottom: float = 44
) -> tuple[Chart, Axes]:
    """Return an empty chart and its axes; all sizes are pixels.

    To be called, and drawn into, within `drawing_style`. Margins are given, not computed: texts
    get their letters later, in a font of the reader's.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
    size = 1.0 - (left + right) / WIDTH, 1.0 - (top + bottom) / height
    ax = figure.add_axes((left / WIDTH, bottom / height, *size))
    ax.tick_params(length=0, pad=6)
    return Chart(figure), ax


def number_axis(axis: Any, n_ticks: int = 5) -> None:
    """Write numbers as the rest of the page does, at not too many places."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axis.set_major_locator(MaxNLocator(n_ticks, steps=[1, 2, 2.5, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _words.number(value, largest=1e6)))
    axis.grid(True)
