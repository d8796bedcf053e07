"""pair_batches: checks pairs of texts, and makes string batches of lists."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.pairs import is_hashed
from keras_lstm_dssm.text import WordBatch, as_strings


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
