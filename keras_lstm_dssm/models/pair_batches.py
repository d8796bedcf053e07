"""What users hand to `fit`, as a dataset of string batches."""

from typing import Any

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.text import WordBatch, as_strings


def pair_batches(
    x: Any,
    y: Any = None,
    batch_size: int | None = None,
    shuffle_seed: int | None = None,
) -> tf.data.Dataset:
    """Makes a dataset of string batches; one that is given stays as it is.

    Args:
        x: Dataset of `(query, document)` batches, or a list of queries.
        y: List of documents, as many as queries.
        batch_size: Pairs a batch, for lists; 256 by default.
        shuffle_seed: Shuffles lists anew each epoch; `None` keeps the order.

    Raises:
        InputError: The lists differ in length, or a dataset does not hold
            pairs of string batches.
    """
    if isinstance(x, tf.data.Dataset):
        spec = x.element_spec
        if not isinstance(spec, tuple) or not (
            len(spec) == 2 and all(map(_is_batch, spec))
        ):
            raise InputError(
                "expected a dataset of (query, document) batches, string "
                f"tensors [batch], got {spec}; make them with .batch(256)"
            )
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
