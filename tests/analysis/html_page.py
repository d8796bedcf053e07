"""Read a page as a browser does, as far as the tests need it."""

import base64
import re
from html.parser import HTMLParser

_VOID = {"meta", "link", "img"}


class HtmlPage(HTMLParser):
    """Parses the elements and texts of a page; fails if tags do not match."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)

    def handle_endtag(self, tag) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data) -> None:
        if data.strip():
            self.texts.append((self.open[-1], data.strip()))

    def of(self, tag: str) -> list[str]:
        """Returns the texts that stand directly within elements of one tag."""
        return [text for inside, text in self.texts if inside == tag]

    def all(self, tag: str, attribute: str) -> list[str]:
        """Returns an attribute of all elements of one tag."""
        found = [names for name, names in self.tags if name == tag]
        return [names.get(attribute) or "" for names in found]


def check_self_contained(page: HtmlPage, text: str) -> list[bytes]:
    """Checks that a page loads no other file; returns its pictures."""
    assert not {tag for tag, _ in page.tags} & {"script", "iframe", "object"}
    for _, attributes in page.tags:
        for name in ("src", "href"):
            # Or a section of the page.
            address = attributes.get(name) or "data:"
            assert address.startswith(("data:", "#"))
    assert not re.search(r"https?:|url\(|@import", text)
    sources = page.all("img", "src")
    return [base64.b64decode(source.split(",")[1]) for source in sources]
