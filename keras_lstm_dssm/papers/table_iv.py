"""Table IV and Figure 7 of Palangi et al. 2016: rows, columns, charts."""

from collections.abc import Mapping
from pathlib import Path

from keras_lstm_dssm.analysis.drawing import curve_chart
from keras_lstm_dssm.files import read_json, write_csv
from keras_lstm_dssm.models import PRESETS, Recipe
from keras_lstm_dssm.papers.baseline_rows import Hyperparameters
from keras_lstm_dssm.papers.report import (
    MODE_TITLES,
    TextTable,
    choices_table,
    closing_notes,
    curve,
    data_notes,
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
    read_results,
    summarise,
)
from keras_lstm_dssm.papers.rows import Row
from keras_lstm_dssm.papers.run_systems import run_systems
from keras_lstm_dssm.papers.table import (
    FinishedSystems,
    PaperTable,
    learning_curve,
)
from keras_lstm_dssm.papers.table_data import BaseTableData
from keras_lstm_dssm.settings.papers import PAPER_OPTIONS, TableSettings

FIGURE_7_CAPTION = "Cost of training by epoch (the paper's Figure 7)"

_FIGURE_7_LSTM, _RNN = "lstm_96", "rnn_288"


def train_with_one_gamma(
    output: Path,
    results: Mapping[str, SystemResults],
    settings: TableSettings,
    sizes: dict[str, int],
) -> tuple[dict[str, SystemResults], dict[str, str]]:
    """Trains the RNN with the LSTM's gamma, so that their costs compare.

    The cost (4) grows with gamma, so that systems can only be compared at
    equal gamma. Where different ones were chosen on dev, the RNN is trained
    once more (in `figure_7/`) with the LSTM's gamma and the learning rate
    that was best with it on dev.

    Args:
        output: Folder of the table.
        results: System -> its results.
        settings: The table's settings.
        sizes: See `TableSettings.record`.

    Returns:
        System -> results to draw; and system -> reason, where the training
        failed.

    Example:
    >>> settings = TableSettings("parts")
    >>> train_with_one_gamma(Path("table"), {}, settings, {})  # neither has run
    ({}, {})
    """
    shown = {
        name: results[name]
        for name in (_FIGURE_7_LSTM, _RNN)
        if name in results
    }
    gammas = [r.seeds[0]["options"]["gamma"] for r in shown.values()]
    if len(set(gammas)) < 2:
        return shown, {}
    folder = output / "figure_7"
    settings.record(folder, sizes)
    options = best_with_gamma(gammas[0], output / "systems" / _RNN)
    rows = {_RNN: shown.pop(_RNN).row}
    failed = run_systems(folder, rows, settings, 1, {_RNN: options})
    return shown | read_results(folder, rows, 1), failed


def draw_figure_7(
    output: Path, results: Mapping[str, SystemResults]
) -> Path | None:
    """Writes `figure_7.png` and `figure_7.csv`, the means over seeds.

    Args:
        output: Folder of the table.
        results: System -> results, from `train_with_one_gamma`.

    Returns:
        The picture, or `None` without results.
    """
    if not results:
        return None
    rows, curves = [], {}
    for name, result in results.items():
        costs = result.by_epoch("loss")
        options = result.seeds[0]["options"]
        label = "{}, learning rate {learning_rate:g}, gamma {gamma:g}"
        curves[label.format(result.row.label, **options)] = curve(costs)
        rows += [
            {"system": name, "epoch": epoch, **cost._asdict(), **options}
            for epoch, cost in costs.items()
        ]
    write_csv(output / "figure_7.csv", rows)
    path = output / "figure_7.png"
    curve_chart(path, curves, "epoch", "mean cost (4) of a click", yscale="log")
    return path


def best_with_gamma(gamma: float, folder: Path) -> Hyperparameters:
    """Returns the best hyperparameters on dev among those with one gamma.

    Args:
        gamma: The scale of the cosines.
        folder: Folder of the system, with the search in `choice.json`.
    """
    trials = read_json(folder / "choice.json")["tried"]
    best = max(
        (trial for trial in trials if trial["gamma"] == gamma),
        key=lambda trial: trial["dev"],
    )
    return {"learning_rate": best["learning_rate"], "gamma": gamma}


_COLUMNS = {
    "rerank": ("ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "map"),
    "retrieve": ("ndcg@10", "mrr@10", "recall@10", "recall@100"),
}
_PAPER_COLUMNS = ("ndcg@1", "ndcg@3", "ndcg@10")
_DEV_CURVES = (
    "dssm_in_batch", "clsm_win3_in_batch", "lstm_96", "lstm_96_in_batch",
    "best",
)  # fmt: skip


def write_report(
    output: Path,
    data: BaseTableData,
    results: Mapping[str, SystemResults],
    failed: Mapping[str, str],
    costs: Mapping[str, SystemResults],
    pictures: Mapping[str, Path],
) -> Summary:
    """Writes the table, the charts and the page.

    The files are those of `write_report_files`, and `figure_7.png` and `.csv`
    (if there are costs), `dev.png` and `.csv` (with neural systems). Systems
    are compared with BM25, and with the CLSM that is best on dev among those
    trained with the paper's negatives.

    Args:
        output: Folder of the table.
        data: The data that the systems were measured on.
        results: System -> its results, at least one, in the table's order.
        failed: System -> reason why it has no result.
        costs: System -> results, from `figure_7.train_with_one_gamma`.
        pictures: Caption -> further PNG for the page.

    Returns:
        The content of `table.json`.

    Example:
    >>> from keras_lstm_dssm.papers import open_data, read_results, run_system
    >>> from keras_lstm_dssm.papers import Row, TableSettings
    >>> settings, output = TableSettings("parts"), Path("report")
    >>> rows = {"bm25": Row("BM25", seeded=False)}
    >>> run_system(output, "bm25", rows["bm25"], settings, seeds=1)
    bm25, seed 0: ... s, dev ndcg@10 100.00
    >>> data = open_data(settings, output)
    >>> results = read_results(output, rows, seeds=1)
    >>> settings.record(output, data.sizes)
    >>> summary = write_report(output, data, results, {}, {}, {})
    >>> "BM25" in (output / "table.md").read_text()
    True
    """
    references = ["bm25", _best_clsm(results)]
    summary = summarise(output, data, results, failed, references)
    charts = {}
    if picture := draw_figure_7(output, costs):
        charts[FIGURE_7_CAPTION] = picture
    shown = {name: results[name] for name in _DEV_CURVES if name in results}
    charts |= draw_dev_curves(output, shown, data.dev_measure)
    write_report_files(
        output,
        f"Table IV on {summary['settings']['data']}",
        summary,
        [
            *(mode_table(summary, mode) for mode in data.tests),
            choices_table(summary, "titles_per_second", "Titles encoded/s"),
        ],
        _notes(summary),
        {**charts, **pictures},
    )
    return summary


def _best_clsm(results: Mapping[str, SystemResults]) -> str:
    """Returns the name of the CLSM that is best on dev, or "" without one."""
    clsm = {
        name: result.dev
        for name, result in results.items()
        if isinstance(recipe := result.row.recipe, Recipe)
        and recipe.encoder == "CLSMEncoder"
        and recipe.negatives == "random"
    }
    return max(clsm, key=clsm.__getitem__, default="")


def mode_table(summary: Summary, mode: str) -> TextTable:
    """Returns the table of a mode, with the paper's values if rows have any.

    Args:
        summary: The results.
        mode: `"rerank"` or `"retrieve"`.
    """
    published = mode == "rerank" and any(
        system["paper"] for system in summary["systems"].values()
    )
    header = ["System", *(name.upper() for name in _COLUMNS[mode])]
    header += difference_header(summary)
    if published:
        header += [f"paper's {name.upper()}" for name in _PAPER_COLUMNS]
    rows = []
    for system in summary["systems"].values():
        row = [system["label"], *measure_cells(system, mode, _COLUMNS[mode])]
        row += difference_cells(summary, system, mode)
        if published:
            row += [f"{p:.1f}" for p in system["paper"] or []] or ["-"] * 3
        rows.append(row)
    return TextTable(MODE_TITLES[mode], header, rows)


def _notes(summary: Summary) -> list[str]:
    """Returns sentences that state how the results were measured."""
    settings = summary["settings"]
    notes = [
        *data_notes(summary, "titles", "clicks"),
        "Values are in percent, on the test split: means and standard"
        " deviations over seeds. NDCG has gain 2^grade - 1 and discount"
        " log2(rank + 1); click counts are turned into grades 0 to 4 first."
        " Ties are broken by a fixed hash. The paper's values were measured on"
        " its own, private log.",
        "The values of random order are exact expectations, so it has no run"
        " file.",
        f"{significance_note(summary)} The CLSM is the one that is best on"
        " dev.",
        f"Neural systems: {settings['epochs']} epochs, batches of"
        f" {settings['batch_size']}, Nesterov momentum 0.9/0.995/0.9, both"
        " towers start from the same random weights; learning rate from"
        f" {settings['learning_rates']} and gamma from {settings['gammas']},"
        " chosen on dev, first the learning rate (with the first gamma), with"
        f" one seed and {settings['search']:g} of the epochs, equal for all."
        f" Of {settings['dev_evaluations']} evaluations on dev, the best epoch"
        " is measured on test. n = 4 random negatives unless stated."
        " Parameters are those of one of the two towers.",
        "PLSA and Doc2Vec learn from the titles of the corpus, in which BM25"
        " and ULM count words. Skip-Thought is trained here, on"
        f" {settings['paragraphs'] or 'docstrings of installed packages'}, as"
        " the published weights need a download.",
    ]
    if k := settings.get("judged_negatives"):
        notes.append(
            f"Neural systems also learn from {k} negatives for each click,"
            " titles that were judged not relevant for its query; Best has"
            " these in place of mined ones."
        )
    if "rerank" not in summary["random"]:
        notes.append(
            "Nothing is reranked: all judged titles of a query have the same"
            " grade, so that every order is right."
        )
    return notes + closing_notes(summary)


_LSTM = PRESETS["lstm_96"]
_IN_BATCH = {"negatives": "in_batch"}
_PAPER = {
    "dssm": ("DSSM 288/96", (31.0, 34.4, 41.7)),
    "clsm_win1": ("CLSM 288/96, win=1", (31.8, 35.1, 42.6)),
    "clsm_win3": ("CLSM 288/96, win=3", (32.1, 35.2, 42.7)),
    "clsm_win5": ("CLSM 288/96, win=5", (32.0, 35.2, 42.6)),
    "rnn_288": ("RNN 288", (31.7, 35.0, 42.3)),
    "lstm_32": ("LSTM-RNN 32", (31.9, 35.5, 42.7)),
    "lstm_64": ("LSTM-RNN 64", (32.9, 36.3, 43.4)),
}

TABLE_IV_ROWS: dict[str, Row] = {
    "random": Row("Random order", seeded=False),
    "bm25": Row("BM25", (30.5, 32.8, 38.8), seeded=False),
    "ulm": Row("ULM, Dirichlet smoothing", (30.4, 32.7, 38.5), seeded=False),
    "plsa": Row("PLSA", (30.8, 33.7, 40.2)),
    "doc2vec": Row("Doc2Vec", (29.1, 31.8, 38.4)),
    "skip_thought": Row("Skip-Thought", (26.9, 29.7, 36.2)),
    **{
        name: Row(label, paper, PRESETS[name])
        for name, (label, paper) in _PAPER.items()
    },
    "lstm_96_n2": Row(
        "LSTM-RNN 96, n=2", (32.6, 36.0, 43.4), _LSTM.replace(n=2)
    ),
    "lstm_96": Row("LSTM-RNN 96, n=4", (33.1, 36.5, 43.6), _LSTM),
    "lstm_96_n6": Row(
        "LSTM-RNN 96, n=6", (33.1, 36.6, 43.6), _LSTM.replace(n=6)
    ),
    "lstm_96_n8": Row(
        "LSTM-RNN 96, n=8", (33.1, 36.4, 43.7), _LSTM.replace(n=8)
    ),
    "bilstm_96": Row(
        "Bi-LSTM-RNN 96", (33.2, 36.6, 43.6), PRESETS["bilstm_96"]
    ),
    "lstm_96_diagonal": Row(
        "LSTM-RNN 96, forget gate, diagonal peepholes",
        None,
        _LSTM.with_encoder(peephole="diagonal", forget_gate=True),
    ),
    "lstm_96_full": Row(
        "LSTM-RNN 96, forget gate, full peepholes",
        None,
        PRESETS["lstm_96_full"],
    ),
    "dssm_in_batch": Row(
        "DSSM 288/96, in-batch negatives",
        None,
        PRESETS["dssm"].replace(**_IN_BATCH),
    ),
    "clsm_win3_in_batch": Row(
        "CLSM 288/96, win=3, in-batch negatives",
        None,
        PRESETS["clsm_win3"].replace(**_IN_BATCH),
    ),
    "lstm_96_in_batch": Row(
        "LSTM-RNN 96, in-batch negatives", None, _LSTM.replace(**_IN_BATCH)
    ),
    "best": Row("Best (not of the paper)", None, PRESETS["best"], tuned=False),
}
"""Name -> row. Tuned rows have random negatives, as in the paper, unless the
label names others."""


def _report(work: FinishedSystems) -> tuple[Summary, dict[str, str]]:
    """Measures the learning curve, draws Figure 7 and writes the report."""
    output, data = work.output, work.data
    pictures, failed = learning_curve(work)
    costs, failed_costs = train_with_one_gamma(
        output, work.results, work.settings, data.sizes
    )
    failed |= {f"{name} of Figure 7": r for name, r in failed_costs.items()}
    return (
        write_report(output, data, work.results, failed, costs, pictures),
        failed,
    )


TABLE_IV = PaperTable(
    title="Table IV of Palangi et al. 2016",
    rows=TABLE_IV_ROWS,
    options=PAPER_OPTIONS["table_iv"],
    fixed={},
    report=_report,
)
