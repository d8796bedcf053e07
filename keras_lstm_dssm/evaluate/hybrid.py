"""Fits the weights of a hybrid ranking, and measures the ranking."""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import islice
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
from keras_lstm_dssm.evaluation.bm25 import BM25System, FieldTexts
from keras_lstm_dssm.evaluation.hubness import hubness, sample
from keras_lstm_dssm.evaluation.index import Index, encode_texts, unit_vectors
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
    Reliability,
    calibrate,
    fit_weights,
    reliability,
)
from keras_lstm_dssm.settings.fields import BM25_TERMS, HYBRID_PARTS
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.settings.programs import TitleSettings
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from lstm_dssm_client.bm25 import MAX_WORDS, TERM_PARTS, TermScores
from lstm_dssm_client.hybrid import HUBNESS, probability
from lstm_dssm_client.weighted_parts import Part, WeightedParts

HYBRID = "hybrid"

_BM25_VALUES: dict[str, tuple[Any, ...]] = {
    "bm25_words": BM25_TERMS,
    "b": (0.0, 0.25, 0.5, 0.75, 1.0),
    "k1": (0.2, 0.5, 0.8, 1.2, 1.6, 2.0),
}
"""Setting of BM25 -> values to try on dev. The settings are chosen one after
another, in this order."""

# Probabilities are calibrated on this many top titles of each query.
_FIRST = 10
_LEAST_SCALE = 1e-3  # a smaller scale from `calibrate` is not used
# `weak` is chosen so that this share of the relevant titles at rank 1 is above.
_NOT_WEAK = 0.9


def bm25_system(
    settings: HybridSettings, fields: FieldTexts | None = None
) -> BM25System:
    """Returns BM25 alone, with the terms, `k1` and `b` of a hybrid."""
    assert settings.bm25_words, settings
    titles = term_tokenizer(settings.bm25_words)
    queries = term_tokenizer(settings.bm25_words, MAX_WORDS)
    return BM25System(settings.k1, settings.b, titles, queries, fields)


class HybridSystem(CorpusSystem):
    """Ranks like a hybrid retriever: by log-odds of relevance."""

    def __init__(
        self,
        vectors: Mapping[str, DenseSystem],  # by name, "towers" or "words"
        settings: HybridSettings,  # `bm25_words` must not be `None`
        queries: Sequence[str] = (),  # training queries, for the hubness
        fields: FieldTexts | None = None,
    ) -> None:
        self.vectors = vectors
        self.settings = settings
        self.queries = queries
        self.fields = fields
        self._prepared = lru_cache(1)(self._prepare)

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Yields the log-odds of all titles, see `CorpusSystem.scores`."""
        weights = np.array([*self.settings.weights.values()], np.float32)
        base = np.float32(self.settings.base)
        for parts in self.parts(queries, titles):
            scores = weights @ parts
            match = None if self.vectors else np.flatnonzero(scores)
            yield scores + base, match

    def parts(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[np.ndarray]:
        """Yields each query's unweighted scores, float32 `[parts, titles]`.

        The parts are `HYBRID_PARTS`. The scores of a missing part are 0.
        """
        indexes, terms = self._prepared(titles)
        title_hubness = self.hubness(titles) if self.settings.hubness else 0.0
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
                elif name == HUBNESS:
                    parts[row] = -title_hubness
            yield parts

    def hubness(self, titles: tuple[str, ...]) -> np.ndarray | float:
        """Returns the hubness of titles; 0 without vectors or queries."""
        indexes, _ = self._prepared(titles)
        queries = sample(self.queries)
        weighted = WeightedParts(
            Part(name, self.settings.weights[name], system.encode_query)
            for name, system in self.vectors.items()
        )
        if not queries or not weighted.vectors:
            return 0.0
        vectors = [indexes[part.name].vectors for part in weighted.vectors]
        return hubness(
            np.concatenate(weighted.scaled(vectors), axis=1),
            weighted.encode(queries),
        )

    def _prepare(
        self, titles: tuple[str, ...]
    ) -> tuple[dict[str, Index], dict[str, TermScores]]:
        ids = [*map(str, range(len(titles)))]
        indexes = {
            name: Index(system.encode_document, titles, ids)
            for name, system in self.vectors.items()
        }
        postings = title_postings(
            titles, self.settings, self.queries, self.fields
        )
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
    stored: HybridSettings | None = None,  # settings that were fitted earlier
    queries: Sequence[str] = (),  # queries of the training clicks
) -> Measured:
    """Measures a hybrid of a `TwoTower` and BM25, and each of its parts alone.

    The weights are fitted to the split dev of `settings.dev`, or of
    `collection` if `settings.dev` is not set. Nothing is fitted if these data
    have no dev, or if the dev of `collection` is measured (`settings.split`).
    The weights then come from `stored`, or else from `HybridSettings()`.

    `Measured.about` has `hybrid_settings` and `calibration`. If the weights are
    fitted, it also has `hybrid_dev`.
    """
    settings = with_mode(settings, collection)
    teacher, dev, split = settings.teacher, settings.dev, settings.split
    parts = HybridParts.of(
        model, TeacherVectors.open(teacher) if teacher else None
    )
    task = title_task(settings, collection)
    titles = list(task.documents.values())
    dev_data = open_collection(dev, collection.fields) if dev else collection
    has_dev = "dev" in dev_data.splits and bool(dev or split != "dev")
    hybrid = (not has_dev and stored) or HybridSettings()
    if settings.bm25_words != MODEL:
        if settings.bm25_words not in BM25_TERMS:
            raise InputError(
                f"--bm25_words={settings.bm25_words}: expected one of"
                f" {', '.join(BM25_TERMS)} with --hybrid"
            )
        hybrid = hybrid.replace(bm25_words=settings.bm25_words)
    report(
        f"{split}: {len(task.queries)} queries, {len(titles)} documents in the"
        " corpus"
    )
    vectors = parts.systems(**settings.encoding)
    about: dict[str, Any] = {}
    if has_dev:
        dev_task = title_task(settings, dev_data, "dev")
        measure = settings.select or MAIN_MEASURES["retrieve"]
        system, best = fit_hybrid(vectors, hybrid, dev_task, measure, queries)
        about = report_choice(HYBRID, best, dev_task, measure, report)
        fixed_words = settings.bm25_words != MODEL
        alone = tuned_bm25(system.settings, dev_task, measure, fixed_words)
        report(
            f"bm25 alone: {alone.bm25_words}, k1 {alone.k1:g}, b {alone.b:g},"
            " the best on dev"
        )
    else:
        alone = parts.settled(hybrid, titles, queries)
        system = HybridSystem(vectors, alone, queries)
        reason = "dev is measured"
        if split != "dev" or dev:
            reason = "there is no dev"
        source = "of hybrid.json" if stored else f"by default, because {reason}"
        report(f"hybrid: weights {source}")
    hybrid, system.fields = system.settings, task.fields
    report(hybrid.describe(parts.names))
    systems: dict[str, System] = {
        MODEL: system_of(model, batch_size=settings.batch_size),
        **vectors,
        BM25: bm25_system(alone, task.fields),
        HYBRID: system,
    }
    about = {"hybrid_settings": hybrid.to_dict(), **about}
    measured = measured_systems(task, systems, HYBRID, about, settings, report)
    calibration = _calibration(measured)
    report(
        f"probabilities of the first {_FIRST} titles: expected calibration"
        f" error {calibration.error:.3f}"
    )
    measured.about["calibration"] = calibration._asdict()
    return measured


def _calibration(measured: Measured) -> Reliability:
    task = measured.task
    scored = [
        (score, task.qrels[query_id].get(d, 0) >= task.min_relevant)
        for query_id, ranked in measured.run.items()
        for d, score in islice(ranked.items(), _FIRST)
    ]
    scores, relevant = np.array(scored).reshape(-1, 2).T
    return reliability(probability(scores), relevant > 0)


class FittedHybrid(NamedTuple):
    """A hybrid with fitted settings, and the results on dev."""

    system: HybridSystem
    chosen: ChosenWeights


def fit_hybrid(
    vectors: Mapping[str, DenseSystem],
    settings: HybridSettings,
    dev: Task,
    measure: str,  # measure of the results on dev; no effect on the weights
    queries: Sequence[str] = (),
) -> FittedHybrid:
    """Fits weights to dev; scales the weights so that scores are log-odds."""
    titles = tuple(dev.documents.values())
    settings = settings.replace(
        bm25_words=settings.bm25_words or default_terms(titles)
    )
    system = HybridSystem(
        vectors, settings.replace(hubness=0.0), queries, dev.fields
    )
    candidates = _candidates(system, dev)
    lists = [judged for _, judged in candidates]
    names = [*vectors, *TERM_PARTS]
    weights = _fit_parts(lists, names)
    if queries and vectors:
        # Hubness is computed from weighted vectors. Therefore all weights are
        # fitted twice: first without hubness, then with hubness as a part.
        names.append(HUBNESS)
        system.settings = settings.replace(**_named(weights))
        title_hubness = np.broadcast_to(system.hubness(titles), len(titles))
        for rows, judged in candidates:
            judged.parts[:, -1] = -title_hubness[rows]
        weights = _fit_parts(lists, names)
    if not weights.any():  # no part ranks relevant titles above other titles
        weights = np.array([*settings.of_parts(names).weights.values()])
    hits = [_first_hits(judged, weights) for judged in lists]
    scores, relevant = map(np.concatenate, zip(*hits, strict=True))
    scale, base, weak = 1.0, settings.base, settings.weak
    if 0 < relevant.mean() < 1:
        scale, base = calibrate(scores, relevant)
    if scale < _LEAST_SCALE:  # scores do not predict relevance
        scale, base = 1.0, settings.base
    elif 0 < relevant.mean() < 1:
        first = [scores[0] for scores, relevant in hits if relevant[0]]
        limit = np.quantile(first, 1 - _NOT_WEAK) if first else scores.min()
        weak = float(probability(scale * limit + base))
    system.settings = settings.replace(
        **_named(scale * weights), base=base, weak=weak
    )
    systems = {**vectors, BM25: bm25_system(settings, dev.fields)}
    alone = {
        name: mean(dev.measure(part)[1], [measure])[measure]
        for name, part in systems.items()
    }
    _, by_query = dev.measure(system)
    value = mean(by_query, [measure])[measure]
    fitted_weights = {name: system.settings.weights[name] for name in names}
    return FittedHybrid(system, ChosenWeights(fitted_weights, value, alone))


def _named(weights: np.ndarray) -> dict[str, float]:
    return dict(zip(HYBRID_PARTS, weights.tolist(), strict=True))


def _fit_parts(lists: Sequence[JudgedList], names: Sequence[str]) -> np.ndarray:
    """Fits the weights of the named parts; all other weights are 0."""
    columns = [HYBRID_PARTS.index(name) for name in names]
    weights = np.zeros(len(HYBRID_PARTS))
    weights[columns] = fit_weights(
        [judged._replace(parts=judged.parts[:, columns]) for judged in lists]
    )
    return weights


def _candidates(
    system: HybridSystem, task: Task
) -> list[tuple[np.ndarray, JudgedList]]:
    """Returns, for each query, the candidates' indices and `JudgedList`.

    Candidates are the relevant titles, and the best titles of each part.
    """
    titles = tuple(task.documents.values())
    row_of = {document_id: i for i, document_id in enumerate(task.documents)}
    candidates = []
    parts_of = system.parts(list(task.queries.values()), titles)
    for query_id, parts in zip(task.queries, parts_of, strict=True):
        relevant = np.zeros(len(titles), bool)
        for document_id, grade in task.qrels[query_id].items():
            relevant[row_of[document_id]] = grade >= task.min_relevant
        is_candidate = relevant.copy()
        count = min(CANDIDATES, len(titles))
        for part in parts:
            if part.min() < part.max():
                is_candidate[np.argpartition(part, -count)[-count:]] = True
        rows = np.flatnonzero(is_candidate)
        judged = JudgedList(parts[:, rows].T.copy(), relevant[rows])
        candidates.append((rows, judged))
    return candidates


def _first_hits(
    judged: JudgedList, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the `_FIRST` largest scores, and which of them are relevant."""
    scores = judged.parts @ weights
    order = np.argsort(-scores, kind="stable")[:_FIRST]
    return scores[order], judged.relevant[order]


def tuned_bm25(
    settings: HybridSettings, dev: Task, measure: str, fixed_words: bool = False
) -> HybridSettings:
    """Chooses the terms, `k1` and `b` with which BM25 alone is best on dev."""
    values_of = dict(_BM25_VALUES)
    if fixed_words:  # the terms are not changed
        del values_of["bm25_words"]
    elif find_spec("snowballstemmer") is None:
        values_of["bm25_words"] = BM25_TERMS[1:]  # all but "stems"

    def value(changed: HybridSettings) -> float:
        _, by_query = dev.measure(bm25_system(changed, dev.fields))
        return mean(by_query, [measure])[measure]

    for name, values in values_of.items():
        choices = [settings.replace(**{name: choice}) for choice in values]
        settings = max(choices, key=value)
    return settings
