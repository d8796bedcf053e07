"""CARD.md of a run: what was trained, on which data, how good it is."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.cards.card_text import at, front_matter, now, table
from keras_lstm_dssm.cards.data_facts import data_facts, text_facts
from keras_lstm_dssm.cards.spread import as_json, spread_of
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.evaluation.measures import QueryMeasures
from keras_lstm_dssm.files import read_json, write_json, write_text

CARD, FACTS = "CARD.md", "card.json"

_SHOWN = ("mrr@10", "ndcg@10", "recall@10", "recall@100", "p@1", "map", "mrr")
"""Measures on the card, those that an evaluation has; `card.json` has all."""

_SCALAR = (str, int, float, bool)

_LIMITS = """\
* The model repeats what its examples show, with the position bias of clicks.
* The intervals are over queries. Another seed changes the figures, too."""


class CardTable(NamedTuple):
    """A table of a card.

    Attributes:
        title: What it shows, in Markdown.
        head: Names of the columns.
        rows: The cells.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Any]]


def record_training(
    folder: str | os.PathLike[str], log: ClickLog | None = None
) -> None:
    """Writes the card of a run that has been trained.

    Args:
        folder: The run folder, complete.
        log: The clicks, whose scripts and lengths the card has.
    """
    folder = Path(folder)
    config = read_config(folder)
    facts = read_facts(folder)
    started = facts.get("training", {}).get("started")
    if "ranker" not in config:  # whose config.json is written at the end
        started = started or at((folder / "config.json").stat().st_mtime)
    facts["training"] = {
        "started": started,
        "finished": now(),
        "data": data_facts(str(config["data"])),
        "texts": text_facts(log),
    }
    _write(folder, facts)


def record_evaluation(
    folder: str | os.PathLike[str],
    name: str,
    data: str,
    measured: Mapping[str, QueryMeasures],
    documents: int,
) -> None:
    """Adds an evaluation to the card of a run.

    Args:
        folder: The run folder.
        name: Split and mode, such as `"test/retrieve"`, of which the card
            has the last evaluation only.
        data: Specification of the data.
        measured: System -> query id -> measure -> value. Where there is a
            system `"bm25"`, its paired differences to the first system are
            on the card.
        documents: Number of documents that were ranked.
    """
    folder = Path(folder)
    facts = read_facts(folder)
    model, *_ = measured
    entry: dict[str, Any] = {
        "date": now(),
        "data": data_facts(data),
        "queries": len(measured[model]),
        "documents": documents,
        "systems": {
            system: as_json(spread_of(values))
            for system, values in measured.items()
        },
    }
    if "bm25" in measured and model != "bm25":
        entry["above_bm25"] = as_json(
            spread_of(measured[model], measured["bm25"])
        )
    facts.setdefault("evaluations", {})[name] = entry
    _write(folder, facts)


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the content of a run's `config.json`, `{}` without the file."""
    path = Path(folder, "config.json")
    return read_json(path) if path.exists() else {}


def read_facts(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the content of a run's `card.json`, `{}` without the file."""
    path = Path(folder, FACTS)
    return read_json(path) if path.exists() else {}


def _write(folder: Path, facts: dict[str, Any]) -> None:
    write_json(folder / FACTS, facts)
    name = folder.absolute().name
    write_text(folder / CARD, run_card(name, read_config(folder), facts))


def run_card(
    name: str, config: Mapping[str, Any], facts: Mapping[str, Any]
) -> str:
    """Returns the card of a run.

    Args:
        name: The run's name.
        config: Content of `config.json`.
        facts: Content of `card.json`.
    """
    kind = kind_of(config)
    evaluations = facts.get("evaluations", {})
    head: dict[str, Any] = {
        "library_name": "keras",
        "pipeline_tag": (
            "text-ranking"
            if kind in ("pair scorer", "ranker")
            else "sentence-similarity"
        ),
        "tags": ["keras", "keras-lstm-dssm", "tensorflow", "search"],
    }
    if evaluations:
        head["model-index"] = [
            {
                "name": name,
                "results": [
                    _result(key, entry) for key, entry in evaluations.items()
                ],
            }
        ]
    sections = [f"# {name}", f"A {kind}, trained by keras_lstm_dssm.", ""]
    sections += sections_of(config, facts)
    return front_matter(head) + "\n".join(sections) + "\n"


def sections_of(
    config: Mapping[str, Any], facts: Mapping[str, Any], level: int = 2
) -> list[str]:
    """Returns the sections of a card, in lines of Markdown.

    Args:
        config: Content of `config.json`.
        facts: Content of `card.json`.
        level: Level of the headings. Default 2.
    """
    mark = "#" * level
    training = facts.get("training", {})
    return [
        f"{mark} Training\n",
        table(["what", "value"], _training_rows(config, training)),
        f"\n{mark} Figures\n",
        _figures(facts.get("evaluations", {})),
        f"\n{mark} Limits\n",
        *_text_limits(config, training.get("texts", {})),
        _LIMITS,
        f"\n{mark} Recipe\n",
        table(["name", "value"], _recipe_rows(config)),
    ]


def kind_of(config: Mapping[str, Any]) -> str:
    """Returns what a run has trained, from its `config.json`."""
    if "ranker" in config:
        return "ranker"
    recipe = config.get("recipe", {})
    if not recipe:
        return "model"
    if "matcher" in recipe:
        return "pair scorer"
    if "encoder" in recipe:
        return "pair of encoders"
    return "KeyVec"


def _training_rows(
    config: Mapping[str, Any], training: Mapping[str, Any]
) -> list[list[Any]]:
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
        ["best epoch chosen on", config.get("dev") and
         f"`{config['dev']}`, {config.get('select')}"],
        ["continued from", (config.get("init") or {}).get("path")],
    ]  # fmt: skip
    return [row for row in rows if row[1] is not None]


def _figures(evaluations: Mapping[str, Any]) -> str:
    """Returns the tables of all evaluations in Markdown."""
    parts = [
        f"{found.title}\n\n{table(found.head, found.rows)}"
        for found in figure_tables(evaluations)
    ]
    if not parts:
        return "Not evaluated yet: `lstm-dssm-evaluate --run=RUN --data=...`"
    return "\n\n".join(parts)


def figure_tables(evaluations: Mapping[str, Any]) -> list[CardTable]:
    """Returns a table for each evaluation: percent, with 95 % intervals."""
    found = []
    for name, entry in evaluations.items():
        first = next(iter(entry["systems"].values()))
        measures = [measure for measure in _SHOWN if measure in first]
        rows = [
            [system, *(_percent(of_system[m]) for m in measures)]
            for system, of_system in entry["systems"].items()
        ]
        if "above_bm25" in entry:
            above = entry["above_bm25"]
            rows.append(
                ["difference to bm25", *(_percent(above[m]) for m in measures)]
            )
        title = (
            f"`{name}` of `{entry['data']['spec']}`: {entry['queries']:,} "
            f"queries, {entry['documents']:,} documents, {entry['date'][:10]}; "
            "percent, with 95 % intervals over queries"
        )
        found.append(CardTable(title, ["", *measures], rows))
    return found


def card_tables(folder: str | os.PathLike[str]) -> list[CardTable]:
    """Returns the tables of a run's card, `[]` for a run without one.

    Args:
        folder: The run folder.
    """
    facts = read_facts(folder)
    if "training" not in facts:
        return []
    rows = _training_rows(read_config(folder), facts["training"])
    return [
        CardTable("Training", ["what", "value"], rows),
        *figure_tables(facts.get("evaluations", {})),
    ]


def _percent(spread: list[float]) -> str:
    mean, half_width = spread
    if half_width == 0:
        return f"{100 * mean:.1f}"
    return f"{100 * mean:.1f} ± {100 * half_width:.1f}"


def _text_limits(
    config: Mapping[str, Any], texts: Mapping[str, Any]
) -> list[str]:
    lines = []
    recipe = config.get("recipe", {})
    arguments = {**recipe, **(recipe.get("encoder_config") or {})}
    if texts:
        shares = ", ".join(
            f"{name.capitalize()} {100 * share:.1f} %"
            for name, share in list(texts["scripts"].items())[:5]
        )
        lines.append(
            f"* Scripts of the letters in the first {texts['sample']:,} "
            f"clicks: {shares or 'none'}. Others were not trained on."
        )
        for side in ("query", "title"):
            median, high = texts[f"{side}_words"]
            noun = {"query": "queries", "title": "titles"}[side]
            lines.append(
                f"* Half of the {noun} have at most {median} words, 99 % at "
                f"most {high}: longer ones are unlike what was trained on."
            )
    if not recipe:  # a ranker: its features are limited as their models are
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
    most = arguments.get("max_words") or 128
    if "max_sentences" in recipe:
        lines.append(
            f"* At most {recipe['max_sentences']} sentences of a document and "
            f"{most} words of a sentence are read."
        )
    else:
        lines.append(f"* At most {most} words of a text are read.")
    return lines


def _recipe_rows(config: Mapping[str, Any]) -> list[list[Any]]:
    values: dict[str, Any] = dict(config.get("recipe", {}))
    values |= config.get("ranker", {}).get("options", {})
    nested = [v for v in values.values() if isinstance(v, Mapping)]
    for inner in nested:
        values |= inner
    return [
        [name, f"`{value}`"]
        for name, value in values.items()
        if isinstance(value, _SCALAR)
    ]


def _result(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an entry of the front matter's `model-index`."""
    split, _, mode = name.partition("/")
    (_, values), *_ = entry["systems"].items()
    retrieves = mode == "retrieve"
    return {
        "task": {"type": "text-retrieval" if retrieves else "text-ranking"},
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
            for measure in _SHOWN
            if measure in values
        ],
    }
