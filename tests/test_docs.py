"""The site's sources: every page is found, every link leads somewhere."""

import importlib
import json
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import lstm_dssm_programs

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
RESULTS = DOCS / "results"
DATA = ("api", "homedepot", "bestbuy", "wikiqa")


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
    program = lstm_dssm_programs.find("split").program
    page = pages.program_page("split", program)
    assert page.startswith("# lstm-dssm-split\n")
    assert "\n```sh\nlstm-dssm-split --" in page
    assert "`--data=string`\n: " in page
    assert "`--debug`, `--nodebug`\n: Show tracebacks" in page


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


def first_table(page: Path, after: str) -> dict[str, list[str]]:
    """Returns the first table after a text: first cell -> other cells."""
    lines = page.read_text().split(after)[1].splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("| --- "))
    rows = {}
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = cells
    return rows


def systems_of(folder: str) -> dict[str, dict]:
    """Reads the results in `table.json` of a folder, by name of system."""
    path = RESULTS / folder / "table.json"
    return json.loads(path.read_text())["systems"]


def percent(value: dict[str, float], spread: bool = True) -> str:
    """Writes a mean as the pages do, with its deviation if there is one."""
    mean, std = (f"{100 * value[name]:.1f}" for name in ("mean", "std"))
    return f"{mean} ± {std}" if spread and value["std"] else mean


def test_the_page_of_results_has_the_values_of_its_tables():
    page = RESULTS / "README.md"
    tables = {folder: systems_of(folder) for folder in DATA}
    names = [name for name in tables["api"] if name != "random"]
    lists = [(folder, f"ndcg@{k}") for folder in ("homedepot", "bestbuy")
             for k in (1, 3, 10)]  # fmt: skip
    lists += [("wikiqa", measure) for measure in ("ndcg@3", "ndcg@5", "map")]
    expected: dict[str, list[list[str]]] = {
        "## Search of the whole corpus": [
            [percent(tables[folder][name]["test"]["retrieve"]["mrr@10"])
             for folder in DATA]
            for name in names
        ],
        "## Reranking of the judged": [
            [percent(tables[folder][name]["test"]["rerank"][measure])
             for folder, measure in lists]
            for name in names
        ],
        "## Misspelled queries": [],
    }  # fmt: skip
    for name in names:
        losses = []
        for folder in DATA:
            system = tables[folder][name]
            right = system["test"]["retrieve"]["mrr@10"]["mean"]
            wrong = system["misspelled"]["0.2"]["retrieve"]["mrr@10"]["mean"]
            loss = f"{100 * (right - wrong) / right:.1f}"
            losses.append(loss if right >= 0.05 else "-")
        expected["## Misspelled queries"].append(losses)
    for heading, values in expected.items():
        rows = first_table(page, heading)
        rows.pop("Random order", None)
        for (name, cells), row in zip(rows.items(), values, strict=True):
            assert cells == row, (heading, name)


def test_the_page_of_few_clicks_has_the_values_of_its_tables():
    names = {
        "BM25": "bm25",
        "teacher alone": "teacher",
        "BM25 + teacher": "bm25_teacher",
        "`best`": "best",
        "`best`, taught": "best_taught",
        "`taught`": "taught",
        "`best` + BM25": "best_bm25",
        "`taught` + BM25": "taught_bm25",
        "`best` + teacher": "best_teacher",
        "`taught` + teacher": "taught_teacher",
        "`best` + BM25 + teacher": "best_bm25_teacher",
        "`taught` + BM25 + teacher": "taught_bm25_teacher",
    }
    rows = first_table(RESULTS / "few_clicks.md", "| MRR@10 / recall@100 |")
    columns = [
        systems_of(f"few_clicks/{folder}")
        for folder in ("wikiqa", "api_1000", "homedepot")
    ]
    for label, name in names.items():
        for cell, systems in zip(rows[label], columns, strict=True):
            if cell:
                values = systems[name]["test"]["retrieve"]
                mrr = percent(values["mrr@10"])
                recall = percent(values["recall@100"], spread=False)
                assert cell.replace("**", "") == f"{mrr} / {recall}", label


def test_the_page_of_pair_scorers_has_the_values_of_its_tables():
    page = RESULTS / "mv_lstm" / "README.md"
    folders = "squad tldr api_sentences reuters_sc wikiqa trecqa".split()
    tables = [systems_of(f"mv_lstm/{folder}") for folder in folders]
    for after, measures in (
        ("which are not public:", ["p@1"] * 6),
        ("| `squad`: MRR", ["mrr"] * 4 + ["map"] * 2),
    ):
        rows = first_table(page, after)
        assert list(rows) == [system["label"] for system in tables[0].values()]
        for name, cells in zip(tables[0], rows.values(), strict=True):
            for cell, systems, measure in zip(
                cells, tables, measures, strict=False
            ):
                value = percent(systems[name]["test"]["lists"][measure])
                assert cell == value, (name, measure)


def test_the_readme_compares_best_on_all_four_data_sets():
    """Also where it is worst, with the newest value of the result files."""
    rows = first_table(ROOT / "README.md", "| MRR@10, whole corpus, test |")
    newest = dict(zip(DATA, DATA, strict=True))
    for folder in ("homedepot", "wikiqa"):
        newest[folder] = f"few_clicks/{folder}"
    taught = newest | {"api": "few_clicks/api_1000",
                       "homedepot": "few_clicks/homedepot_curve"}  # fmt: skip
    for label, system, folders in (
        ("`best`", "best", newest),
        ("BM25, tuned on dev", "bm25", newest),
        ("`lstm_96`, in-batch negatives", "lstm_96_in_batch", {}),
        ("`taught`", "taught", taught),
        ("MiniLM, not fine-tuned", "teacher", taught),
    ):
        for folder, cell in zip(DATA, rows[label], strict=True):
            of = systems_of(folders.get(folder, folder)).get(system)
            if of:  # bestbuy has no table with a teacher
                value = percent(of["test"]["retrieve"]["mrr@10"], spread=False)
                assert cell.split(" ")[0] == value, (label, folder)


def test_each_table_iv_names_the_version_that_measured_it():
    for folder in DATA:
        table = json.loads((RESULTS / folder / "table.json").read_text())
        # `looks` became `dev_evaluations` in 0.2.0.
        version = "0.1.0" if "looks" in table["settings"] else "0.2.0"
        measured = f"Measured on {table['date']} with the code of {version}."
        for page in ("table.md", "robustness.md"):
            assert measured in (RESULTS / folder / page).read_text(), folder
        assert (
            f"[{folder}]({folder}/table.md), {version} |"
            in (RESULTS / "README.md").read_text()
        )
