"""Declares Table IV and Figure 7 of Palangi et al. 2016, and `FEW_CLICKS`.

`FEW_CLICKS` is a table of mixtures of the preset `best`, BM25 and a teacher.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from keras_lstm_dssm.analysis.drawing import curve_chart
from keras_lstm_dssm.files import write_csv
from keras_lstm_dssm.models import PRESETS, Recipe
from keras_lstm_dssm.pages import Table
from keras_lstm_dssm.papers.baseline_rows import Baseline, Hybrid, Mixed
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.report import (
    MODE_TITLES,
    PaperTable,
    Summary,
    SystemResults,
    curve,
    measure_table,
    read_results,
)
from keras_lstm_dssm.papers.run_systems import Hyperparameters, Row, run_systems
from keras_lstm_dssm.papers.table_data import TableData
from keras_lstm_dssm.plain_files import read_json

FIGURE_7_CAPTION = "Cost of training by epoch (the paper's Figure 7)"

_FIGURE_7_LSTM, _RNN = "lstm_96", "rnn_288"


def train_with_one_gamma(
    output: Path, data: TableData, results: Mapping[str, SystemResults]
) -> tuple[dict[str, SystemResults], dict[str, str]]:
    """Trains an LSTM and an RNN with the same gamma.

    Returns the results by name, and name -> reason for a run that failed.
    """
    shown = {
        name: results[name]
        for name in (_FIGURE_7_LSTM, _RNN)
        if name in results
    }
    # Figure 7 compares costs, which grow with gamma (the paper's equation 4).
    gammas = [r.seeds[0]["options"]["gamma"] for r in shown.values()]
    if len(set(gammas)) < 2:
        return shown, {}
    folder = output / "figure_7"
    data.settings.record(folder, data.sizes)
    options = best_with_gamma(gammas[0], output / "systems" / _RNN)
    rnn = shown.pop(_RNN)
    rows, seeds = {_RNN: rnn.row}, len(rnn.seeds)
    failed = run_systems(folder, rows, data.settings, seeds, {_RNN: options})
    return shown | read_results(folder, rows, seeds), failed


def draw_figure_7(
    output: Path, data: TableData, results: Mapping[str, SystemResults]
) -> tuple[dict[str, Path], dict[str, str]]:
    """Writes costs by epoch, averaged over seeds: `figure_7.png` and `.csv`."""
    shown, failed = train_with_one_gamma(output, data, results)
    failed = {f"{name} of Figure 7": why for name, why in failed.items()}
    if not shown:
        return {}, failed
    rows, curves = [], {}
    for name, result in shown.items():
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
    curve_chart(
        path,
        curves,
        "epoch",
        "mean cost of a click, equation (4)",
        yscale="log",
    )
    return {FIGURE_7_CAPTION: path}, failed


def best_with_gamma(gamma: float, folder: Path) -> Hyperparameters:
    """Returns the hyperparameters of the best of the trials with this gamma."""
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


def references(results: Mapping[str, SystemResults]) -> Sequence[str]:
    """Returns the rows to compare with: BM25, the best CLSM on dev, DSSM."""
    clsm = {
        name: result.dev
        for name, result in results.items()
        if isinstance(system := result.row.system, Neural)
        and isinstance(recipe := system.recipe, Recipe)
        and recipe.encoder == "CLSMEncoder"
        and recipe.negatives == "random"
    }
    return ["bm25", max(clsm, key=clsm.__getitem__, default=""), "dssm"]


def mode_tables(summary: Summary) -> list[Table]:
    """Returns a table for each mode; adds published values to reranking."""
    systems = summary["systems"]
    published = any(system["paper"] for system in systems.values())
    return [
        measure_table(
            summary,
            MODE_TITLES[mode],
            mode,
            _COLUMNS[mode],
            differences={mode: ""},
            published=[f"paper's {name.upper()}" for name in _PAPER_COLUMNS]
            if published and mode == "rerank"
            else (),
            published_of=lambda name: [
                f"{value:.1f}" for value in systems[name]["paper"] or ()
            ],
        )
        for mode in summary["random"]
    ]


_COMPARED = {"ndcg@1": "rerank", "ndcg@3": "rerank"}


def _tables(summary: Summary) -> list[Table]:
    has_tests = "rerank" in summary["random"] and summary["references"]
    differences = measure_table(
        summary,
        "Reranking: differences in further measures",
        "rerank",
        (),
        names=None if has_tests else (),
        differences={measure: measure.upper() for measure in _COMPARED},
    )
    return [*mode_tables(summary), differences]


def _add_published(
    summary: Summary, results: Mapping[str, SystemResults]
) -> None:
    for name, system in summary["systems"].items():
        system["paper"] = PUBLISHED.get(name)


_LSTM = PRESETS["lstm_96"]
_IN_BATCH = {"negatives": "in_batch"}


def _row(label: str, preset: str, group: str = "recurrent") -> Row:
    return Row(label, Neural(PRESETS[preset], group))


def _lstm(n: int) -> Row:
    return Row(f"LSTM-RNN 96, n={n}", Neural(_LSTM.replace(n=n)))


def _in_batch(label: str, preset: str, group: str = "recurrent") -> Row:
    recipe = PRESETS[preset].replace(**_IN_BATCH)
    return Row(f"{label}, in-batch negatives", Neural(recipe, group))


TABLE_IV_ROWS: dict[str, Row] = {
    "random": Row("Random order", Baseline()),
    "bm25": Row("BM25", Baseline()),
    "ulm": Row("ULM, Dirichlet smoothing", Baseline()),
    "plsa": Row("PLSA", Baseline(seeded=True)),
    "doc2vec": Row("Doc2Vec", Baseline(seeded=True)),
    "skip_thought": Row("Skip-Thought", Baseline(seeded=True)),
    "dssm": _row("DSSM 288/96", "dssm", "feed-forward"),
    "clsm_win1": _row("CLSM 288/96, win=1", "clsm_win1", "feed-forward"),
    "clsm_win3": _row("CLSM 288/96, win=3", "clsm_win3", "feed-forward"),
    "clsm_win5": _row("CLSM 288/96, win=5", "clsm_win5", "feed-forward"),
    "rnn_288": _row("RNN 288", "rnn_288"),
    "lstm_32": _row("LSTM-RNN 32", "lstm_32"),
    "lstm_64": _row("LSTM-RNN 64", "lstm_64"),
    "lstm_96_n2": _lstm(2),
    "lstm_96": _row("LSTM-RNN 96, n=4", "lstm_96"),
    "lstm_96_corpus": Row(
        "LSTM-RNN 96, n=4, negatives of the corpus",
        Neural(_LSTM.replace(negatives="corpus")),
    ),
    "lstm_96_n6": _lstm(6),
    "lstm_96_n8": _lstm(8),
    "bilstm_96": _row("Bi-LSTM-RNN 96", "bilstm_96"),
    "lstm_96_diagonal": Row(
        "LSTM-RNN 96, forget gate, diagonal peepholes",
        Neural(_LSTM.with_encoder(peephole="diagonal", forget_gate=True)),
    ),
    "lstm_96_full": _row(
        "LSTM-RNN 96, forget gate, full peepholes", "lstm_96_full"
    ),
    "dssm_in_batch": _in_batch("DSSM 288/96", "dssm", "feed-forward"),
    "clsm_win3_in_batch": _in_batch(
        "CLSM 288/96, win=3", "clsm_win3", "feed-forward"
    ),
    "lstm_96_in_batch": _in_batch("LSTM-RNN 96", "lstm_96"),
    "best": Row(
        "Best (not of the paper)", Neural(PRESETS["best"], tuned=False)
    ),
}
"""The rows by name. Models that are trained on clicks draw random negatives
from the batch, except `best` and rows whose label names other negatives."""

PUBLISHED: dict[str, tuple[float, float, float]] = {
    "bm25": (30.5, 32.8, 38.8),
    "ulm": (30.4, 32.7, 38.5),
    "plsa": (30.8, 33.7, 40.2),
    "doc2vec": (29.1, 31.8, 38.4),
    "skip_thought": (26.9, 29.7, 36.2),
    "dssm": (31.0, 34.4, 41.7),
    "clsm_win1": (31.8, 35.1, 42.6),
    "clsm_win3": (32.1, 35.2, 42.7),
    "clsm_win5": (32.0, 35.2, 42.6),
    "rnn_288": (31.7, 35.0, 42.3),
    "lstm_32": (31.9, 35.5, 42.7),
    "lstm_64": (32.9, 36.3, 43.4),
    "lstm_96_n2": (32.6, 36.0, 43.4),
    "lstm_96": (33.1, 36.5, 43.6),
    "lstm_96_n6": (33.1, 36.6, 43.6),
    "lstm_96_n8": (33.1, 36.4, 43.7),
    "bilstm_96": (33.2, 36.6, 43.6),
}
"""The paper's NDCG@1, NDCG@3 and NDCG@10 in percent, by name of the row."""

TABLE_IV = PaperTable(
    title="Table IV of Palangi et al. 2016",
    page="Table IV",
    rows=TABLE_IV_ROWS,
    references=references,
    tables=_tables,
    notes="table_iv.jinja",
    curves=lambda results: _DEV_CURVES,
    pictures=draw_figure_7,
    compared=_COMPARED,
    further=_add_published,
)


def _mixed(label: str, *parts: str, seeded: bool = True) -> Row:
    return Row(label, Mixed(parts, seeded))


FEW_CLICKS_ROWS: dict[str, Row] = {
    "random": Row("Random order", Baseline()),
    "bm25": Row("BM25", Baseline()),
    "teacher": Row("The teacher alone", Baseline()),
    "bm25_teacher": _mixed("BM25 + teacher", "bm25", "teacher", seeded=False),
    "best": Row("best", Neural(PRESETS["best"], tuned=False, saved=True)),
    "best_bm25": _mixed("best + BM25", "best", "bm25"),
    "best_teacher": _mixed("best + teacher", "best", "teacher"),
    "best_bm25_teacher": _mixed(
        "best + BM25 + teacher", "best", "bm25", "teacher"
    ),
    "words_bm25": Row("hybrid of words and BM25, no clicks", Hybrid()),
    "hybrid": Row("hybrid of best, words and BM25", Hybrid("best")),
}
"""The rows by name. A mixture comes after the rows whose results it needs."""

FEW_CLICKS = PaperTable(
    title="Few clicks",
    rows=FEW_CLICKS_ROWS,
    references=lambda results: ["bm25", "best"],
    tables=mode_tables,
    notes="few_clicks.jinja",
)
