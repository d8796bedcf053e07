"""Figure 7: the cost of training by epoch, LSTM and RNN at equal budgets."""

from collections.abc import Mapping
from pathlib import Path

from keras_lstm_dssm.drawing import Curve, curve_chart
from keras_lstm_dssm.files import read_json, write_csv
from keras_lstm_dssm.tables.baseline_rows import Options
from keras_lstm_dssm.tables.isolated import run_isolated
from keras_lstm_dssm.tables.summary import Figure, Results, read_results
from keras_lstm_dssm.tables.table_settings import Settings

CAPTION = "Cost of training by epoch (the paper's Figure 7)"

_LSTM, _RNN = "lstm_96", "rnn_288"


def draw_cost(
    output: Path,
    results: Mapping[str, Results],
    settings: Settings,
    sizes: dict[str, int],
) -> Path | None:
    """Writes `figure_7.png` and `figure_7.csv`, the means over seeds.

    The cost (4) grows with gamma, so that two systems can only be compared
    at one. Where dev has chosen different ones, the RNN is trained once more
    (in `figure_7/`) with the LSTM's gamma, and the learning step that did
    best with it on dev.

    Args:
        output: Folder of the table.
        results: System -> what was measured.
        settings: The table's.
        sizes: See `Settings.record`.

    Returns:
        The picture, or None where neither system is among the results.
    """
    found = {name: results[name] for name in (_LSTM, _RNN) if name in results}
    if not found:
        return None
    gammas = [f.seeds[0]["options"]["gamma"] for f in found.values()]
    if len(set(gammas)) > 1:
        del found[_RNN]
        folder = output / "figure_7"
        settings.record(folder, sizes)
        options = best_with(gammas[0], output / "systems" / _RNN)
        run_isolated(folder, [_RNN], settings, 1, {_RNN: options})
        found |= read_results(folder, [_RNN], 1)
    rows, curves = [], {}
    for name, result in found.items():
        figures = [
            Figure.of([float(row["loss"]) for row in epoch])
            for epoch in zip(*result.history(), strict=True)
        ]
        epochs = list(range(1, len(figures) + 1))
        options = result.seeds[0]["options"]
        label = "{}, step {learning_rate:g}, gamma {gamma:g}"
        curves[label.format(result.row.label, **options)] = Curve(
            epochs, [f.mean for f in figures], [f.std for f in figures]
        )
        rows += [
            {"system": name, "epoch": epoch, **figure._asdict(), **options}
            for epoch, figure in zip(epochs, figures, strict=True)
        ]
    write_csv(output / "figure_7.csv", rows)
    path = output / "figure_7.png"
    curve_chart(path, curves, "epoch", "mean cost (4) of a click", yscale="log")
    return path


def best_with(gamma: float, folder: Path) -> Options:
    """Returns the options with that gamma that did best on dev."""
    tried = read_json(folder / "choice.json")["tried"]
    best = max(
        (trial for trial in tried if trial["gamma"] == gamma),
        key=lambda trial: trial["dev"],
    )
    return {"learning_rate": best["learning_rate"], "gamma": gamma}
