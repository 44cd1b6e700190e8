"""Check a built site: every link and anchor leads somewhere, every picture has a description.

Usage: python docs/check_site.py FOLDER
"""

from __future__ import annotations

import sys
from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The anchors of a page, its links, what it loads, and pictures without a description."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.undescribed: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag has."""
        found = dict(attrs)
        self.anchors |= {each for key in ("id", "name") if (each := found.get(key))}
        if tag == "a" and found.get("href") is not None:
            self.links.append(str(found["href"]))
        if (source := found.get("src")) is not None:
            self.loaded.append(source)
        if tag == "link" and found.get("rel") in ("stylesheet", "preload", "icon"):
            self.loaded.append(str(found.get("href")))
        if tag == "img" and not (found.get("alt") or "").strip():
            source = str(found.get("src"))
            if not source.endswith("_thumb.png"):  # the title stands beside it
                self.undescribed.append(source)


def problems(folder: Path) -> list[str]:
    """Return what is wrong with the pages in a folder, a line each."""
    paths = [path for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts]
    pages = {path.resolve(): Page(path) for path in paths}
    found: dict[str, set[str]] = defaultdict(set)
    for path, page in pages.items():
        here = path.relative_to(folder.resolve()).as_posix()
        for source in page.undescribed:
            found[f"picture without a description: {source}"].add(here)
        for target in page.loaded:
            if urlsplit(target).netloc:
                found[f"loaded from the network: {target}"].add(here)
        for target in page.links + page.loaded:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            if not there.exists():
                found[f"no such file: {target}"].add(here)
            elif anchor and there in pages and anchor not in pages[there].anchors:
                found[f"no such anchor: {target}"].add(here)
    if not pages:
        return [f"There are no pages in {folder}."]
    return [
        f"{what} (on {min(where)}{f' and {len(where) - 1} more' if len(where) > 1 else ''})"
        for what, where in found.items()
    ]


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    sys.exit("\n".join(wrong) if wrong else 0)
