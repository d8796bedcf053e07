"""How fast the machine could take a training step at best."""

from typing import NamedTuple

import tensorflow as tf

from keras_lstm_dssm.text import WordBatch

_FLOAT = 4


class Work(NamedTuple):
    """What a step must do, whoever computes it.

    Attributes:
        flops: Floating point operations in matrix products.
        bytes: Bytes read and written.
    """

    flops: int
    bytes: int

    def seconds(self, gemm_flops: float, copy_bytes: float) -> float:
        """The time of both at the machine's rates, one after the other."""
        return self.flops / gemm_flops + self.bytes / copy_bytes


def tower_work(words: WordBatch, cells: int, gates: int) -> Work:
    """Counts the work of one tower for one batch, forward and backward.

    With S words in the distinct texts, w distinct words, r distinct
    trigrams, H cells and G = gates H, the products are `y(t-1) W_rec`
    (2 S H G operations), and backward the errors `dz W_rec'` and the weight
    gradient `y' dz`, as much each. Arrays are counted once written and once
    read where a step cannot do without them: W's and V's rows of the
    trigrams (4 r G: read, moved, written back), their gradients and the
    words' vectors and gradients (2 r G + 4 w G), inputs of the recurrence
    and their gradients (4 S G), and the activations of the gates, c and y
    (2 S (G + 2 H)). What fits into a cache is counted too, and the element-
    wise arithmetic is not, so this is a yardstick and no strict bound.

    Args:
        words: The tower's batch.
        cells: H.
        gates: 3 without forget gate.
    """
    steps = int(tf.reduce_sum(words.lengths))
    distinct = int(tf.reduce_max(words.words)) + 1
    rows = int(tf.size(words.trigrams))
    width = gates * cells
    floats = (
        6 * rows * width
        + 4 * distinct * width
        + 4 * steps * width
        + 2 * steps * (width + 2 * cells)
    )
    return Work(6 * steps * cells * width, _FLOAT * floats)


def step_work(
    query: WordBatch, document: WordBatch, cells: int, gates: int
) -> Work:
    """Counts the work of a training step with in-batch negatives.

    To the towers comes the matrix of cosines, B queries by D documents:
    three products of 2 B D H operations, and the matrix, its softmax and its
    gradient once written and read (6 B D floats).
    """
    towers = [tower_work(words, cells, gates) for words in (query, document)]
    cosines = int(tf.size(query.text_index)) * int(tf.size(document.lengths))
    return Work(
        sum(work.flops for work in towers) + 6 * cosines * cells,
        sum(work.bytes for work in towers) + 6 * cosines * _FLOAT,
    )
