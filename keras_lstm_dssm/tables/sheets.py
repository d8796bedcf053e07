"""Sheets: the table as text, in Markdown and for the page."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from keras_lstm_dssm.tables.dataset import DEV_MEASURES
from keras_lstm_dssm.tables.rows import ROWS
from keras_lstm_dssm.tables.summary import Summary

COLUMNS = {
    "rerank": ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map"),
    "retrieve": ("ndcg@10", "mrr@10", "recall@10", "recall@100"),
}
TITLES = {
    "rerank": "Judged titles of each query, reranked",
    "retrieve": "Titles found in the whole corpus",
}
PAPER = ("ndcg@1", "ndcg@3", "ndcg@10")
LEVEL = 0.05


class Sheet(NamedTuple):
    """One table of text; the first column names the rows."""

    title: str
    header: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        """Formats it, numbers to the right."""
        lines = [self.header, ["---"] + ["---:"] * (len(self.header) - 1)]
        body = "\n".join(f"| {' | '.join(row)} |" for row in lines + self.rows)
        return f"## {self.title}\n\n{body}\n"


def percent(figure: dict[str, float], several: bool) -> str:
    """Formats a figure, with its spread where there are several seeds."""
    spread = f" ± {100 * figure['std']:.2f}" if several else ""
    return f"{100 * figure['mean']:.2f}{spread}"


def result_sheets(summary: Summary) -> list[Sheet]:
    """Returns a sheet for each mode, and one of costs and choices."""
    systems: dict[str, dict[str, Any]] = summary["systems"]
    modes = next(iter(systems.values()))["test"]
    sheets = [_mode_sheet(summary, mode) for mode in modes]
    rows = [
        [
            s["label"],
            f"{s['parameters']:,}",
            ", ".join(f"{k} {v}" for k, v in s["options"].items()) or "-",
            ", ".join(str(e) for e in s["epochs"] if e) or "-",
            f"{100 * s['dev']:.2f}",
            f"{s['train_seconds']:,.0f}",
            f"{s['titles_per_second']:,.0f}" if s["titles_per_second"] else "-",
        ]
        for s in systems.values()
    ]
    header = [
        "System", "Parameters", "Chosen on dev", "Epoch kept", "Dev figure",
        "Training, s", "Titles encoded/s",
    ]  # fmt: skip
    return [*sheets, Sheet("Parameters, choices and speed", header, rows)]


def notes(summary: Summary) -> list[str]:
    """Says how the figures came about."""
    settings, systems = summary["settings"], summary["systems"]
    words = summary["words"]
    modes = next(iter(systems.values()))["test"]
    found = [
        f"Data: {settings['titles']:,} titles, {settings['clicks']:,} clicks;"
        f" {settings['dev_queries']:,} queries to choose on; "
        + ", ".join(f"{settings[f'{m}_queries']:,} to {m}" for m in modes)
        + f". {summary['date']}, {summary['machine']}.",
        f"Words: {words['query_words']:.1f} in a test query,"
        f" {words['title_words']:.1f} in a title; {words['overlap']:.0%} of a"
        " query's words are in its relevant title,"
        f" {words['seen']:.0%} in some training query;"
        f" {words['clicks_per_title']:.1f} clicks a clicked title.",
        "Figures are percent of the test split, means and standard deviations"
        " over seeds. NDCG has gain 2^grade - 1 and discount log2(rank + 1);"
        " ties are broken by a fixed hash. The paper's figures belong to its"
        " own, private log.",
        "Random order is its exact expectation, so it has no run file.",
        "* differs significantly: paired randomisation test over queries on"
        f" {' or '.join(f'{DEV_MEASURES[m].upper()} ({m})' for m in modes)},"
        " averaged over seeds, two-sided, 100,000 signings, Holm-corrected"
        f" over the column, p < {LEVEL}. The CLSM is the one best on dev.",
        f"Neural systems: {settings['epochs']} epochs, batches of"
        f" {settings['batch_size']}, Nesterov momentum 0.9/0.995/0.9, both"
        " towers started with the same random weights; learning"
        f" step from {settings['learning_rates']} and gamma from"
        f" {settings['gammas']}, chosen on dev, the step first (with the first"
        " gamma), with one seed and"
        f" {settings['search']:g} of the epochs, equal for all; the epoch kept"
        f" is the best of {settings['looks']} looks at dev. n = 4 negatives"
        " unless named. Parameters are those of one of the two towers.",
        "PLSA and Doc2Vec learn from the titles of the corpus, as BM25 and ULM"
        " count in it. Skip-Thought is trained here, on"
        f" {settings['paragraphs'] or 'the doc strings of this machine'}:"
        " published weights cannot be had offline.",
    ]
    if k := settings.get("judged_negatives"):
        found.append(
            f"Neural systems also learn from {k} titles a click that were"
            " judged not to answer its query; Best from these in place of mined"
            " ones."
        )
    if "best" in summary["systems"]:
        found.append(
            "Best is trained by its own recipe, with nothing chosen on this"
            " data but the epoch: "
            + ", ".join(f"{k} {v}" for k, v in ROWS["best"].recipe.items())
            + "."
        )
    if "rerank" not in modes:
        found.append(
            "Nothing is reranked: all judged titles of a query have the same"
            " grade, so that every order is right."
        )
    for name, reason in summary["failed"].items():
        found.append(f"{name} failed: {reason}")
    return found


def markdown(sheets: Sequence[Sheet], remarks: Sequence[str]) -> str:
    """Joins sheets and notes."""
    text = "\n".join(sheet.markdown() for sheet in sheets)
    return text + "\n" + "\n".join(f"- {remark}" for remark in remarks) + "\n"


def _mode_sheet(summary: Summary, mode: str) -> Sheet:
    systems = summary["systems"]
    references = summary["references"]
    header = ["System", *(name.upper() for name in COLUMNS[mode])]
    header += [f"against {systems[r]['label']}" for r in references]
    if mode == "rerank":
        header += [f"paper's {name.upper()}" for name in PAPER]
    rows = []
    for system in systems.values():
        row = [system["label"]]
        for name in COLUMNS[mode]:
            figure = system["test"][mode][name]
            row.append(percent(figure, system["seeds"] > 1))
        for reference in references:
            row.append(_difference(system["significance"][mode].get(reference)))
        if mode == "rerank":
            row += [f"{p:.1f}" for p in system["paper"] or []] or ["-"] * 3
        rows.append(row)
    return Sheet(TITLES[mode], header, rows)


def _difference(test: dict[str, float] | None) -> str:
    if test is None:
        return "-"
    star = " *" if test["p_holm"] < LEVEL else ""
    return f"{100 * test['difference']:+.2f}{star}"
