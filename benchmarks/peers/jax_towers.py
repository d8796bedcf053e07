"""The JAX peer of two towers; a training step is one jitted function.

A test compares the losses and weights of the peer with those of the preset
`lstm_96` with in-batch negatives. `jit` compiles for fixed shapes, so batches
are padded to a few shapes. Hashing and compilation take place before the clock
starts, an advantage for this peer.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.clocks import WARM_STEPS, wall_and_cpu
from benchmarks.peers import Texts, answer_as_towers, read_settings

GAMMA, RATE, MOMENTUM, THRESHOLD = 10.0, 0.1, 0.9, 1.0
Parameters = dict[str, jax.Array]


class Distinct(NamedTuple):
    """A batch: u distinct texts, n distinct words, and the words' m trigrams.

    The numbers u, n and m include padding.
    """

    trigram_ids: np.ndarray  # int32 `[m]`
    # int32 `[m]`, index of each trigram's word, ascending; `n` for padding.
    word_index: np.ndarray
    words: np.ndarray  # int32 `[time, u]`, word indices of the distinct texts
    lengths: np.ndarray  # int32 `[u]`, number of words; 0 for padding
    text_index: np.ndarray  # int32 `[batch]`, each text's column in `words`
    word_range: np.ndarray  # int32 `[n]`; `jit` reads n from the shape only


def distinct(texts: Texts) -> Distinct:
    """Finds the distinct texts and words, and pads arrays to a few shapes."""
    word_rows: dict[bytes, int] = {}
    word_ends = np.cumsum(texts.trigrams_per_word)[:-1]
    all_words = np.split(texts.ids.astype(np.int32), word_ends)
    words = [
        word_rows.setdefault(w.tobytes(), len(word_rows)) for w in all_words
    ]
    text_rows: dict[bytes, int] = {}
    text_ends = np.cumsum(texts.words_per_text)[:-1]
    all_texts = np.split(np.array(words, np.int32), text_ends)
    index = [
        text_rows.setdefault(t.tobytes(), len(text_rows)) for t in all_texts
    ]
    ids = [np.frombuffer(word, np.int32) for word in word_rows]
    distinct_texts = [np.frombuffer(text, np.int32) for text in text_rows]
    lengths = np.array(list(map(len, distinct_texts)), np.int32)
    time = _rounded(max(lengths), 4)
    padded = np.stack([_padded(text, time) for text in distinct_texts])
    word_count = _rounded(len(ids), 512)
    id_count = _rounded(sum(map(len, ids)), 4096)
    text_count = _rounded(len(distinct_texts), 256)
    word_index = np.repeat(np.arange(len(ids)), list(map(len, ids)))
    return Distinct(
        _padded(np.concatenate(ids), id_count),
        _padded(word_index.astype(np.int32), id_count, word_count),
        _padded(padded, text_count).T,
        _padded(lengths, text_count),
        np.array(index, np.int32),
        np.arange(word_count, dtype=np.int32),
    )


def _rounded(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _padded(values: np.ndarray, size: int, value: int = 0) -> np.ndarray:
    widths = [(0, size - len(values)), *[(0, 0)] * (values.ndim - 1)]
    return np.pad(values, widths, constant_values=value)


def new_tower(key: jax.Array, trigram_count: int, cells: int) -> Parameters:
    """Draws weights of an LSTM with input and output gate, but no forget gate.

    Each array has columns for input gate, candidate and output gate, in order.
    """
    table_key, kernel_key = jax.random.split(key)
    shape = trigram_count, 3 * cells
    kernel = jax.nn.initializers.glorot_uniform()
    return {
        "table": jax.random.uniform(table_key, shape, None, -0.05, 0.05),
        "recurrent": kernel(kernel_key, (cells, shape[1])),
        "bias": jnp.zeros(shape[1]),
    }


def encode(tower: Parameters, batch: Distinct) -> jax.Array:
    """Encodes the distinct texts into unit vectors, `[u, cells]`."""
    rows = tower["table"][batch.trigram_ids]
    word_inputs = tower["bias"] + jax.ops.segment_sum(
        rows, batch.word_index, len(batch.word_range), indices_are_sorted=True
    )
    time, texts = batch.words.shape
    reads = jnp.arange(time)[:, None] < batch.lengths

    def step(states: Any, inputs: Any) -> Any:
        (y, c), (words, reads) = states, inputs
        gates = word_inputs[words] + y @ tower["recurrent"]
        i, g, o = jnp.split(gates, 3, axis=1)
        new_c = c + jax.nn.sigmoid(i) * jnp.tanh(g)
        new_y = jax.nn.sigmoid(o) * jnp.tanh(new_c)
        is_word = reads[:, None]
        states = jnp.where(is_word, new_y, y), jnp.where(is_word, new_c, c)
        return states, None

    zeros = jnp.zeros((texts, tower["recurrent"].shape[0]))
    (y, _), _ = jax.lax.scan(step, (zeros, zeros), (batch.words, reads))
    square = jnp.sum(y * y, axis=1, keepdims=True)
    return y * jax.lax.rsqrt(jnp.maximum(square, 1e-30))


def batch_loss(
    towers: tuple[Parameters, Parameters], query: Distinct, document: Distinct
) -> jax.Array:
    """Computes the mean loss with in-batch negatives, a scalar."""
    queries = encode(towers[0], query)[query.text_index]
    scores = GAMMA * queries @ encode(towers[1], document).T
    scores = jnp.where(document.lengths > 0, scores, -jnp.inf)
    clicked_log_p = jnp.take_along_axis(
        jax.nn.log_softmax(scores), document.text_index[:, None], axis=1
    )
    return -jnp.mean(clicked_log_p)


@partial(jax.jit, donate_argnums=(0, 1))
def training_step(
    towers: Any, velocity: Any, query: Distinct, document: Distinct
) -> Any:
    """Takes a step; returns the loss, the new weights and the new velocity."""
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
    return {name: scale * g for name, g in gradient.items()}


class JaxTowers:
    """Trains two towers and encodes titles, in hashed and padded batches."""

    def __init__(self, trigrams: int, cells: int) -> None:
        query, document = (
            new_tower(key, trigrams, cells)
            for key in jax.random.split(jax.random.key(0))
        )
        self.towers = query, document
        self.velocity = jax.tree.map(jnp.zeros_like, self.towers)
        self._encode = jax.jit(encode)

    def train(self, batches: list[list[Distinct]]) -> np.ndarray:
        """Trains; returns the mean wall and processor seconds of a step."""

        def run() -> None:
            for pair in batches[WARM_STEPS:]:
                loss = self.step(*pair)
            loss.block_until_ready()

        run()  # compiles
        return wall_and_cpu(run) / (len(batches) - WARM_STEPS)

    def step(self, query: Distinct, document: Distinct) -> jax.Array:
        """Trains on a batch and returns its loss."""
        loss, self.towers, self.velocity = training_step(
            self.towers, self.velocity, query, document
        )
        return loss

    def encode(self, batches: list[Distinct]) -> Any:
        """Encodes all titles into unit vectors, `[titles, cells]`."""
        vectors = [self._encode(self.towers[1], batch) for batch in batches]
        return np.concatenate(
            [
                np.asarray(rows)[batch.text_index]
                for rows, batch in zip(vectors, batches, strict=True)
            ]
        )


def main(folder: Path) -> None:
    """Runs each task (training or encoding) named on standard input."""
    towers = JaxTowers(**read_settings(folder))
    answer_as_towers(folder, distinct, towers.train, towers.encode)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
