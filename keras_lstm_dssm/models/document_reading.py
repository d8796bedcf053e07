"""DocumentReading: any number of documents -> vectors and probabilities."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf
from tqdm import tqdm

from keras_lstm_dssm.text.strings import WORKERS

SENTENCES_AT_ONCE = 4096
DOCUMENTS_AT_ONCE = 256


class ReadDocument(NamedTuple):
    """Holds what a `KeyVec` computes for a document.

    Attributes:
        vector: Float `[dimension]`.
        probabilities: Float `[sentences]`, the p_i of its sentences.
    """

    vector: np.ndarray
    probabilities: np.ndarray


class DocumentReading:
    """Runs a `KeyVec` on documents, in batches of similar size.

    Args:
        read: Function from ragged strings `[batch, (sentences)]` to the
            vectors `[batch, dimension]`, and the p_i of all sentences.
        max_sentences: Number of sentences to read of each document; `None`
            for all.
    """

    def __init__(
        self,
        read: Callable[[tf.RaggedTensor], tuple[tf.Tensor, tf.Tensor]],
        max_sentences: int | None,
    ) -> None:
        self.max_sentences = max_sentences
        self._read = tf.function(
            lambda sentences, lengths: read(
                tf.RaggedTensor.from_row_lengths(
                    sentences, lengths, validate=False
                )
            ),
            input_signature=[
                tf.TensorSpec([None], tf.string),
                tf.TensorSpec([None], tf.int64),
            ],
        )

    def read_all(
        self, documents: list[list[bytes]], progress: bool = False
    ) -> list[ReadDocument]:
        """Runs the model on documents, several batches at a time.

        A batch has at most 4,096 sentences and 256 documents, or one
        document.

        Args:
            documents: The sentences of each document.
            progress: Whether to show a progress bar. Default `False`.

        Returns:
            The results in the order of `documents`.
        """
        sizes = [
            max(len(sentences[: self.max_sentences]), 1)
            for sentences in documents
        ]
        batches = list(_batches(sizes))

        def read_batch(rows: list[int]) -> list[ReadDocument]:
            return self._read_batch([documents[row] for row in rows])

        results: dict[int, ReadDocument] = {}
        with ThreadPoolExecutor(WORKERS) as pool:
            found: Any = pool.map(read_batch, batches)
            bar = tqdm(found, "read", len(batches), disable=not progress)
            for rows, batch in zip(batches, bar, strict=True):
                results.update(zip(rows, batch, strict=True))
        return [results[row] for row in range(len(documents))]

    def _read_batch(self, documents: list[list[bytes]]) -> list[ReadDocument]:
        rows = [
            sentences[: self.max_sentences] or [b""] for sentences in documents
        ]
        lengths = [len(row) for row in rows]
        vectors, probabilities = self._read(
            tf.constant([sentence for row in rows for sentence in row]),
            tf.constant(lengths, tf.int64),
        )
        ends = np.cumsum(lengths)[:-1]
        return [
            ReadDocument(*parts)
            for parts in zip(
                vectors.numpy(),
                np.split(probabilities.numpy(), ends),
                strict=True,
            )
        ]


def _batches(sizes: list[int]) -> Iterator[list[int]]:
    """Yields the positions of the documents of each batch, shortest first.

    Documents of similar size need the fewest steps over time.
    """
    batch: list[int] = []
    sentences = 0
    for row in np.argsort(sizes, kind="stable").tolist():
        full = (
            sentences + sizes[row] > SENTENCES_AT_ONCE
            or len(batch) == DOCUMENTS_AT_ONCE
        )
        if batch and full:
            yield batch
            batch, sentences = [], 0
        batch.append(row)
        sentences += sizes[row]
    if batch:
        yield batch
