"""Pre-training of a recursive autoencoder on texts."""

from collections.abc import Sequence

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import WordSequences, WordVectors
from keras_lstm_dssm.matchers.recursive_autoencoder import (
    RecursiveAutoencoder,
)


def clip(texts: WordSequences, max_words: int) -> tuple[tf.Tensor, tf.Tensor]:
    """Return the vectors and lengths of texts, cut after `max_words` words."""
    return texts.vectors[:, :max_words], tf.minimum(texts.lengths, max_words)


def pretrain_autoencoder(
    autoencoder: RecursiveAutoencoder,
    words: WordVectors,
    texts: Sequence[str],
    epochs: int,
    batch_size: int = 64,
    learning_rate: float = 3e-3,
    seed: int = 0,
) -> list[float]:
    """Train a recursive autoencoder on texts, from new weights, by Adam.

    The loss is the unfolding error of an inner node, averaged over those of
    a batch. Greedy trees are chosen again for every batch. The word vectors
    are constants.

    Args:
        autoencoder: The autoencoder to train.
        words: The layer that gives the word vectors.
        texts: The training texts; each distinct text is read once an epoch.
        epochs: Number of passes over the texts.
        batch_size: Number of texts of a training step, of similar length.
        learning_rate: Learning rate of Adam.
        seed: Seed of the weights and of the order of batches.

    Returns:
        The mean loss of the training steps of each epoch.

    Raises:
        InputError: No text has two words.
    """
    autoencoder.restart(seed)
    ordered = np.array(sorted(set(texts), key=lambda text: (len(text), text)))
    batches = np.array_split(ordered, -(-len(ordered) // batch_size) or 1)
    optimizer = keras.optimizers.Adam(learning_rate)
    variables = autoencoder.variables
    optimizer.build(variables)

    @tf.function(reduce_retracing=True)
    def step(vectors: tf.Tensor, lengths: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            # The weights are not trainable as long as a matcher has them.
            tape.watch([variable.value for variable in variables])
            error = autoencoder.unfolding_error(vectors, lengths)
            count = tf.reduce_sum(tf.cast(lengths - 1, error.dtype))
            loss = tf.reduce_sum(error) / tf.maximum(count, 1)
        gradients = tape.gradient(loss, [v.value for v in variables])
        optimizer.apply(gradients, variables)
        return loss

    hashed = [words.distinct(tf.constant(batch)) for batch in batches]
    random = np.random.default_rng(seed)
    history = []
    for _ in range(epochs):
        losses = []
        for number in random.permutation(len(batches)):
            sequences = words(hashed[number])
            vectors, lengths = clip(sequences, autoencoder.max_words)
            losses.append(step(vectors, lengths))
        history.append(float(np.mean(losses)))
    if not any(history):
        raise InputError(
            f"no text of {len(ordered)} has two words; pre-train on texts with"
            " several words each"
        )
    return history
