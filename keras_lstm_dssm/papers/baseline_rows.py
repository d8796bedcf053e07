"""Trains the baselines of a table of results, and mixtures of its systems."""

import itertools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import keras
import numpy as np

from keras_lstm_dssm.data.sources import open_collection
from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.data.triples import Triples
from keras_lstm_dssm.distillation.outside_encoder import open_outside_encoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluate.hybrid import fit_hybrid
from keras_lstm_dssm.evaluation.bm25 import TOKENIZERS, BM25System, alphanumeric
from keras_lstm_dssm.evaluation.mixture import (
    ChosenWeights,
    Mixture,
    choose_weights,
)
from keras_lstm_dssm.evaluation.runs import ListScores, System
from keras_lstm_dssm.evaluation.systems import (
    CachedEncoder,
    DenseSystem,
    system_of,
    with_cached_vectors,
)
from keras_lstm_dssm.files import cache_folder
from keras_lstm_dssm.models import ScorerRecipe
from keras_lstm_dssm.papers.baselines import (
    Doc2VecSystem,
    LSASystem,
    RandomVectorSystem,
    TfidfSystem,
    UnigramLMSystem,
    Word2VecSystem,
)
from keras_lstm_dssm.papers.plsa import PLSASystem
from keras_lstm_dssm.papers.run_systems import (
    MODEL_FILE,
    Hyperparameters,
    TrainedSystem,
)
from keras_lstm_dssm.papers.skip_thought import (
    SkipThoughtSystem,
    api_paragraphs,
    read_paragraphs,
)
from keras_lstm_dssm.papers.table_data import TableData
from keras_lstm_dssm.plain_files import check_unpacked_size, read_json
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.settings.programs import TableSettings
from keras_lstm_dssm.text.vocabulary import vocabulary_of
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from keras_lstm_dssm.training.skip_gram import skip_gram_vectors


class DocumentOrder(System):
    """Ranks candidates in the order in which the data list them."""

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Scores candidates by their positions; see `System.list_scores`."""
        return {
            query_id: {d: -float(rank) for rank, d in enumerate(ids)}
            for query_id, ids in candidates.items()
        }


BASELINE_GRIDS: dict[str, dict[str, list[Any]]] = {
    "bm25": {
        "tokenizer": list(TOKENIZERS),
        "k1": [0.6, 0.9, 1.2, 1.6, 2.0],
        "b": [0.0, 0.25, 0.5, 0.75, 1.0],
    },
    "ulm": {
        "tokenizer": list(TOKENIZERS),
        "mu": [0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0, 100.0, 500.0, 2000.0],
    },
    "plsa": {"tokenizer": ["alphanumeric", "stemmed"], "topics": [100, 500]},
    "doc2vec": {"tokenizer": ["alphanumeric", "stemmed"]},
    "doc2vec_classes": {"tokenizer": ["alphanumeric", "stemmed"]},
    "tfidf": {"tokenizer": ["alphanumeric", "stemmed"]},
    "lsa": {"tokenizer": ["alphanumeric", "stemmed"]},
    "word2vec": {"tokenizer": ["alphanumeric", "stemmed"]},
    "skip_thought": {"mode": ["uni", "bi", "combined"]},
}
"""For each baseline, the values of its hyperparameters to try on dev."""


def baseline_grid(name: str) -> list[Hyperparameters]:
    """Returns all combinations of a grid's values; `[{}]` without a grid."""
    grid = BASELINE_GRIDS.get(name, {})
    return [
        dict(zip(grid, values, strict=True))
        for values in itertools.product(*grid.values())
    ]


@dataclass(frozen=True)
class Baseline:
    """Describes the row of a baseline. The row's name says which baseline."""

    seeded: bool = False  # whether another seed gives another result
    group: ClassVar[str] = "baseline"

    def next_trial(
        self, name: str, settings: TableSettings, tried: list[dict[str, Any]]
    ) -> Hyperparameters | None:
        """Returns the grid's next combination, or `None` after all of them."""
        grid = baseline_grid(name)
        return grid[len(tried)] if len(tried) < len(grid) else None

    def train(
        self, name: str, options: Hyperparameters, seed: int, data: TableData
    ) -> TrainedSystem:
        """Trains the baseline `name`, and measures it on dev."""
        settings, texts = data.settings, data.texts
        if name == "random":
            return TrainedSystem(None, 0, data.dev.random()[data.dev_measure])
        system: Any
        if name in ("document_order", "teacher"):
            is_teacher = name == "teacher"
            system = teacher_system(settings) if is_teacher else DocumentOrder()
            return TrainedSystem(system, 0, data.measure_on_dev(system))
        options = dict(options)
        if "tokenizer" in options:
            options["tokenizer"] = TOKENIZERS[options["tokenizer"]]
        start = time.perf_counter()
        match name:
            case "bm25":
                system = BM25System(**options)
            case "ulm":
                system = UnigramLMSystem(**options)
            case "plsa":
                system = PLSASystem(seed=seed, **options).fit(texts)
            case "doc2vec":
                system = Doc2VecSystem(seed=seed, **options).fit(texts)
            case "doc2vec_classes":
                classes = [d.label for d in data.examples.of("train")]
                if not any(classes):
                    raise InputError(
                        f"{settings.data}: no training document has a class,"
                        " which doc2vec_classes needs: leave doc2vec_classes"
                        " out"
                    )
                system = Doc2VecSystem(seed=seed, **options).fit(texts, classes)
            case "tfidf":
                system = TfidfSystem(**options).fit(texts)
            case "lsa":
                system = LSASystem(seed=seed, **options).fit(texts)
            case "word2vec":
                system = Word2VecSystem(seed=seed, **options).fit(texts)
            case "skip_gram" | "skip_gram_idf":
                triples = Triples.from_collection(
                    open_collection(settings.data),
                    min_relevant=settings.min_relevant,
                )
                system = skip_gram_sum(
                    triples.texts, seed, name.endswith("idf")
                )
            case "random_vectors":
                system = RandomVectorSystem(seed=seed)
            case "skip_thought":
                path = settings.paragraphs
                text = read_paragraphs(path) if path else api_paragraphs()
                system = SkipThoughtSystem(seed=seed, **options).fit(
                    text, cache=cache_folder()
                )
            case _:
                raise ValueError(name)
        seconds = time.perf_counter() - start
        if isinstance(system, SkipThoughtSystem):
            # `fit` may take trained encoders from the cache. `system.seconds`
            # is the time of the training that made the cache.
            seconds = system.seconds
        dev = data.measure_on_dev(system)
        parameters = getattr(system, "parameters", 0)
        return TrainedSystem(system, parameters, dev, seconds)


def skip_gram_sum(texts: Sequence[str], seed: int, idf: bool) -> DenseSystem:
    """Makes a system that ranks by the cosine of sums of skip-gram vectors.

    With `idf`, word vectors are multiplied by ln(texts / texts with the word).
    """
    vocabulary = vocabulary_of(texts)
    vectors = skip_gram_vectors(
        texts, vocabulary, epochs=ScorerRecipe().skip_gram_epochs, seed=seed
    )
    if idf:
        counts = Counter(w for text in texts for w in set(alphanumeric(text)))
        frequencies = np.array([counts[word] for word in vocabulary])
        vectors *= np.log(len(texts) / frequencies)[:, np.newaxis]
    rows = {word: row for row, word in enumerate(vocabulary)}

    def encode(texts: Sequence[str]) -> np.ndarray:
        ids = [[rows[w] for w in alphanumeric(t) if w in rows] for t in texts]
        return np.stack([vectors[word_ids].sum(axis=0) for word_ids in ids])

    return DenseSystem(encode, encode)


def teacher_system(settings: TableSettings) -> DenseSystem:
    """Returns the system that ranks by cosines of the teacher's vectors."""
    encode = CachedEncoder(open_outside_encoder(settings.teacher_folder()))
    return DenseSystem(encode, encode)


@dataclass(frozen=True)
class Mixed:
    """Describes a row that is a mixture of other rows of the same table."""

    parts: tuple[str, ...]  # "teacher", "bm25" or rows with saved models
    seeded: bool = True  # whether one of `parts` depends on the seed
    group: ClassVar[str] = "baseline"

    def next_trial(
        self, name: str, settings: TableSettings, tried: list[dict[str, Any]]
    ) -> Hyperparameters | None:
        """Returns `{}` for the only trial, as `train` chooses the weights."""
        return None if tried else {}

    def train(
        self, name: str, options: Hyperparameters, seed: int, data: TableData
    ) -> TrainedSystem:
        """Chooses the weights of the mixture on dev."""
        start = time.perf_counter()
        parts = {part: _part_system(part, seed, data) for part in self.parts}
        chosen = choose_weights(parts, data.dev, data.dev_measure)
        return _trained_mixture(Mixture(parts, chosen.weights), chosen, start)


@dataclass(frozen=True)
class Hybrid:
    """Describes a row that ranks as `lstm-dssm-evaluate --hybrid` does."""

    towers: str | None = None  # row of the towers; None: BM25 and word vectors
    group: ClassVar[str] = "baseline"

    @property
    def seeded(self) -> bool:
        """Whether the row has towers: only towers depend on the seed."""
        return self.towers is not None

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of the rows that the hybrid needs."""
        return tuple(filter(None, (self.towers, "teacher")))

    next_trial = Mixed.next_trial

    def train(
        self, name: str, options: Hyperparameters, seed: int, data: TableData
    ) -> TrainedSystem:
        """Fits word vectors to the teacher's vectors, and weights to dev."""
        start = time.perf_counter()
        model = self.towers and _saved_model(self.towers, seed, data)
        teacher = TeacherVectors.open(data.settings.teacher_folder())
        fitted = fit_hybrid(
            HybridParts.of(model, teacher).systems(),
            HybridSettings(),
            data.dev,
            data.dev_measure,
            [query for query, _ in data.examples],
        )
        return _trained_mixture(fitted.system, fitted.chosen, start)


def _trained_mixture(
    system: System, chosen: ChosenWeights, start: float
) -> TrainedSystem:
    return TrainedSystem(
        system,
        0,
        chosen.value,
        time.perf_counter() - start,
        further={f"weight_{n}": w for n, w in chosen.weights.items()},
    )


def _part_system(name: str, seed: int, data: TableData) -> Any:
    """Returns the system of one part of a mixture."""
    if name == "teacher":
        return teacher_system(data.settings)
    if name == "bm25":
        path = _seed_folder(name, 0, data) / "result.json"
        options = read_json(path)["options"]
        return Baseline().train(name, options, seed, data).system
    system = system_of(_saved_model(name, seed, data))
    assert isinstance(system, DenseSystem)
    return with_cached_vectors(system)


def _saved_model(name: str, seed: int, data: TableData) -> Any:
    path = _seed_folder(name, seed, data) / MODEL_FILE
    check_unpacked_size(path)
    return keras.saving.load_model(path)


def _seed_folder(name: str, seed: int, data: TableData) -> Path:
    folder = data.folder / "systems" / name
    if not (seed_folder := folder / f"seed_{seed}").exists():
        raise InputError(
            f"{folder}: found no results of {name}, a part of this mixture:"
            f" add {name} to --systems"
        )
    return seed_folder
