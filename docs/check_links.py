"""Checks that the built site is complete: links, anchors, no network.

Example:
  python docs/check_links.py build/docs
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED = {"script": "src", "img": "src", "link": "href"}
"""Tags whose target a browser loads with the page."""


class _Page(HTMLParser):
    """Collects the anchors of a page, and what it links to and loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        """Collects the attributes of a tag."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[n] for n in ("id", "name") if n in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if values.get(_LOADED.get(tag, "")):
            self.loaded.append(values[_LOADED[tag]])


def problems(site: Path) -> list[str]:
    """Lists the links of a site to pages, anchors or files that are missing.

    Each is a line with the page and the link; the lines are sorted.
    """
    pages = {path.resolve(): _Page(path) for path in site.rglob("*.html")}
    found = set()
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for link in page.loaded:
            if urlsplit(link).scheme in ("http", "https") or link[:2] == "//":
                found.add(f"{name}: loads {link} from the network")
        for link in [*page.links, *page.loaded]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = path
            if parts.path:
                target = (path.parent / unquote(parts.path)).resolve()
            anchor = unquote(parts.fragment)
            if not target.is_file():
                found.add(f"{name}: {link}: there is no such file")
            elif anchor and target in pages:
                if anchor not in pages[target].anchors:
                    found.add(f"{name}: {link}: there is no such anchor")
    return sorted(found)


if __name__ == "__main__":
    lines = problems(Path(sys.argv[1]))
    print("\n".join(lines) or f"{sys.argv[1]}: all links lead somewhere")
    sys.exit(bool(lines))
