"""PyTorch peers of pair scorers, as an experienced user would write them.

`nn.Embedding` reads the words, `nn.LSTM` their sequences, and
`torch.optim.Adagrad` updates all weights. Texts are hashed and packed before
the clock starts, which favours these peers. Importing this module needs
PyTorch.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import torch
from torch.nn import functional
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pad_packed_sequence,
)

from keras_lstm_dssm.benchmarks.measurement import WARM_STEPS, wall_and_cpu
from keras_lstm_dssm.layers import VocabularyVectors


class TorchTexts(NamedTuple):
    """A batch of texts in both forms that `nn.LSTM` reads.

    Attributes:
        padded: Word ids, `(texts, time)`.
        lengths: The number of words of each text, `(texts,)`.
        packed: The same ids without padding.
    """

    padded: torch.Tensor
    lengths: torch.Tensor
    packed: PackedSequence

    @property
    def mask(self) -> torch.Tensor:
        """Whether there is a word, bool `(texts, time)`."""
        time = torch.arange(self.padded.shape[1])
        return time < self.lengths[:, None]


def torch_texts(words: VocabularyVectors, texts: tf.Tensor) -> TorchTexts:
    """Look up the words of strings `(batch,)`."""
    batch = words.distinct(texts)
    ids = tf.gather(tf.gather(batch.trigrams, batch.words), batch.text_index)
    padded = torch.from_numpy(ids.numpy()).long()
    lengths = tf.gather(batch.lengths, batch.text_index).numpy()
    lengths = torch.from_numpy(lengths).long()
    packed = pack_padded_sequence(
        padded, lengths, batch_first=True, enforce_sorted=False
    )
    return TorchTexts(padded, lengths, packed)


class TorchMatcher(torch.nn.Module):
    """Base of the peers: word vectors and an LSTM.

    Args:
        rows: Rows of the table of word vectors.
        bidirectional: Whether the LSTM reads in both directions.
        packed: Whether the LSTM reads packed sequences. Padded ones take
            another path through PyTorch, in which the backward direction
            begins with padding.
        width: Width of the word vectors and of the LSTM.
    """

    def __init__(
        self, rows: int, bidirectional: bool, packed: bool, width: int = 50
    ) -> None:
        super().__init__()
        self.packed = packed
        self.words = torch.nn.Embedding(rows, width)
        self.lstm = torch.nn.LSTM(
            width, width, batch_first=True, bidirectional=bidirectional
        )

    def positions(self, texts: TorchTexts) -> torch.Tensor:
        """Compute the outputs of the LSTM, `(texts, time, width)`."""
        if not self.packed:
            return self.lstm(self.words(texts.padded))[0]
        ids, *order = texts.packed
        outputs, _ = self.lstm(PackedSequence(self.words(ids), *order))
        return pad_packed_sequence(outputs, batch_first=True)[0]


class TorchMVLSTM(TorchMatcher):
    """MV-LSTM with the tensor interaction and k-max pooling."""

    def __init__(
        self, rows: int, packed: bool = True, slices: int = 5, k: int = 5
    ) -> None:
        super().__init__(rows, bidirectional=True, packed=packed)
        width = 2 * self.lstm.hidden_size
        self.k = k
        noise = torch.empty(slices, width, width).uniform_(-0.01, 0.01)
        self.matrices = torch.nn.Parameter(torch.eye(width) + noise)
        self.linear = torch.nn.Linear(2 * width, slices)
        self.hidden = torch.nn.Linear(slices * k, 200)
        self.score = torch.nn.Linear(200, 1)

    def forward(self, query: TorchTexts, document: TorchTexts) -> torch.Tensor:
        """Score documents; there are as many for each query.

        Args:
            query: `n` queries.
            document: `copies * n` documents: one for each query, and again.

        Returns:
            Scores, `(copies, n)`.
        """
        copies = len(document.lengths) // len(query.lengths)
        u = functional.normalize(self.positions(query), dim=2)
        v = functional.normalize(self.positions(document), dim=2)
        mask = query.mask.repeat(copies, 1)[:, None, :, None]
        mask = mask & document.mask[:, None, None, :]
        # W [u; v] is the sum of two products, each of one text alone.
        first, second = self.linear.weight.chunk(2, dim=1)
        of_query = functional.linear(u, first, self.linear.bias)
        of_document = functional.linear(v, second)
        left = torch.einsum("nid,sde->nsie", u, self.matrices)
        cells = torch.einsum("psie,pje->psij", left.repeat(copies, 1, 1, 1), v)
        cells = cells + of_query.mT.repeat(copies, 1, 1)[..., None]
        cells = functional.relu(cells + of_document.mT[:, :, None])
        cells = cells.masked_fill(~mask, -1.0).flatten(2)
        if cells.shape[2] < self.k:
            cells = functional.pad(cells, (0, self.k - cells.shape[2]))
        # Padding has no cell; a pair with fewer than k cells has zeros.
        strongest = functional.relu(cells.topk(self.k, dim=2).values)
        hidden = functional.relu(self.hidden(strongest.flatten(1)))
        return self.score(hidden).view(copies, -1)


class TorchLSTMRNN(TorchMatcher):
    """Five times the cosine of the last outputs of one LSTM."""

    def __init__(self, rows: int, packed: bool = True) -> None:
        super().__init__(rows, bidirectional=False, packed=packed)

    def forward(self, query: TorchTexts, document: TorchTexts) -> torch.Tensor:
        """Score documents; see `TorchMVLSTM.forward`."""
        copies = len(document.lengths) // len(query.lengths)
        scores = 5.0 * functional.cosine_similarity(
            self._last(query).repeat(copies, 1), self._last(document)
        )
        return scores.view(copies, -1)

    def _last(self, texts: TorchTexts) -> torch.Tensor:
        if self.packed:
            ids, *order = texts.packed
            _, (h, _) = self.lstm(PackedSequence(self.words(ids), *order))
            return h[0]
        outputs = self.positions(texts)
        return outputs[torch.arange(len(outputs)), texts.lengths - 1]


class TorchScorer:
    """Trains and runs a peer on texts that are hashed beforehand.

    Args:
        words: Its vocabulary reads the texts.
        matcher: The model.
    """

    def __init__(self, words: VocabularyVectors, matcher: TorchMatcher) -> None:
        self.words = words
        self.matcher = matcher
        self._optimizer = torch.optim.Adagrad(
            matcher.parameters(), lr=0.03, eps=1e-7
        )

    def train(self, batches: tf.data.Dataset, steps: int) -> np.ndarray:
        """Return the seconds of a training step, see `wall_and_cpu`."""
        hashed = [
            (
                torch_texts(self.words, query),
                torch_texts(self.words, tf.concat([positive, negative], 0)),
            )
            for query, positive, negative in batches.take(WARM_STEPS + steps)
        ]
        for texts in hashed[:WARM_STEPS]:
            self.step(*texts)

        def run() -> None:
            for texts in hashed[WARM_STEPS:]:
                self.step(*texts)

        return wall_and_cpu(run) / steps

    def step(self, query: TorchTexts, document: TorchTexts) -> float:
        """Take one training step; the documents are positives, negatives."""
        self._optimizer.zero_grad(set_to_none=True)
        positive, negative = self.matcher(query, document)
        loss = functional.relu(1 + negative - positive).mean()
        loss.backward()
        self._optimizer.step()
        return float(loss.detach())

    def prepare(self, query: str, documents: Sequence[str]) -> Any:
        """Hash the texts for `score`."""
        return (
            torch_texts(self.words, tf.constant([query])),
            torch_texts(self.words, tf.constant(documents)),
        )

    @torch.inference_mode()
    def score(self, texts: tuple[TorchTexts, TorchTexts]) -> Any:
        """Score the candidates of one query."""
        return self.matcher(*texts)[:, 0].numpy()
