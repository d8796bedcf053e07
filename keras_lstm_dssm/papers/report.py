"""Reads the results of systems, and writes tables and charts of the results."""

import datetime
import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.drawing import (
    COLOURS,
    Curve,
    add_legend,
    curve_chart,
    drawing,
)
from keras_lstm_dssm.evaluation.significance import compare_systems
from keras_lstm_dssm.evaluation.task import CLUSTER, MAIN_MEASURES
from keras_lstm_dssm.files import write_csv, write_json
from keras_lstm_dssm.pages import (
    BulletList,
    Picture,
    Section,
    Table,
    render,
    write_html,
    write_markdown,
)
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.run_systems import Row, seed_folders
from keras_lstm_dssm.papers.table_data import TableData
from keras_lstm_dssm.plain_files import read_csv, read_json


class MeanAndSpread(NamedTuple):
    """Mean and standard deviation over seeds; `std` is 0 for one seed."""

    mean: float
    std: float

    @classmethod
    def over(cls, values: Sequence[float]) -> "MeanAndSpread":
        """Averages values; the deviation has n - 1 degrees of freedom."""
        std = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), std)

    @property
    def percent(self) -> "MeanAndSpread":
        """Both numbers times 100."""
        return MeanAndSpread(100 * self.mean, 100 * self.std)


class SystemResults:
    """Reads the results (`result.json`) of all seeds of a system."""

    def __init__(self, row: Row, folders: Sequence[Path]) -> None:
        self.row = row
        self.folders = folders
        self.seeds: list[dict[str, Any]] = [
            read_json(folder / "result.json") for folder in folders
        ]

    def value(
        self, mode: str, measure: str, rate: float = 0.0
    ) -> MeanAndSpread:
        """Averages a test measure over seeds, at a `rate` of misspellings."""
        tests = [
            seed["misspelled"][str(rate)] if rate else seed["test"]
            for seed in self.seeds
        ]
        return MeanAndSpread.over([test[mode][measure] for test in tests])

    def values(
        self, rate: float = 0.0
    ) -> dict[str, dict[str, dict[str, float]]]:
        """Returns mean and deviation (as a dict), by mode and by measure."""
        return {
            mode: {
                name: self.value(mode, name, rate)._asdict() for name in values
            }
            for mode, values in self.seeds[0]["test"].items()
        }

    @property
    def dev(self) -> float:
        """The dev measure, averaged over seeds."""
        values = [v for seed in self.seeds for v in seed["dev"].values()]
        return float(np.mean(values))

    def mean_of(self, key: str) -> float | None:
        """Averages an entry of `result.json`; `None` if a seed has no value."""
        values = [seed[key] for seed in self.seeds if seed.get(key) is not None]
        complete = len(values) == len(self.seeds)
        return float(np.mean(values)) if complete else None

    def queries(self, mode: str, measure: str) -> dict[str, float]:
        """Returns a test measure by query id, averaged over seeds."""
        by_query: dict[str, list[float]] = {}
        for folder in self.folders:
            for row in read_csv(folder / f"test.{mode}.queries.csv"):
                value = float(row[measure])
                by_query.setdefault(row["query"], []).append(value)
        return {query: float(np.mean(v)) for query, v in by_query.items()}

    def by_epoch(self, column: str) -> dict[int, MeanAndSpread]:
        """Averages a column of `history.csv` over seeds, by epoch."""
        histories = [read_csv(f / "history.csv") for f in self.folders]
        return {
            int(rows[0]["epoch"]): MeanAndSpread.over(
                [float(row[column]) for row in rows]
            )
            for rows in zip(*histories, strict=True)
            if rows[0][column]
        }


def read_results(
    output: Path, rows: Mapping[str, Row], seeds: int
) -> dict[str, SystemResults]:
    """Reads the finished results of systems, in the order of `rows`."""
    results = {}
    for name, row in rows.items():
        folders = seed_folders(output, name, row, seeds)
        folders = [folder for folder in folders if folder.exists()]
        if folders:
            results[name] = SystemResults(row, folders)
    return results


Summary = dict[str, Any]  # the content of `table.json`


def summarise(
    output: Path,
    data: TableData,
    results: Mapping[str, SystemResults],
    failed: Mapping[str, str],
    references: Sequence[str],
    # Measure -> mode; tested for significance in addition to `MAIN_MEASURES`.
    compared: Mapping[str, str],
) -> Summary:
    """Collects all results, and tests differences for significance."""
    references = [name for name in references if name in results]
    systems = {
        name: {
            "label": result.row.label,
            "kind": result.row.system.group,
            "paper": None,
            "parameters": result.seeds[0]["parameters"],
            "options": result.seeds[0]["options"],
            "seeds": len(result.seeds),
            "epochs": [seed["epoch"] for seed in result.seeds],
            "dev": result.dev,
            "train_seconds": result.mean_of("train_seconds"),
            "titles_per_second": result.mean_of("titles_per_second"),
            "pairs_per_second": result.mean_of("pairs_per_second"),
            "test": result.values(),
            "misspelled": {
                rate: result.values(float(rate))
                for rate in result.seeds[0]["misspelled"]
            },
            "significance": {},
            "recipe": None,
        }
        for name, result in results.items()
    }
    for name, result in results.items():
        row_system = result.row.system
        if isinstance(row_system, Neural) and not row_system.tuned:
            systems[name]["recipe"] = row_system.recipe.to_dict()
    keys = {mode: (mode, MAIN_MEASURES[mode]) for mode in data.tests}
    keys.pop(CLUSTER, None)  # clusters have no values by query to test
    keys |= {m: (mode, m) for m, mode in compared.items() if mode in data.tests}
    for key, (mode, measure) in keys.items():
        by_query = {n: r.queries(mode, measure) for n, r in results.items()}
        for name, tests in compare_systems(by_query, references).items():
            systems[name]["significance"][key] = tests
    settings = read_json(output / "settings.json")
    for name in ("data", "paragraphs", "salience", "teacher"):
        if settings[name]:  # `table.json` names no folders of this machine
            settings[name] = Path(settings[name]).name
    return {
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.platform()}, {os.cpu_count()} cores",
        "settings": settings,
        "dev_measure": data.dev_measure,
        "words": data.words(),
        "references": references,
        "random": {mode: task.random() for mode, task in data.tests.items()},
        "systems": systems,
        "failed": dict(failed),
    }


CHART_MEASURES = {
    "rerank": ("ndcg@10",),
    "retrieve": ("mrr@10",),
    "lists": ("p@1", "mrr"),
    CLUSTER: ("ari", "ami"),
}
"""For each mode, the measures in bar charts and in overviews of data sets."""

MODE_TITLES = {
    "rerank": "Judged documents of each query, reranked",
    "retrieve": "Documents retrieved from the whole corpus",
    "lists": "Judged lists",
    "cluster": "Clusters compared with classes",
}
"""For each mode, the heading of its table and of its chart."""

Results = Mapping[str, SystemResults]  # results of systems, by name


def _all_trained(results: Results) -> list[str]:
    return [n for n, r in results.items() if r.seeds[0]["epoch"] is not None]


class PaperTable(NamedTuple):
    """Declares the tables of one paper: rows, columns, notes and charts."""

    title: str
    rows: Mapping[str, Row]  # by name, in the paper's order
    # Returns the names of the systems that other systems are compared with.
    references: Callable[[Results], Sequence[str]]
    tables: Callable[[Summary], Sequence[Table]]  # empty tables are left out
    notes: str  # template file of the notes on the measurements
    # The key of a speed in `table.json`, and the heading of its column.
    speed: tuple[str, str] = ("titles_per_second", "Titles encoded/s")
    page: str = ""  # heading of the page, by default the title
    # Returns the names of the systems whose dev measure is drawn by epoch.
    curves: Callable[[Results], Sequence[str]] = _all_trained
    # Draws further pictures. Returns two dicts: caption -> path of a picture,
    # and failed task -> reason.
    pictures: Callable[
        [Path, TableData, Results], tuple[dict[str, Path], dict[str, str]]
    ] = lambda *_: ({}, {})
    # Measure -> mode; tested for significance in addition to `MAIN_MEASURES`.
    compared: Mapping[str, str] = {}
    # Adds entries to the content of `table.json`.
    further: Callable[[Summary, Results], None] = lambda *_: None


def measure_table(
    summary: Summary,
    title: str,
    mode: str,
    measures: Sequence[str],
    *,
    names: Sequence[str] | None = None,  # of the systems; `None`: all systems
    # Key in a system's `significance` -> heading of the columns of differences.
    differences: Mapping[str, str] | None = None,
    published: Sequence[str] = (),  # headings of published values
    published_of: Callable[[str], Sequence[str]] = lambda name: (),
    first: str = "System",
) -> Table:
    """Makes a table of measures with a row for each system."""
    systems = summary["systems"]
    against = [f"against {systems[r]['label']}" for r in summary["references"]]
    header = [first, *map(str.upper, measures)]
    for heading in (differences or {}).values():
        header += [f"{heading} {text}".strip() for text in against]
    rows = []
    for name in systems if names is None else names:
        row = [systems[name]["label"]]
        row += measure_cells(systems[name], mode, measures)
        for key in differences or {}:
            row += difference_cells(summary, systems[name], key)
        if published:
            row += published_of(name) or ["-"] * len(published)
        rows.append(row)
    return Table([*header, *published], rows, title)


def percent(value: Mapping[str, float], several: bool) -> str:
    """Formats a mean in percent; with `several` seeds, also the deviation."""
    spread = f" ± {100 * value['std']:.2f}" if several else ""
    return f"{100 * value['mean']:.2f}{spread}"


# For each group of systems, the colour and the hatch of its bars.
_KINDS = {
    "baseline": ("#bbbbbb", ""),
    "feed-forward": ("#e69f00", "//"),
    "recurrent": ("#0072b2", ""),
}


def curve(values: Mapping[int, MeanAndSpread]) -> Curve:
    """Returns a curve of means and deviations over the keys of `values`."""
    means, deviations = zip(*values.values(), strict=True)
    return Curve(list(values), means, deviations)


@contextmanager
def _bar_panels(
    path: Path, summary: Mapping[str, Any], titles: Sequence[str]
) -> Iterator[list[Any]]:
    """Yields an axis for each title; the bars of system i are at y = i."""
    labels = [system["label"] for system in summary["systems"].values()]
    size = (3.0 + 3.5 * len(titles), 1.6 + 0.3 * len(labels))
    with drawing(path, len(titles), figsize=size) as axes:
        yield axes
        for axis, title in zip(axes, titles, strict=True):
            axis.set_yticks(range(len(labels)), labels)
            axis.set_title(title, fontsize=10)
        axis.margins(y=0.01)
        axis.invert_yaxis()
        add_legend(axis, 3)


def bar_chart(path: Path, summary: Mapping[str, Any]) -> None:
    """Draws means and deviations. Bars begin at the value of a random order."""
    systems = list(summary["systems"].values())
    panels = [
        (mode, name)
        for mode in summary["random"]
        for name in CHART_MEASURES[mode]
    ]
    titles = [MODE_TITLES[mode] for mode, _ in panels]
    with _bar_panels(path, summary, titles) as axes:
        for axis, (mode, name) in zip(axes, panels, strict=True):
            chance = 100 * summary["random"][mode][name]
            for kind, (colour, hatch) in _KINDS.items():
                rows = [
                    i
                    for i, s in enumerate(systems)
                    if s["kind"] == kind and mode in s["test"]
                ]
                values = [systems[i]["test"][mode][name] for i in rows]
                spread = [100 * value["std"] for value in values]
                axis.barh(
                    rows,
                    [100 * value["mean"] - chance for value in values],
                    left=chance,
                    xerr=spread if any(spread) else None,
                    color=colour, hatch=hatch, edgecolor="#222222",
                    linewidth=0.6, capsize=2.5,
                    label=kind if rows else None,
                )  # fmt: skip
            axis.axvline(chance, color="#222222", linewidth=1)
            axis.set_xlabel(f"{name.upper()}, percent; bars begin at chance")
            axis.grid(axis="x", color="#dddddd")
            axis.set_axisbelow(True)


def draw_dev_curves(
    output: Path, results: Mapping[str, SystemResults], measure: str
) -> dict[str, Path]:
    """Writes the dev measure by epoch, averaged over seeds, as PNG and CSV."""
    rows, curves = [], {}
    for name, result in results.items():
        by_epoch = {e: v.percent for e, v in result.by_epoch("dev").items()}
        curves[result.row.label] = curve(by_epoch)
        rows += [
            {"system": name, "epoch": epoch, **value._asdict()}
            for epoch, value in by_epoch.items()
        ]
    if not rows:
        return {}
    write_csv(output / "dev.csv", rows)
    path = output / "dev.png"
    label = f"{measure.upper()} on dev, percent"
    curve_chart(path, curves, "epoch", label)
    return {"Value on dev by epoch": path}


ROBUSTNESS_CAPTION = "Loss when query words are misspelled"
ROBUSTNESS_NOTE = (
    "Each query word of three or more letters is misspelled with the"
    " probability in the table's header. Four edits are equally likely: a"
    " letter is left out, a key next to it (QWERTY) is hit in addition or"
    " instead, or two adjacent letters are exchanged. All systems get the same"
    " errors. The loss is relative to the value at 0 %."
)


def write_robustness(output: Path, summary: Mapping[str, Any]) -> list[Table]:
    """Writes losses by misspellings to `robustness.*`; returns the tables."""
    systems: dict[str, Any] = summary["systems"]
    first = next(iter(systems.values()))
    rates, modes = first["misspelled"], list(first["test"])
    if not rates:
        return []
    tables = [_robustness_table(summary, mode, list(rates)) for mode in modes]
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
    write_markdown(
        output / "robustness.md", [*tables, BulletList([ROBUSTNESS_NOTE])]
    )
    _draw_losses(output / "robustness.png", summary, losses)
    return tables


def _loss(system: dict[str, Any], mode: str, rate: str) -> float:
    name = MAIN_MEASURES[mode]
    whole = system["test"][mode][name]["mean"]
    misspelled = system["misspelled"][rate][mode][name]["mean"]
    return 100 * (1 - misspelled / whole) if whole else 0.0


def _robustness_table(
    summary: Mapping[str, Any], mode: str, rates: list[str]
) -> Table:
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
    return Table(header, rows, title)


def _draw_losses(
    path: Path,
    summary: Mapping[str, Any],
    losses: dict[str, dict[str, dict[str, float]]],
) -> None:
    titles = [MODE_TITLES[mode] for mode in losses]
    with _bar_panels(path, summary, titles) as axes:
        for axis, (mode, systems) in zip(axes, losses.items(), strict=True):
            rates = list(next(iter(systems.values())))
            height = 0.8 / len(rates)
            for number, rate in enumerate(rates):
                shift = (number - (len(rates) - 1) / 2) * height
                axis.barh(
                    [i + shift for i in range(len(systems))],
                    [loss[rate] for loss in systems.values()],
                    height, color=COLOURS[number], edgecolor="#222222",
                    linewidth=0.6, hatch=("", "//", "..")[number % 3],
                    label=f"{100 * float(rate):g} % of the words",
                )  # fmt: skip
            axis.set_xlabel(f"loss of {MAIN_MEASURES[mode].upper()}, percent")


_SIGNIFICANCE_LEVEL = 0.05


def write_table(
    output: Path,
    paper: PaperTable,
    summary: Summary,
    charts: Mapping[str, Path],
) -> None:
    """Writes `table.*`, `chart.png` and, for misspellings, `robustness.*`."""
    tables = [table for table in paper.tables(summary) if table.rows]
    tables.append(_choices_table(summary, *paper.speed))
    notes = render(
        paper.notes,
        summary=summary,
        settings=summary["settings"],
        words=summary["words"],
        main_measures=MAIN_MEASURES,
        level=_SIGNIFICANCE_LEVEL,
    ).splitlines()
    write_json(output / "table.json", summary)
    write_markdown(output / "table.md", [*tables, BulletList(notes)])
    bar_chart(output / "chart.png", summary)
    pictures = {"Every system and random order": output / "chart.png", **charts}
    if robustness := write_robustness(output, summary):
        pictures[ROBUSTNESS_CAPTION] = output / "robustness.png"
        notes.append(ROBUSTNESS_NOTE)
    title = f"{paper.page or paper.title} on {summary['settings']['data']}"
    _write_page(output, title, [*tables, *robustness], pictures, notes)


def _write_page(
    output: Path,
    title: str,
    tables: Sequence[Table],
    pictures: Mapping[str, Path],
    notes: Sequence[str],
) -> None:
    charts = [Picture(text, path, text) for text, path in pictures.items()]
    sections = [Section("Tables", tables), Section("Charts", charts)]
    sections = [section for section in sections if section.blocks]
    notes_section = Section("Notes", [BulletList(notes)])
    write_html(output / "table.html", title, [*sections, notes_section])


def measure_cells(
    system: Mapping[str, Any], mode: str, names: Sequence[str]
) -> list[str]:
    """Formats test measures of a system; "-" if the mode was not measured."""
    values = system["test"].get(mode)
    if values is None:
        return ["-"] * len(names)
    return [percent(values[name], system["seeds"] > 1) for name in names]


def difference_cells(
    summary: Summary, system: Mapping[str, Any], key: str
) -> list[str]:
    """Formats differences from the references; * marks significance."""
    cells = []
    for reference in summary["references"]:
        test = system["significance"][key].get(reference)
        if test is None:
            cells.append("-")
            continue
        star = " *" if test["p_holm"] < _SIGNIFICANCE_LEVEL else ""
        cells.append(f"{100 * test['difference']:+.2f}{star}")
    return cells


def _choices_table(summary: Summary, speed: str, heading: str) -> Table:
    rows = [
        [
            s["label"],
            f"{s['parameters']:,}",
            ", ".join(f"{k} {v}" for k, v in s["options"].items()) or "-",
            ", ".join(str(e) for e in s["epochs"] if e) or "-",
            f"{100 * s['dev']:.2f}",
            f"{s['train_seconds']:,.0f}",
            f"{s[speed]:,.0f}" if s[speed] else "-",
        ]
        for s in summary["systems"].values()
    ]
    header = [
        "System", "Parameters", "Chosen on dev", "Best epoch on dev",
        "Dev value", "Training, s", heading,
    ]  # fmt: skip
    return Table(header, rows, "Parameters, choices and speed")


def write_overview(
    output: Path, title: str, summaries: Mapping[str, Summary]
) -> dict[str, Summary]:
    """Writes `table.md`, `.json` and `.html` that compare several data sets."""
    tables = [_overview_table(mode, summaries) for mode in MODE_TITLES]
    tables = [table for table in tables if table.rows]
    notes = [
        f"{name}: {name}/table.md has all measures, significance and choices."
        for name in summaries
    ]
    write_json(output / "table.json", summaries)
    write_markdown(output / "table.md", [*tables, BulletList(notes)])
    _write_page(output, title, tables, {}, notes)
    return dict(summaries)


def _overview_table(mode: str, summaries: Mapping[str, Summary]) -> Table:
    with_mode = {n: s for n, s in summaries.items() if mode in s["random"]}
    names = CHART_MEASURES[mode]
    labels = {
        system: values["label"]
        for summary in with_mode.values()
        for system, values in summary["systems"].items()
    }
    header = ["System"]
    header += [f"{data} {name.upper()}" for data in with_mode for name in names]
    rows = []
    for system, label in labels.items():
        row = [label]
        for summary in with_mode.values():
            values = summary["systems"].get(system, {"test": {}})
            row += measure_cells(values, mode, names)
        rows.append(row)
    return Table(header, rows, MODE_TITLES[mode])
