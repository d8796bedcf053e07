"""The site's sources: every page is found, every link leads somewhere."""

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def load(name: str, folder: str) -> ModuleType:
    """Imports a module of a folder without `__init__.py`, such as docs."""
    sys.path.insert(0, str(ROOT / folder))
    try:
        return importlib.import_module(name)
    finally:
        sys.path.pop(0)


def test_every_page_is_in_the_index() -> None:
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


def test_every_flag_of_every_command_of_the_quickstart_exists() -> None:
    page = (DOCS / "own_clicks.md").read_text()
    commands = re.findall(r"^lstm-dssm-(\w+) (.*)$", page, re.M)
    assert len(commands) == 7
    for name, arguments in commands:
        module = importlib.import_module(f"keras_lstm_dssm.tools.{name}")
        for flag in re.findall(r"--(\w+)", arguments):
            assert flag in module.FLAGS, (name, flag)
    train = importlib.import_module("keras_lstm_dssm.tools.train").FLAGS
    for flag in ("on_bad_line", "max_bad_lines", "oov_buckets", "init",
                 "replay", "resume"):  # fmt: skip
        assert f"--{flag}" in page and flag in train


def test_programs_of_the_reference_are_those_of_setup() -> None:
    pages = load("reference_pages", "docs")
    names = pages.programs()
    assert "train" in names and "serve" in names
    module = importlib.import_module("keras_lstm_dssm.tools.flags.split")
    page = pages.program_page("split", module)
    assert page.startswith("# lstm-dssm-split\n")
    assert "\n```sh\nlstm-dssm-split --" in page
    assert "`--data=string`\n: " in page
    assert "`--debug`, `--nodebug`\n: Show tracebacks" in page


def test_docstrings_become_restructuredtext() -> None:
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


def test_broken_links_of_a_site_are_named(tmp_path: Path) -> None:
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


def test_the_notebook_is_stored_without_results() -> None:
    assert (
        load("check_notebooks", "release").main(
            [str(DOCS / "quickstart.ipynb")]
        )
        == 0
    )


def test_the_citation_has_the_version_and_three_papers() -> None:
    yaml = pytest.importorskip("yaml")
    from keras_lstm_dssm.version import __version__

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    papers = [r["authors"][0]["family-names"] for r in citation["references"]]
    assert papers == ["Palangi", "Wan", "Bi"]


def test_hashes_of_the_pins(capsys: pytest.CaptureFixture[str]) -> None:
    lines_of = load("hashed_requirements", "release").lines_of

    def item(name: str, **archive: object) -> dict[str, object]:
        return {
            "metadata": {"name": name, "version": "1.0"},
            "download_info": {"archive_info": archive},
        }

    packages = [item("B_c", hashes={"sha256": "ff"}),
                item("a", hashes={"sha256": "00"}),
                item("keras-lstm-dssm")]  # fmt: skip
    assert lines_of({"install": packages}) == [
        "a==1.0 --hash=sha256:00",
        "b-c==1.0 --hash=sha256:ff",
    ]
    with pytest.raises(SystemExit, match="x 1.0: pip reports no SHA-256"):
        lines_of({"install": [item("x")]})
