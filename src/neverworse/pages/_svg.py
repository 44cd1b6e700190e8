"""From figures to vectors inside a page, which gives them their colours."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
SHAPES = ("path", "use", "rect")

# Figures are drawn in roles, not in colours: each role has a number that matplotlib takes for a
# colour, and becomes a class. The style sheet says how it looks in light, dark and print.
ROLES = (
    "ink",
    "soft",
    "line",
    "ground",
    "supervised",
    "projected",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "hover",
)
COLOURS = {role: f"#0000{k + 1:02x}" for k, role in enumerate(ROLES)}
_ROLE_OF = {colour: role for role, colour in COLOURS.items()}

# What matplotlib writes as a style, and what can be written as attributes. A page whose security
# policy allows no styles but its own sheet ignores style attributes.
_KEPT = {
    "stroke-width",
    "stroke-dasharray",
    "stroke-dashoffset",
    "stroke-linejoin",
    "stroke-linecap",
    "stroke-opacity",
    "fill-opacity",
    "opacity",
    "font-size",
    "font-weight",
    "text-anchor",
}


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
        return _inline(self, identity)


def _inline(chart: Chart, identity: str) -> Markup:
    root = ET.fromstring(_rendered(chart.figure, identity))
    for parent in root.iter():
        for child in list(parent):
            if child.tag in (f"{{{SVG}}}metadata", f"{{{SVG}}}style"):
                parent.remove(child)
    _name_groups(root, chart.titles)
    _rename(root, identity)
    _write_texts(root, chart.names)
    for element in root.iter():
        _restyle(element)
        element.tag = element.tag.removeprefix(f"{{{SVG}}}")
    box = root.get("viewBox", "")
    _, _, width, height = box.split()
    root.attrib.clear()
    root.attrib.update(
        {
            "role": "img",
            "aria-label": chart.description,
            "viewBox": box,
            "width": f"{float(width):.0f}",
            "height": f"{float(height):.0f}",
        }
    )
    return Markup(ET.tostring(root, encoding="unicode"))


def _rendered(figure: Figure, salt: str) -> bytes:
    import matplotlib as mpl

    file = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": salt}):
        figure.savefig(file, format="svg", dpi=72, metadata={"Date": None}, transparent=True)
    return file.getvalue()


def _name_groups(root: Any, titles: Mapping[str, str | Sequence[str]]) -> None:
    """Give groups, or each of their shapes, what is said when the mouse is over them."""
    for group in root.iter(f"{{{SVG}}}g"):
        found = titles.get(group.get("id", ""))
        if found is None:
            continue
        if isinstance(found, str):
            _set_title(group, found)
            continue
        shapes = list(_shapes(group))
        # Shapes that lie outside the axes are not written; then nobody knows which is which.
        if len(shapes) == len(found):
            for shape, title in zip(shapes, found, strict=True):
                _set_title(shape, title)


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


def _rename(root: Any, identity: str) -> None:
    """Keep only identities that are referred to, and make them unique in the page."""
    referred = set()
    for element in root.iter():
        address = element.attrib.pop(f"{{{XLINK}}}href", None)
        if address is not None:
            referred.add(address[1:])
            element.set("href", f"#{identity}-{address[1:]}")
        clip = element.get("clip-path")
        if clip is not None:
            name = clip.removeprefix("url(#").removesuffix(")")
            referred.add(name)
            element.set("clip-path", f"url(#{identity}-{name})")
    for element in root.iter():
        name = element.attrib.pop("id", None)
        if name in referred:
            element.set("id", f"{identity}-{name}")


def _write_texts(root: Any, names: Sequence[str]) -> None:
    for element in root.iter(f"{{{SVG}}}text"):
        found = re.fullmatch(r"@(\d+)", (element.text or "").strip())
        if found:
            element.text = names[int(found[1])]


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
