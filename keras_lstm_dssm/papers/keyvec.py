"""Tables 1 and 2 of Bi and Ma 2017: rows, columns, notes and charts."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from keras_lstm_dssm.evaluation.clustering import CLUSTER_MEASURES
from keras_lstm_dssm.evaluation.task import CLUSTER, DOCUMENT_MEASURES, RETRIEVE
from keras_lstm_dssm.models import KEYVEC_PRESETS
from keras_lstm_dssm.papers.report import (
    TextTable,
    choices_table,
    closing_notes,
    difference_cells,
    difference_header,
    draw_dev_curves,
    measure_cells,
    significance_note,
    write_report_files,
)
from keras_lstm_dssm.papers.results import (
    Summary,
    SystemResults,
    compare_with,
    summarise,
)
from keras_lstm_dssm.papers.rows import Row
from keras_lstm_dssm.papers.table import PaperTable, report_by
from keras_lstm_dssm.papers.table_data import BaseTableData
from keras_lstm_dssm.settings.papers import PAPER_OPTIONS


def _row(label: str, name: str) -> Row:
    return Row(label, recipe=KEYVEC_PRESETS[name])


KEYVEC_ROWS: dict[str, Row] = {
    "random": Row("Random order, random clusters", seeded=False),
    "random_vectors": Row("Random vectors"),
    "bm25": Row("BM25", seeded=False, vectors=False),
    "tfidf": Row("TF-IDF", seeded=False),
    "lsa": Row("TF-IDF, SVD 100"),
    "word2vec": Row("Averaged word2vec, own corpus"),
    "doc2vec": Row("Paragraph Vector"),
    "keyvec_untrained": _row("KeyVec, untrained", "keyvec")._replace(
        trained=False
    ),
    "keyvec_without_read": _row("KeyVec without L_read", "keyvec_without_read"),
    "keyvec_without_words": _row(
        "KeyVec without L_enc", "keyvec_without_words"
    ),
    "keyvec_mean": _row("KeyVec with p = 1", "keyvec_mean"),
    "keyvec_lead": _row(
        "KeyVec, first sentences as key sentences", "keyvec"
    )._replace(salience="lead"),
    "keyvec_printed": _row(
        "KeyVec, loss as printed, whole documents", "keyvec_printed"
    )._replace(tuned=False),
    "keyvec": _row("KeyVec", "keyvec"),
    "keyvec_document": _row(
        "KeyVec, key words of all the text", "keyvec_document"
    ),
    "keyvec_document_without_read": Row(
        "KeyVec, key words of all the text, without L_read",
        recipe=KEYVEC_PRESETS["keyvec_document"].replace(read_weight=0.0),
    ),
}
"""Name -> row: baselines, ablations of KeyVec, and KeyVec itself."""


class Published(NamedTuple):
    """Metrics published by Bi and Ma 2017, from 0 to 1, on their data.

    Attributes:
        retrieval: P@10, MAP and MRR of Table 1.
        clustering: F1, V-measure and adjusted Rand index of Table 2.
    """

    retrieval: tuple[float, float, float]
    clustering: tuple[float, float, float]


PUBLISHED: dict[str, Published] = {
    "word2vec": Published((0.223, 0.193, 0.546), (0.079, 0.548, 0.066)),
    "doc2vec": Published((0.227, 0.177, 0.495), (0.083, 0.553, 0.070)),
    "keyvec": Published((0.279, 0.232, 0.619), (0.090, 0.597, 0.079)),
}
"""Name -> published figures. The paper's row of public 300-wide word2vec
vectors (P@10 .221, F1 .019) is left out, as these need a download."""


_REFERENCES = ("word2vec", "doc2vec", "lsa", "keyvec")
_RECALL = "recall@10"
_PAPER_COLUMNS = {RETRIEVE: ("p@10", "map", "mrr"), CLUSTER: ("f1", "v", "ari")}
_KEY_SENTENCES = {
    "salience_average_precision": "Average precision of p",
    "salience_order_average_precision": "Average precision of sentence order",
    "salience_precision": "R-precision of p",
    "salience_base_rate": "Share of key sentences",
}
"""Name of a figure in `result.json` -> heading of its column."""


def write_keyvec_report(
    output: Path,
    data: BaseTableData,
    results: Mapping[str, SystemResults],
    failed: Mapping[str, str],
) -> Summary:
    """Writes the tables, the charts and the page.

    The files are those of `write_report_files`, and `dev.png` and `.csv`
    (with trained KeyVecs). Systems are compared with averaged word2vec,
    Paragraph Vector and TF-IDF reduced by SVD; variants of KeyVec, also with
    KeyVec.

    Args:
        output: Folder of the table.
        data: The data that the systems were measured on.
        results: System -> its results, at least one, in the table's order.
        failed: System -> reason why it has no result.

    Returns:
        The content of `table.json`. Beside MRR@10, `significance` has the
        tests of recall@10, as `"recall@10"`.

    Example:
    >>> from keras_lstm_dssm.papers import open_data, read_results, run_system
    >>> from keras_lstm_dssm.papers import KEYVEC_ROWS, TableSettings
    >>> settings = TableSettings("manuals", documents=True)
    >>> rows, output = {"bm25": KEYVEC_ROWS["bm25"]}, Path("manuals_table")
    >>> run_system(output, "bm25", rows["bm25"], settings, seeds=1)
    bm25, seed 0: ...
    >>> data = open_data(settings, output)
    >>> results = read_results(output, rows, seeds=1)
    >>> settings.record(output, data.sizes)
    >>> summary = write_keyvec_report(output, data, results, failed={})
    >>> "BM25" in (output / "table.md").read_text()
    True
    """
    summary = summarise(output, data, results, failed, _REFERENCES)
    summary["published"] = {
        name: PUBLISHED[name]._asdict() for name in results if name in PUBLISHED
    }
    for name, result in results.items():
        summary["systems"][name]["key_sentences"] = {
            key: result.mean_of(key) for key in _KEY_SENTENCES
        }
    tables = []
    if RETRIEVE in data.tests:
        references = summary["references"]
        tests = compare_with(references, results, RETRIEVE, _RECALL)
        for name, of_name in tests.items():
            summary["systems"][name]["significance"][_RECALL] = of_name
        tables += [_measures(summary, RETRIEVE), _differences(summary)]
    if CLUSTER in data.tests:
        tables.append(_measures(summary, CLUSTER))
    tables.append(_key_sentences(summary))
    curves = {
        name: result
        for name, result in results.items()
        if result.seeds[0]["epoch"] is not None
    }
    write_report_files(
        output,
        f"Tables 1 and 2 of Bi and Ma 2017 on {summary['settings']['data']}",
        summary,
        [
            *(table for table in tables if table.rows),
            choices_table(summary, "titles_per_second", "Documents encoded/s"),
        ],
        _notes(summary),
        draw_dev_curves(output, curves, data.dev_measure),
    )
    return summary


def _measures(summary: Summary, mode: str) -> TextTable:
    """Returns Table 1, of retrieval, or Table 2, of clusters."""
    names: Sequence[str] = DOCUMENT_MEASURES
    title = "Table 1: retrieval"
    if mode == CLUSTER:
        names, title = CLUSTER_MEASURES, "Table 2: clusters"
    paper = _PAPER_COLUMNS[mode]
    header = ["System", *map(str.upper, names)]
    header += [f"paper's {name.upper()}" for name in paper]
    rows = []
    for name, system in summary["systems"].items():
        if mode not in system["test"]:
            continue
        row = [system["label"], *measure_cells(system, mode, names)]
        if name in PUBLISHED:
            row += [f"{100 * v:.1f}" for v in _published(name, mode)]
        else:
            row += ["-"] * len(paper)
        rows.append(row)
    return TextTable(f"{title} on {summary['settings']['data']}", header, rows)


def _published(name: str, mode: str) -> tuple[float, ...]:
    figures = PUBLISHED[name]
    return figures.clustering if mode == CLUSTER else figures.retrieval


def _differences(summary: Summary) -> TextTable:
    """Returns the differences of retrieval from the references."""
    header = ["System"]
    for measure in ("MRR@10", _RECALL.upper()):
        header += [f"{measure} {text}" for text in difference_header(summary)]
    rows = [
        [
            system["label"],
            *difference_cells(summary, system, RETRIEVE),
            *difference_cells(summary, system, _RECALL),
        ]
        for system in summary["systems"].values()
    ]
    if not summary["references"]:
        rows = []
    return TextTable("Differences of retrieval", header, rows)


def _key_sentences(summary: Summary) -> TextTable:
    """Returns how well p_i finds the key sentences of unseen documents.

    Columns that no system has are left out, such as the one of the sentence
    order if all results are from before it was measured.
    """
    systems = summary["systems"].values()
    names = [
        name
        for name in _KEY_SENTENCES
        if any(s["key_sentences"][name] is not None for s in systems)
    ]
    rows = []
    for system in systems:
        values = [system["key_sentences"][name] for name in names]
        cells = ["-" if v is None else f"{100 * v:.2f}" for v in values]
        if set(cells) - {"-"}:
            rows.append([system["label"], *cells])
    header = ["System", *(_KEY_SENTENCES[name] for name in names)]
    return TextTable("Key sentences of the test documents", header, rows)


def _notes(summary: Summary) -> list[str]:
    """Returns sentences that state how the results were measured."""
    settings, words = summary["settings"], summary["words"]
    sizes = f"Data: {settings['documents']:,} documents,"
    sizes += (
        f" {settings['train_documents']:,} to train on, of"
        f" {words['sentences']:.0f} sentences and {words['words']:.0f} words on"
        " average"
    )
    notes = [f"{sizes}. {summary['date']}, {summary['machine']}."]
    if RETRIEVE in summary["random"]:
        notes += [
            f"Retrieval: {settings['retrieve_queries']:,} queries of test (dev:"
            f" {settings['dev_queries']:,}); all documents of the split are"
            " ranked by the cosine of the vectors that the system computes of"
            " query and document. BM25 compares words and has no vectors."
            " Values are in percent, means and standard deviations over"
            " seeds; those of random order are exact expectations.",
            significance_note(summary).replace(
                "MRR@10 (retrieve)", "MRR@10 and on recall@10"
            ),
        ]
    if CLUSTER in summary["random"]:
        single = settings["cluster_single_document_classes"]
        notes.append(
            f"Clusters: k-means of {settings['cluster_documents']:,} test"
            f" documents, k = {settings['cluster_classes']:,}, the number of"
            f" classes ({single:,} of them have one document;"
            f" {settings['cluster_without_class']:,} documents without a class"
            " are left out); k-means++, 10 starts, vectors of unit length,"
            " mean of 5 seeds. F1 is that of pairs of documents. V is not"
            " corrected for chance: compare it with random clusters, or read"
            " ARI and AMI, which are 0 for those in expectation."
        )
    notes += [
        "Paper: Bi and Ma 2017, on 669 papers and 70 pages of Wikipedia, and"
        " on 850 papers of 186 venues, which are not public. Its row of public"
        " word2vec vectors is left out, as these need a download.",
        "All systems are trained on the documents of train. Tokenizer, k1 and"
        " b of the baselines are chosen on dev by"
        f" {summary['dev_measure'].upper()}.",
    ]
    if any(KEYVEC_ROWS[name].recipe for name in summary["systems"]):
        notes.append(
            f"KeyVec: {settings['epochs']} epochs, batches of"
            f" {settings['batch_size']} documents, Adam, learning rate from"
            f" {settings['learning_rates']}; of {settings['dev_evaluations']}"
            " evaluations on dev, the best epoch is measured on test. Key"
            f" sentences by {settings['salience']}, key words by TF-IDF of the"
            " summary, or of all the text in the row that says so."
            " Parameters are all, with those that predict key words."
            " Average precision of p: of the ranking of a test document's"
            " sentences by p, against the key sentences that the same teacher"
            " chooses. That of sentence order: of their order in the document."
            " R-precision of p: of as many of the first sentences by p as are"
            " key. Their share is the precision of a random order."
        )
    return notes + closing_notes(summary)


KEYVEC_TABLE = PaperTable(
    title="Tables 1 and 2 of Bi and Ma 2017",
    rows=KEYVEC_ROWS,
    options=PAPER_OPTIONS["keyvec"],
    fixed={"documents": True, "gammas": ()},
    report=report_by(write_keyvec_report),
)
