"""`Ranker`, its features, and its files in a run folder.

A feature is the cosine or the score of a trained model, or an overlap of words.
"""

import json
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_lstm_dssm.distillation.outside_encoder import OutsideEncoder
from keras_lstm_dssm.distillation.teacher_vectors import (
    TeacherFolder,
    open_outside_encoder,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import encode_texts
from keras_lstm_dssm.evaluation.runs import System
from keras_lstm_dssm.evaluation.systems import system_of
from keras_lstm_dssm.files import (
    check_plain_file,
    open_gzip,
    read_json,
    write_json,
    write_json_gz,
    write_text,
)
from keras_lstm_dssm.fingerprints import file_hash
from keras_lstm_dssm.models.kinds import ModelKind, kind_name, register_kind
from keras_lstm_dssm.models.pair_scorer import PairScorer
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.ranker.boosted_trees import BoostedTrees
from keras_lstm_dssm.ranker.overlap_features import (
    NAMES,
    OverlapFeatures,
    on_grid,
)
from keras_lstm_dssm.run_folder import TREES, RunFolder, is_ranker
from keras_lstm_dssm.settings.presets import RANKER_PRESETS
from keras_lstm_dssm.settings.recipes import RankerRecipe
from keras_lstm_dssm.text.strings import as_bytes
from lstm_dssm_client.texts import pairs_as_bytes, query_as_bytes


class FeatureSource(NamedTuple):
    """A system whose score of a pair of texts is a feature of a ranker."""

    # From n queries, n documents and progress=False to float [n].
    score_pairs: Callable[..., np.ndarray]
    # None: an encoder of others.
    model: TwoTower | PairScorer | None = None

    @property
    def towers(self) -> TwoTower | None:
        """The model, if it is two towers."""
        return self.model if kind_name(self.model) == "towers" else None


def source_of(model: Any, name: str) -> FeatureSource:
    """Returns the score of a pair scorer, or the cosine of two towers.

    Raises `InputError` for another model, called `name`, or an untrained one.
    """
    kind = kind_name(model)
    if kind == "towers" and not model.needs_adapt:
        encoders = model.query_encoder.encode, model.document_encoder.encode
        return FeatureSource(partial(_cosines, encoders), model)
    if kind == "scorer" and not model.matcher.needs_pretraining:
        return FeatureSource(model.score_pairs, model)
    raise InputError(
        f"{name}: found a {type(model).__name__}, expected trained features:"
        " the run of two towers or of a pair scorer"
    )


def first_towers(sources: Mapping[str, FeatureSource]) -> TwoTower | None:
    """Returns the first two towers among sources, `None` without any."""
    towers = (source.towers for source in sources.values())
    return next((model for model in towers if model is not None), None)


def source_of_encoder(encode: OutsideEncoder) -> FeatureSource:
    """Returns the cosine of an encoder that this package did not train."""

    def encoded(texts: Sequence[Any], progress: bool) -> np.ndarray:
        return encode(texts)

    return FeatureSource(partial(_cosines, (encoded, encoded)))


def _cosines(
    encoders: tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]],
    *texts: Sequence[Any],
    progress: bool = False,
) -> np.ndarray:
    """Encodes each distinct text once, and compares the vectors of pairs."""
    if not len(texts[0]):
        return np.zeros(0, np.float32)
    sides = [
        encode_texts(partial(encode, progress=progress), of_side)
        for encode, of_side in zip(encoders, texts, strict=True)
    ]
    return np.einsum("nd,nd->n", *sides)


def graph_scores(
    source: FeatureSource, queries: tf.Tensor, titles: tf.Tensor
) -> tf.Tensor:
    """Scores pairs of strings `[pairs]` in a graph, float `[pairs]`."""
    model: Any = source.model
    if source.towers is None:
        return model.call((queries, titles), training=False)
    return tf.reduce_sum(
        model.query_encoder.unit_vectors(queries)
        * model.document_encoder.unit_vectors(titles),
        axis=1,
    )


class PairFeatures:
    """Computes the overlap of the words of pairs, and scores of systems.

    All numbers are rounded to multiples of 2^-12: a cosine that is computed in
    another batch differs in its last bits, and the trees must not. The features
    are in the order of `names`.
    """

    def __init__(
        self, overlap: OverlapFeatures, sources: Mapping[str, FeatureSource]
    ) -> None:
        self.overlap = overlap
        self.sources = dict(sources)
        self.names = (*NAMES, *self.sources)
        self._graph = tf.function(
            overlap,
            input_signature=[tf.TensorSpec([None], tf.string)] * 2,
            autograph=False,
        )

    def __call__(
        self,
        queries: Any,
        documents: Any,
        batch_size: int = 1024,
        progress: bool = False,
    ) -> np.ndarray:
        """Computes the features of pairs, float32 `[pairs, features]`."""
        sides = pairs_as_bytes(queries, documents)

        starts = range(0, len(sides[0]), batch_size)
        bar = tqdm(starts, "compare words", disable=not progress)
        overlap = [
            self._graph(
                *(
                    tf.constant(side[start : start + batch_size])
                    for side in sides
                )
            ).numpy()
            for start in bar
        ]
        words = np.concatenate([np.zeros([0, len(NAMES)]), *overlap])
        scores = [
            on_grid(source.score_pairs(*sides, progress=progress)).numpy()
            for source in self.sources.values()
        ]
        columns = [words, *(values[:, np.newaxis] for values in scores)]
        return np.concatenate(columns, axis=1, dtype=np.float32)


CANDIDATES = 100
"""Number of documents that the first stage finds for a ranker."""

_ROWS_AT_ONCE = 4096


class Ranker:
    """Scores pairs of a query and a title by boosted trees.

    The score is the sum of the trees' leaves and of weighted features. Like a
    `PairScorer`, a ranker orders the candidates that another system has
    found; `dssm.train` trains one with the recipe `"ranker"`.

    Args:
        features: Computes the features.
        trees: The trees, with as many features.
        weights: float `[features]`, what each feature is multiplied with and
            added to the score. Default `None`: zeros.

    Attributes:
        features: The argument.
        trees: The argument.
        weights: float32 `[features]`.
        candidates: Number of documents that the first stage finds.

    Raises:
        InputError: Trees or weights have another number of features.

    Example:
    >>> ranker = dssm.load_run("RANKER")
    >>> ranker.score("angle bracket", ["12-Gauge Angle", "Wood glue"])
    array([ 0.9, -1.3], dtype=float32)
    """

    kind = "ranker"

    def __init__(
        self,
        features: PairFeatures,
        trees: BoostedTrees,
        weights: np.ndarray | None = None,
    ) -> None:
        count = len(features.names)
        if weights is None:
            weights = np.zeros(count)
        if trees.features != count or np.shape(weights) != (count,):
            raise InputError(
                f"found trees of {trees.features} features and weights of"
                f" shape {list(np.shape(weights))}, expected {count}:"
                f" {', '.join(features.names)}"
            )
        self.features = features
        self.candidates = CANDIDATES
        self.trees = trees
        self.weights = np.asarray(weights, np.float32)
        self._graph = tf.function(
            self.score_features,
            input_signature=[tf.TensorSpec([None, count], tf.float32)],
            autograph=False,
        )

    def score_features(self, features: tf.Tensor) -> tf.Tensor:
        """Scores rows of features, in a graph or eagerly.

        Args:
            features: float32 `[pairs, features]`.

        Returns:
            float32 `[pairs]`.
        """
        weighted = tf.cast(features * self.weights, tf.float64)
        return tf.cast(
            self.trees(features) + tf.reduce_sum(weighted, axis=1), tf.float32
        )

    def score(self, query: str, documents: Any) -> np.ndarray:
        """Returns the scores of any number of titles for one query.

        Args:
            query: The query's text.
            documents: Any iterable of titles.

        Returns:
            float32 `[titles]`, in their order.

        Raises:
            InputError: `query` is not one text, or `documents` no texts.
        """
        text, texts = query_as_bytes(query), as_bytes(documents)
        return self.score_pairs([text] * len(texts), texts)

    def score_pairs(
        self,
        queries: Any,
        documents: Any,
        batch_size: int = 1024,
        progress: bool = False,
    ) -> np.ndarray:
        """Scores many pairs.

        Args:
            queries: Any iterable of texts.
            documents: As many titles.
            batch_size: Number of pairs whose words are compared at once.
            progress: Whether to show progress bars. Default `False`.

        Returns:
            float32 `[pairs]`, in their order.

        Raises:
            InputError: The texts are not strings, or not as many documents
                as queries.
        """
        rows = self.features(queries, documents, batch_size, progress)
        scores = [
            self._graph(rows[start : start + _ROWS_AT_ONCE]).numpy()
            for start in range(0, len(rows), _ROWS_AT_ONCE)
        ]
        return np.concatenate([np.zeros(0, np.float32), *scores])

    @property
    def towers(self) -> TwoTower | None:
        """The first two towers among the sources, `None` without any."""
        return first_towers(self.features.sources)

    def first_stage(self, **options: Any) -> System | None:
        """Returns the system that finds the candidates where it is served.

        Args:
            **options: Options of `TextEncoder.encode`.

        Returns:
            Retrieval by the cosine of `towers`, `None` without any.
        """
        towers = self.towers
        return None if towers is None else system_of(towers, **options)


_OVERLAP = "overlap.json.gz"


def open_sources(
    runs: Sequence[str],
    encoder: str | None,
    digests: Sequence[str] = (),
    encoder_digest: str | None = None,
) -> dict[str, FeatureSource]:
    """Opens runs and an outside encoder, by their names, in order.

    Digests of the models when the ranker was trained, if given, must be the
    same.
    """
    if len(set(runs)) < len(runs):
        raise InputError(
            f"features {', '.join(runs)}: found a run twice, expected each once"
        )
    for run, digest in zip(runs, digests, strict=False):
        model = RunFolder(run).model
        if model.exists() and file_hash(model) != digest:
            raise InputError(
                f"{run}: found another model than the one the ranker was"
                " trained with: restore it, or train the ranker again"
            )
    sources: dict[str, FeatureSource] = {}
    for run in runs:
        if is_ranker(run):
            raise InputError(
                f"{run}: found a ranker, expected trained features: the run"
                " of two towers or of a pair scorer"
            )
        sources[run] = source_of(RunFolder(run).load_model(), run)
    if encoder:
        sources[encoder] = _open_encoder(encoder, encoder_digest)
    return sources


def _open_encoder(encoder: str, digest: str | None) -> FeatureSource:
    """Opens an outside encoder; one with a digest must still have it."""
    if digest and not TeacherFolder(encoder).settings.exists():
        raise InputError(
            f"{encoder}: found no vectors here, expected the folder of"
            " lstm-dssm-teach that the ranker was trained with: restore it,"
            " or train the ranker again"
        )
    source = source_of_encoder(open_outside_encoder(encoder))
    if digest and digest_of_encoder(encoder) != digest:
        raise InputError(
            f"{encoder}: found other vectors than those the ranker was"
            " trained with: restore them, or train the ranker again"
        )
    return source


def digest_of_encoder(encoder: str) -> str | None:
    """Returns the digest of a teacher's folder, `None` for other encoders."""
    files = TeacherFolder(encoder)
    return files.digest() if files.settings.exists() else None


def write_ranker(folder: Path, ranker: Ranker, config: dict[str, Any]) -> None:
    """Writes a ranker and its settings into a run folder."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json_gz(folder / _OVERLAP, ranker.features.overlap.get_config())
    settings = {**config["ranker"], "weights": ranker.weights.tolist()}
    write_text(folder / TREES, ranker.trees.text)
    # Written last: a folder with this file has a run.
    write_json(folder / "config.json", {**config, "ranker": settings})


def load_ranker(folder: str | os.PathLike[str]) -> Ranker:
    """Loads a ranker with the models that its features are computed by."""
    folder = Path(folder)
    for name in ("config.json", _OVERLAP, TREES):
        check_plain_file(folder / name, folder)
    config = read_json(folder / "config.json")
    try:
        settings = config["ranker"]
        runs, digests = settings["features"], settings["digests"]
        encoder = settings["encoder"]
        encoder_digest = settings.get("encoder_digest")  # not in older files
        weights = np.array(settings["weights"], np.float32)
        with open_gzip(folder / _OVERLAP) as file:
            overlap = OverlapFeatures(**json.load(file))
        trees = BoostedTrees((folder / TREES).read_text(encoding="utf-8"))
    except (
        OSError, EOFError, zlib.error, ValueError, KeyError, TypeError,
    ) as error:  # fmt: skip
        raise InputError(
            f"{folder}: not a ranker this version can read ({error}); restore"
            " the files, or train it again"
        ) from error
    sources = open_sources(runs, encoder, digests, encoder_digest)
    return Ranker(PairFeatures(overlap, sources), trees, weights)


RANKER = register_kind(
    ModelKind(
        "ranker",
        "ranker",
        Ranker,
        RankerRecipe,
        {name: RankerRecipe(**s) for name, s in RANKER_PRESETS.items()},
        load=load_ranker,
    )
)
