"""CARD.md of exported models: which run each of them comes from."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.cards.card_text import front_matter, now, table
from keras_lstm_dssm.cards.run_card import kind_of, sections_of
from keras_lstm_dssm.cards.run_record import (
    read_config,
    read_facts,
    write_card,
)


def write_models_card(
    folder: str | os.PathLike[str],
    exported: Mapping[str, int],
    runs: Sequence[str | os.PathLike[str]],
    documents: int | None = None,
) -> None:
    """Writes the card of exported models, after an export.

    What earlier exports have written of models that this one does not replace
    stays on the card.

    Args:
        folder: The folder of the models; `card.json` and `CARD.md` are
            written there.
        exported: Model name to its new version.
        runs: Folders of the runs that the models come from; of several, the
            models are their mixture.
        documents: Number of documents of a retriever, or `None`.
    """
    described = [
        {
            "name": Path(run).absolute().name,
            "config": read_config(run),
            "facts": read_facts(run),
        }
        for run in runs
    ]
    _write(Path(folder), exported, described, documents)


def refresh_models_card(
    folder: str | os.PathLike[str], model: str, version: int, documents: int
) -> None:
    """Writes the card anew after a retriever was refreshed.

    The runs are those of the retriever's last export. Nothing is written if
    the card does not have the retriever, as after an export from Python.

    Args:
        folder: The folder of the models.
        model: The name of the retriever.
        version: Its new version.
        documents: Number of its documents.
    """
    for entry in read_facts(folder).get("exports", []):
        if model in entry["models"]:
            _write(Path(folder), {model: version}, entry["runs"], documents)


def _write(
    folder: Path,
    exported: Mapping[str, int],
    runs: Sequence[Mapping[str, Any]],
    documents: int | None,
) -> None:
    """Adds an export to a card, in place of the earlier ones of its models."""
    exports: list[dict[str, Any]] = []
    for entry in read_facts(folder).get("exports", []):
        models = {
            name: version
            for name, version in entry["models"].items()
            if name not in exported
        }
        if models:
            exports.append({**entry, "models": models})
    exports.append(
        {
            "date": now(),
            "models": dict(exported),
            "documents": documents,
            "runs": list(runs),
        }
    )
    facts = {"exports": exports}
    write_card(folder, facts, models_card(facts))


def models_card(facts: Mapping[str, Any]) -> str:
    """Returns the card of a folder of models.

    Args:
        facts: Content of `card.json`.
    """
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
            ["model", "version", "exported", "documents", "from the runs"],
            [
                [
                    f"`{name}`",
                    version,
                    entry["date"][:10],
                    _documents(name, entry["documents"]),
                    ", ".join(run["name"] for run in entry["runs"]),
                ]
                for entry in facts["exports"]
                for name, version in entry["models"].items()
            ],
        ),
    ]
    for entry in facts["exports"]:
        for run in entry["runs"]:
            lines += ["", f"## {run['name']}: {kind_of(run['config'])}", ""]
            lines += sections_of(run["config"], run["facts"], level=3)
    return front_matter(head) + "\n".join(lines) + "\n"


def _documents(name: str, number: int | None) -> str:
    if name in ("retriever", "two_stage") and number is not None:
        return f"{number:,}"
    return ""
