"""Pairs of a query and a clicked document: checked, batched and hashed."""

from typing import Any, NamedTuple

import tensorflow as tf

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.taught_pairs import teacher_cosines
from keras_lstm_dssm.text import WordBatch, as_strings
from keras_lstm_dssm.text.word_batch import text_fingerprints
from keras_lstm_dssm.workers import JointTitles


class HashedPairs(NamedTuple):
    """Holds a hashed batch of pairs, each distinct text once.

    Attributes:
        query: The queries; its `text_index` is `[batch]`.
        document: The clicked documents; its `text_index` is `[batch]`, its
            distinct texts include the judged or mined negatives.
        negatives: int32 `[batch, k]`: for each row, which distinct texts of
            `document` are its judged or mined negatives; k may be 0.
        log_q: float `[batch, 1 + k]`, the log of the share of clicks of the
            clicked document and of the negatives; or `None`.
        teacher: float `[batch, distinct]`, a teacher's cosines of the rows
            with the distinct texts of `document`, see `teacher_cosines`; or
            `None`.
        fingerprints: int64 `[distinct]`, those of the distinct titles, by
            which several workers know equal ones; or `None`.
        joint: What the batches of several workers have together, see
            `JointStep`; or `None`.
    """

    query: WordBatch
    document: WordBatch
    negatives: tf.Tensor
    log_q: tf.Tensor | None = None
    teacher: tf.Tensor | None = None
    fingerprints: tf.Tensor | None = None
    joint: JointTitles | None = None


class PairHasher:
    """Hashes batches of texts for two towers.

    With tied towers, queries and documents are hashed together, so that a
    training step reads each row of their one table once.

    Args:
        query_encoder: The encoder of queries.
        document_encoder: The encoder of documents.

    Attributes:
        fingerprints: Whether to compute those of the titles, for a training
            by several workers. Default `False`.

    Example:
    >>> encoder = LSTMEncoder(8)
    >>> hasher = PairHasher(encoder, encoder)
    >>> hasher(tf.constant(["bolt"]), tf.constant(["hex bolt"])).negatives.shape
    TensorShape([1, 0])
    """

    def __init__(
        self, query_encoder: TextEncoder, document_encoder: TextEncoder
    ) -> None:
        self.of_query = query_encoder.trigrams
        self.of_document = document_encoder.trigrams
        self.tied = query_encoder is document_encoder
        self.fingerprints = False

    def __call__(
        self,
        query: Any,
        document: Any,
        extras: dict[str, tf.Tensor] | None = None,
    ) -> HashedPairs:
        """Hashes one batch; a hashed `WordBatch` is returned as it is.

        Args:
            query: Strings `[batch]` or `WordBatch`.
            document: Strings `[batch]` or `WordBatch`.
            extras: With strings: `negatives`, strings `[batch, k]`; `log_q`,
                float `[batch]` or `[batch, 1 + k]`; `teacher`, float `[batch,
                2 + k, d]`, with `teacher_texts`, int `[batch, 2 + k]`; each
                optional.
        """
        extras = extras or {}
        if isinstance(query, WordBatch):
            return HashedPairs(query, document, _none_of(document.text_index))
        query, titles = as_strings(query), as_strings(document)
        rows = tf.size(titles)
        if "negatives" in extras:
            negatives = tf.reshape(extras["negatives"], [-1])
            titles = tf.concat([titles, negatives], axis=0)
        if self.tied:
            both = self.of_query.distinct(tf.concat([query, titles], axis=0))
            of_query, of_titles = tf.split(
                both.text_index, [rows, tf.size(titles)]
            )
            queries = both._replace(text_index=of_query)
            documents = both._replace(text_index=of_titles)
        else:
            queries = self.of_query.distinct(query)
            documents = self.of_document.distinct(titles)
        clicked, rest = (
            documents.text_index[:rows],
            documents.text_index[rows:],
        )
        negatives = (
            tf.reshape(rest, tf.shape(extras["negatives"]))
            if "negatives" in extras
            else _none_of(clicked)
        )
        teacher = None
        if "teacher" in extras:
            teacher = teacher_cosines(
                extras["teacher"],
                extras["teacher_texts"],
                documents.text_index,
                tf.size(documents.lengths),
            )
        return HashedPairs(
            queries,
            documents._replace(text_index=clicked),
            negatives,
            extras.get("log_q"),
            teacher,
            self._fingerprints(titles, documents)
            if self.fingerprints
            else None,
        )

    def _fingerprints(
        self, titles: tf.Tensor, documents: WordBatch
    ) -> tf.Tensor:
        of_rows = text_fingerprints(
            titles, self.of_document.max_words, self.of_document.split
        )
        return tf.math.unsorted_segment_max(
            of_rows, documents.text_index, tf.size(documents.lengths)
        )

    def dataset(self, pairs: tf.data.Dataset) -> tf.data.Dataset:
        """Hashes a dataset's batches, in parallel with the training steps.

        Raises:
            InputError: The texts are hashed already, and the towers tied.
        """
        if is_hashed(pairs.element_spec):
            return pairs
        if isinstance(pairs.element_spec[0], WordBatch):
            if self.tied:
                raise InputError(
                    "tied towers hash queries and documents together; give a "
                    "dataset of strings"
                )
            return pairs
        # In a tuple: else Keras takes the fields for x, y and weights.
        return pairs.map(
            lambda *batch: (self(*batch),), num_parallel_calls=tf.data.AUTOTUNE
        ).prefetch(tf.data.AUTOTUNE)


def is_hashed(spec: Any) -> bool:
    """Returns whether a dataset's spec is that of `PairHasher.dataset`."""
    return isinstance(spec, tuple) and isinstance(spec[0], HashedPairs)


def _none_of(clicked: tf.Tensor) -> tf.Tensor:
    return tf.zeros([tf.size(clicked), 0], tf.int32)


def pair_batches(
    x: Any,
    y: Any = None,
    batch_size: int | None = None,
    shuffle_seed: int | None = None,
    reshuffle: bool = False,
) -> tf.data.Dataset:
    """Makes a dataset of string batches; a given dataset is returned as it is.

    Args:
        x: Dataset of `(query, document)` batches, with or without a dict as
            third part (see `TwoTower`), or a list of queries.
        y: List of documents, as many as queries.
        batch_size: Pairs in a batch, for lists; 256 by default.
        shuffle_seed: Seed by which lists are shuffled; `None` keeps the
            order.
        reshuffle: Whether each pass over the dataset has another order.

    Raises:
        InputError: The lists differ in length, or a dataset does not hold
            pairs of string batches.
    """
    if isinstance(x, tf.data.Dataset):
        if not is_hashed(x.element_spec):
            _check_spec(x.element_spec)
        return x
    query, document = _two_lists(x, y)
    pairs = tf.data.Dataset.from_tensor_slices((query, document))
    if shuffle_seed is not None:
        pairs = pairs.shuffle(
            max(len(query), 1), shuffle_seed, reshuffle_each_iteration=reshuffle
        )
    return pairs.batch(batch_size or 256)


def split_pairs(x: Any, y: Any, share: float) -> tuple[Any, Any, Any]:
    """Splits two lists into pairs to train on and, at the end, to validate on.

    Args:
        x: List of queries.
        y: List of documents.
        share: Share of the pairs to validate on, between 0 and 1.

    Returns:
        `(queries, documents, (queries, documents))`.

    Raises:
        InputError: x is a dataset, or a part would be empty.
    """
    if isinstance(x, tf.data.Dataset):
        raise InputError(
            "validation_split needs two lists, not a dataset: give "
            "validation_data"
        )
    query, document = _two_lists(x, y)
    first = len(query) - round(share * len(query))
    if not 0 < first < len(query):
        raise InputError(
            f"validation_split={share} of {len(query)} pairs leaves none on "
            "one side: expected a share between 0 and 1, and more pairs"
        )
    return (
        query[:first],
        document[:first],
        (query[first:], document[first:]),
    )


def refuse_weights(**weights: Any) -> None:
    """Checks that no weights of classes or samples are given.

    Args:
        **weights: The arguments by their names, `None` without weights.

    Raises:
        InputError: One of them is not `None`.
    """
    for name, value in weights.items():
        if value is not None:
            raise InputError(
                f"{name} is not supported: repeat the pairs that are to "
                "count more"
            )


def _two_lists(x: Any, y: Any) -> tuple[tf.Tensor, tf.Tensor]:
    if y is None:
        raise InputError(
            "expected a tf.data.Dataset, or a list of queries and a list of "
            f"documents; got one {type(x).__name__}"
        )
    query, document = as_strings(x), as_strings(y)
    if len(query) != len(document):
        raise InputError(
            f"{len(query)} queries but {len(document)} documents; give one "
            "clicked title for each query"
        )
    return query, document


def _check_spec(spec: Any) -> None:
    if (
        not isinstance(spec, tuple)
        or len(spec) not in (2, 3)
        or not all(map(_is_batch, spec[:2]))
    ):
        raise InputError(
            "expected a dataset of (query, document) batches, string "
            f"tensors [batch], got {spec}; make them with .batch(256)"
        )
    if len(spec) == 3:
        if isinstance(spec[0], WordBatch):
            raise InputError(
                "negatives, log_q and teacher need batches of strings, not of "
                "WordBatch: they are hashed together with the documents"
            )
        _check_extras(spec[2])


def _is_batch(spec: Any) -> bool:
    """Returns whether a spec is that of a batch of texts, hashed or not."""
    return isinstance(spec, WordBatch) or (
        isinstance(spec, tf.TensorSpec)
        and spec.dtype == tf.string
        and spec.shape.rank in (1, None)
    )


def _check_extras(spec: Any) -> None:
    known = {
        "negatives": (tf.string, (2,)),
        "log_q": (tf.float32, (1, 2)),
        "teacher": (tf.float32, (3,)),
        "teacher_texts": (tf.int32, (2,)),
    }
    if (
        not isinstance(spec, dict)
        or not all(
            name in known
            and part.dtype == known[name][0]
            and part.shape.rank in (*known[name][1], None)
            for name, part in spec.items()
        )
        or ("teacher" in spec) != ("teacher_texts" in spec)
    ):
        raise InputError(
            "expected a dict of negatives, strings [batch, k]; log_q, float32 "
            "[batch] or [batch, 1 + k]; teacher, float32 [batch, 2 + k, d], "
            f"with teacher_texts, int32 [batch, 2 + k]; got {spec}"
        )
