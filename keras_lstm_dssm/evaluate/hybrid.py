"""Measure a hybrid ranking of a run, and fit the weights of its parts."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

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
from keras_lstm_dssm.evaluation.index import (
    Index,
    encode_texts,
    unit_vectors,
)
from keras_lstm_dssm.evaluation.measures import mean
from keras_lstm_dssm.evaluation.mixture import CANDIDATES, ChosenWeights
from keras_lstm_dssm.evaluation.postings import (
    default_terms,
    term_tokenizer,
    title_postings,
)
from keras_lstm_dssm.evaluation.runs import System
from keras_lstm_dssm.evaluation.systems import (
    CorpusSystem,
    DenseSystem,
    Scores,
    system_of,
)
from keras_lstm_dssm.evaluation.task import MAIN_MEASURES, Task
from keras_lstm_dssm.evaluation.weight_fit import (
    JudgedList,
    calibrate,
    fit_weights,
)
from keras_lstm_dssm.settings.choices import BM25_TERMS, HYBRID_PARTS
from keras_lstm_dssm.settings.evaluation import TitleSettings
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from lstm_dssm_client.bm25 import MAX_WORDS, TERM_PARTS, TermScores

HYBRID = "hybrid"

_TRIED = {"b": (0.0, 0.25, 0.5, 0.75, 1.0), "k1": (0.5, 0.8, 1.2, 1.6, 2.0)}
"""Values of BM25 that are tried on dev, one setting after the other."""

_FIRST = 10
"""Number of hits of each dev query by which probabilities are calibrated."""

_KEPT = 0.9
"""Share of relevant first hits of dev that are not called weak."""


def bm25_system(settings: HybridSettings) -> BM25System:
    """Returns BM25 on the terms of a hybrid."""
    assert settings.bm25_words, settings
    words = term_tokenizer(settings.bm25_words)
    of_query = term_tokenizer(settings.bm25_words, MAX_WORDS)
    return BM25System(settings.k1, settings.b, words, of_query)


class HybridSystem(CorpusSystem):
    """Ranks as a hybrid retriever: by the log-odds of `HybridSettings`.

    Args:
        vectors: `"towers"` or `"words"` -> the system of the part.
        settings: Weights and terms; `bm25_words` is set.
        known_texts: See `export_models`.
    """

    def __init__(
        self,
        vectors: Mapping[str, DenseSystem],
        settings: HybridSettings,
        known_texts: Sequence[str] = (),
    ) -> None:
        self.vectors = vectors
        self.settings = settings
        self.known_texts = known_texts
        self._prepared = lru_cache(1)(self._prepare)

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Yields log-odds of all titles; see `CorpusSystem.scores`."""
        weights = np.array([*self.settings.weights.values()], np.float32)
        base = np.float32(self.settings.base)
        for parts in self.parts(queries, titles):
            scores = weights @ parts
            match = None if self.vectors else np.flatnonzero(scores)
            yield scores + base, match

    def parts(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[np.ndarray]:
        """Yields the parts without their weights, float32 `[parts, titles]`.

        They are in the order of `HYBRID_PARTS`; a part that is missing is 0.
        """
        indexes, terms = self._prepared(titles)
        cosines = {
            name: index.rough_cosines(
                unit_vectors(
                    encode_texts(self.vectors[name].encode_query, queries)
                )
            )
            for name, index in indexes.items()
        }
        for query in queries:
            parts = np.zeros([len(HYBRID_PARTS), len(titles)], np.float32)
            for row, name in enumerate(HYBRID_PARTS):
                if name in cosines:
                    parts[row] = next(cosines[name])
                elif name in terms:
                    matches = terms[name].matches(query)
                    parts[row] = terms[name].sums(matches)
            yield parts

    def _prepare(
        self, titles: tuple[str, ...]
    ) -> tuple[dict[str, Index], dict[str, TermScores]]:
        ids = [*map(str, range(len(titles)))]
        indexes = {
            name: Index(system.encode_document, titles, ids)
            for name, system in self.vectors.items()
        }
        postings = title_postings(titles, self.settings, self.known_texts)
        kind = str(self.settings.bm25_words)
        terms = {
            name: TermScores(
                postings, kind, {n: float(n == name) for n in TERM_PARTS}
            )
            for name in TERM_PARTS
        }
        return indexes, terms


def measure_hybrid(
    model: Any,
    collection: Collection,
    settings: TitleSettings,
    report: Report = lambda line: None,
    stored: HybridSettings | None = None,
) -> Measured:
    """Measures a hybrid ranking, and beside it each score that it adds up.

    The hybrid is that of `HybridSettings`. The weights, and `bm25_words`, `k1`
    and `b` of BM25, are fitted to the split dev. Data without dev, and dev
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
    >>> found.about["hybrid_settings"]["towers"]
    9.3
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
    if settings.bm25_words != MODEL:
        if settings.bm25_words not in BM25_TERMS:
            raise InputError(
                f"--bm25_words={settings.bm25_words}: expected one of"
                f" {', '.join(BM25_TERMS)} with --hybrid"
            )
        chosen = chosen.replace(bm25_words=settings.bm25_words)
    report(
        f"{split}: {len(task.queries)} queries, {len(titles)} documents in the"
        " corpus"
    )
    vectors = parts.systems(**settings.encoding)
    known = [query for query, _ in collection.clicks or ()]
    about: dict[str, Any] = {}
    if has_dev:
        on_dev = title_task(settings, dev_data, "dev")
        measure = settings.select or MAIN_MEASURES["retrieve"]
        system, best = fit_hybrid(vectors, chosen, on_dev, measure, known)
        about = report_choice(HYBRID, best, on_dev, measure, report)
    else:
        chosen = parts.settled(chosen, titles)
        system = HybridSystem(vectors, chosen, known)
        measured = split == "dev" and not dev
        why = "as dev is what is measured" if measured else "as there is no dev"
        report(
            "hybrid: weights "
            + ("of hybrid.json" if stored else f"by default, {why}")
        )
    chosen = system.settings
    report(chosen.describe(parts.names))
    systems: dict[str, System] = {
        MODEL: system_of(model, batch_size=settings.batch_size),
        **vectors,
        BM25: bm25_system(chosen),
        HYBRID: system,
    }
    return measured_systems(
        task,
        systems,
        HYBRID,
        {"hybrid_settings": chosen.to_dict(), **about},
        settings,
        report,
    )


class FittedHybrid(NamedTuple):
    """The result of `fit_hybrid`.

    Attributes:
        system: The system with the fitted settings.
        chosen: The measure on dev, of the hybrid and of its parts alone.
    """

    system: HybridSystem
    chosen: ChosenWeights


def fit_hybrid(
    vectors: Mapping[str, DenseSystem],
    settings: HybridSettings,
    dev: Task,
    measure: str,
    known_texts: Sequence[str] = (),
) -> FittedHybrid:
    """Chooses `k1` and `b` by BM25 alone on dev, then fits the weights.

    Without `bm25_words`, they are chosen first, in the same way. The weights
    are those of `fit_weights`, scaled by `calibrate` to give log-odds.

    Args:
        vectors: See `HybridSystem`.
        settings: Where the choice begins.
        dev: The dev queries, with the whole corpus.
        measure: The measure on dev that decides on terms, `k1` and `b`.
        known_texts: See `HybridSystem`.
    """

    def value(changed: HybridSettings) -> float:
        _, by_query = dev.measure(bm25_system(changed))
        return mean(by_query, [measure])[measure]

    tried: dict[str, Sequence[Any]] = dict(_TRIED)
    if settings.bm25_words is None:
        words = default_terms(list(dev.documents.values()))
        settings = settings.replace(bm25_words=words)
        tried = {"bm25_words": BM25_TERMS, **tried}
    for name, values in tried.items():
        changed = [settings.replace(**{name: each}) for each in values]
        settings = max([settings, *changed], key=value)
    system = HybridSystem(vectors, settings, known_texts)
    judged = _judged_lists(system, dev)
    names = [*vectors, *TERM_PARTS]
    used = [HYBRID_PARTS.index(name) for name in names]
    lists = [each._replace(parts=each.parts[:, used]) for each in judged]
    weights = np.zeros(len(HYBRID_PARTS))
    weights[used] = fit_weights(lists, np.zeros(len(used)))
    best = [_best(each, weights) for each in judged]
    scale, base = calibrate(
        *(np.concatenate(values) for values in zip(*best, strict=True))
    )
    first = [scores[0] for scores, relevant in best if relevant[0]]
    weak = 0.0
    if first:
        cut = scale * np.quantile(first, 1 - _KEPT) + base
        weak = float(1 / (1 + np.exp(-cut)))
    system.settings = settings.replace(
        **dict(zip(HYBRID_PARTS, (scale * weights).tolist(), strict=True)),
        base=base,
        weak=weak,
    )
    alone = {
        name: mean(dev.measure(part)[1], [measure])[measure]
        for name, part in {**vectors, BM25: bm25_system(settings)}.items()
    }
    _, by_query = dev.measure(system)
    measured = mean(by_query, [measure])[measure]
    fitted = {name: system.settings.weights[name] for name in names}
    return FittedHybrid(system, ChosenWeights(fitted, measured, alone))


def _judged_lists(system: HybridSystem, task: Task) -> list[JudgedList]:
    """Returns the best titles of each part, and the relevant ones."""
    titles = tuple(task.documents.values())
    row = {
        document_id: place for place, document_id in enumerate(task.documents)
    }
    lists = []
    parts_of = system.parts(list(task.queries.values()), titles)
    for query_id, parts in zip(task.queries, parts_of, strict=True):
        relevant = np.zeros(len(titles), bool)
        for document_id, grade in task.qrels[query_id].items():
            relevant[row[document_id]] = grade >= task.min_relevant
        chosen = relevant.copy()
        count = min(CANDIDATES, len(titles))
        for part in parts:
            chosen[np.argpartition(part, -count)[-count:]] = True
        rows = np.flatnonzero(chosen)
        lists.append(JudgedList(parts[:, rows].T, relevant[rows]))
    return lists


def _best(
    judged: JudgedList, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the largest scores of a list, and which are relevant."""
    scores = judged.parts @ weights
    order = np.argsort(-scores, kind="stable")[:_FIRST]
    return scores[order], judged.relevant[order]
