"""Batches of queries and clicked titles, checked and hashed for `TwoTower`."""

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import tensorflow as tf

from keras_lstm_dssm.encoders.combined_encoder import (
    CombinedEncoder,
    FixedColumns,
)
from keras_lstm_dssm.encoders.text_encoder import TextEncoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers.letter_trigrams import LetterTrigrams
from keras_lstm_dssm.models.text_model import (
    Hasher,
    check_rows,
    hashed_in_parallel,
    is_hashed,
    is_string_batch,
)
from keras_lstm_dssm.text.caches import HashedTextCache
from keras_lstm_dssm.text.strings import as_strings
from keras_lstm_dssm.text.word_batch import WordBatch, text_fingerprints

if TYPE_CHECKING:
    from keras_lstm_dssm.distributed.joint_step import JointTitles


def teacher_cosines(
    vectors: tf.Tensor,
    numbers: tf.Tensor,
    text_index: tf.Tensor,
    distinct: tf.Tensor,
) -> tf.Tensor:
    """Computes a teacher's cosines of a batch's rows with its distinct titles.

    A row's own text is the one that the teacher has encoded for its query:
    the query, or the title from which a synthetic query was made.

    Args:
        vectors: Float `(batch, 2 + k, d)`, the teacher's unit vectors of the
            row's own text, of the clicked title, and of k further titles.
        numbers: int32 of shape `(batch, 2 + k)`, equal for equal texts only;
            -1 for a text that the teacher does not know.
        text_index: int32 `(batch * (1 + k),)`, the index of each title among
            the distinct ones: the clicked titles first, then the further ones
            of each row.
        distinct: Number of distinct texts, some of which may be no title.

    Returns:
        `(batch, distinct)`, with -inf where the title is the row's own text,
        where the teacher does not know the title or the row's text, and for
        texts that are no title of the batch.
    """
    dimension = tf.shape(vectors)[2]
    titles = tf.concat(
        [vectors[:, 1], tf.reshape(vectors[:, 2:], [-1, dimension])], axis=0
    )
    title_numbers = tf.concat(
        [numbers[:, 1], tf.reshape(numbers[:, 2:], [-1])], axis=0
    )
    # Titles that the model cannot distinguish are one: the last known counts.
    known = title_numbers >= 0
    last = tf.math.unsorted_segment_max(
        tf.where(known, tf.range(tf.size(text_index)), -1), text_index, distinct
    )
    of_distinct = tf.gather(title_numbers, tf.maximum(last, 0))
    of_distinct = tf.where(last < 0, -1, of_distinct)
    own = numbers[:, :1]
    clicked = text_index[: tf.shape(numbers)[0], tf.newaxis]
    is_own = tf.equal(own, of_distinct) | (
        tf.equal(own, numbers[:, 1:2])
        & tf.equal(clicked, tf.range(distinct)[tf.newaxis])
    )
    left_out = is_own | (own < 0) | (of_distinct < 0)
    cosines = tf.matmul(
        vectors[:, 0], tf.gather(titles, tf.maximum(last, 0)), transpose_b=True
    )
    nothing = tf.constant(-float("inf"), cosines.dtype)
    return tf.where(left_out, nothing, cosines)


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
    joint: "JointTitles | None" = None


class PairHasher(Hasher):
    """Hashes batches of texts for two towers.

    With tied towers, queries and documents are hashed together, so that a
    training step reads each row of their one table once.

    Args:
        query_encoder: The encoder of queries.
        document_encoder: The encoder of documents.

    Attributes:
        fingerprints: Whether to compute those of the titles, for a training
            by several workers. Default `False`.
        query_cache: `HashedTextCache` of the queries.
        document_cache: `HashedTextCache` of the documents; the same object
            as `query_cache` if both encoders have the same hashing settings.

    Example:
    >>> encoder = LSTMEncoder(8)
    >>> hasher = PairHasher(encoder, encoder)
    >>> hasher(tf.constant(["bolt"]), tf.constant(["hex bolt"])).negatives.shape
    TensorShape([1, 0])
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
            if _rules(self.of_query) == _rules(self.of_document)
            else self.of_document.cache()
        )
        query_columns = _with_fixed_columns(query_encoder, self.query_cache)
        self._with_fixed = (
            query_columns,
            query_columns
            if self.tied
            else _with_fixed_columns(document_encoder, self.document_cache),
        )

    def __call__(
        self,
        query: Any,
        document: Any,
        extras: dict[str, tf.Tensor] | None = None,
        caches: tuple[Any, Any] | None = None,
    ) -> HashedPairs:
        """Hashes the texts of a batch of pairs; a `WordBatch` stays as it is.

        Args:
            query: Strings `[batch]` or `WordBatch`.
            document: Strings `[batch]` or `WordBatch`.
            extras: With strings: `negatives`, strings `[batch, k]`; `log_q`,
                float `[batch]` or `[batch, 1 + k]`; `teacher`, float `[batch,
                2 + k, d]`, with `teacher_texts`, int `[batch, 2 + k]`; each
                optional.
            caches: Two objects with a method `distinct`, which hash the
                queries and the documents in place of the encoders' layers. A
                graph that contains caches cannot be saved. Default `None`.
        """
        extras = extras or {}
        if isinstance(query, WordBatch):
            clicked = document.text_index
            check_rows(queries=query.text_index, documents=clicked)
            return HashedPairs(query, document, _none_of(clicked))
        query, titles = as_strings(query), as_strings(document)
        equal = check_rows(queries=query, documents=titles, **extras)
        with tf.control_dependencies([equal]):
            query = tf.identity(query)
        rows = tf.size(titles)
        if "negatives" in extras:
            negatives = tf.reshape(extras["negatives"], [-1])
            titles = tf.concat([titles, negatives], axis=0)
        of_query, of_document = caches or (self.of_query, self.of_document)
        if self.tied:
            both = of_query.distinct(tf.concat([query, titles], axis=0))
            query_index, title_index = tf.split(
                both.text_index, [rows, tf.size(titles)]
            )
            queries = both._replace(text_index=query_index)
            documents = both._replace(text_index=title_index)
        else:
            queries = of_query.distinct(query)
            documents = of_document.distinct(titles)
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
            # Of unknown width, so that one traced training step serves for
            # the epochs before the first mining and for those after it.
            tf.raw_ops.PlaceholderWithDefault(
                input=negatives, shape=[None, None]
            ),
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

    def dataset(
        self, batches: tf.data.Dataset, fixed: bool = False
    ) -> tf.data.Dataset:
        """Hashes a dataset's batches, in parallel with the training steps.

        Each text is hashed once and cached for later epochs.

        Args:
            batches: Dataset of batches of texts, or of hashed ones, which are
                left as they are.
            fixed: Whether each batch includes the untrained columns of its
                vectors (`WordBatch.fixed`). Only the model of these encoders
                can then read the dataset, and only with its present weights.
                Default `False`.

        Raises:
            InputError: The texts are hashed already, and the towers tied.
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
        if fixed:
            self.forget_outdated()
            hash_batch = partial(self, caches=self._with_fixed)
        else:
            caches = self.query_cache, self.document_cache
            hash_batch = partial(self, caches=caches)
        return hashed_in_parallel(batches, hash_batch)

    def forget_outdated(self) -> None:
        """Empties the caches of untrained columns that other weights filled.

        See `FixedColumns.forget_outdated`.
        """
        for columns in set(self._with_fixed):  # tied towers share one
            if isinstance(columns, FixedColumns):
                columns.forget_outdated()


def _rules(trigrams: LetterTrigrams) -> tuple[Any, ...]:
    return trigrams.oov_buckets, trigrams.max_words, trigrams.split


def _with_fixed_columns(
    encoder: TextEncoder, cache: HashedTextCache
) -> HashedTextCache | FixedColumns:
    # A subclass may compose its vectors in another way.
    if type(encoder) is CombinedEncoder:
        return FixedColumns(encoder, cache)
    return cache


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
        if not is_hashed(x.element_spec, HashedPairs):
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
                "negatives, log_q and teacher need batches of strings, not of "
                "WordBatch: they are hashed together with the documents"
            )
        _check_extras(spec[2])


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
