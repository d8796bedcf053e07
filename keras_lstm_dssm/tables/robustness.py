"""Robustness: how much each system loses when queries are misspelled."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_lstm_dssm.drawing import COLOURS, drawing
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.tables.base_data import MAIN_MEASURES
from keras_lstm_dssm.tables.charts import bar_panels, finish_bars
from keras_lstm_dssm.tables.text_table import (
    MODE_TITLES,
    TextTable,
    percent,
    write_markdown,
)

ROBUSTNESS_CAPTION = "Loss when query words are misspelled"
ROBUSTNESS_NOTE = (
    "Each query word of three or more letters is misspelled with the stated"
    " probability, by one edit: a letter is left out, the key next to"
    " it (QWERTY) is hit as well or instead, or two letters are exchanged, all"
    " equally likely. The errors are the same for every system. The loss is"
    " relative to the value at 0 %."
)


def write_robustness(
    output: Path, summary: Mapping[str, Any]
) -> list[TextTable]:
    """Writes the losses to `robustness.md`, `.json` and `.png`.

    Args:
        output: Folder of the table.
        summary: From `summary.summarise`.

    Returns:
        A table for each mode; none, and no files, if the settings have no
        rates of misspelling.
    """
    systems: dict[str, Any] = summary["systems"]
    first = next(iter(systems.values()))
    rates, modes = first["misspelled"], list(first["test"])
    if not rates:
        return []
    tables = [_table(summary, mode, list(rates)) for mode in modes]
    losses = {
        mode: {
            name: {rate: _loss(s, mode, rate) for rate in rates}
            for name, s in systems.items()
        }
        for mode in modes
    }
    values = {
        name: {
            mode: {
                "0": s["test"][mode],
                **{rate: s["misspelled"][rate][mode] for rate in rates},
            }
            for mode in modes
        }
        for name, s in systems.items()
    }
    write_json(
        output / "robustness.json",
        {"model": ROBUSTNESS_NOTE, "values": values, "loss_percent": losses},
    )
    write_markdown(output / "robustness.md", tables, [ROBUSTNESS_NOTE])
    _draw(output / "robustness.png", summary, losses)
    return tables


def _loss(system: dict[str, Any], mode: str, rate: str) -> float:
    name = MAIN_MEASURES[mode]
    whole = system["test"][mode][name]["mean"]
    misspelled = system["misspelled"][rate][mode][name]["mean"]
    return 100 * (1 - misspelled / whole) if whole else 0.0


def _table(
    summary: Mapping[str, Any], mode: str, rates: list[str]
) -> TextTable:
    name = MAIN_MEASURES[mode]
    header = ["System", f"{name.upper()}, 0 %"]
    for rate in rates:
        header += [f"{100 * float(rate):g} %", "loss, %"]
    rows = []
    for system in summary["systems"].values():
        several = system["seeds"] > 1
        row = [system["label"], percent(system["test"][mode][name], several)]
        for rate in rates:
            value = system["misspelled"][rate][mode][name]
            loss = _loss(system, mode, rate)
            row += [percent(value, several), f"{loss:.1f}"]
        rows.append(row)
    title = f"Misspelled queries. {MODE_TITLES[mode]}"
    return TextTable(title, header, rows)


def _draw(
    path: Path,
    summary: Mapping[str, Any],
    losses: dict[str, dict[str, dict[str, float]]],
) -> None:
    labels = [s["label"] for s in summary["systems"].values()]
    with drawing(path, **bar_panels(labels, len(losses))) as axes:
        for axis, (mode, systems) in zip(axes, losses.items(), strict=True):
            rates = list(next(iter(systems.values())))
            height = 0.8 / len(rates)
            for number, rate in enumerate(rates):
                shift = (number - (len(rates) - 1) / 2) * height
                axis.barh(
                    [i + shift for i in range(len(labels))],
                    [loss[rate] for loss in systems.values()],
                    height, color=COLOURS[number], edgecolor="#222222",
                    linewidth=0.6, hatch=("", "//", "..")[number % 3],
                    label=f"{100 * float(rate):g} % of the words",
                )  # fmt: skip
            axis.set_yticks(range(len(labels)), labels)
            axis.set_title(MODE_TITLES[mode], fontsize=10)
            axis.set_xlabel(f"loss of {MAIN_MEASURES[mode].upper()}, percent")
        finish_bars(axis)
