"""Limits the memory of requests, with assertions in exported graphs.

Before any other computation, a graph checks the size of a request. If the
request is too large, the graph fails with INVALID_ARGUMENT. `refusal` extracts
the readable line from the error.
"""

import re
from collections.abc import Sequence

import tensorflow as tf

MAX_HITS = 2**20
"""Maximum number of results of a request: the number of rows times the largest
k of a row. The signature `keys` of a KeyVec has n in place of k. A request of a
single row may exceed this maximum."""

MAX_EXPLAINED = 2**22
"""Maximum size of a request for `explained`: k times the text's bytes, summed
over the rows. A reply at this maximum has about 20 MB, at worst 55 MB."""

MAX_REPLY_BYTES = 2**28
"""Maximum size of all ids and titles in a reply, 268 MB. The check assumes
that each row gets the k documents with the longest ids and titles."""

UNEQUAL_ROWS = "Batching Run() input tensors must have equal 0th-dimension size"
"""TF Serving's message if inputs have unequal numbers of rows
(`ComputeTensorBatchSize` in tensorflow_serving/batching/batching_util.h)."""

_REFUSAL = re.compile(
    rf"assertion failed: \[(found [^][]+|{re.escape(UNEQUAL_ROWS)})\](?:\n|$)"
)


def refusal(message: str) -> str:
    """Returns what `admitted` wrote in `message`, or all of `message`."""
    match = _REFUSAL.search(message)
    return match[1] if match else message


def admitted(
    tensors: Sequence[tf.Tensor],
    is_allowed: tf.Tensor,
    *message: str | tf.Tensor,
) -> list[tf.Tensor]:
    """Returns the tensors; fails with the message if `is_allowed` is false."""
    line = tf.strings.join(
        [p if isinstance(p, str) else tf.strings.as_string(p) for p in message]
    )
    check = tf.debugging.Assert(is_allowed, [line], summarize=1)
    with tf.control_dependencies([check]):
        return [tf.identity(tensor) for tensor in tensors]


def with_equal_rows(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Returns the tensors; rejects unequal numbers of rows."""
    first, *others = (tf.shape(tensor)[0] for tensor in tensors)
    are_equal = tf.reduce_all([tf.equal(rows, first) for rows in others])
    return admitted(tensors, are_equal, UNEQUAL_ROWS)


def refuse_many_hits(
    text: tf.Tensor,
    width: tf.Tensor,  # number of results of each row
    widest: int,  # largest possible `width`
    name: str = "k",  # name of `width` in the message
) -> list[tf.Tensor]:
    """Returns `text` and `width`; rejects a request for too many results."""
    rows = tf.shape(text, tf.int64)[0]
    hits = rows * tf.cast(width, tf.int64)
    allowed = max(MAX_HITS, widest)
    return admitted(
        [text, width], hits <= allowed,
        "found ", rows, f" rows with {name} = ", width, ", which are ", hits,
        f" results, expected at most {allowed}: send fewer rows, or a smaller"
        f" {name}",
    )  # fmt: skip


def refuse_long_titles(
    text: tf.Tensor,
    width: tf.Tensor,
    longest: tf.Variable,  # item i: maximum bytes of i ids with their titles
) -> tf.Tensor:
    """Returns `text`; rejects a request whose reply may be too large."""
    rows = tf.shape(text, tf.int64)[0]
    total = rows * longest[width]
    # A request of a single row is always allowed.
    allowed = tf.maximum(longest[-1], MAX_REPLY_BYTES)
    (allowed_text,) = admitted(
        [text], total <= allowed,
        "found ", rows, " rows with k = ", width, ", whose ids and titles may"
        " have ", total, " bytes, expected at most ", allowed,
        ": send fewer rows, or a smaller k",
    )  # fmt: skip
    return allowed_text


def refuse_long_reasons(
    text: tf.Tensor,
    k: tf.Tensor,  # number of results of each row
    max_bytes: int | None,  # maximum of bytes read from a text; None: all
) -> tf.Tensor:
    """Returns `text`; rejects a request if its explanations may be too long."""
    sizes = tf.strings.length(text)
    if max_bytes is not None:
        sizes = tf.minimum(sizes, max_bytes)
    total = tf.reduce_sum(tf.cast(sizes, tf.int64) * tf.cast(k, tf.int64))
    (allowed_text,) = admitted(
        [text], total <= MAX_EXPLAINED,
        "found ", total, " as the sum of k times the bytes of each text,"
        f" expected at most {MAX_EXPLAINED}: send fewer rows, shorter texts, or"
        " a smaller k",
    )  # fmt: skip
    return allowed_text
