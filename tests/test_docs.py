"""The site's sources: every page is found, every link leads somewhere."""

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from keras_lstm_dssm.tools import prepare, train

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def load(name: str, folder: str) -> ModuleType:
    """Imports a module of a folder without `__init__.py`, such as docs."""
    sys.path.insert(0, str(ROOT / folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def test_every_page_is_in_the_index():
    index = (DOCS / "index.md").read_text()
    listed = re.findall(r"^([\w/.-]+)$", index, re.M)
    assert len(listed) == len(set(listed))
    pages = {p.stem for p in DOCS.glob("*.md")} - {"index"}
    pages |= {p.stem for p in DOCS.glob("*.ipynb")}
    assert pages - set(listed) == set()
    for page in listed:
        if not page.startswith("generated/"):
            assert any(
                (DOCS / f"{page}{s}").exists() for s in (".md", ".ipynb")
            )


def test_programs_of_the_reference_are_those_of_setup():
    pages = load("reference_pages", "docs")
    names = pages.programs()
    assert "train" in names and "serve" in names
    program = prepare.program
    page = pages.program_page("prepare", program)
    assert page.startswith("# lstm-dssm-prepare\n")
    assert "\n```sh\nlstm-dssm-prepare --" in page
    assert "`--clicks=string`\n: " in page
    assert "`--debug`, `--nodebug`\n: Show tracebacks" in page
    page = pages.program_page("train", train.program)
    flags, settings = page.split("\n## Settings\n")
    assert "`--set NAME=VALUE`, repeated" in flags
    assert "`momentum_middle=float`\n: Two towers: momentum mu" in settings
    assert "`logq=true|false`\n: Two towers: " in settings


def test_docstrings_become_restructuredtext():
    to_rst = load("docstring_style", "docs").to_rst
    text = """\
Sums `x`s of |d|.

    s = x + y

Args:
    x: `[n]`, a\x20
        vector.

Returns:
    rows: Of `n`; -1
        elsewhere.
    scores: float32.

Example:
>>> f(1 | 2)
3"""
    assert (
        "\n".join(to_rst(text.split("\n")))
        == """\
Sums ``x``\\ s of \\|d\\|.

::

    s = x + y


Args:
    x: ``[n]``, a\x20
        vector.


:returns: rows: Of ``n``; -1
    elsewhere.

    scores: float32.

.. rubric:: Example

>>> f(1 | 2)
3
"""
    )


def test_broken_links_of_a_site_are_named(tmp_path):
    problems = load("check_links", "docs").problems
    (tmp_path / "b.html").write_text('<h1 id="top">b</h1>')
    (tmp_path / "a.html").write_text(
        '<a href="b.html#top">1</a> <a href="b.html#no">2</a>'
        '<a href="c.html">3</a> <a href="mailto:x">4</a> <img src="x.png">'
        '<script src="https://example.org/x.js"></script>'
    )
    assert problems(tmp_path) == [
        "a.html: b.html#no: there is no such anchor",
        "a.html: c.html: there is no such file",
        "a.html: loads https://example.org/x.js from the network",
        "a.html: x.png: there is no such file",
    ]


def test_the_notebook_is_stored_without_results():
    """`make docs` runs it; clear all outputs before a commit."""
    notebook = json.loads((DOCS / "quickstart.ipynb").read_text())
    assert not any(cell.get("outputs") for cell in notebook["cells"])


def test_the_citation_has_the_version_and_three_papers():
    yaml = pytest.importorskip("yaml")
    from keras_lstm_dssm.version import __version__

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    papers = [r["authors"][0]["family-names"] for r in citation["references"]]
    assert papers == ["Palangi", "Wan", "Bi"]


def test_hashes_of_the_pins(capsys):
    requirement_lines = load("hashed_requirements", "release").requirement_lines

    def item(name: str, **archive: object) -> dict[str, object]:
        return {
            "metadata": {"name": name, "version": "1.0"},
            "download_info": {"archive_info": archive},
        }

    packages = [item("B_c", hashes={"sha256": "ff"}),
                item("a", hashes={"sha256": "00"}),
                item("keras-lstm-dssm")]  # fmt: skip
    assert requirement_lines({"install": packages}) == [
        "a==1.0 --hash=sha256:00",
        "b-c==1.0 --hash=sha256:ff",
    ]
    with pytest.raises(SystemExit, match="x 1.0: pip reports no SHA-256"):
        requirement_lines({"install": [item("x")]})
