"""card.json of a run: what its training and its evaluations record."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_lstm_dssm.cards.card_text import at, now
from keras_lstm_dssm.cards.data_facts import (
    data_facts,
    document_facts,
    text_facts,
)
from keras_lstm_dssm.cards.figures import CardTable, figure_tables
from keras_lstm_dssm.cards.run_card import (
    KEYVEC,
    kind_of,
    run_card,
    training_rows,
)
from keras_lstm_dssm.cards.spread import as_json, spread_of
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.evaluation.measures import QueryMeasures
from keras_lstm_dssm.files import read_json, write_json, write_text

CARD, FACTS = "CARD.md", "card.json"


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
    data = str(config["data"])
    texts = text_facts(log)
    if kind_of(config) == KEYVEC:
        texts = document_facts(
            data,
            config.get("max_bad_lines", 0),
            config["recipe"]["max_sentences"],
        )
    facts["training"] = {
        "started": started,
        "finished": now(),
        "data": data_facts(data),
        "texts": texts,
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
        measured: System -> query id -> measure -> value; for clusters, the
            seed of k-means in the place of a query. Where there is a system
            `"bm25"`, its paired differences to the first system are on the
            card.
        documents: Number of documents that were ranked or clustered.
    """
    folder = Path(folder)
    facts = read_facts(folder)
    model, *_ = measured
    entry: dict[str, Any] = {
        "date": now(),
        "data": data_facts(data),
        "clusterings" if name.endswith("/cluster") else "queries": len(
            measured[model]
        ),
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


def card_tables(folder: str | os.PathLike[str]) -> list[CardTable]:
    """Returns the tables of a run's card, `[]` for a run without one.

    Args:
        folder: The run folder.
    """
    facts = read_facts(folder)
    if "training" not in facts:
        return []
    rows = training_rows(read_config(folder), facts["training"])
    return [
        CardTable("Training", ["what", "value"], rows),
        *figure_tables(facts.get("evaluations", {})),
    ]


def read_config(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the content of a run's `config.json`, `{}` without the file."""
    return _read(Path(folder, "config.json"))


def read_facts(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the content of a folder's `card.json`, `{}` without the file."""
    return _read(Path(folder, FACTS))


def _read(path: Path) -> dict[str, Any]:
    return read_json(path) if path.exists() else {}


def write_card(folder: Path, facts: Mapping[str, Any], card: str) -> None:
    """Writes `card.json` and, made of it, `CARD.md`."""
    write_json(folder / FACTS, facts)
    write_text(folder / CARD, card)


def _write(folder: Path, facts: dict[str, Any]) -> None:
    name = folder.absolute().name
    write_card(folder, facts, run_card(name, read_config(folder), facts))
