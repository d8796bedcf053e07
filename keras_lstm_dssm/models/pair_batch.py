"""Checks and hashes batches of queries and clicked titles, for `TwoTower`."""

from functools import partial
from typing import Any, NamedTuple

import tensorflow as tf

from keras_lstm_dssm.encoders.combined_encoder import UntrainedColumnCache
from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.text_model import (
    Hasher,
    check_rows,
    hashed_in_parallel,
    is_hashed,
    is_string_batch,
    sample_weights,
)
from keras_lstm_dssm.text.word_hashing import (
    WordBatch,
    as_strings,
    text_fingerprints,
)


def log_q_sums(
    log_q: tf.Tensor, candidates: tf.Tensor, title_count: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Sums `log_q` over the occurrences of each title; counts occurrences.

    `candidates` are indices of titles, `(batch, 1 + k)`: the clicked title and
    k negatives. `log_q` is for the logQ correction, see `TwoTower`. It has a
    logarithm for each clicked title, `(batch,)`, or for each candidate,
    `(batch, 1 + k)`. Returns sums and counts, both float32 `(titles,)`.
    """
    log_q = tf.reshape(log_q, [tf.shape(candidates)[0], -1])
    index = tf.reshape(candidates[:, : tf.shape(log_q)[1]], [-1, 1])
    count = tf.scatter_nd(index, tf.ones([tf.size(index)]), [title_count])
    total = tf.scatter_nd(index, tf.reshape(log_q, [-1]), [title_count])
    return total, count


class HashedPairs(NamedTuple):
    """Holds a hashed batch of pairs, with each distinct text once."""

    query: WordBatch  # its `text_index` is `[batch]`
    # The clicked titles and the negatives. With tied towers, the queries are
    # among these texts, too. The `text_index` of `document` is `[batch]`: the
    # clicked title of each pair.
    document: WordBatch
    # Indices of titles, int32 `[batch, 1 + k]`: the clicked title, then k
    # negatives.
    candidates: tf.Tensor
    # Indices of the titles among the distinct texts of `document`, int32
    # `[titles]`; `None` if all texts are titles.
    titles: tf.Tensor | None = None
    log_q: tuple[tf.Tensor, tf.Tensor] | None = None  # from `log_q_sums`
    fingerprints: tf.Tensor | None = None  # hashes of titles, int64 `[titles]`
    weights: tf.Tensor | None = None  # float32 `[batch]`; `None`: all are 1
    joint: Any = None  # a `JointBatch` if several workers train


class PairHasher(Hasher):
    """Hashes batches of texts for two towers."""

    hashed = HashedPairs

    def __init__(
        self, query_encoder: TextEncoder, document_encoder: TextEncoder
    ) -> None:
        self.query_hashing = query_encoder.trigrams
        self.document_hashing = document_encoder.trigrams
        self.tied = query_encoder is document_encoder
        self.fingerprints = False  # set to `True` if several workers train
        self.query_cache = self.query_hashing.cache()
        self.document_cache = (
            self.query_cache
            if self.query_hashing.rules == self.document_hashing.rules
            else self.document_hashing.cache()
        )
        caches = [query_encoder.training_cache(self.query_cache)] * 2
        if not self.tied:
            caches[1] = document_encoder.training_cache(self.document_cache)
        self._training_caches = tuple(caches)

    def __call__(
        self,
        query: Any,
        document: Any,
        extras: dict[str, tf.Tensor] | None = None,
        caches: tuple[Any, Any] | None = None,
    ) -> HashedPairs:
        """Hashes a batch of pairs.

        `query` and `document` are strings `[batch]`, or a `WordBatch` each.
        `extras` is the third part of a batch, see `TwoTower`. `caches` are a
        cache for queries and a cache for documents.
        """
        extras = extras or {}
        if isinstance(query, WordBatch):
            clicked = document.text_index
            check_rows(queries=query.text_index, documents=clicked)
            return HashedPairs(query, document, clicked[:, tf.newaxis])
        query, document = as_strings(query), as_strings(document)
        row_check = check_rows(queries=query, documents=document, **extras)
        with tf.control_dependencies([row_check]):
            query = tf.identity(query)
        rows = tf.size(document)
        negatives = extras.get("negatives", tf.zeros([rows, 0], tf.string))
        titles = tf.concat([document, tf.reshape(negatives, [-1])], axis=0)
        # A graph with caches cannot be saved, so caches are optional.
        hashing = caches or (self.query_hashing, self.document_hashing)
        if self.tied:
            # Queries and titles are hashed together, so that a training step
            # reads each row of the table once.
            documents = hashing[0].distinct(tf.concat([query, titles], axis=0))
            query_index, index = tf.split(
                documents.text_index, [rows, tf.size(titles)]
            )
            queries = documents._replace(text_index=query_index)
        else:
            queries = hashing[0].distinct(query)
            documents = hashing[1].distinct(titles)
            index = documents.text_index
        clicked = index[:rows]
        negative_index = tf.reshape(index[rows:], tf.shape(negatives))
        candidates = tf.concat([clicked[:, tf.newaxis], negative_index], axis=1)
        titles_index, count = None, documents.text_count
        if self.tied:  # `documents` has queries and titles
            titles_index, flat = tf.unique(tf.reshape(candidates, [-1]))
            candidates = tf.reshape(flat, tf.shape(candidates))
            count = tf.size(titles_index)
        log_q = fingerprints = None
        if "log_q" in extras:
            log_q = log_q_sums(extras["log_q"], candidates, count)
        if self.fingerprints:
            fingerprints = tf.math.unsorted_segment_max(
                text_fingerprints(
                    titles,
                    self.document_hashing.max_words,
                    self.document_hashing.split,
                ),
                tf.concat(
                    [candidates[:, 0], tf.reshape(candidates[:, 1:], [-1])], 0
                ),
                count,
            )
        return HashedPairs(
            queries,
            documents._replace(text_index=clicked),
            # When hard negatives are mined, `candidates` gets more columns. The
            # graph does not fix the number of columns, so that the training
            # step is not traced again.
            tf.raw_ops.PlaceholderWithDefault(
                input=candidates, shape=[None, None]
            ),
            titles_index,
            log_q,
            fingerprints,
            extras.get("sample_weight"),
        )

    def dataset(
        self, batches: tf.data.Dataset, untrained: bool = False
    ) -> tf.data.Dataset:
        """Hashes a dataset's batches in parallel.

        With `untrained`, each `WordBatch` also has the untrained columns of the
        vectors, if the encoder has untrained columns.
        """
        if is_hashed(batches.element_spec, HashedPairs):
            return batches
        if isinstance(batches.element_spec[0], WordBatch):
            if self.tied:
                raise InputError(
                    "tied towers hash queries and documents together; give a "
                    "dataset of strings"
                )
            return batches
        caches: tuple[Any, Any] = self.query_cache, self.document_cache
        if untrained:
            self.clear_if_stale()
            caches = self._training_caches
        return hashed_in_parallel(batches, partial(self, caches=caches))

    def clear_if_stale(self) -> None:
        """Clears caches of untrained columns that other weights computed."""
        for cache in set(self._training_caches):
            if isinstance(cache, UntrainedColumnCache):
                cache.clear_if_stale()


def pair_batches(
    x: Any,
    y: Any = None,
    batch_size: int | None = None,
    shuffle_seed: int | None = None,
    reshuffle: bool = False,
    sample_weight: Any = None,
) -> tf.data.Dataset:
    """Makes batches of the lists x and y, or checks and returns a dataset x."""
    if isinstance(x, tf.data.Dataset):
        if sample_weight is not None:
            raise InputError(
                "sample_weight is for lists: put weights into the third part of"
                ' a dataset\'s batches, {"sample_weight": float32 [batch]}'
            )
        if not is_hashed(x.element_spec, HashedPairs):
            _check_spec(x.element_spec)
        return x
    query, document = _two_lists(x, y)
    columns: tuple[Any, ...] = query, document
    if sample_weight is not None:
        weights = sample_weights(sample_weight, len(query))
        columns = *columns, {"sample_weight": weights}
    pairs = tf.data.Dataset.from_tensor_slices(columns)
    if shuffle_seed is not None:
        pairs = pairs.shuffle(
            max(len(query), 1), shuffle_seed, reshuffle_each_iteration=reshuffle
        )
    return pairs.batch(batch_size or 256)


def split_pairs(x: Any, y: Any, share: float) -> tuple[Any, Any, Any]:
    """Splits two lists of pairs for training and validation.

    The last pairs, a `share` of all pairs, are for validation. Returns the
    arguments x, y and `validation_data` of `fit`.
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
            f"validation_split={share} of {len(query)} pairs leaves no pair "
            "for training or validation: expected a share between 0 and 1, and "
            "more pairs"
        )
    return (query[:first], document[:first], (query[first:], document[first:]))


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
        or not all(
            isinstance(part, WordBatch) or is_string_batch(part)
            for part in spec[:2]
        )
    ):
        raise InputError(
            "expected a dataset of (query, document) batches, string "
            f"tensors [batch], got {spec}; make batches with .batch(256)"
        )
    if len(spec) == 3:
        if isinstance(spec[0], WordBatch):
            raise InputError(
                "negatives, weights and log_q need batches of strings, not of "
                "WordBatch: give a dataset of strings"
            )
        _check_extras(spec[2])


def _check_extras(spec: Any) -> None:
    allowed = {
        "negatives": (tf.string, (2,)),
        "sample_weight": (tf.float32, (1,)),
        "log_q": (tf.float32, (1, 2)),
    }
    if not isinstance(spec, dict) or not all(
        name in allowed
        and part.dtype == allowed[name][0]
        and part.shape.rank in (*allowed[name][1], None)
        for name, part in spec.items()
    ):
        raise InputError(
            "expected a dict of negatives (strings [batch, k]), sample_weight "
            "(float32 [batch]) or log_q (float32 [batch] or [batch, 1 + k]); "
            f"got {spec}"
        )
