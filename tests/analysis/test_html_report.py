"""The HTML of a report: its structure, and that texts stay texts."""

import base64
import re
import sys
from pathlib import Path

import pytest

from keras_lstm_dssm.analysis.drawing import drawing
from keras_lstm_dssm.analysis.html import (
    Bar,
    HtmlList,
    HtmlPicture,
    HtmlSection,
    HtmlTable,
    Shaded,
    Strong,
    write_html_report,
)
from keras_lstm_dssm.errors import InputError
from tests.analysis.html_page import HtmlPage, check_self_contained

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

    def write(*arguments) -> str:
        write_html_report(tmp_path / "report.html", *arguments)
        return (tmp_path / "report.html").read_text()

    return write


def everywhere(text: str, png: Path, render) -> str:
    """Renders a page with the text in each place that a text can have."""
    table = HtmlTable(
        [text, text],
        [
            [text, Strong(text)],
            [Strong(text), text],
            [text, Shaded(text, 0.5, text)],
        ],
        text,
        [1],
    )
    blocks = [table, HtmlPicture(text, png, text), HtmlList([text], text)]
    return render(text, [HtmlSection(text, blocks, text)], text)


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_shown_as_they_are(text, png, render):
    html = everywhere(text, png, render)
    page = HtmlPage(html)
    plain = HtmlPage(everywhere("plain", png, render))
    # The same elements with the same names of attributes, and the text is
    # what a reader sees in each place.
    assert [(tag, set(names)) for tag, names in page.tags] == [
        (tag, set(names)) for tag, names in plain.tags
    ]
    assert page.texts == [
        (tag, text if shown == "plain" else shown) for tag, shown in plain.texts
    ]
    captions = [names["alt"] for tag, names in page.tags if tag == "img"]
    notes = [names["title"] for tag, names in page.tags if tag == "span"]
    assert captions == notes == [text]
    assert check_self_contained(page, html.replace(text, "")) == [
        png.read_bytes()
    ]


def test_blocks_and_cells(render):
    table = HtmlTable(
        ["Word", "Effect", "Topic"],
        [["glue", Bar(0.5, 2), "wood, oz"], [Strong("oz"), Bar(-1, 2), "-"]],
        "Effects",
        [2],
    )
    section = HtmlSection("Words", [table, HtmlList(["one", "two"], "Notes")])
    page = HtmlPage(render("Report", [section]))
    assert page.of("h1") == ["Report"] == page.of("title")
    assert (page.of("h2"), page.of("h3")) == (["Words"], ["Effects", "Notes"])
    assert page.of("th") == ["Word", "Effect", "Topic", "glue"]
    assert page.of("strong") == ["oz"]
    assert page.of("td") == ["0.500", "wood, oz", "-1.000", "-"]
    assert page.of("li") == ["one", "two"]
    assert page.of("p") == []
    styles = [names["style"] for tag, names in page.tags if tag == "span"]
    assert [re.findall(r"[\d.]+", style)[0] for style in styles] == [
        "0.250", "0.000",
    ]  # fmt: skip
    text_cells = [
        tag for tag, names in page.tags if names.get("class") == "text"
    ]
    assert text_cells == ["th", "td", "td"]
    assert Bar(3, 2).share == 1 and Bar(1, 0).share == 0


def test_the_colour_of_a_text_is_proportional_to_its_share(render):
    rows = [["1", Shaded(f"s{share}", share, "p")] for share in (0.5, 3, -1)]
    page = HtmlPage(render("R", [HtmlSection("S", [HtmlTable(["n"], rows)])]))
    assert page.of("span") == ["s0.5", "s3", "s-1"]
    styles = [names["style"] for tag, names in page.tags if tag == "span"]
    assert styles == [
        f"background: rgb(0 114 178 / {opacity})"
        for opacity in ("0.250", "0.500", "0.000")
    ]


def test_a_picture_has_its_size_and_shrinks_to_half_of_it(png, render):
    picture = HtmlPicture("A line", png, "Line")
    page = HtmlPage(render("R", [HtmlSection("S", [picture])]))
    (image,) = [names for tag, names in page.tags if tag == "img"]
    # 4 inches of 150 dots are 384 CSS pixels.
    assert (image["width"], image["style"]) == ("384", "min-width: 192px")
    data = (image["src"] or "").removeprefix("data:image/png;base64,")
    assert base64.b64decode(data) == png.read_bytes()


def test_a_failure_leaves_the_old_page(tmp_path):
    path = tmp_path / "report.html"
    write_html_report(path, "Old", [])
    section = HtmlSection("S", [HtmlPicture("lost", tmp_path / "lost.png")])
    with pytest.raises(FileNotFoundError):
        write_html_report(path, "New", [section])
    assert "<h1>Old</h1>" in path.read_text()
    assert list(tmp_path.iterdir()) == [path]


def test_without_jinja_there_is_one_line(monkeypatch, render):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match="jinja2 is not installed: pip"):
        render("Report", [])
