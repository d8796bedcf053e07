"""Limits on the memory of a request, as assertions in exported graphs.

A graph refuses a request before it computes anything of it. The error is
INVALID_ARGUMENT, and its line says what was found, what is allowed and what to
do; see `refusal`.
"""

import re
from collections.abc import Sequence

import tensorflow as tf

MAX_HITS = 2**20
"""Maximum number of rows of a request times the largest k (or n) of them.

The default batches of 512 rows with k = 1,000 are half of it. One row may have
as many results as its model allows.
"""

MAX_EXPLAINED = 2**22
"""Maximum of the sum, over the rows of `explained`, of k times bytes of text.

A reply names each word of a query for each of its hits, so it has five bytes
for each of these (13 where all words are single letters): 20 MB, at most 55.
"""

MAX_REPLY_BYTES = 2**28
"""Maximum bytes of the ids and titles of a reply, 268 MB.

What is counted are the k longest ids and titles of the model, for each row.
"""

UNEQUAL_ROWS = "Batching Run() input tensors must have equal 0th-dimension size"
"""The message of TF Serving for unequal rows, if it batches requests.

Source: tensorflow_serving/batching/batching_util.h, `ComputeTensorBatchSize`
"""

_REFUSAL = re.compile(
    rf"assertion failed: \[(found [^][]+|{re.escape(UNEQUAL_ROWS)})\](?:\n|$)"
)


def refusal(message: str) -> str:
    """Returns the line of a graph's refusal, or another message as it is.

    TensorFlow puts the line into brackets, and the names of nodes after it. The
    messages of other assertions are those that TF Serving sends.
    """
    match = _REFUSAL.search(message)
    return match[1] if match else message


def admitted(
    tensors: Sequence[tf.Tensor],
    is_allowed: tf.Tensor,
    *message: str | tf.Tensor,
) -> list[tf.Tensor]:
    """Returns tensors that can be read only if a request is allowed.

    The parts of the message are strings, and integers of the graph.
    """
    line = tf.strings.join(
        [
            part if isinstance(part, str) else tf.strings.as_string(part)
            for part in message
        ]
    )
    check = tf.debugging.Assert(is_allowed, [line], summarize=1)
    with tf.control_dependencies([check]):
        return [tf.identity(tensor) for tensor in tensors]


def with_equal_rows(tensors: Sequence[tf.Tensor]) -> list[tf.Tensor]:
    """Refuses inputs with unequal numbers of rows."""
    first, *others = (tf.shape(tensor)[0] for tensor in tensors)
    are_equal = tf.reduce_all([tf.equal(rows, first) for rows in others])
    return admitted(tensors, are_equal, UNEQUAL_ROWS)


def with_few_hits(
    text: tf.Tensor, width: tf.Tensor, widest: int, name: str = "k"
) -> list[tf.Tensor]:
    """Refuses too many results; returns texts and width.

    `widest` is the largest width that the model allows, for one row at least;
    `name` is the name of k in the error.
    """
    rows = tf.shape(text, tf.int64)[0]
    hits = rows * tf.cast(width, tf.int64)
    allowed = max(MAX_HITS, widest)
    return admitted(
        [text, width], hits <= allowed,
        "found ", rows, f" rows with {name} = ", width, ", which are ", hits,
        f" results, expected at most {allowed}: send fewer rows, or a smaller"
        f" {name}",
    )  # fmt: skip


def with_short_titles(
    text: tf.Tensor, width: tf.Tensor, longest: tf.Variable
) -> tf.Tensor:
    """Refuses a reply whose ids and titles may have too many bytes.

    `longest` are int64 `[widest + 1]`: the bytes of the 0, 1, 2, ... longest
    ids and titles together. One row may have as many as its model allows.
    """
    rows = tf.shape(text, tf.int64)[0]
    total = rows * longest[width]
    allowed = tf.maximum(longest[-1], MAX_REPLY_BYTES)
    (allowed_text,) = admitted(
        [text], total <= allowed,
        "found ", rows, " rows with k = ", width, ", whose ids and titles may"
        " have ", total, " bytes, expected at most ", allowed,
        ": send fewer rows, or a smaller k",
    )  # fmt: skip
    return allowed_text


def with_short_reasons(
    text: tf.Tensor, k: tf.Tensor, most_bytes: int | None
) -> tf.Tensor:
    """Refuses texts whose words, times k hits, make a reply too large.

    `k` are the results of each row, `most_bytes` how many bytes are read of a
    text.
    """
    sizes = tf.strings.length(text)
    if most_bytes is not None:
        sizes = tf.minimum(sizes, most_bytes)
    total = tf.reduce_sum(tf.cast(sizes, tf.int64) * tf.cast(k, tf.int64))
    (allowed_text,) = admitted(
        [text], total <= MAX_EXPLAINED,
        "found ", total, " bytes of texts times k to explain, expected at most "
        f"{MAX_EXPLAINED}: send fewer rows, shorter texts, or a smaller k",
    )  # fmt: skip
    return allowed_text
