"""Figure 7: the cost of training by epoch, of the LSTM and the RNN."""

from collections.abc import Mapping
from pathlib import Path

from keras_lstm_dssm.drawing import curve_chart
from keras_lstm_dssm.files import read_json, write_csv
from keras_lstm_dssm.tables.baseline_rows import Hyperparameters
from keras_lstm_dssm.tables.charts import curve
from keras_lstm_dssm.tables.run_systems import run_systems
from keras_lstm_dssm.tables.system_results import SystemResults, read_results
from keras_lstm_dssm.tables.table_settings import TableSettings

FIGURE_7_CAPTION = "Cost of training by epoch (the paper's Figure 7)"

_LSTM, _RNN = "lstm_96", "rnn_288"


def train_with_one_gamma(
    output: Path,
    results: Mapping[str, SystemResults],
    settings: TableSettings,
    sizes: dict[str, int],
) -> tuple[dict[str, SystemResults], dict[str, str]]:
    """Makes the costs of the LSTM and the RNN comparable.

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
    shown = {name: results[name] for name in (_LSTM, _RNN) if name in results}
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
