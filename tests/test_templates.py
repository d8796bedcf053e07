"""The HTML of reports: its structure, texts that stay texts, and a browser."""

import base64
import re
from pathlib import Path

import pytest

from keras_lstm_dssm.analysis.drawing import drawing
from keras_lstm_dssm.pages import (
    Bar,
    BulletList,
    Picture,
    Section,
    Shaded,
    Strong,
    Table,
    write_html,
)
from tests.analysis.html_page import HtmlPage, check_self_contained
from tests.browser import BROWSER, browser_page

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '" onmouseover="alert(1)',
    "' style='position:fixed",
    "</td></table><h1>other</h1>",
    "<!-- open",
    "]]>&lt;b&gt; &amp; &#60;",
    "{{ 7 * 7 }} {% include 'x' %} {# y #}",
    "javascript:alert(1)",
)


@pytest.fixture(scope="module")
def png(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("pictures") / "line.png"
    with drawing(path, figsize=(4, 2)) as (axis,):
        axis.plot([1, 2])
    return path


@pytest.fixture
def render(tmp_path):
    """Writes a report, and returns its HTML."""

    def write(title: str, blocks: list, texts: tuple = ("S", "")) -> str:
        path = tmp_path / "report.html"
        section = Section(texts[0], blocks, texts[1])
        write_html(path, title, [section], texts[1])
        return path.read_text()

    return write


def everywhere(text: str, png: Path, render) -> str:
    """Renders a page with the text in each place that a text can have."""
    rows = [
        [text, Strong(text)],
        [Strong(text), text],
        [text, Shaded(text, 0.5, text)],
    ]
    table = Table([text, text], rows, text, [1])
    blocks = [table, Picture(text, png, text), BulletList([text], text)]
    return render(text, blocks, (text, text))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_shown_as_they_are(text, png, render):
    shown = everywhere(text, png, render)
    page, plain = HtmlPage(shown), HtmlPage(everywhere("plain", png, render))
    # The same elements with the same names of attributes, and the text is
    # what a reader sees in each place.
    elements, of_plain = (
        [(tag, set(names)) for tag, names in each.tags]
        for each in (page, plain)
    )
    assert elements == of_plain
    assert page.texts == [
        (tag, text if read == "plain" else read) for tag, read in plain.texts
    ]
    captions, notes = page.all("img", "alt"), page.all("span", "title")
    assert captions == notes == [text]
    pictures = check_self_contained(page, shown.replace(text, ""))
    assert pictures == [png.read_bytes()]


def test_blocks_and_cells(render):
    rows = [["glue", Bar(0.5, 2), "wood, oz"], [Strong("oz"), Bar(-1, 2), "-"]]
    table = Table(["Word", "Effect", "Topic"], rows, "Effects", [2])
    blocks = [table, BulletList(["one", "two"], "Notes")]
    page = HtmlPage(render("Report", blocks))
    for tag, texts in {
        "h1": ["Report"], "title": ["Report"], "h2": ["S"],
        "h3": ["Effects", "Notes"], "th": ["Word", "Effect", "Topic", "glue"],
        "strong": ["oz"], "td": ["0.500", "wood, oz", "-1.000", "-"],
        "li": ["one", "two"], "p": [],
    }.items():  # fmt: skip
        assert page.of(tag) == texts
    styles = page.all("span", "style")
    widths = [re.findall(r"[\d.]+", style)[0] for style in styles]
    assert widths == ["0.250", "0.000"]
    text_cells = [
        tag for tag, names in page.tags if names.get("class") == "text"
    ]
    assert text_cells == ["th", "td", "td"]
    assert Bar(3, 2).share == 1 and Bar(1, 0).share == 0


def test_the_colour_of_a_text_is_proportional_to_its_share(render):
    rows = [["1", Shaded(f"s{share}", share, "p")] for share in (0.5, 3, -1)]
    page = HtmlPage(render("R", [Table(["n"], rows)]))
    assert page.of("span") == ["s0.5", "s3", "s-1"]
    assert page.all("span", "style") == [
        f"background: rgb(0 114 178 / {opacity})"
        for opacity in ("0.250", "0.500", "0.000")
    ]


def test_a_picture_has_its_size_and_shrinks_to_half_of_it(png, render):
    page = HtmlPage(render("R", [Picture("A line", png, "Line")]))
    # 4 inches of 150 dots are 384 CSS pixels.
    assert page.all("img", "width") == ["384"]
    assert page.all("img", "style") == ["min-width: 192px"]
    (source,) = page.all("img", "src")
    data = source.removeprefix("data:image/png;base64,")
    assert base64.b64decode(data) == png.read_bytes()


def test_a_failure_leaves_the_old_page(tmp_path):
    path = tmp_path / "report.html"
    write_html(path, "Old", [])
    section = Section("S", [Picture("lost", tmp_path / "lost.png")])
    with pytest.raises(FileNotFoundError):
        write_html(path, "New", [section])
    assert "<h1>Old</h1>" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


WIDTHS = (390, 1280)
"""Of screens. A picture of 12 inches shrinks to half of its width at most."""
COLOURS = {"light": (17, 17, 17), "dark": (238, 238, 238)}
"""Colour scheme that the reader prefers -> the colour of the text."""
READ = """({
  width: document.documentElement.scrollWidth,
  pictures: [...document.images].map(image => image.naturalWidth),
  shown: [...document.images].map(image => image.width),
  bars: [...document.querySelectorAll('.bar')].map(bar => bar.offsetWidth),
  scripts: document.scripts.length,
  colours: [document.body, document.querySelector('.shaded')].map(element => {
    const style = getComputedStyle(element);
    return [style.color, style.backgroundColor];
  }),
})"""
LONG = "w" * 99
SCRIPT = "<script>document.body.style.color = 'red'</script>"


def numbers(colour: str) -> list[float]:
    """Reads rgb(17, 17, 17) or rgba(0, 114, 178, 0.5)."""
    return [float(number) for number in re.findall(r"[\d.]+", colour)]


def luminance(colour: list[float]) -> float:
    """Computes the relative luminance of sRGB, see WCAG 2.2."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4
        for c in (number / 255 for number in colour)
    ]
    return sum(
        w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True)
    )


@pytest.mark.skipif(not BROWSER, reason="no Chromium on this machine")
@pytest.mark.parametrize("scheme", COLOURS)
def test_it_opens_without_errors_and_fits_a_phone(tmp_path, scheme):
    path = tmp_path / "wide.png"
    with drawing(path, figsize=(12, 1)) as (axis,):
        axis.plot([1, 2])
    wide = Table(["System"] * 12, [[LONG, *["12.34 ± 0.56"] * 11]], LONG)
    words = Table(
        ["Word", "Effect", "Title"],
        [
            [SCRIPT, Bar(1, 2), LONG],
            [Strong(LONG), Bar(2, 2), f"a {SCRIPT}"],
            [LONG, LONG, Shaded(f"{SCRIPT} {LONG}", 1, SCRIPT)],
        ],
        text_columns=[2],
    )
    blocks = [
        wide, words, Picture(LONG, path, LONG), BulletList([LONG]),
    ]  # fmt: skip
    report = tmp_path / "report.html"
    sections = [Section(LONG, blocks, LONG)]
    write_html(report, f"{SCRIPT} {LONG}", sections, LONG)
    shown = {}
    with browser_page(tmp_path / "user") as page:
        for width in WIDTHS:
            page.screen(width, 800, scheme)
            page.open(report.as_uri())
            shown[width] = page.evaluate(READ)
        assert page.problems() == [] and page.hosts() == set()
    for width, found in shown.items():
        assert found["width"] <= width
        assert (found["pictures"], found["scripts"]) == ([1800], 0)
        (ink, page_colour), (text, shade) = (
            [numbers(one) for one in pair] for pair in found["colours"]
        )
        assert ink == text == list(COLOURS[scheme])
        *colour, opacity = shade
        assert (colour, opacity) == ([0, 114, 178], 0.5)
        # Legible on the page and on the strongest shade.
        mixed = [
            opacity * c + (1 - opacity) * p
            for c, p in zip(colour, page_colour, strict=True)
        ]
        for background in (page_colour, mixed):
            darker, lighter = sorted(map(luminance, (ink, background)))
            assert (lighter + 0.05) / (darker + 0.05) > 7
        half, full = found["bars"]
        assert half == pytest.approx(full / 2, abs=1)
    assert shown[390]["shown"] == [1152 // 2]
    assert 1000 < shown[1280]["shown"][0] <= 1152
