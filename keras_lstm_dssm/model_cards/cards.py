"""CARD.md: what was trained, on which data, and how good the model is.

A card has YAML front matter, as the Hub reads it, and tables of metrics.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keras_lstm_dssm.settings.kinds import ModelKind, kind_of_values


def front_matter(values: Mapping[str, Any]) -> str:
    """Returns the YAML block at the start of a card."""
    return "---\n" + "".join(_yaml(values, 0)) + "---\n"


def _yaml(value: Any, depth: int) -> list[str]:
    """Returns lines of YAML; every scalar is written as in JSON."""
    margin = " " * depth
    lines = []
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if isinstance(inner, Mapping):
                lines += [f"{margin}{key}:\n", *_yaml(inner, depth + 2)]
            elif isinstance(inner, list):
                lines += [f"{margin}{key}:\n", *_yaml(inner, depth)]
            else:
                lines.append(f"{margin}{key}: {_scalar(inner)}\n")
        return lines
    for item in value:
        if isinstance(item, Mapping):
            first, *rest = _yaml(item, depth + 2)
            lines += [f"{margin}- {first.lstrip()}", *rest]
        else:
            lines.append(f"{margin}- {_scalar(item)}\n")
    return lines


def _scalar(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Returns a table in Markdown, without a line break at its end."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(
        f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)}"
        " |"
        for row in lines
    )


CARD_MEASURES = (
    "mrr@10", "ndcg@10", "recall@10", "recall@100", "p@1", "p@10", "map", "mrr",
    "f1", "v", "ari", "ami",
)  # fmt: skip
"""Measures on the card, those that an evaluation has; `card.json` has all."""

_TASKS = {"retrieve": "text-retrieval", "cluster": "clustering"}
"""What follows the split in an evaluation's name, such as "test/cluster" -> the
name of the task on the Hugging Face Hub; that of all others is text-ranking."""


class CardTable(NamedTuple):
    """A table of a card; its title is in Markdown."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]


def metric_tables(evaluations: Mapping[str, Any]) -> list[CardTable]:
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
        tables.append(CardTable(_title(name, entry), ["", *measures], rows))
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


def metrics_text(evaluations: Mapping[str, Any]) -> str:
    """Returns the tables of all evaluations in Markdown."""
    parts = [
        f"{found.title}\n\n{table(found.head, found.rows)}"
        for found in metric_tables(evaluations)
    ]
    if not parts:
        return "Not evaluated yet: `lstm-dssm-evaluate --run=RUN --data=...`"
    return "\n\n".join(parts)


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

_LIMITS = {
    "titles": """\
* The model repeats what its examples show, with the position bias of clicks.
* The intervals are over queries. Another seed changes the figures, too.""",
    "documents": """\
* The model repeats what its teacher of key sentences chooses, with its errors.
* The intervals are over queries or runs of k-means. Another seed of the
  training changes the figures, too.""",
}
"""What models read -> limits of all models that read it."""


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
    sections = [
        f"# {name}",
        f"A {_noun(config)}, trained by keras_lstm_dssm.",
        "",
    ]
    sections += sections_of(config, facts)
    return front_matter(head) + "\n".join(sections) + "\n"


def sections_of(
    config: Mapping[str, Any], facts: Mapping[str, Any], level: int = 2
) -> list[str]:
    """Returns the sections of a card, in lines of Markdown."""
    mark = "#" * level
    training = facts.get("training", {})
    return [
        f"{mark} Training\n",
        table(["what", "value"], training_rows(config, training)),
        f"\n{mark} Figures\n",
        metrics_text(facts.get("evaluations", {})),
        f"\n{mark} Limits\n",
        *_text_limits(config, training.get("texts", {})),
        _LIMITS[kind_of_run(config).reads],
        f"\n{mark} Recipe\n",
        table(["name", "value"], _recipe_rows(config)),
    ]


def kind_of_run(config: Mapping[str, Any]) -> ModelKind:
    """Returns the kind of model that a run trains, from its `config.json`."""
    return kind_of_values(config.get("recipe", {}))


def _noun(config: Mapping[str, Any]) -> str:
    return kind_of_run(config).noun if config.get("recipe") else "model"


def training_rows(
    config: Mapping[str, Any], training: Mapping[str, Any]
) -> list[list[Any]]:
    """Returns the rows of the table of a training: what, and its value."""
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
    return [row for row in rows if row[1] is not None]


def teacher_text(facts: Mapping[str, Any]) -> str | None:
    """Returns a sentence encoder's name and licence, for a card.

    `facts` are those of a training or of an export; `None` if no model learnt
    from the vectors of a pretrained encoder.
    """
    if "teacher" not in facts:
        return None
    encoder, licence = (facts["teacher"][key] for key in ("encoder", "licence"))
    return f"`{encoder}` (licence: {licence or 'not known, ask its authors'})"


_LENGTHS = (
    ("query_words", "queries", "words"),
    ("title_words", "titles", "words"),
    ("sentences", "documents", "sentences"),
    ("sentence_words", "sentences", "words"),
)
"""The lengths on a card, such as the words of a title: the name in `card.json`,
the texts, and the parts that are counted in them."""


def _script_limit(texts: Mapping[str, Any]) -> str:
    read = (
        f"{texts['sample']:,} clicks"
        if "sample" in texts
        else (f"{texts['documents']:,} documents")
    )
    shares = ", ".join(
        f"{name.capitalize()} {100 * share:.1f} %"
        for name, share in list(texts["scripts"].items())[:5]
    )
    return (
        f"* Scripts of the letters in the first {read}: {shares or 'none'}. "
        "Others were not trained on."
    )


def _text_limits(
    config: Mapping[str, Any], texts: Mapping[str, Any]
) -> list[str]:
    lines = []
    recipe = config.get("recipe", {})
    arguments = {**recipe, **(recipe.get("encoder_config") or {})}
    if texts:
        lines.append(_script_limit(texts))
    for key, noun, parts in _LENGTHS:
        if key in texts:
            median, high = texts[key]
            lines.append(
                f"* Half of the {noun} have at most {median} {parts}, 99 % at "
                f"most {high}: longer ones are unlike what was trained on."
            )
    if not recipe:  # a folder with a model and without config.json
        return lines
    if arguments.get("words", "trigrams") == "trigrams":
        if not arguments.get("oov_buckets"):
            lines.append(
                "* Letters other than a to z and digits are read as one "
                "(no `oov_buckets`): words of other scripts differ by their "
                "lengths only."
            )
    else:
        lines.append("* Words that no training text has are all read as one.")
    most = arguments.get("max_words", 128)
    if "max_sentences" in recipe:
        lines.append(
            f"* At most {recipe['max_sentences']} sentences of a document and "
            f"{most} words of a sentence are read."
        )
    elif most is not None:
        lines.append(f"* At most {most} words of a text are read.")
    return lines


def _recipe_rows(config: Mapping[str, Any]) -> list[list[Any]]:
    values: dict[str, Any] = dict(config.get("recipe", {}))
    nested = [v for v in values.values() if isinstance(v, Mapping)]
    for inner in nested:
        values |= inner
    return [
        [name, f"`{value}`"]
        for name, value in values.items()
        if isinstance(value, _SCALAR)
    ]


def models_card(facts: Mapping[str, Any]) -> str:
    """Returns the card of a folder of models."""
    head = {
        "library_name": "tensorflow",
        "tags": ["tf-serving", "keras-lstm-dssm", "search"],
    }
    lines = ["# Models for search", ""]
    lines += [
        "`README.md` says how to serve these models; this card says what "
        "they were trained on, and how good they are.",
        "",
        table(
            ["model", "version", "exported", "documents", "from the run"],
            [
                [
                    f"`{name}`",
                    version,
                    entry["date"][:10],
                    _documents(name, entry["documents"]),
                    entry["run"]["name"] if entry["run"] else "",
                ]
                for entry in facts["exports"]
                for name, version in entry["models"].items()
            ],
        ),
    ]
    for entry in facts["exports"]:
        if teacher := teacher_text(entry):
            names = ", ".join(f"`{name}`" for name in entry["models"])
            lines += ["", f"Vectors of words or titles in {names}: {teacher}."]
        if run := entry["run"]:
            lines += ["", f"## {run['name']}: {_noun(run['config'])}", ""]
            lines += sections_of(run["config"], run["facts"], level=3)
    return front_matter(head) + "\n".join(lines) + "\n"


def _documents(name: str, number: int | None) -> str:
    if name == "retriever" and number is not None:
        return f"{number:,}"
    return ""
