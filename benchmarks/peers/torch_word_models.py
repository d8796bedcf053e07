"""PyTorch peers of pair scorers and of KeyVec, as a user would write them.

Before the clock starts, word ids are looked up and padded, and the texts of
pair scorers are packed. This is an advantage for these peers.
"""

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.nn import functional
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pad_packed_sequence,
)

from benchmarks.clocks import percentiles_and_cpu, timed_steps, wall_and_cpu
from benchmarks.peers import Batch, answer, read_batches, read_settings

_CALLS = 10
_SMALLEST = torch.finfo(torch.float32).min


class TorchTexts(NamedTuple):
    """A batch of texts, padded and packed for `nn.LSTM`."""

    padded: torch.Tensor  # word ids, `(texts, time)`
    lengths: torch.Tensor  # the number of words of each text, `(texts,)`
    packed: PackedSequence  # word ids without padding

    @property
    def mask(self) -> torch.Tensor:
        """True for words, False for padding, bool `(texts, time)`."""
        time = torch.arange(self.padded.shape[1])
        return time < self.lengths[:, None]


def torch_texts(batch: Batch, side: str) -> TorchTexts:
    """Returns the texts of a batch; `side` is `"query"` or `"document"`."""
    padded = torch.from_numpy(batch[f"{side}_ids"]).long()
    lengths = torch.from_numpy(batch[f"{side}_lengths"]).long()
    packed = pack_padded_sequence(
        padded, lengths, batch_first=True, enforce_sorted=False
    )
    return TorchTexts(padded, lengths, packed)


class TorchMatcher(torch.nn.Module):
    """The base class of pair scorers: word vectors and an LSTM."""

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
        """Computes the outputs of the LSTM, `(texts, time, width)`."""
        if not self.packed:  # the backward LSTM reads padding before words
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
        """Scores n queries, each with c documents; returns `(c, n)`.

        The document with index i is for the query with index i mod n.
        """
        copies = len(document.lengths) // len(query.lengths)
        u = functional.normalize(self.positions(query), dim=2)
        v = functional.normalize(self.positions(document), dim=2)
        mask = query.mask.repeat(copies, 1)[:, None, :, None]
        mask = mask & document.mask[:, None, None, :]
        # W [u; v] = W_1 u + W_2 v. The right side needs a product per word,
        # the left side a product per pair of words.
        first, second = self.linear.weight.chunk(2, dim=1)
        query_part = functional.linear(u, first, self.linear.bias)
        document_part = functional.linear(v, second)
        left = torch.einsum("nid,sde->nsie", u, self.matrices)
        cells = torch.einsum("psie,pje->psij", left.repeat(copies, 1, 1, 1), v)
        cells = cells + query_part.mT.repeat(copies, 1, 1)[..., None]
        cells = functional.relu(cells + document_part.mT[:, :, None])
        cells = cells.masked_fill(~mask, -1.0).flatten(2)
        if cells.shape[2] < self.k:
            cells = functional.pad(cells, (0, self.k - cells.shape[2]))
        # Cells of padding are -1, below the cells of words. relu turns -1 to 0.
        strongest = functional.relu(cells.topk(self.k, dim=2).values)
        hidden = functional.relu(self.hidden(strongest.flatten(1)))
        return self.score(hidden).view(copies, -1)


class TorchLSTMRNN(TorchMatcher):
    """LSTM-RNN: a score is 5 times the cosine of the texts' final outputs."""

    def __init__(self, rows: int, packed: bool = True) -> None:
        super().__init__(rows, bidirectional=False, packed=packed)

    def forward(self, query: TorchTexts, document: TorchTexts) -> torch.Tensor:
        """Scores n queries, each with c documents; returns `(c, n)`.

        The document with index i is for the query with index i mod n.
        """
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
    """Trains a pair scorer and scores candidates; the input is word ids."""

    def __init__(self, matcher: TorchMatcher) -> None:
        self.matcher = matcher
        self._optimizer = torch.optim.Adagrad(
            matcher.parameters(), lr=0.03, eps=1e-7
        )

    def step(self, query: TorchTexts, document: TorchTexts) -> float:
        """Takes a training step; `document` has positives, then negatives."""
        self._optimizer.zero_grad(set_to_none=True)
        positive, negative = self.matcher(query, document)
        loss = functional.relu(1 + negative - positive).mean()
        loss.backward()
        self._optimizer.step()
        return float(loss.detach())

    @torch.inference_mode()
    def score(self, texts: tuple[TorchTexts, TorchTexts]) -> Any:
        """Scores the candidates of one query."""
        return self.matcher(*texts)[:, 0].numpy()


class TorchDocuments(NamedTuple):
    """A padded batch of documents."""

    words: torch.Tensor  # ids `(documents, sentences, words)`, 0 for padding
    word_counts: torch.Tensor  # `(documents, sentences)`, 0 for padding
    lengths: torch.Tensor  # the number of sentences, `(documents,)`

    @property
    def mask(self) -> torch.Tensor:
        """True for sentences, False for padding, `(documents, sentences)`."""
        return self.word_counts > 0


class TorchExamples(NamedTuple):
    """A padded batch of documents, and the targets of training."""

    documents: TorchDocuments
    salient: torch.Tensor  # `(documents, sentences)`, 1 for a key sentence
    key_words: torch.Tensor  # `(m,)`, ids of the documents' known key words
    key_word_document: torch.Tensor  # `(m,)`, index of the key word's document


def torch_documents(batch: Batch) -> TorchDocuments:
    """Returns the documents of a batch."""
    names = TorchDocuments._fields
    return TorchDocuments(*(torch.from_numpy(batch[n]).long() for n in names))


def torch_examples(batch: Batch) -> TorchExamples:
    """Returns the documents and the targets of a batch."""
    return TorchExamples(
        torch_documents(batch),
        torch.from_numpy(batch["salient"]),
        torch.from_numpy(batch["key_words"]).long(),
        torch.from_numpy(batch["key_word_document"]).long(),
    )


class TorchKeyVec(torch.nn.Module):
    """KeyVec of Bi and Ma 2017, with `rows` word vectors; row 0 is padding."""

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
        """Computes document vectors, and each sentence's logit (key or not)."""
        states = self._states(self._sentences(documents), documents)
        logits = self.score(states)[..., 0]
        log_p = functional.logsigmoid(logits)
        weights = log_p.masked_fill(~documents.mask, _SMALLEST).softmax(dim=1)
        mean = torch.einsum("ns,nsd->nd", weights, states)
        return torch.tanh(self.dense(mean)), logits

    def loss(self, examples: TorchExamples) -> torch.Tensor:
        """Computes the mean loss of documents, eq. (4) of Bi and Ma 2017."""
        documents = examples.documents
        vectors, logits = self(documents)
        sentence_losses = functional.binary_cross_entropy_with_logits(
            logits, examples.salient, reduction="none"
        )[documents.mask]
        log_p = self.word_scores(vectors).log_softmax(dim=1)
        word_log_p = log_p[examples.key_word_document, examples.key_words]
        return (sentence_losses.sum() - word_log_p.sum()) / len(vectors)

    def _sentences(self, documents: TorchDocuments) -> torch.Tensor:
        """Computes the vectors of sentences, `(documents, sentences, n)`."""
        shape = documents.words.shape
        words = documents.words.flatten(0, 1)
        counts = documents.word_counts.flatten()
        widest = max(layer.kernel_size[0] for layer in self.convolutions)
        if shape[2] < widest:
            words = functional.pad(words, (0, widest - shape[2]))
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
            sentences, documents.lengths, batch_first=True, enforce_sorted=False
        )
        return pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


class TorchKeyVecRun:
    """Trains a `TorchKeyVec` and encodes documents; the input is word ids."""

    def __init__(
        self, model: TorchKeyVec, learning_rate: float = 0.001
    ) -> None:
        self.model = model
        self._optimizer = torch.optim.Adam(
            model.parameters(), lr=learning_rate, eps=1e-7
        )

    def step(self, examples: TorchExamples) -> float:
        """Takes a training step and returns the loss before the update."""
        self._optimizer.zero_grad(set_to_none=True)
        loss = self.model.loss(examples)
        loss.backward()
        self._optimizer.step()
        return float(loss.detach())

    @torch.inference_mode()
    def encode(self, batches: Sequence[TorchDocuments]) -> Any:
        """Encodes all documents into `[documents, dimension]`."""
        return np.concatenate(
            [self.model(documents)[0].numpy() for documents in batches]
        )


def main(folder: Path, form: str) -> None:
    """Runs each task, such as training, that is named on standard input."""
    settings = read_settings(folder)
    kind, is_packed = settings.pop("kind"), form == "packed"
    if kind == "keyvec":
        rate = settings.pop("learning_rate")
        keyvec = TorchKeyVecRun(TorchKeyVec(**settings, packed=is_packed), rate)
        examples = [
            [torch_examples(batch)] for batch in read_batches(folder, "train")
        ]
        documents = list(map(torch_documents, read_batches(folder, "encode")))
        encode = partial(keyvec.encode, documents)
        answer(
            {
                "train": partial(timed_steps, keyvec.step, examples),
                "encode": partial(wall_and_cpu, encode),
            }
        )
        return
    matcher = MATCHERS[kind](**settings, packed=is_packed)
    scorer = TorchScorer(matcher)
    train, (candidates,) = (
        [
            [torch_texts(batch, side) for side in ("query", "document")]
            for batch in read_batches(folder, work)
        ]
        for work in ("train", "score")
    )
    answer(
        {
            "train": partial(timed_steps, scorer.step, train),
            "score": lambda: percentiles_and_cpu(
                lambda _: scorer.score(candidates), range(_CALLS)
            ),
        }
    )


MATCHERS = {"mv_lstm_tensor": TorchMVLSTM, "lstm_rnn_50": TorchLSTMRNN}
"""Preset of a pair scorer -> class of the peer."""

if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
