"""Compares `fit` of `TwoTower` with `fit` of a plain Keras model.

Both models have towers of `TextVectorization`, `Embedding` and `GRU`. They
train with in-batch negatives and Adam in one thread. The program prints the
processor seconds that each model needs for an epoch.

    python -m benchmarks.layer_towers api
"""

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import keras
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import open_log

PAIRS, BATCH, EPOCHS, GAMMA = 12_800, 256, 3, 10.0


def tower(texts: Sequence[str]) -> keras.Sequential:
    """Returns layers that turn strings into vectors of 64 numbers."""
    words = keras.layers.TextVectorization(output_sequence_length=12)
    words.adapt(texts)
    size = words.vocabulary_size()
    embedding = keras.layers.Embedding(size, 64, mask_zero=True)
    return keras.Sequential([words, embedding, keras.layers.GRU(64)])


class PlainTowers(keras.Model):
    """Two towers with a custom training step, as in the guides of Keras."""

    def __init__(self, query: Any, document: Any) -> None:
        super().__init__()
        self.query, self.document = query, document

    def train_step(self, data: Any) -> dict[str, tf.Tensor]:
        """Runs a training step on queries and clicked titles."""
        (pair,) = data
        with tf.GradientTape() as tape:
            query, document = (
                tf.math.l2_normalize(layer(texts, training=True), axis=1)
                for layer, texts in zip(
                    (self.query, self.document), pair, strict=True
                )
            )
            cosines = tf.matmul(query, document, transpose_b=True)
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                tf.range(tf.shape(cosines)[0]), GAMMA * cosines
            )
            loss = tf.reduce_mean(losses)
        variables = self.trainable_variables
        gradients = tape.gradient(loss, [v.value for v in variables])
        self.optimizer.apply(gradients, variables)
        return {"loss": loss}


def seconds(fit: Callable[[], Any]) -> float:
    """Runs `EPOCHS` epochs; returns the median of their processor seconds."""
    epochs = []
    for _ in range(EPOCHS):
        start = time.process_time()
        fit()
        epochs.append(time.process_time() - start)
    return statistics.median(epochs)


def main(data: str) -> None:
    """Measures both models three times, and prints the seconds each time."""
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    log = open_log(data)
    pairs = list(islice(log, log.count()))
    # The log is sorted. So every `step`-th pair of the whole log is taken.
    step = max(1, len(pairs) // PAIRS)
    queries, titles = zip(*pairs[::step][:PAIRS], strict=True)
    texts = sorted({*queries, *titles})
    ours = dssm.TwoTower(tower(texts), tower(texts), negatives="in_batch")
    ours.compile(keras.optimizers.Adam(0.001), dssm.CosineSoftmax(GAMMA))
    plain = PlainTowers(tower(texts), tower(texts))
    plain.compile(optimizer=keras.optimizers.Adam(0.001))
    batches = tf.data.Dataset.from_tensor_slices((list(queries), list(titles)))
    batches = batches.shuffle(PAIRS, 1).batch(BATCH).prefetch(2)
    fits: list[Callable[[], Any]] = [
        lambda: ours.fit(queries, titles, batch_size=BATCH, verbose=0),
        lambda: plain.fit(tf.data.Dataset.zip((batches,)), verbose=0),
    ]
    distinct = len({*queries}), len({*titles})
    print(f"{len(queries):,} pairs of {distinct[0]:,} distinct queries and"
          f" {distinct[1]:,} distinct titles")  # fmt: skip
    for fit in fits:  # a warm-up: traces the graphs
        fit()
    for _ in range(3):
        two_tower, plain_keras = map(seconds, fits)
        print(
            f"TwoTower {two_tower:.2f} s, Keras {plain_keras:.2f} s,"
            f" {two_tower / plain_keras:.2f}"
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
