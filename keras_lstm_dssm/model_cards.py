"""Writes `CARD.md`, the description of a run or of exported models."""

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from jinja2 import UndefinedError

from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.statistics import (
    data_statistics,
    document_statistics,
    text_statistics,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.measures import QueryMeasures
from keras_lstm_dssm.evaluation.significance import spread_of
from keras_lstm_dssm.files import write_json, write_text
from keras_lstm_dssm.pages import Table, render
from keras_lstm_dssm.plain_files import (
    check_plain_file,
    damage_named,
    read_json,
)
from keras_lstm_dssm.settings.kinds import ModelKind, kind_of_values

CARD_MEASURES = (
    "mrr@10", "ndcg@10", "recall@10", "recall@100", "p@1", "p@10", "map", "mrr",
    "f1", "v", "ari", "ami",
)  # fmt: skip
"""Measures that a card shows; `card.json` has all measures."""

_TASKS = {"retrieve": "text-retrieval", "cluster": "clustering"}
"""Evaluation mode -> task on the Hugging Face Hub; default: text-ranking."""


def metric_tables(evaluations: Mapping[str, Any]) -> list[Table]:
    """Returns a table of percentages and 95 % intervals for each evaluation."""
    tables = []
    for name, entry in evaluations.items():
        first = next(iter(entry["systems"].values()))
        measures = [measure for measure in CARD_MEASURES if measure in first]
        rows = [
            [system, *(_percent(values[measure]) for measure in measures)]
            for system, values in entry["systems"].items()
        ]
        if above := entry.get("above_bm25"):
            cells = [_percent(above[measure]) for measure in measures]
            rows.append(["difference to bm25", *cells])
        tables.append(Table(["", *measures], rows, _title(name, entry)))
    return tables


def _title(name: str, entry: Mapping[str, Any]) -> str:
    measured = f"{entry['documents']:,} documents, {entry['date'][:10]}"
    if "clusterings" in entry:
        over = f"the {entry['clusterings']} runs of k-means"
    else:
        measured = f"{entry['queries']:,} queries, {measured}"
        over = "queries"
    return (
        f"`{name}` of `{entry['data']['spec']}`: {measured}; percent, with "
        f"95 % intervals over {over}"
    )


def hub_result(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an evaluation's entry in `model-index` of a Hugging Face card."""
    split, _, mode = name.partition("/")
    values, *_ = entry["systems"].values()
    data = entry["data"]["spec"]
    return {
        "task": {"type": _TASKS.get(mode, "text-ranking")},
        "dataset": {"name": data, "type": data, "split": split},
        "metrics": [
            {
                "type": measure.replace("@", "_at_"),
                "name": measure,
                "value": values[measure][0],
            }
            for measure in CARD_MEASURES
            if measure in values
        ],
    }


def _percent(spread: list[float]) -> str:
    mean, half_width = spread
    interval = f" ± {100 * half_width:.1f}" if half_width else ""
    return f"{100 * mean:.1f}{interval}"


def run_card(
    name: str, config: Mapping[str, Any], facts: Mapping[str, Any]
) -> str:
    """Returns a run's card in Markdown, from `config.json` and `card.json`."""
    evaluations = facts.get("evaluations", {})
    head: dict[str, Any] = {
        "library_name": "keras",
        "pipeline_tag": kind_of_run(config).pipeline_tag,
        "tags": ["keras", "keras-lstm-dssm", "tensorflow", "search"],
    }
    if evaluations:
        results = [hub_result(key, value) for key, value in evaluations.items()]
        head["model-index"] = [{"name": name, "results": results}]
    card = _contents(config, facts)
    return render("run_card.md.jinja", head=head, name=name, card=card)


def _contents(
    config: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the values for `templates/card.jinja`."""
    training = facts.get("training", {})
    recipe = config.get("recipe", {})
    return {
        "noun": kind_of_run(config).noun if recipe else "model",
        "reads": kind_of_run(config).reads,
        "training": training_table(config, training),
        "metrics": metric_tables(facts.get("evaluations", {})),
        "texts": training.get("texts", {}),
        "recipe": {**recipe, **(recipe.get("encoder_config") or {})},
        "settings": _settings_table(recipe),
    }


def kind_of_run(config: Mapping[str, Any]) -> ModelKind:
    """Returns the kind of model that a run trains, from its `config.json`."""
    return kind_of_values(config.get("recipe", {}))


def training_table(
    config: Mapping[str, Any], training: Mapping[str, Any]
) -> Table:
    """Returns the table of facts about a training."""
    data = training.get("data", {})
    rows: list[list[Any]] = [
        ["version", config.get("version")],
        ["started", training.get("started")],
        ["finished", training.get("finished")],
        ["data", f"`{data.get('spec', config.get('data'))}`"],
        ["SHA-256 of the data", f"`{data['sha256']}`" if "sha256" in data
         else "the files could not be read"],
        ["files, bytes", f"{data['files']:,}, {data['bytes']:,}"
         if "files" in data else None],
        ["training examples", f"{config['pairs']:,}"
         if "pairs" in config else None],
        ["bad lines left out", config.get("bad_lines")],
        ["seed", config.get("seed")],
        ["taught by", teacher_text(training)],
        ["best epoch chosen on", config.get("dev") and
         f"`{config['dev']}`, {config.get('select')}"],
        ["continued from", (config.get("init") or {}).get("path")],
    ]  # fmt: skip
    rows = [row for row in rows if row[1] is not None]
    return Table(["what", "value"], rows, "Training", [1])


def teacher_text(facts: Mapping[str, Any]) -> str | None:
    """Describes the teacher in the facts of a training or an export."""
    if "teacher" not in facts:
        return None
    encoder, licence = (facts["teacher"][key] for key in ("encoder", "licence"))
    return f"`{encoder}` (licence: {licence or 'not known, ask its authors'})"


def _settings_table(recipe: Mapping[str, Any]) -> Table:
    values: dict[str, Any] = dict(recipe)
    for arguments in recipe.values():
        if isinstance(arguments, Mapping):
            values |= arguments
    rows = [
        [name, f"`{value}`"]
        for name, value in values.items()
        if isinstance(value, str | int | float)
    ]
    return Table(["name", "value"], rows, "", [1])


def models_card(facts: Mapping[str, Any]) -> str:
    """Returns the card of a folder of exported models."""
    rows = [
        [
            f"`{name}`",
            version,
            entry["date"][:10],
            f"{count:,}" if name == "retriever" and count is not None else "",
            entry["run"]["name"] if entry["run"] else "",
        ]
        for entry in facts["exports"]
        for name, version in entry["models"].items()
        for count in (entry["documents"],)
    ]
    exports = [
        {
            "models": list(entry["models"]),
            "teacher": teacher_text(entry),
            "run": run and run["name"],
            "card": run and _contents(run["config"], run["facts"]),
        }
        for entry in facts["exports"]
        for run in (entry["run"],)
    ]
    header = ["model", "version", "exported", "documents", "from the run"]
    return render(
        "models_card.md.jinja",
        models=Table(header, rows, "", [2, 4]),
        exports=exports,
    )


CARD, FACTS = "CARD.md", "card.json"

_DAMAGED = (
    "expected the record of a training or export: restore it, or remove it"
)


def iso_time(seconds: float) -> str:
    """Returns a time in seconds since 1970 as an ISO date and time, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def record_training(
    folder: str | os.PathLike[str], log: ClickLog | None = None
) -> None:
    """Writes the card of a trained run; `log` is its click log, if any."""
    folder = Path(folder)
    config = read_config(folder)
    facts = read_facts(folder)
    started = facts.get("training", {}).get("started")
    started = started or iso_time((folder / "config.json").stat().st_mtime)
    data = str(config["data"])
    texts = text_statistics(log)
    if kind_of_run(config).reads == "documents":
        texts = document_statistics(
            data,
            config.get("max_bad_lines", 0),
            config["recipe"].get("max_sentences"),
        )
    facts["training"] = {
        **teacher_facts(config.get("teacher")),
        "started": started,
        "finished": iso_time(time.time()),
        "data": data_statistics(data),
        "texts": texts,
    }
    _write_run(folder, facts)


def teacher_facts(folder: str | None) -> dict[str, Any]:
    """Returns name and licence of a teacher, `{}` if they cannot be read."""
    if folder is None:
        return {}
    try:
        settings = read_json(Path(folder, "teacher.json"))
    except (InputError, OSError):
        return {}
    name = os.path.basename(str(settings.get("encoder")))
    licence = settings.get("licence")
    licence = licence if isinstance(licence, str) else None
    return {"teacher": {"encoder": name, "licence": licence}}


def record_evaluation(
    folder: str | os.PathLike[str],
    name: str,  # split and mode, such as "test/retrieve"
    data: str,
    measured: Mapping[str, QueryMeasures],  # by system; the first is the model
    documents: int,
) -> None:
    """Adds or replaces the evaluation `name` in a run's card."""
    folder = Path(folder)
    facts = read_facts(folder)
    model, *_ = measured
    entry: dict[str, Any] = {
        "date": iso_time(time.time()),
        "data": data_statistics(data),
        "clusterings" if name.endswith("/cluster") else "queries": len(
            measured[model]
        ),
        "documents": documents,
        "systems": {
            system: spread_of(values) for system, values in measured.items()
        },
    }
    if "bm25" in measured and model != "bm25":
        entry["above_bm25"] = spread_of(measured[model], measured["bm25"])
    facts.setdefault("evaluations", {})[name] = entry
    _write_run(folder, facts)


def card_tables(folder: str | os.PathLike[str]) -> list[Table]:
    """Returns the tables of a run's card; `[]` if no training is recorded."""
    config = read_config(folder)
    with _reading_facts(folder) as facts:
        if "training" not in facts:
            return []
        return [
            training_table(config, facts["training"]),
            *metric_tables(facts.get("evaluations", {})),
        ]


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the content of a run's `config.json`, `{}` without the file."""
    return _read(Path(folder, "config.json"))


def read_facts(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the content of a folder's `card.json`, `{}` without the file."""
    return _read(Path(folder, FACTS))


def export_facts(
    folder: str | os.PathLike[str], model: str, version: int
) -> dict[str, Any]:
    """Returns date, documents and run of an export; `{}` without an entry."""
    with _reading_facts(folder) as facts:
        for entry in facts.get("exports", []):
            if entry["models"].get(model) == version:
                return {
                    "date": entry["date"][:10],
                    "documents": entry["documents"],
                    "run": entry["run"] and entry["run"]["name"],
                }
    return {}


@contextmanager
def _reading_facts(folder: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yields the content of `card.json`; damage raises `InputError`."""
    facts = read_facts(folder)
    with damage_named(Path(folder, FACTS), _DAMAGED, UndefinedError):
        yield facts


def _read(path: Path) -> dict[str, Any]:
    check_plain_file(path)
    return read_json(path) if path.exists() else {}


def _write(folder: Path, facts: Mapping[str, Any], card: str) -> None:
    # `check_plain_file` refuses links to files outside `folder`.
    for name in (FACTS, CARD):
        check_plain_file(folder / name)
    write_json(folder / FACTS, facts)
    write_text(folder / CARD, card)


def _write_run(folder: Path, facts: dict[str, Any]) -> None:
    name = folder.absolute().name
    config = read_config(folder)
    with damage_named(folder / FACTS, _DAMAGED, UndefinedError):
        card = run_card(name, config, facts)
    _write(folder, facts, card)


def write_models_card(
    folder: str | os.PathLike[str],
    exported: Mapping[str, int],  # name of a model -> its new version
    run: str | os.PathLike[str] | None,
    documents: int | None = None,
    teacher: str | None = None,  # folder that lstm-dssm-teach wrote
) -> None:
    """Adds an export to a folder's card; replaces the models' old entries."""
    exports: list[dict[str, Any]] = []
    with _reading_facts(folder) as earlier:
        for entry in earlier.get("exports", []):
            models = {
                name: version
                for name, version in entry["models"].items()
                if name not in exported
            }
            if models:
                exports.append({**entry, "models": models})
        exports.append(
            {
                "documents": documents,
                "run": run_record(run),
                **teacher_facts(teacher),
                "date": iso_time(time.time()),
                "models": dict(exported),
            }
        )
        facts = {"exports": exports}
        card = models_card(facts)
    _write(Path(folder), facts, card)


def run_record(run: str | os.PathLike[str] | None) -> dict[str, Any] | None:
    """Returns the name, `config.json` and `card.json` of `run`, or `None`."""
    if run is None:
        return None
    return {
        "name": Path(run).absolute().name,
        "config": read_config(run),
        "facts": read_facts(run),
    }
