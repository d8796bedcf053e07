"""The PyTorch peer of KeyVec, as an experienced user would write it.

`nn.Embedding` reads the words of sentences and documents that are padded to
the longest of the batch, `nn.Conv1d` and a maximum the sentences, `nn.LSTM` the
documents, and `torch.optim.Adam` updates all weights. Documents are split and
looked up before the clock starts, which favours this peer. Importing this
module needs PyTorch.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
import torch
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from keras_lstm_dssm.benchmarks.measurement import WARM_STEPS, wall_and_cpu
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.models.document_batch import DocumentBatch, HashedDocuments

_SMALLEST = torch.finfo(torch.float32).min


class TorchDocuments(NamedTuple):
    """Holds a batch of documents, padded.

    Attributes:
        words: Word ids, `(documents, sentences, words)`; 0 is padding.
        word_counts: The number of words of each sentence, `(documents,
            sentences)`; 0 for padding.
        lengths: The number of sentences of each document, `(documents,)`.
    """

    words: torch.Tensor
    word_counts: torch.Tensor
    lengths: torch.Tensor

    @property
    def mask(self) -> torch.Tensor:
        """True for sentences, False for padding, `(documents, sentences)`."""
        return self.word_counts > 0


class TorchExamples(NamedTuple):
    """Holds a padded batch of documents and their targets.

    Attributes:
        documents: The documents.
        salient: Float `(documents, sentences)`, 1 for a key sentence.
        key_words: `(m,)`, the known key words of all documents.
        key_word_document: `(m,)`, the document of each key word.
    """

    documents: TorchDocuments
    salient: torch.Tensor
    key_words: torch.Tensor
    key_word_document: torch.Tensor


def torch_documents(batch: DocumentBatch) -> TorchDocuments:
    """Pad the documents of a hashed batch to equal lengths."""
    sentences = batch.sentences
    ids = tf.gather(
        tf.gather(sentences.trigrams, sentences.words), sentences.text_index
    )
    counts = tf.gather(sentences.lengths, sentences.text_index)
    # The ids of ours begin with 0, the unknown word.
    mask = tf.sequence_mask(counts, tf.shape(ids)[1])
    ids = tf.where(mask, ids + 1, 0)
    words, word_counts = (
        torch.from_numpy(
            tf.RaggedTensor.from_row_lengths(values, batch.lengths)
            .to_tensor()
            .numpy()
        ).long()
        for values in (ids, counts)
    )
    lengths = torch.from_numpy(batch.lengths.numpy()).long()
    return TorchDocuments(words, word_counts, lengths)


def torch_examples(batch: HashedDocuments) -> TorchExamples:
    """Pad a hashed batch of documents and their targets."""
    salient = tf.RaggedTensor.from_row_lengths(
        tf.cast(batch.salient, tf.float32), batch.documents.lengths
    )
    return TorchExamples(
        torch_documents(batch.documents),
        torch.from_numpy(salient.to_tensor().numpy()),
        torch.from_numpy(batch.key_words.numpy()).long(),
        torch.from_numpy(batch.key_word_document.numpy()).long(),
    )


class TorchKeyVec(torch.nn.Module):
    """Implements KeyVec of Bi and Ma 2017 in PyTorch.

    Args:
        rows: Rows of the table of word vectors, with one for padding.
        key_words: Number of words that can be key words.
        width: Width of the word vectors.
        filters: Number of filters of each window.
        windows: Numbers of words in a window.
        units: Width of the LSTM of each direction.
        dimension: Width of the documents' vectors.
        packed: Whether the LSTM reads packed sequences. Padded ones take
            another path through PyTorch, in which the backward direction
            begins with padding.
    """

    def __init__(
        self,
        rows: int,
        key_words: int,
        width: int,
        filters: int,
        windows: Sequence[int],
        units: int,
        dimension: int,
        packed: bool,
    ) -> None:
        super().__init__()
        self.packed = packed
        self.words = torch.nn.Embedding(rows, width, padding_idx=0)
        self.convolutions = torch.nn.ModuleList(
            torch.nn.Conv1d(width, filters, window) for window in windows
        )
        self.lstm = torch.nn.LSTM(
            filters * len(windows), units, batch_first=True, bidirectional=True
        )
        self.score = torch.nn.Linear(2 * units, 1)
        self.dense = torch.nn.Linear(2 * units, dimension)
        self.word_scores = torch.nn.Linear(dimension, key_words)

    def forward(
        self, documents: TorchDocuments
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Compute the vectors of documents, and the logits of all p_i.

        Returns:
            `(documents, dimension)` and `(documents, sentences)`.
        """
        states = self._states(self._sentences(documents), documents)
        logits = self.score(states)[..., 0]
        log_p = functional.logsigmoid(logits)
        weights = log_p.masked_fill(~documents.mask, _SMALLEST).softmax(dim=1)
        mean = torch.einsum("ns,nsd->nd", weights, states)
        return torch.tanh(self.dense(mean)), logits

    def loss(self, examples: TorchExamples) -> torch.Tensor:
        """Compute the loss of eq. (4), the mean over documents."""
        documents = examples.documents
        vectors, logits = self(documents)
        read = functional.binary_cross_entropy_with_logits(
            logits, examples.salient, reduction="none"
        )[documents.mask]
        log_p = self.word_scores(vectors).log_softmax(dim=1)
        of_words = log_p[examples.key_word_document, examples.key_words]
        return (read.sum() - of_words.sum()) / len(vectors)

    def _sentences(self, documents: TorchDocuments) -> torch.Tensor:
        """Compute the vectors of sentences, `(documents, sentences, n)`."""
        shape = documents.words.shape
        words = documents.words.flatten(0, 1)
        counts = documents.word_counts.flatten()
        most = max(layer.kernel_size[0] for layer in self.convolutions)
        if shape[2] < most:
            words = functional.pad(words, (0, most - shape[2]))
        embedded = self.words(words).mT
        largest = []
        for layer in self.convolutions:
            values = layer(embedded)
            windows = (counts - layer.kernel_size[0] + 1).clamp(min=1)
            inside = torch.arange(values.shape[2]) < windows[:, None]
            values = values.masked_fill(~inside[:, None], _SMALLEST)
            largest.append(values.amax(dim=2))
        sentences = functional.relu(torch.cat(largest, dim=1))
        return sentences.view(*shape[:2], -1)

    def _states(
        self, sentences: torch.Tensor, documents: TorchDocuments
    ) -> torch.Tensor:
        if not self.packed:
            return self.lstm(sentences)[0]
        packed = pack_padded_sequence(
            sentences,
            documents.lengths,
            batch_first=True,
            enforce_sorted=False,
        )
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


class TorchKeyVecRun:
    """Trains and runs a `TorchKeyVec`; words are looked up beforehand.

    Args:
        ours: A `KeyVec` whose words are those of a vocabulary; the peer has
            the same sizes.
        packed: See `TorchKeyVec`.
        learning_rate: Learning rate of Adam.
    """

    def __init__(
        self, ours: KeyVec, packed: bool, learning_rate: float = 0.001
    ) -> None:
        self.hasher = ours.hasher
        self.model = TorchKeyVec(
            ours.words.embedding.size + 1,
            len(ours.key_lookup),
            ours.words.dimension,
            ours.sentence_encoder.filters,
            ours.sentence_encoder.windows,
            ours.reader.units,
            ours.dimension,
            packed,
        )
        self._optimizer = torch.optim.Adam(
            self.model.parameters(), lr=learning_rate, eps=1e-7
        )

    def train(self, batches: tf.data.Dataset, steps: int) -> np.ndarray:
        """Return the seconds of a training step, see `wall_and_cpu`."""
        padded = [
            torch_examples(self.hasher(*batch))
            for batch in batches.take(WARM_STEPS + steps)
        ]
        for examples in padded[:WARM_STEPS]:
            self.step(examples)

        def run() -> None:
            for examples in padded[WARM_STEPS:]:
                self.step(examples)

        return wall_and_cpu(run) / steps

    def step(self, examples: TorchExamples) -> float:
        """Take one training step; return the loss before it."""
        self._optimizer.zero_grad(set_to_none=True)
        loss = self.model.loss(examples)
        loss.backward()
        self._optimizer.step()
        return float(loss.detach())

    def prepare(
        self, documents: Sequence[list[str]], batch_size: int
    ) -> list[TorchDocuments]:
        """Look up and pad documents for `encode`, the shortest first."""
        order = sorted(documents, key=len)
        return [
            torch_documents(
                self.hasher.documents(
                    tf.ragged.constant(order[start : start + batch_size])
                )
            )
            for start in range(0, len(order), batch_size)
        ]

    @torch.inference_mode()
    def encode(self, batches: Sequence[TorchDocuments]) -> Any:
        """Compute the vectors of all documents, in the batches' order."""
        return np.concatenate(
            [self.model(documents)[0].numpy() for documents in batches]
        )
