"""The JAX peer: the training step of this package, as one jitted function.

It computes what `TwoTower` computes with `lstm_96`, in-batch negatives and
Nesterov momentum; a test compares losses and weights. Rows of trigrams are
summed by word with `segment_sum`, `lax.scan` reads the words, `value_and_grad`
gives the gradient, and the optimizer updates whole tables. `jit` compiles for
fixed shapes, so that a batch is padded to the next of a few sizes. The texts
are hashed, and every shape is compiled, before the clock starts, which favours
this peer. Importing this module needs JAX.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.benchmarks import keras_towers
from keras_lstm_dssm.benchmarks.measurement import WARM_STEPS, seconds

GAMMA, RATE, MOMENTUM, THRESHOLD = 10.0, 0.1, 0.9, 1.0
Parameters = dict[str, jax.Array]


class Hashed(NamedTuple):
    """A batch of hashed texts, padded; each distinct text and word once.

    Attributes:
        trigrams: int32 `[m]`, trigram ids of the distinct words.
        word_index: int32 `[m]`, the word of each, ascending; `n` for padding.
        words: int32 `[time, u]`, the words of the distinct texts.
        lengths: int32 `[u]`, number of words in each text; 0 for padding.
        text_index: int32 `[batch]`, the distinct text of each row.
        numbers: int32 `[n]`, whose shape tells the number of words.
    """

    trigrams: np.ndarray
    word_index: np.ndarray
    words: np.ndarray
    lengths: np.ndarray
    text_index: np.ndarray
    numbers: np.ndarray


def hash_texts(texts: tf.Tensor) -> Hashed:
    """Hash strings `(batch,)` and pad them to one of a few shapes."""
    batch = keras_towers.HASHING.distinct(texts)
    ids = tf.gather(batch.trigrams, batch.trigram_index).numpy()
    words = batch.words.numpy().T
    word_count = _rounded(int(batch.word_index[-1]) + 1, 512)
    id_count = _rounded(len(ids), 4096)
    text_count = _rounded(words.shape[1], 256)
    time = _rounded(len(words), 4)
    return Hashed(
        _padded(ids, id_count),
        _padded(batch.word_index.numpy(), id_count, word_count),
        _padded(_padded(words, time).T, text_count).T,
        _padded(batch.lengths.numpy(), text_count),
        batch.text_index.numpy(),
        np.arange(word_count, dtype=np.int32),
    )


def _rounded(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _padded(values: np.ndarray, size: int, value: int = 0) -> np.ndarray:
    widths = [(0, size - len(values)), *[(0, 0)] * (values.ndim - 1)]
    return np.pad(values, widths, constant_values=value)


def new_tower(key: jax.Array) -> Parameters:
    """Draw the weights of a tower, for the gates i, g and o."""
    of_table, of_kernel = jax.random.split(key)
    shape = keras_towers.HASHING.size, keras_towers.WIDTH
    kernel = jax.nn.initializers.glorot_uniform()
    return {
        "table": jax.random.uniform(of_table, shape, None, -0.05, 0.05),
        "recurrent": kernel(of_kernel, (keras_towers.CELLS, shape[1])),
        "bias": jnp.zeros(shape[1]),
    }


def encode(tower: Parameters, batch: Hashed) -> jax.Array:
    """Encode the distinct texts into unit vectors, `[u, cells]`."""
    rows = tower["table"][batch.trigrams]
    table = tower["bias"] + jax.ops.segment_sum(
        rows, batch.word_index, len(batch.numbers), indices_are_sorted=True
    )
    time, texts = batch.words.shape
    reads = jnp.arange(time)[:, None] < batch.lengths

    def step(states: Any, word: Any) -> Any:
        (y, c), (words, reads) = states, word
        i, g, o = jnp.split(table[words] + y @ tower["recurrent"], 3, axis=1)
        new_c = c + jax.nn.sigmoid(i) * jnp.tanh(g)
        new_y = jax.nn.sigmoid(o) * jnp.tanh(new_c)
        kept = reads[:, None]
        return (jnp.where(kept, new_y, y), jnp.where(kept, new_c, c)), None

    zeros = jnp.zeros((texts, tower["recurrent"].shape[0]))
    (y, _), _ = jax.lax.scan(step, (zeros, zeros), (batch.words, reads))
    square = jnp.sum(y * y, axis=1, keepdims=True)
    return y * jax.lax.rsqrt(jnp.maximum(square, 1e-30))


def batch_loss(
    towers: tuple[Parameters, Parameters], query: Hashed, document: Hashed
) -> jax.Array:
    """Compute the mean loss of the clicked documents, in-batch."""
    queries = encode(towers[0], query)[query.text_index]
    scores = GAMMA * queries @ encode(towers[1], document).T
    scores = jnp.where(document.lengths > 0, scores, -jnp.inf)
    of_clicked = jnp.take_along_axis(
        jax.nn.log_softmax(scores), document.text_index[:, None], axis=1
    )
    return -jnp.mean(of_clicked)


@functools.partial(jax.jit, donate_argnums=(0, 1))
def training_step(
    towers: Any, velocity: Any, query: Hashed, document: Hashed
) -> Any:
    """Return the loss, the new weights and the new velocity."""
    ahead = jax.tree.map(lambda w, v: w + MOMENTUM * v, towers, velocity)
    loss, gradients = jax.value_and_grad(batch_loss)(ahead, query, document)
    velocity = jax.tree.map(
        lambda v, g: MOMENTUM * v - RATE * g,
        velocity,
        tuple(map(_renormalised, gradients)),
    )
    return loss, jax.tree.map(jnp.add, towers, velocity), velocity


def _renormalised(gradient: Parameters) -> Parameters:
    norm = jnp.sqrt(sum(jnp.sum(g * g) for g in gradient.values()))
    scale = THRESHOLD / jnp.maximum(norm, THRESHOLD)
    return {name: scale * each for name, each in gradient.items()}


class JaxTowers:
    """Trains and runs two towers on batches that are hashed beforehand."""

    def __init__(self) -> None:
        keys = jax.random.split(jax.random.key(0))
        self.towers = new_tower(keys[0]), new_tower(keys[1])
        self.velocity = jax.tree.map(jnp.zeros_like, self.towers)
        self._encode = jax.jit(encode)

    def train(self, batches: tf.data.Dataset, steps: int) -> float:
        """Return the seconds of a training step, from hashed batches."""
        hashed = [
            (hash_texts(query), hash_texts(document))
            for query, document in batches.take(WARM_STEPS + steps)
        ]

        def run() -> None:
            for pair in hashed[WARM_STEPS:]:
                loss = self.step(*pair)
            loss.block_until_ready()

        run()  # compiles
        return seconds(run) / steps

    def step(self, query: Hashed, document: Hashed) -> jax.Array:
        """Train on a batch and return its loss."""
        loss, self.towers, self.velocity = training_step(
            self.towers, self.velocity, query, document
        )
        return loss

    def prepare(self, titles: list[str], batch_size: int) -> list[Hashed]:
        """Hash titles for `encode`."""
        starts = range(0, len(titles), batch_size)
        return [
            hash_texts(tf.constant(titles[start : start + batch_size]))
            for start in starts
        ]

    def encode(self, batches: list[Hashed]) -> Any:
        """Encode hashed titles into `[titles, cells]`."""
        vectors = [self._encode(self.towers[1], batch) for batch in batches]
        return np.concatenate(
            [
                np.asarray(each)[batch.text_index]
                for each, batch in zip(vectors, batches, strict=True)
            ]
        )
