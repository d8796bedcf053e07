"""The values on README and on the pages of docs/ are those in force."""

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.models import KEYVEC_PRESETS, SCORER_PRESETS
from keras_lstm_dssm.plain_files import read_csv
from keras_lstm_dssm.settings.programs import TABLE_DEFAULTS, TableSettings
from keras_lstm_dssm.training.document_targets import KEY_WORDS
from keras_lstm_dssm.training.salience import MAX_SALIENT
from tests.test_pages import DOCS, TEXTS

RESULTS = DOCS / "results"
DATA = ("api", "homedepot", "bestbuy", "wikiqa")
Columns = list[tuple[str, Callable[[dict], str]]]


def first_table(page: str, after: str) -> dict[str, list[str]]:
    """Returns the first table after a text: first cell -> other cells."""
    lines = [*map(str.strip, TEXTS[page].split(after)[1].splitlines())]
    start = next(n for n, line in enumerate(lines) if line.startswith("| --- "))
    rows = {}
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        name, *cells = (cell.strip() for cell in line.strip("|").split("|"))
        rows[name] = cells
    return rows


def read_table(folder: str) -> dict[str, Any]:
    return json.loads((RESULTS / folder / "table.json").read_text())


def systems_of(folder: str) -> dict[str, dict]:
    """Reads the results in `table.json` of a folder, by name of system."""
    return read_table(folder)["systems"]


def percent(value: dict[str, float], spread: bool = True) -> str:
    """Writes a mean as the pages do, with its deviation if there is one."""
    mean, std = (f"{100 * value[name]:.1f}" for name in ("mean", "std"))
    return f"{mean} ± {std}" if spread and value["std"] else mean


def value(mode: str, measure: str, system: dict, spread: bool = True) -> str:
    return percent(system["test"][mode][measure], spread)


def columns_of(
    mode: str, folders: list[str], measures: list[str], **options: bool
) -> Columns:
    return [
        (folder, partial(value, mode, measure, **options))
        for folder, measure in zip(folders, measures, strict=True)
    ]


def loss_by_misspelling(system: dict) -> str:
    right = system["test"]["retrieve"]["mrr@10"]["mean"]
    wrong = system["misspelled"]["0.2"]["retrieve"]["mrr@10"]["mean"]
    return f"{100 * (right - wrong) / right:.1f}" if right >= 0.05 else "-"


def mrr_and_recall(system: dict) -> str:
    recall = value("retrieve", "recall@100", system, spread=False)
    return f"{value('retrieve', 'mrr@10', system)} / {recall}"


SCORERS = "squad tldr api_sentences reuters_sc wikiqa trecqa".split()
OF_SCORERS = [f"mv_lstm/{folder}" for folder in SCORERS]
# Page | text before a table | its columns: a folder, and what is in a cell.
# The systems are those of the first folder, in their order.
TABLES: list[tuple[str, str, Columns]] = [
    ("README", "## Search of the whole corpus",
     columns_of("retrieve", [*DATA], ["mrr@10"] * 4)),
    ("README", "## Reranking of the judged",
     columns_of("rerank", ["homedepot"] * 3 + ["bestbuy"] * 3 + ["wikiqa"] * 3,
                ["ndcg@1", "ndcg@3", "ndcg@10"] * 2
                + ["ndcg@3", "ndcg@5", "map"])),
    ("README", "## Misspelled queries",
     [(folder, loss_by_misspelling) for folder in DATA]),
    ("mv_lstm/README", "which are not public:",
     columns_of("lists", OF_SCORERS, ["p@1"] * 6)),
    ("mv_lstm/README", "| `squad`: MRR",
     columns_of("lists", OF_SCORERS, ["mrr"] * 4 + ["map"] * 2)),
]  # fmt: skip


@pytest.mark.parametrize(("page", "after", "columns"), TABLES)
def test_pages_of_results_have_the_values_of_their_tables(page, after, columns):
    rows = first_table(f"docs/results/{page}", after)
    systems = systems_of(columns[0][0])
    if page == "README":
        rows.pop("Random order", None)
        systems.pop("random")
    else:
        assert list(rows) == [system["label"] for system in systems.values()]
    for name, cells in zip(systems, rows.values(), strict=True):
        expected = [text(systems_of(of)[name]) for of, text in columns]
        assert cells[: len(columns)] == expected, name


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
    page = "docs/results/few_clicks"
    rows = first_table(page, "| MRR@10 / recall@100 |")
    folders = [f"few_clicks/{f}" for f in ("wikiqa", "api_1000", "homedepot")]
    for label, name in names.items():
        for cell, folder in zip(rows[label], folders, strict=True):
            expected = cell and mrr_and_recall(systems_of(folder)[name])
            assert cell.replace("**", "") == expected, label


def test_the_readme_compares_best_on_all_four_data_sets():
    """Also where it is worst, with the newest value of the result files."""
    rows = first_table("README", "| MRR@10, whole corpus, test |")
    with_teacher = {
        "api": "few_clicks/api_1000",
        "homedepot": "few_clicks/homedepot_curve",
        "wikiqa": "few_clicks/wikiqa",
    }
    for label, system, folders in (
        ("`lstm_96`, in-batch negatives", "lstm_96_in_batch", {}),
        ("MiniLM, not fine-tuned", "teacher", with_teacher),
        ("MiniLM and BM25, weights by dev", "bm25_teacher", with_teacher),
    ):
        for folder, cell in zip(DATA, rows[label], strict=True):
            of = systems_of(folders.get(folder, folder)).get(system)
            if of:  # bestbuy has no table with a teacher
                mean = value("retrieve", "mrr@10", of, spread=False)
                assert cell.split(" ")[0] == mean, (label, folder)
    (hybrid,) = [label for label in rows if label.startswith("[hybrid]")]
    (bm25,) = [label for label in rows if label.startswith("BM25")]
    of_page = first_table("docs/results/hybrid/README", "| | API search |")
    for label, of_hybrids, system in (
        ("`best`", "`best`, the whole run", "model"),
        (hybrid, "hybrid", "hybrid"),
        (bm25, "BM25; terms, k1 and b chosen on dev", "bm25"),
    ):
        for place, folder in enumerate(DATA):
            path = RESULTS / "hybrid" / f"{folder}.json"
            seeds = [seed[system] for seed in json.loads(path.read_text())]
            mrr, recall = (
                f"{100 * sum(seed[m] for seed in seeds) / len(seeds):.1f}"
                for m in ("mrr@10", "recall@100")
            )
            assert rows[label][place] == mrr, (label, folder)
            cell = of_page[of_hybrids][place].replace("**", "")
            assert cell.startswith(mrr) and cell.endswith(f"/ {recall}")
    words = [words_of(folder, "word_sum") for folder in DATA]
    assert rows["`word_sum`, no clicks"] == [w.split(" ")[0] for w in words]


def words_of(folder: str, system: str) -> str:
    """Writes MRR@10 and recall@100 of a system without clicks."""
    path = RESULTS / "few_clicks/words" / f"{folder}.json"
    if not path.exists():
        return "-"
    found = json.loads(path.read_text())[system]
    return f"{100 * found['mrr@10']:.1f} / {100 * found['recall@100']:.1f}"


def test_the_page_of_few_clicks_has_the_values_without_clicks():
    folders = ("wikiqa", "bestbuy", "api", "homedepot")
    rows = first_table("docs/results/few_clicks", "## Words before the first")
    for label, system in (
        ("`word_sum`", "word_sum"),
        ("`word_sum`, teacher's titles", "word_sum_teachers_titles"),
    ):
        assert rows[label] == [words_of(folder, system) for folder in folders]
    beside = first_table("docs/few_clicks", "## Beside other encoders")
    values = [words_of(folder, "word_sum") for folder in folders]
    assert beside["`word_sum`: words fitted to it"][:4] == values


def test_the_page_of_the_lstm_has_the_values_of_an_lstm_residual():
    rows = first_table("docs/results/lstm", "## The last state of an LSTM")
    found = json.loads((RESULTS / "lstm/residual_wikiqa.json").read_text())
    for label, name in (
        ("sum of words", "sum"),
        ("refitted", "refitted"),
        ("sum and LSTM-RNN", "residual"),
    ):
        seeds = found[name] if name == "residual" else [found[name]]
        mean = {
            key: np.mean([seed[f"test {key}"] for seed in seeds])
            for key in ("cosine", "mrr@10", "recall@100", "ndcg@3", "map")
        }
        means = [re.sub(r" ± [.\d]+", "", cell) for cell in rows[label]]
        assert means == [
            f"{mean['cosine']:.4f}".removeprefix("0"),
            f"{100 * mean['mrr@10']:.1f} / {100 * mean['recall@100']:.1f}",
            f"{100 * mean['ndcg@3']:.1f} / {100 * mean['map']:.1f}",
        ]


def test_the_study_of_clicks_has_the_values_of_its_trainings():
    folder = RESULTS / "clicks"
    lines = (folder / "study.json").read_text().splitlines()
    trainings = [json.loads(line) for line in lines]
    rows = first_table("docs/results/clicks/README", "mean of\nthree seeds")
    seen = []
    for name, cells in rows.items():
        log, way = name.split(", ")
        of_row = [t for t in trainings if (t["log"], t["way"]) == (log, way)]
        seen += of_row
        assert len(of_row) == 3, name
        means = [
            np.mean([t[key] for t in of_row])
            for key in ("ndcg@3", "ndcg@10", "log_likelihood",
                        "log_likelihood_equal_shares")
        ]  # fmt: skip
        assert cells == [
            *(f"{100 * m:.1f}" for m in means[:2]),
            *(f"{m:.4f}" for m in means[2:]),
        ], name
    rankers = first_table("docs/results/clicks/README", "LightGBM's positions")
    for way, cells in rankers.items():
        of_row = [t for t in trainings if t["way"] == way]
        seen += of_row
        assert cells == [
            f"{100 * t['ndcg@3']:.1f} / {100 * t['ndcg@10']:.1f}"
            for t in of_row
        ]
    assert len(seen) == len(trainings)


def test_each_table_iv_names_the_version_that_measured_it():
    for folder in DATA:
        table = read_table(folder)
        # `looks` became `dev_evaluations` in 0.2.0.
        version = "0.1.0" if "looks" in table["settings"] else "0.2.0"
        measured = f"Measured on {table['date']} with the code of {version}."
        for page in ("table", "robustness"):
            assert measured in TEXTS[f"docs/results/{folder}/{page}"], folder
        link = f"[{folder}]({folder}/table.md), {version} |"
        assert link in TEXTS["docs/results/README"]


best = dssm.PRESETS["best"]
scorer, cntn = SCORER_PRESETS["mv_lstm_tensor"], SCORER_PRESETS["cntn"]
keyvec, printed = KEYVEC_PRESETS["keyvec"], KEYVEC_PRESETS["keyvec_printed"]
table_iv = TableSettings("api", **TABLE_DEFAULTS["table_iv"])
# Page, and the text before what it says of values.
SAID = {
    ("docs/train", "# "): [
        f"`best` has {best.learning_rate} and {best.gamma:g} for all data",
        f"**`--hard_negatives={best.hard_negatives}`** (`best`)",
        f"(`best` has `--patience={best.patience}`",
        f"momentum is {best.momentum_ends} in the first and last"
        f" {100 * best.momentum_fraction:g} % of the training steps and"
        f" {best.momentum_middle} between",
        f"{100 * table_iv.search:g} % of the epochs (`search`)",
        f"best of { {5: 'five'}[table_iv.dev_evaluations] } epochs on dev",
    ],
    ("docs/mathematics", "\n## Choices that Palangi et al. leave open\n"): [],
    ("docs/mathematics", "\n## Choices that Wan et al. leave open\n"): [
        f"{scorer.skip_gram_epochs} passes of skip-gram",
        f"{scorer.epochs} epochs of {scorer.batch_size} triples",
        f"learning rate is {scorer.learning_rate}",
        f"CNTN {cntn.learning_rate}",
        f"first {scorer.max_words} words",
    ],
    ("docs/mathematics", "\n## Choices that Bi and Ma leave open\n"): [
        "Adam in place of SGD",
        f"{keyvec.learning_rate}, falling to 0 over {keyvec.epochs} epochs",
        f"{printed.learning_rate} without an end, in at most {printed.epochs}",
        f"patience of {printed.patience}",
        f"batches of {keyvec.batch_size}",
        f"{keyvec.skip_gram_epochs} passes of skip-gram "
        f"(`keyvec_printed`: {printed.skip_gram_epochs})",
        f"{keyvec.min_count} times or more, at most {keyvec.vocabulary_size:,}",
        f"1 to {keyvec.excerpt} sentences",
        f"{keyvec.key_word_start:g} times",
        f"K is {MAX_SALIENT}",
        f"fewer than {KEY_WORDS} words",
    ],
}


@pytest.mark.parametrize(("page", "after"), SAID)
def test_the_values_that_a_page_names_are_those_of_the_presets(page, after):
    before, found, text = TEXTS[page].partition(after)
    assert found
    section = " ".join(text.partition("\n## ")[0].split())
    if page == "docs/train":
        section = " ".join(text.split())
    for words in SAID[page, after]:
        assert words in section, words


def test_presets_with_a_patience():
    patient = {n for n, recipe in dssm.PRESETS.items() if recipe.patience}
    assert patient == {"best", "best_words"}
    assert (best.negatives, best.title_pairs) == ("in_batch", 1)


VERDICT = re.compile(
    r"not measurable here, because .+"
    r"|(holds|does not hold)( on [^;]+(; (holds|does not hold) on [^;]+)*)?"
)
CLAIMS = [
    line.strip("| ").split(" | ")
    for line in TEXTS["docs/results/claims"].splitlines()
    if re.match(r"\| (?!Place|---)", line)
]


def keys_of(text: str) -> list[str]:
    """Expands `{a,b}` in a key, from the left, as a shell does."""
    match = re.search(r"{([^{}]+)}", text)
    if not match:
        return [text]
    start, end = match.span()
    parts = match[1].split(",")
    return [k for p in parts for k in keys_of(text[:start] + p + text[end:])]


def value_of(file: str, key: str, percent: str = "") -> float:
    """Reads the value of a key of claims.md from its file.

    `column=text` chooses among rows.
    """
    path = RESULTS / file
    table = path.suffix == ".csv"
    found: Any = read_csv(path) if table else json.loads(path.read_text())
    if "systems" in found:
        found = found["systems"]
    for part in key.split("/"):
        if isinstance(found, list):
            column, text = part.split("=")
            rows = [row for row in found if row[column] == text]
            found = rows[0] if len(rows) == 1 else rows
        else:
            found = found[part]
    found = found["mean"] if isinstance(found, dict) else found
    return float(found) * (100 if percent else 1)


def test_no_claim_is_there_twice():
    assert len({tuple(row[:3]) for row in CLAIMS}) == len(CLAIMS) >= 70


@pytest.mark.parametrize("row", CLAIMS, ids=lambda row: row[1][:60])
def test_each_claim_has_a_verdict_and_the_values_of_its_keys(row):
    _, _, measured, where, _, verdict = row
    assert VERDICT.fullmatch(verdict)
    figures = re.findall(r"\*\*(\S+?)\*\*", measured)
    keys = [k for key in re.findall(r"`([^`]+)`", where) for k in keys_of(key)]
    expected = [value_of(*key.split()) for key in keys]
    for figure, value in zip(figures, expected, strict=True):
        sign, decimals = figure[0] == "+", len(figure.partition(".")[2])
        assert figure == f"{value:{'+' if sign else ''},.{decimals}f}", measured
    assert figures or verdict.startswith("not measurable")
