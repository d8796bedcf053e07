"""What users hand to `fit`, as a dataset of string batches."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.pair_hasher import is_hashed
from keras_lstm_dssm.text import WordBatch, as_strings


def pair_batches(
    x: Any,
    y: Any = None,
    batch_size: int | None = None,
    shuffle_seed: int | None = None,
) -> tf.data.Dataset:
    """Makes a dataset of string batches; one that is given stays as it is.

    Args:
        x: Dataset of `(query, document)` batches, with a dict behind them or
            not (see `TwoTower`), or a list of queries.
        y: List of documents, as many as queries.
        batch_size: Pairs a batch, for lists; 256 by default.
        shuffle_seed: Shuffles lists anew each epoch; `None` keeps the order.

    Raises:
        InputError: The lists differ in length, or a dataset does not hold
            pairs of string batches.
    """
    if isinstance(x, tf.data.Dataset):
        spec = x.element_spec
        if is_hashed(spec):
            return x
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
            _check_extras(spec[2])
        return x
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
    pairs = tf.data.Dataset.from_tensor_slices((query, document))
    if shuffle_seed is not None:
        pairs = pairs.shuffle(max(len(query), 1), shuffle_seed)
    return pairs.batch(batch_size or 256)


def _is_batch(spec: Any) -> bool:
    """Whether it is the spec of a batch of strings, hashed or not."""
    return isinstance(spec, WordBatch) or (
        isinstance(spec, tf.TensorSpec)
        and spec.dtype == tf.string
        and spec.shape.rank in (1, None)
    )


def _check_extras(spec: Any) -> None:
    known = {"negatives": (tf.string, (2,)), "log_q": (tf.float32, (1, 2))}
    if not isinstance(spec, dict) or not all(
        name in known
        and part.dtype == known[name][0]
        and part.shape.rank in (*known[name][1], None)
        for name, part in spec.items()
    ):
        raise InputError(
            "expected a dict of negatives, strings [batch, k], and log_q, "
            f"float32 [batch] or [batch, 1 + k], got {spec}"
        )
