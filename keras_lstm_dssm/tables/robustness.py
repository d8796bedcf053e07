"""Robustness: what misspelled queries cost each system."""

from pathlib import Path
from typing import Any

from keras_lstm_dssm.drawing import COLOURS, drawing
from keras_lstm_dssm.files import replacing, write_json
from keras_lstm_dssm.tables.charts import finish_bars, panels
from keras_lstm_dssm.tables.dataset import DEV_MEASURES
from keras_lstm_dssm.tables.sheets import TITLES, Sheet, markdown, percent
from keras_lstm_dssm.tables.summary import Summary

CAPTION = "Loss when query words are misspelled"
NOTE = (
    "Each query word of three and more letters is misspelled with the given"
    " probability, by one edit: a letter left out, a neighbouring key (QWERTY)"
    " hit as well or instead, two letters exchanged; each as likely. The same"
    " errors for every system. The loss is relative to the figure at 0 %."
)


def write_robustness(output: Path, summary: Summary) -> list[Sheet]:
    """Writes `robustness.md`, `.json` and `.png`; returns the sheets.

    Nothing is written where the settings name no rates.
    """
    systems: dict[str, Any] = summary["systems"]
    rates = next(iter(systems.values()))["misspelled"]
    if not rates:
        return []
    modes = list(next(iter(systems.values()))["test"])
    sheets = [_sheet(summary, mode, list(rates)) for mode in modes]
    losses = {
        mode: {
            name: {rate: _loss(s, mode, rate) for rate in rates}
            for name, s in systems.items()
        }
        for mode in modes
    }
    figures = {
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
        {"model": NOTE, "figures": figures, "loss_percent": losses},
    )
    with replacing(output / "robustness.md") as partial:
        partial.write_text(markdown(sheets, [NOTE]), encoding="utf-8")
    _draw(output / "robustness.png", summary, losses)
    return sheets


def _loss(system: dict[str, Any], mode: str, rate: str) -> float:
    name = DEV_MEASURES[mode]
    whole = system["test"][mode][name]["mean"]
    left = system["misspelled"][rate][mode][name]["mean"]
    return 100 * (1 - left / whole) if whole else 0.0


def _sheet(summary: Summary, mode: str, rates: list[str]) -> Sheet:
    name = DEV_MEASURES[mode]
    header = ["System", f"{name.upper()}, 0 %"]
    for rate in rates:
        header += [f"{100 * float(rate):g} %", "loss, %"]
    rows = []
    for system in summary["systems"].values():
        several = system["seeds"] > 1
        row = [system["label"], percent(system["test"][mode][name], several)]
        for rate in rates:
            figure = system["misspelled"][rate][mode][name]
            row += [
                percent(figure, several),
                f"{_loss(system, mode, rate):.1f}",
            ]
        rows.append(row)
    return Sheet(f"Misspelled queries. {TITLES[mode]}", header, rows)


def _draw(
    path: Path, summary: Summary, losses: dict[str, dict[str, dict[str, float]]]
) -> None:
    labels = [s["label"] for s in summary["systems"].values()]
    with drawing(path, **panels(labels, len(losses))) as axes:
        for axis, (mode, systems) in zip(axes, losses.items(), strict=True):
            rates = list(next(iter(systems.values())))
            height = 0.8 / len(rates)
            for place, rate in enumerate(rates):
                shift = (place - (len(rates) - 1) / 2) * height
                axis.barh(
                    [i + shift for i in range(len(labels))],
                    [found[rate] for found in systems.values()],
                    height, color=COLOURS[place], edgecolor="#222222",
                    linewidth=0.6, hatch=("", "//", "..")[place % 3],
                    label=f"{100 * float(rate):g} % of the words",
                )  # fmt: skip
            axis.set_yticks(range(len(labels)), labels)
            axis.set_title(TITLES[mode], fontsize=10)
            axis.set_xlabel(f"loss of {DEV_MEASURES[mode].upper()}, percent")
        finish_bars(axis)
