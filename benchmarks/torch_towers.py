"""The PyTorch peer: the same towers as an experienced user would write them.

An `EmbeddingBag` of 288 columns sums trigrams by word, `nn.LSTM` reads packed
sequences, and `SGD` has Nesterov momentum. The texts are hashed before the
clock starts, which favours this peer. Importing this module needs PyTorch.
"""

from typing import Any, NamedTuple

import tensorflow as tf
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from keras_lstm_dssm.benchmarks import keras_towers
from keras_lstm_dssm.benchmarks.measurement import WARM_STEPS, seconds
from keras_lstm_dssm.tensorflow_start import usable_cores


class Hashed(NamedTuple):
    """A batch of hashed texts, the input of a `TorchTower`.

    Attributes:
        trigrams: Trigram ids of all words.
        word_starts: Position of each word's first trigram.
        word_order: Numbers of the words in each text, packed.
    """

    trigrams: torch.Tensor
    word_starts: torch.Tensor
    word_order: PackedSequence


def hash_texts(texts: tf.Tensor) -> Hashed:
    """Hash strings `(batch,)` and pack the numbers of their words."""
    ids = keras_towers.HASHING(texts)
    numbers = ids.with_values(tf.range(ids.values.nrows())).to_tensor()
    lengths = torch.from_numpy(ids.row_lengths().numpy())
    return Hashed(
        torch.from_numpy(ids.flat_values.numpy()),
        torch.from_numpy(ids.values.row_starts().numpy()).int(),
        pack_padded_sequence(
            torch.from_numpy(numbers.numpy()),
            lengths,
            batch_first=True,
            enforce_sorted=False,
        ),
    )


class TorchTower(torch.nn.Module):
    """Encodes hashed texts into unit vectors, `(batch, 96)`."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.EmbeddingBag(
            keras_towers.HASHING.size, keras_towers.WIDTH, mode="sum"
        )
        self.lstm = torch.nn.LSTM(keras_towers.WIDTH, keras_towers.CELLS)

    def forward(self, batch: Hashed) -> torch.Tensor:
        """Encode a batch into `(batch, 96)`."""
        words = self.words(batch.trigrams, batch.word_starts)
        order, *rest = batch.word_order
        packed = PackedSequence(words.index_select(0, order), *rest)
        _, (h, _) = self.lstm(packed)
        return torch.nn.functional.normalize(h[-1], dim=1)


class TorchTowers:
    """Trains and runs two towers on batches that are hashed beforehand.

    Args:
        threads: Threads of an operation of PyTorch. Default `None`: as many
            as the process may use.
    """

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads or usable_cores()
        self.query, self.document = TorchTower(), TorchTower()
        self._optimizer = torch.optim.SGD(
            [*self.query.parameters(), *self.document.parameters()],
            lr=0.1,
            momentum=0.9,
            nesterov=True,
        )

    def train(self, batches: tf.data.Dataset, steps: int) -> float:
        """Return the seconds of a training step, from hashed batches."""
        torch.set_num_threads(self._threads)
        hashed = [
            (hash_texts(query), hash_texts(document))
            for query, document in batches.take(WARM_STEPS + steps)
        ]
        for pair in hashed[:WARM_STEPS]:
            self._step(*pair)

        def run() -> None:
            for pair in hashed[WARM_STEPS:]:
                self._step(*pair)

        return seconds(run) / steps

    def prepare(self, titles: list[str], batch_size: int) -> list[Hashed]:
        """Hash titles for `encode`."""
        starts = range(0, len(titles), batch_size)
        return [
            hash_texts(tf.constant(titles[start : start + batch_size]))
            for start in starts
        ]

    @torch.inference_mode()
    def encode(self, batches: list[Hashed]) -> Any:
        """Encode hashed titles into `[titles, 96]`."""
        torch.set_num_threads(self._threads)
        return torch.cat([self.document(batch) for batch in batches]).numpy()

    def _step(self, query: Hashed, document: Hashed) -> None:
        self._optimizer.zero_grad(set_to_none=True)
        cosines = self.query(query) @ self.document(document).T
        loss = torch.nn.functional.cross_entropy(
            10 * cosines, torch.arange(len(cosines))
        )
        loss.backward()
        self._optimizer.step()
