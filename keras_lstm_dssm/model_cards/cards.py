"""CARD.md: what was trained, on which data, and how good the model is.

A card has YAML front matter, as the Hub reads it, and tables of metrics. Its
sentences are in `templates/card.jinja`.
"""

from collections.abc import Mapping
from typing import Any

from keras_lstm_dssm.pages import Table, render
from keras_lstm_dssm.settings.kinds import ModelKind, kind_of_values

CARD_MEASURES = (
    "mrr@10", "ndcg@10", "recall@10", "recall@100", "p@1", "p@10", "map", "mrr",
    "f1", "v", "ari", "ami",
)  # fmt: skip
"""Measures on the card, those that an evaluation has; `card.json` has all."""

_TASKS = {"retrieve": "text-retrieval", "cluster": "clustering"}
"""What follows the split in an evaluation's name, such as "test/cluster" -> the
name of the task on the Hugging Face Hub; that of all others is text-ranking."""


def metric_tables(evaluations: Mapping[str, Any]) -> list[Table]:
    """Returns a table for each evaluation: percent, with 95 % intervals."""
    tables = []
    for name, entry in evaluations.items():
        first = next(iter(entry["systems"].values()))
        measures = [measure for measure in CARD_MEASURES if measure in first]
        rows = [
            [system, *(_percent(of_system[m]) for m in measures)]
            for system, of_system in entry["systems"].items()
        ]
        if "above_bm25" in entry:
            above = entry["above_bm25"]
            rows.append(
                ["difference to bm25", *(_percent(above[m]) for m in measures)]
            )
        tables.append(Table(["", *measures], rows, _title(name, entry)))
    return tables


def _title(name: str, entry: Mapping[str, Any]) -> str:
    measured = f"{entry['documents']:,} documents, {entry['date'][:10]}"
    if "clusterings" in entry:  # their spread says nothing of other documents
        over = f"the {entry['clusterings']} runs of k-means"
    else:
        measured = f"{entry['queries']:,} queries, {measured}"
        over = "queries"
    return (
        f"`{name}` of `{entry['data']['spec']}`: {measured}; percent, with "
        f"95 % intervals over {over}"
    )


def hub_result(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an entry of the front matter's `model-index`."""
    split, _, mode = name.partition("/")
    (_, values), *_ = entry["systems"].items()
    return {
        "task": {"type": _TASKS.get(mode, "text-ranking")},
        "dataset": {
            "name": entry["data"]["spec"],
            "type": entry["data"]["spec"],
            "split": split,
        },
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
    if half_width == 0:
        return f"{100 * mean:.1f}"
    return f"{100 * mean:.1f} ± {100 * half_width:.1f}"


_SCALAR = (str, int, float, bool)


def run_card(
    name: str, config: Mapping[str, Any], facts: Mapping[str, Any]
) -> str:
    """Returns the card of a run."""
    evaluations = facts.get("evaluations", {})
    head: dict[str, Any] = {
        "library_name": "keras",
        "pipeline_tag": kind_of_run(config).pipeline_tag,
        "tags": ["keras", "keras-lstm-dssm", "tensorflow", "search"],
    }
    if evaluations:
        head["model-index"] = [
            {
                "name": name,
                "results": [
                    hub_result(key, entry) for key, entry in evaluations.items()
                ],
            }
        ]
    card = _contents(config, facts)
    return render("run_card.md.jinja", head=head, name=name, card=card)


def _contents(
    config: Mapping[str, Any], facts: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns what `templates/card.jinja` shows of a run."""
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
    """Returns the table of a training: what, and its value."""
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
    """Returns a sentence encoder's name and licence, for a card.

    `facts` are those of a training or of an export; `None` if no model learnt
    from the vectors of a pretrained encoder.
    """
    if "teacher" not in facts:
        return None
    encoder, licence = (facts["teacher"][key] for key in ("encoder", "licence"))
    return f"`{encoder}` (licence: {licence or 'not known, ask its authors'})"


def _settings_table(recipe: Mapping[str, Any]) -> Table:
    values: dict[str, Any] = dict(recipe)
    for inner in recipe.values():
        if isinstance(inner, Mapping):
            values |= inner
    rows = [
        [name, f"`{value}`"]
        for name, value in values.items()
        if isinstance(value, _SCALAR)
    ]
    return Table(["name", "value"], rows, "", [1])


def models_card(facts: Mapping[str, Any]) -> str:
    """Returns the card of a folder of models."""
    rows = [
        [
            f"`{name}`",
            version,
            entry["date"][:10],
            _documents(name, entry["documents"]),
            entry["run"]["name"] if entry["run"] else "",
        ]
        for entry in facts["exports"]
        for name, version in entry["models"].items()
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


def _documents(name: str, number: int | None) -> str:
    if name == "retriever" and number is not None:
        return f"{number:,}"
    return ""
