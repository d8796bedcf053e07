"""Figures of the evaluations on a card: tables, and the Hub's results."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from keras_lstm_dssm.cards.card_text import table

_SHOWN = (
    "mrr@10", "ndcg@10", "recall@10", "recall@100", "p@1", "p@10", "map", "mrr",
    "f1", "v", "ari", "ami",
)  # fmt: skip
"""Measures on the card, those that an evaluation has; `card.json` has all."""

_TASKS = {"retrieve": "text-retrieval", "cluster": "clustering"}
"""What follows the split in an evaluation's name, such as "test/cluster" -> the
name of the task on the Hugging Face Hub; that of all others is text-ranking."""


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


def figure_tables(evaluations: Mapping[str, Any]) -> list[CardTable]:
    """Returns a table for each evaluation: percent, with 95 % intervals.

    Args:
        evaluations: Split and mode -> what `card.json` has of the evaluation.
    """
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
        found.append(CardTable(_title(name, entry), ["", *measures], rows))
    return found


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


def figures_text(evaluations: Mapping[str, Any]) -> str:
    """Returns the tables of all evaluations in Markdown."""
    parts = [
        f"{found.title}\n\n{table(found.head, found.rows)}"
        for found in figure_tables(evaluations)
    ]
    if not parts:
        return "Not evaluated yet: `lstm-dssm-evaluate --run=RUN --data=...`"
    return "\n\n".join(parts)


def hub_result(name: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an entry of the front matter's `model-index`.

    Args:
        name: Split and mode of the evaluation, such as `"test/retrieve"`.
        entry: What `card.json` has of it.
    """
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
            for measure in _SHOWN
            if measure in values
        ],
    }


def _percent(spread: list[float]) -> str:
    mean, half_width = spread
    if half_width == 0:
        return f"{100 * mean:.1f}"
    return f"{100 * mean:.1f} ± {100 * half_width:.1f}"
