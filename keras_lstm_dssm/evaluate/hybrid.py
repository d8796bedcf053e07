"""Measure a run's towers and words with BM25, and choose their weights."""

from collections.abc import Mapping
from typing import Any

from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.sources import open_collection
from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluate.titles import (
    BM25,
    MODEL,
    Measured,
    Report,
    measured_systems,
    report_choice,
    title_task,
    with_mode,
)
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.evaluation.measures import mean
from keras_lstm_dssm.evaluation.mixture import (
    ChosenWeights,
    Mixture,
    ScaledCorpusSystem,
    choose_weights,
)
from keras_lstm_dssm.evaluation.postings import default_terms, term_tokenizer
from keras_lstm_dssm.evaluation.runs import System
from keras_lstm_dssm.evaluation.systems import system_of
from keras_lstm_dssm.evaluation.task import (
    MAIN_MEASURES,
    Task,
)
from keras_lstm_dssm.settings.fields import BM25_TERMS
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.settings.programs import TitleSettings
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from lstm_dssm_client.bm25 import MAX_WORDS

HYBRID = "hybrid"

_TRIED = {"b": (0.0, 0.25, 0.5, 0.75, 1.0), "k1": (0.5, 0.8, 1.2, 1.6, 2.0)}
"""Values of BM25 that are tried on dev, one setting after the other."""


def bm25_part(settings: HybridSettings) -> ScaledCorpusSystem:
    """Returns the BM25 of a hybrid, on the scale of its retriever."""
    assert settings.bm25_words, settings
    words = term_tokenizer(settings.bm25_words)
    of_query = term_tokenizer(settings.bm25_words, MAX_WORDS)
    system = BM25System(settings.k1, settings.b, words, of_query)
    return ScaledCorpusSystem(system, True)


def measure_hybrid(
    model: Any,
    collection: Collection,
    settings: TitleSettings,
    report: Report = lambda line: None,
    stored: HybridSettings | None = None,
) -> Measured:
    """Measures a hybrid ranking, and beside it each score that it adds up.

    The hybrid is a weighted sum of the cosine of the trained towers, the cosine
    of the word vectors, if the model has them, and BM25. The weights, and `k1`
    and `b` of BM25, are chosen on the split dev. Data without dev, and dev
    itself, are measured with the `stored` settings, or with the defaults.

    Args:
        model: The trained `TwoTower`.
        collection: The data.
        settings: What is measured; `hybrid` is set.
        report: Is given each line of the results.
        stored: The settings of an earlier choice, of the same run.

    Returns:
        The facts are `hybrid_settings` and, if they were chosen,
        `hybrid_dev`.

    Raises:
        InputError: The model is no `TwoTower`, or a setting is wrong.

    Example:
    >>> settings = TitleSettings(mode="retrieve", hybrid=True)
    >>> found = measure_hybrid(model, open_collection("api"), settings)
    >>> found.about["hybrid_settings"]["bm25"]
    0.1
    """
    settings = with_mode(settings, collection)
    teacher, dev, split = settings.teacher, settings.dev, settings.split
    parts = HybridParts.of(
        model, TeacherVectors.open(teacher) if teacher else None
    )
    task = title_task(settings, collection)
    titles = list(task.documents.values())
    dev_data = open_collection(dev) if dev else collection
    has_dev = "dev" in dev_data.splits and bool(dev or split != "dev")
    chosen = (not has_dev and stored) or HybridSettings()
    words = settings.bm25_words
    if words == MODEL:
        words = chosen.bm25_words or default_terms(titles)
    if words not in BM25_TERMS:
        raise InputError(
            f"--bm25_words={words}: expected one of"
            f" {', '.join(BM25_TERMS)} with --hybrid"
        )
    chosen = chosen.replace(bm25_words=words)
    report(
        f"{split}: {len(task.queries)} queries, {len(titles)} documents in the"
        " corpus"
    )
    systems: dict[str, System] = {**parts.systems(**settings.encoding)}
    about: dict[str, Any] = {}
    if has_dev:
        on_dev = title_task(settings, dev_data, "dev")
        measure = settings.select or MAIN_MEASURES["retrieve"]
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
    report(chosen.describe(parts.names))
    systems[BM25] = bm25_part(chosen)
    mixture = Mixture(systems, [chosen.weights[name] for name in systems])
    alone = system_of(model, batch_size=settings.batch_size)
    return measured_systems(
        task,
        {MODEL: alone, **systems, HYBRID: mixture},
        HYBRID,
        {"hybrid_settings": chosen.to_dict(), **about},
        settings,
        report,
    )


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
