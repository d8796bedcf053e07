"""The evaluation of a KeyVec and of baselines in lstm-dssm-evaluate."""

from collections.abc import Mapping
from typing import Any

from keras_lstm_dssm.data import DocumentFolder, describe_bad
from keras_lstm_dssm.evaluation import document_tasks, format_table, system_of
from keras_lstm_dssm.evaluation.measures import QueryMeasures
from keras_lstm_dssm.evaluation.task import (
    document_text,
    means,
    measure_systems,
)
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.papers.baselines import document_baselines


def measure_documents(
    model: KeyVec,
    folder: DocumentFolder,
    split: str = "test",
    min_relevant: int = 1,
    progress: bool = False,
) -> tuple[Mapping[str, Any], dict[str, dict[str, QueryMeasures]]]:
    """Evaluates a KeyVec and baselines on a split, and prints a table.

    The baselines are trained on the documents of the split train; without
    any, those that need training are left out.

    Args:
        model: The model to evaluate.
        folder: The documents.
        split: The split to evaluate on.
        min_relevant: Grade from which a document is relevant to a query.
        progress: Whether to show a progress bar of encoding.

    Returns:
        The tasks, `"retrieve"`, `"cluster"` or both; and what
        `evaluate_documents` has measured in them.

    Raises:
        InputError: The split has no documents, or neither queries nor two
            classes.
    """
    tasks: Mapping[str, Any] = document_tasks(folder, split, min_relevant)
    texts = [document_text(one.sentences) for one in folder.of("train")]
    if bad := folder.counts.bad_lines:
        print(f"skipped bad lines: {describe_bad(bad)}")
    if texts:
        print(f"model against systems trained on {len(texts):,} documents")
    else:
        print(
            f"{folder.folder}: no document of the split train: left out tfidf,"
            " lsa, word2vec and doc2vec, which need some"
        )
    systems: dict[str, Any] = {
        "model": system_of(model, progress=progress),
        **document_baselines(texts),
    }
    measured = {
        name: measure_systems(task, systems) for name, task in tasks.items()
    }
    results = {name: means(of_task) for name, of_task in measured.items()}
    for name, task in tasks.items():
        print(f"\n{split}, {name}: {task.describe()}")
        print(format_table(results[name]))
    return tasks, measured
