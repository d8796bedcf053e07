"""Measure a run's towers and words with BM25, and choose their weights."""

import os
from collections.abc import Callable, Container, Mapping
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.sources import open_collection
from keras_lstm_dssm.distillation.hybrid_parts import HybridParts
from keras_lstm_dssm.distillation.teacher_folder import TeacherVectors
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.evaluation.measures import QueryMeasures, mean
from keras_lstm_dssm.evaluation.mixture import (
    ChosenWeights,
    Mixture,
    ScaledCorpusSystem,
    choose_weights,
)
from keras_lstm_dssm.evaluation.postings import (
    QUERY_TOKENIZERS,
    TERM_TOKENIZERS,
    default_terms,
)
from keras_lstm_dssm.evaluation.runs import System
from keras_lstm_dssm.evaluation.systems import system_of, with_cached_vectors
from keras_lstm_dssm.evaluation.task import (
    MAIN_MEASURES,
    Task,
    format_table,
    means,
    measure_systems,
)
from keras_lstm_dssm.export.graphs.hybrid import SETTINGS_FILE
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.plain_files import (
    check_plain_file,
    damage_named,
    read_json,
)
from keras_lstm_dssm.settings.hybrid import HybridSettings

BM25, HYBRID = "bm25", "hybrid"

HYBRID_FILE = "hybrid.json"
"""Name of the file of a run that holds the settings of its hybrid."""

_TRIED = {"b": (0.0, 0.25, 0.5, 0.75, 1.0), "k1": (0.5, 0.8, 1.2, 1.6, 2.0)}
"""Values of BM25 that are tried on dev, one setting after the other."""


def read_hybrid(run: str | os.PathLike[str]) -> HybridSettings | None:
    """Reads the settings that `measure_hybrid` has chosen for a run.

    Returns `None` where there are none.
    """
    path = Path(run, HYBRID_FILE)
    check_plain_file(path)
    if not path.exists():
        return None
    remedy = (
        "choose the weights again, with lstm-dssm-evaluate --mode=retrieve"
        " --hybrid"
    )
    with damage_named(path, remedy):
        return HybridSettings.from_dict(read_json(path))


def write_hybrid(run: str | os.PathLike[str], settings: dict[str, Any]) -> Path:
    """Writes the settings of a hybrid into a run; returns the file's path."""
    path = Path(run, HYBRID_FILE)
    check_plain_file(path)  # a link would be written to
    write_json(path, settings)
    return path


def bm25_part(settings: HybridSettings) -> ScaledCorpusSystem:
    """Returns the BM25 of a hybrid, on the scale of its retriever."""
    assert settings.bm25_words, settings
    kind = str(settings.bm25_words)
    words, of_query = TERM_TOKENIZERS[kind], QUERY_TOKENIZERS[kind]
    system = BM25System(settings.k1, settings.b, words, of_query)
    return ScaledCorpusSystem(system, True)


def measure_hybrid(
    model: Any,
    collection: Collection,
    split: str = "test",
    min_relevant: int = 1,
    progress: bool = False,
    report: Callable[[str], object] = lambda line: None,
    *,
    depth: int = 1000,
    run_file: str | os.PathLike[str] | None = None,
    bm25_words: str | None = None,
    batch_size: int = 2048,
    dev: str | None = None,
    select: str | None = None,
    teacher: str | None = None,
    stored: HybridSettings | None = None,
) -> tuple[Task, dict[str, QueryMeasures], dict[str, Any]]:
    """Measures two towers, their parts, BM25 and the hybrid of the parts.

    The weights, and `k1` and `b` of BM25, are chosen on dev. Where the data
    has no dev, or it is what is measured, they are `stored`, or the defaults.

    Args:
        model: The trained `TwoTower`.
        collection: The data.
        split: Split of the data to measure on.
        min_relevant: Grade from which a document is relevant.
        progress: Whether to show a progress bar of encoding.
        report: Is given each line of the results.
        depth: Number of documents retrieved for each query.
        run_file: File for the rankings of the hybrid.
        bm25_words: See `HybridSettings`. Default `None`: by the titles' script.
        batch_size: Number of texts encoded at once.
        dev: Data whose split dev is used; by default `collection`.
        select: Measure that decides on dev. Default `"mrr@10"`.
        teacher: The folder of `teach`, see `HybridParts.of`.
        stored: The settings of an earlier choice, of the same run.

    Returns:
        The task; system -> query id -> measure -> value; and facts:
        `hybrid_settings` and, if they were chosen, `hybrid_dev`.

    Raises:
        InputError: The model is no `TwoTower`, or an argument is wrong.

    Example:
    >>> _, by_query, about = measure_hybrid(model, open_collection("api"))
    >>> about["hybrid_settings"]["bm25"]
    0.1
    """
    parts = HybridParts.of(
        model, TeacherVectors.open(teacher) if teacher else None
    )
    task = Task.from_collection(
        collection, split, "retrieve", min_relevant, depth
    )
    titles = list(task.documents.values())
    dev_data = open_collection(dev) if dev else collection
    has_dev = "dev" in dev_data.splits and bool(dev or split != "dev")
    chosen = (not has_dev and stored) or HybridSettings()
    if bm25_words in (None, "model"):
        bm25_words = chosen.bm25_words or default_terms(titles)
    if bm25_words not in TERM_TOKENIZERS:
        raise InputError(
            f"--bm25_words={bm25_words}: expected one of"
            f" {', '.join(TERM_TOKENIZERS)} with --hybrid"
        )
    chosen = chosen.replace(bm25_words=bm25_words)
    report(
        f"{split}: {len(task.queries)} queries, {len(titles)} documents in the"
        " corpus"
    )
    systems: dict[str, System] = {
        name: with_cached_vectors(system)
        for name, system in parts.systems(
            batch_size=batch_size, progress=progress
        ).items()
    }
    about: dict[str, Any] = {}
    if has_dev:
        on_dev = Task.from_collection(
            dev_data, "dev", "retrieve", min_relevant, depth
        )
        measure = select or MAIN_MEASURES["retrieve"]
        chosen, best = choose_hybrid(systems, chosen, on_dev, measure)
        about = report_choice(HYBRID, best, on_dev, measure, report)
    else:
        chosen = chosen.of_parts(parts.names)
        measured = split == "dev" and not dev
        why = "as dev is what is measured" if measured else "as there is no dev"
        report(
            "hybrid: weights "
            + ("of hybrid.json" if stored else f"by default, {why}")
        )
    report(describe_hybrid(chosen, parts.names))
    systems[BM25] = bm25_part(chosen)
    mixture = Mixture(systems, [chosen.weights[name] for name in systems])
    by_query = measure_systems(
        task,
        {"model": system_of(model, batch_size=batch_size), **systems}
        | {HYBRID: mixture},
        {HYBRID: run_file} if run_file else None,
    )
    report(format_table(means(by_query)))
    return task, by_query, {"hybrid_settings": chosen.to_dict(), **about}


def choose_hybrid(
    systems: Mapping[str, System],
    settings: HybridSettings,
    dev: Task,
    measure: str,
) -> tuple[HybridSettings, ChosenWeights]:
    """Chooses `k1` and `b` by BM25 alone on dev, then the parts' weights.

    `systems` are those of the parts that have vectors.
    """

    def value(changed: HybridSettings) -> float:
        _, by_query = dev.measure(bm25_part(changed))
        return mean(by_query, [measure])[measure]

    for name, values in _TRIED.items():
        tried = [settings.replace(**{name: number}) for number in values]
        settings = max([settings, *tried], key=value)
    best = choose_weights({**systems, BM25: bm25_part(settings)}, dev, measure)
    weights = {"towers": 0.0, "words": 0.0, **best.weights}
    return settings.replace(**weights), best


def report_choice(
    name: str,
    chosen: ChosenWeights,
    dev: Task,
    measure: str,
    report: Callable[[str], object],
) -> dict[str, Any]:
    """Prints the metric on dev of the weights that were chosen on it.

    Returns it for the results as JSON, under the key `NAME_dev`.
    """
    alone = ", ".join(
        f"{part} {100 * value:.2f}" for part, value in chosen.alone.items()
    )
    report(
        f"{name}: {measure} on the {len(dev.queries)} queries of dev"
        f" {100 * chosen.value:.2f} (alone: {alone})"
    )
    return {
        f"{name}_dev": {
            measure: chosen.value,
            "alone": chosen.alone,
            "queries": len(dev.queries),
        }
    }


def describe_hybrid(settings: HybridSettings, names: Container[str]) -> str:
    """Describes the settings of a hybrid that has the parts of these names."""
    weights = ", ".join(
        f"{name} {weight:.3g}{'' if name in names else ' (no such part)'}"
        for name, weight in settings.weights.items()
    )
    return (
        f"hybrid: {weights}; bm25 of {settings.bm25_words}, k1 {settings.k1:g},"
        f" b {settings.b:g}"
    )


def describe_published(version: Path) -> str:
    """Describes a hybrid retriever that was exported."""
    about = read_json(version / SETTINGS_FILE)
    with damage_named(version / SETTINGS_FILE, "export the model again"):
        settings = HybridSettings.from_dict(about["settings"])
        return (
            f"{describe_hybrid(settings, about['parts'])};"
            f" {about['forms']:,} forms of {about['terms']:,} terms"
        )
