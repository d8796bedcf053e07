"""The PyTorch peer of two towers, as an experienced user would write it.

An `EmbeddingBag` sums the trigram vectors of each word. A trigram vector has
three numbers for each cell of the LSTM, as in `LSTMEncoder`. `nn.LSTM` reads
packed sequences, and `SGD` has Nesterov momentum. The texts are hashed and
packed before the clock starts, an advantage for this peer.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence

from benchmarks.clocks import timed_steps
from benchmarks.peers import Texts, answer_as_towers, read_settings


class Packed(NamedTuple):
    """The input of a `TorchTower` for one batch."""

    trigrams: torch.Tensor  # trigram ids of all words
    word_starts: torch.Tensor  # position of each word's first trigram
    word_order: PackedSequence  # for each text: its words, as word indices


def packed(texts: Texts) -> Packed:
    """Returns the input of a `TorchTower` for hashed texts."""
    lengths, sizes = texts.words_per_text, texts.trigrams_per_word
    mask = np.arange(lengths.max()) < lengths[:, np.newaxis]
    indices = np.zeros(mask.shape, np.int64)
    indices[mask] = np.arange(len(sizes))
    return Packed(
        torch.from_numpy(texts.ids),
        torch.from_numpy(np.cumsum(sizes) - sizes).int(),
        pack_padded_sequence(
            torch.from_numpy(indices),
            torch.from_numpy(lengths),
            batch_first=True,
            enforce_sorted=False,
        ),
    )


class TorchTower(torch.nn.Module):
    """Encodes hashed texts into unit vectors, `(batch, cells)`."""

    def __init__(self, trigrams: int, cells: int) -> None:
        super().__init__()
        self.words = torch.nn.EmbeddingBag(trigrams, 3 * cells, mode="sum")
        self.lstm = torch.nn.LSTM(3 * cells, cells)

    def forward(self, batch: Packed) -> torch.Tensor:
        """Encodes a batch into unit vectors, `(batch, cells)`."""
        words = self.words(batch.trigrams, batch.word_starts)
        order, *rest = batch.word_order
        sequences = PackedSequence(words.index_select(0, order), *rest)
        _, (h, _) = self.lstm(sequences)
        return torch.nn.functional.normalize(h[-1], dim=1)


class TorchTowers:
    """Trains two towers and encodes titles; each input is a `Packed`."""

    def __init__(self, trigrams: int, cells: int) -> None:
        self.query = TorchTower(trigrams, cells)
        self.document = TorchTower(trigrams, cells)
        self._optimizer = torch.optim.SGD(
            [*self.query.parameters(), *self.document.parameters()],
            lr=0.1,
            momentum=0.9,
            nesterov=True,
        )

    def step(self, query: Packed, document: Packed) -> None:
        """Takes a training step with in-batch negatives."""
        self._optimizer.zero_grad(set_to_none=True)
        cosines = self.query(query) @ self.document(document).T
        loss = torch.nn.functional.cross_entropy(
            10 * cosines, torch.arange(len(cosines))
        )
        loss.backward()
        self._optimizer.step()

    @torch.inference_mode()
    def encode(self, batches: list[Packed]) -> Any:
        """Encodes all titles into unit vectors, `[titles, cells]`."""
        return torch.cat([self.document(batch) for batch in batches]).numpy()


def main(folder: Path) -> None:
    """Runs each task (training or encoding) named on standard input."""
    towers = TorchTowers(**read_settings(folder))
    train = partial(timed_steps, towers.step)
    answer_as_towers(folder, packed, train, towers.encode)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
