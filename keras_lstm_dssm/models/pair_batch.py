"""Batches of queries and clicked titles, checked and hashed for `TwoTower`."""

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


def clicked_first(values: tf.Tensor) -> tf.Tensor:
    """Flattens `(batch, 1 + k, ...)`: all first columns, then each row's rest.

    This is the order in which `PairHasher` hashes the titles.
    """
    shape = tf.concat([[-1], tf.shape(values)[2:]], axis=0)
    return tf.concat([values[:, 0], tf.reshape(values[:, 1:], shape)], axis=0)


def log_q_sums(
    log_q: tf.Tensor, candidates: tf.Tensor, titles: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor]:
    """Adds the log shares of clicks of each title, and counts them.

    `log_q` is `(batch,)`, or `(batch, 1 + k)` with those of negatives; for
    `candidates` see `HashedPairs`. Returns sums and counts, float `(titles,)`.
    """
    log_q = tf.reshape(log_q, [tf.shape(candidates)[0], -1])
    index = tf.reshape(candidates[:, : tf.shape(log_q)[1]], [-1, 1])
    count = tf.scatter_nd(index, tf.ones([tf.size(index)]), [titles])
    total = tf.scatter_nd(index, tf.reshape(log_q, [-1]), [titles])
    return total, count


class HashedPairs(NamedTuple):
    """Holds a hashed batch of pairs, each distinct text once.

    A title is a clicked document, or a judged or mined negative.
    """

    query: WordBatch  # the queries; its `text_index` is `[batch]`
    # The clicked documents; its `text_index` is `[batch]`, its distinct texts
    # include the negatives and, with tied towers, the queries.
    document: WordBatch
    # int32 `[batch, 1 + k]`: for each row, which of the titles are its clicked
    # one and its k negatives; k may be 0.
    candidates: tf.Tensor
    # int32 `[titles]`, the index of each title among the distinct texts of
    # `document`; `None` if these are all titles.
    titles: tf.Tensor | None = None
    # Sums and counts of the log shares of clicks of each title, float
    # `[titles]`, see `log_q_sums`; or `None`.
    log_q: tuple[tf.Tensor, tf.Tensor] | None = None
    # int64 `[titles]`, by which several workers know equal titles; or `None`.
    fingerprints: tf.Tensor | None = None
    # float32 `[batch]`, the weights of the rows; or `None`: 1 each.
    weights: tf.Tensor | None = None
    # What the batches of several workers have together, see `JointStep`; or
    # `None`.
    joint: Any = None


class PairHasher(Hasher):
    """Hashes batches of texts for two towers.

    With tied towers, queries and documents are hashed together, so that a
    training step reads each row of their one table once. With `fingerprints`,
    batches have those of the titles, for a training by several workers.
    """

    hashed = HashedPairs

    def __init__(
        self, query_encoder: TextEncoder, document_encoder: TextEncoder
    ) -> None:
        self.of_query = query_encoder.trigrams
        self.of_document = document_encoder.trigrams
        self.tied = query_encoder is document_encoder
        self.fingerprints = False
        self.query_cache = self.of_query.cache()
        self.document_cache = (
            self.query_cache
            if self.of_query.rules == self.of_document.rules
            else self.of_document.cache()
        )
        of_query = query_encoder.training_cache(self.query_cache)
        of_document = (
            of_query
            if self.tied
            else document_encoder.training_cache(self.document_cache)
        )
        self._with_untrained = of_query, of_document

    def __call__(
        self,
        query: Any,
        document: Any,
        extras: dict[str, tf.Tensor] | None = None,
        caches: tuple[Any, Any] | None = None,
    ) -> HashedPairs:
        """Hashes the texts of a batch of pairs; a `WordBatch` stays as it is.

        `extras` of strings are the third part of a batch, see `TwoTower`. The
        `distinct` of `caches` hashes queries and documents in place of the
        layers; a graph that contains caches cannot be saved.
        """
        extras = extras or {}
        if isinstance(query, WordBatch):
            clicked = document.text_index
            check_rows(queries=query.text_index, documents=clicked)
            return HashedPairs(query, document, clicked[:, tf.newaxis])
        query, document = as_strings(query), as_strings(document)
        equal = check_rows(queries=query, documents=document, **extras)
        with tf.control_dependencies([equal]):
            query = tf.identity(query)
        rows = tf.size(document)
        further = extras.get("negatives", tf.zeros([rows, 0], tf.string))
        titles = tf.concat([document, tf.reshape(further, [-1])], axis=0)
        of_query, of_document = caches or (self.of_query, self.of_document)
        if self.tied:
            both = of_query.distinct(tf.concat([query, titles], axis=0))
            query_index, index = tf.split(
                both.text_index, [rows, tf.size(titles)]
            )
            queries = both._replace(text_index=query_index)
            documents = both
        else:
            queries = of_query.distinct(query)
            documents = of_document.distinct(titles)
            index = documents.text_index
        clicked = index[:rows]
        negatives = tf.reshape(index[rows:], tf.shape(further))
        candidates = tf.concat([clicked[:, tf.newaxis], negatives], axis=1)
        titles_index, count = None, documents.text_count
        if self.tied:  # the distinct texts include the queries
            titles_index, flat = tf.unique(tf.reshape(candidates, [-1]))
            candidates = tf.reshape(flat, tf.shape(candidates))
            count = tf.size(titles_index)
        log_q = fingerprints = None
        if "log_q" in extras:
            log_q = log_q_sums(extras["log_q"], candidates, count)
        if self.fingerprints:
            fingerprints = tf.math.unsorted_segment_max(
                text_fingerprints(
                    titles, self.of_document.max_words, self.of_document.split
                ),
                clicked_first(candidates),
                count,
            )
        return HashedPairs(
            queries,
            documents._replace(text_index=clicked),
            # Of unknown width, so that one traced training step serves for
            # the epochs before the first mining and for those after it.
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
        """Hashes a dataset's batches in parallel, each text once.

        With `untrained`, batches have the columns of vectors that are not
        trained; only the model of these encoders can then read them, and only
        with its present weights.
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
            caches = self._with_untrained
        return hashed_in_parallel(batches, partial(self, caches=caches))

    def clear_if_stale(self) -> None:
        """Empties caches of untrained columns that other weights filled."""
        for columns in set(self._with_untrained):  # tied towers share one
            if isinstance(columns, UntrainedColumnCache):
                columns.clear_if_stale()


def pair_batches(
    x: Any,
    y: Any = None,
    batch_size: int | None = None,
    shuffle_seed: int | None = None,
    reshuffle: bool = False,
    sample_weight: Any = None,
) -> tf.data.Dataset:
    """Makes a dataset of string batches; a given dataset is returned as it is.

    Lists of queries, documents and weights are shuffled by `shuffle_seed`, with
    `reshuffle` anew in each pass; `None` keeps the order.
    """
    if isinstance(x, tf.data.Dataset):
        if sample_weight is not None:
            raise InputError(
                "sample_weight is for lists: put it into the third part of a"
                ' dataset\'s batches, {"sample_weight": float32 [batch]}'
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
    """Splits two lists into pairs to train on and, at the end, to validate on.

    Returns `(queries, documents, (queries, documents))`. Raises `InputError` if
    x is a dataset, or a part would be empty.
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
            f"tensors [batch], got {spec}; make them with .batch(256)"
        )
    if len(spec) == 3:
        if isinstance(spec[0], WordBatch):
            raise InputError(
                "negatives, weights and log_q need batches of strings, not of "
                "WordBatch: they are hashed together with the documents"
            )
        _check_extras(spec[2])


def _check_extras(spec: Any) -> None:
    known = {
        "negatives": (tf.string, (2,)),
        "sample_weight": (tf.float32, (1,)),
        "log_q": (tf.float32, (1, 2)),
    }
    if not isinstance(spec, dict) or not all(
        name in known
        and part.dtype == known[name][0]
        and part.shape.rank in (*known[name][1], None)
        for name, part in spec.items()
    ):
        raise InputError(
            "expected a dict of negatives, strings [batch, k]; sample_weight, "
            "float32 [batch]; log_q, float32 [batch] or [batch, 1 + k]; got "
            f"{spec}"
        )
