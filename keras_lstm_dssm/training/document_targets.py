"""The training targets of `KeyVec`: salient sentences and key words."""

import itertools
import math
import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.batches import permutation
from keras_lstm_dssm.data.documents import Document
from keras_lstm_dssm.errors import (
    InputError,
    check_at_least,
    check_choice,
    import_optional,
)
from keras_lstm_dssm.files import write_json_gz
from keras_lstm_dssm.plain_files import read_json_gz
from keras_lstm_dssm.settings.fields import KEY_WORDS_OF
from keras_lstm_dssm.text.word_hashing import EMPTY_TEXT, check_split, normalize
from keras_lstm_dssm.training.salience import (
    SalienceCounts,
    SalienceTeacher,
    salience_threshold,
    salient_sentences,
)
from lstm_dssm_client.signatures import as_bytes

KEY_WORDS = 30  # largest number of a document's key words (Bi and Ma 2017)
_DOCUMENTS_AT_ONCE = 256


class KeyWords:
    """Chooses the key words of a document: the words with the highest TF-IDF.

        tf-idf(w) = tf(w) * (ln((1 + n) / (1 + df(w))) + 1)

    tf(w) is the count of the word w in the `source`. df(w) is the number of
    training documents that have w in their sentences or summary. n is the
    number of all training documents. Bi and Ma 2017 give no formula for TF-IDF;
    this IDF is scikit-learn's.

    Args:
        documents: The training documents, which are streamed once.
        count: The largest number of key words of a document. Default 30.
        stop_words: Normalised words that are never chosen. Default: the stop
            words of scikit-learn. This default needs the extra `[analysis]`.
        split: Rule that separates words; it must be the rule of the model's
            vocabulary. Default `"alphanumeric"`. See `normalize_texts`.
        source: The text to choose from: `"summary"` (default, as in Bi and Ma
            2017), or `"document"`, the sentences and the summary.

    Raises:
        InputError: There are no documents, `count` is less than 1, `source`
            is not supported, or scikit-learn is not installed.

    Example:
    >>> documents = [Document("d1", "", ["It sorts."], ["Sort a list."])]
    >>> list(KeyWords(documents).of(documents))
    [['sort', 'list']]
    """

    def __init__(
        self,
        documents: Iterable[Document],
        count: int = KEY_WORDS,
        stop_words: Collection[str] | None = None,
        split: str = "alphanumeric",
        source: str = "summary",
    ) -> None:
        check_at_least(1, count=count)
        check_choice(KEY_WORDS_OF, source=source)
        check_split(None, split)
        if stop_words is None:
            stop_words = import_optional(
                "sklearn.feature_extraction.text", "analysis"
            ).ENGLISH_STOP_WORDS
        self._stop_words = frozenset(stop_words)
        self._count = count
        self._split = split
        self.source = source
        self.documents = 0
        self._frequency: Counter[str] = Counter()
        for words in self._words(map(_whole_text, documents)):
            self.documents += 1
            self._frequency.update(set(words))
        if not self.documents:
            raise InputError(
                "found no training documents, expected some for the IDF of"
                " words: add documents with the split train"
            )

    def idf(self, word: str) -> float:
        """Returns the IDF of any normalised word."""
        ratio = (1 + self.documents) / (1 + self._frequency[word])
        return math.log(ratio) + 1

    def of(self, documents: Iterable[Document]) -> Iterator[list[str]]:
        """Yields the key words of each document.

        Key words are normalised words. Stop words and single ASCII characters
        are left out. The order is by descending TF-IDF, then by first
        occurrence. With `source="summary"`, a document without a summary has no
        key words.
        """
        from_document = self.source == "document"
        for words in self._words(
            _whole_text(document) if from_document else document.summary
            for document in documents
        ):
            counts = Counter(filter(self._may_be_key, words))
            # A `Counter` lists words in order of first occurrence, and `sorted`
            # keeps this order for words with equal TF-IDF.
            ranked = sorted(counts, key=lambda w: -counts[w] * self.idf(w))
            yield ranked[: self._count]

    def _may_be_key(self, word: str) -> bool:
        # Most single letters are split off at an apostrophe, as in "it's".
        is_character = len(word) == 1 and word.isascii()
        return not is_character and word not in self._stop_words

    def _words(self, texts: Iterable[Collection[str]]) -> Iterator[list[str]]:
        stream = (" ".join(sentences) for sentences in texts)
        while block := list(itertools.islice(stream, _DOCUMENTS_AT_ONCE)):
            for text in normalize(block, self._split):
                words = text.split(" ")
                yield words if words != [EMPTY_TEXT] else []


def _whole_text(document: Document) -> Collection[str]:
    return (*document.sentences, *document.summary)


TARGETS_FILE = "document_targets.json.gz"


class Target(NamedTuple):
    """The salient sentences and the key words of one document."""

    sentences: int  # number of sentences of the document
    salient: list[int]  # indices of the salient sentences, from 0, ascending
    key_words: list[str]  # normalised; may be empty

    def marks(self) -> np.ndarray:
        """Returns whether each sentence is salient, bool `[sentences]`."""
        return np.isin(np.arange(self.sentences), self.salient)


@dataclass(eq=False)
class DocumentTargets:
    """The targets of the documents that a `KeyVec` is trained or measured on.

    Args:
        targets: The target of each document, by document id.
        counts: The threshold `theta`, and numbers of documents and sentences.

    Example:
    >>> train = folder.of("train")
    >>> teacher = salience_teacher("build/run", train)
    >>> targets = DocumentTargets.from_teacher(train, teacher, KeyWords(train))
    >>> targets.of(next(iter(train))).salient
    [3, 17, 20, 41, 102]
    """

    targets: dict[str, Target]
    counts: SalienceCounts

    @classmethod
    def from_teacher(
        cls,
        documents: Iterable[Document],
        teacher: SalienceTeacher,
        key_words: KeyWords,
        theta: float | None = None,
    ) -> "DocumentTargets":
        """Computes the targets of documents, which are streamed twice.

        Args:
            documents: Documents of any split.
            teacher: Compares sentences with the summary.
            key_words: The `KeyWords` of the training documents.
            theta: Threshold of the similarity. Default: the teacher's
                threshold, or, if the teacher has none, the
                `salience_threshold` of `documents`.

        Raises:
            InputError: No document has a summary, although `key_words` need
                summaries, and neither `theta` nor the teacher has a threshold.
        """
        similarities = list(teacher.similarities(documents))
        theta = teacher.theta if theta is None else theta
        if theta is None:
            no_summaries = all(np.isnan(values[0]) for values in similarities)
            if no_summaries and key_words.source == "document":
                theta = 0.0  # not used: no summary to compare with
            else:
                theta = salience_threshold(similarities)
        targets, counts = {}, SalienceCounts(theta)
        for document, similarity, words in zip(
            documents, similarities, key_words.of(documents), strict=True
        ):
            salient = salient_sentences(similarity, theta)
            counts.add(similarity, salient)
            positions = np.flatnonzero(salient).tolist()
            targets[document.id] = Target(len(similarity), positions, words)
        return cls(targets, counts)

    def of(self, document: Document) -> Target:
        """Returns the target of a document.

        Raises `InputError` if the document has no target, or if document and
        target have different numbers of sentences.
        """
        target = self.targets.get(document.id)
        sentences = target and target.sentences
        if target is None or sentences != len(document.sentences):
            raise InputError(
                f"document {document.id!r}: found {len(document.sentences)}"
                " sentences, but the targets of this run have"
                f" {sentences or 'no such document'}: restore the documents, or"
                " train anew in another --output"
            )
        return target

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the targets to a file, `.json.gz`."""
        value = {"counts": asdict(self.counts), "targets": self.targets}
        write_json_gz(path, value)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "DocumentTargets":
        """Reads the targets that `write` wrote.

        Raises `InputError` if the file is missing or damaged.
        """

        def parse(value: Any) -> "DocumentTargets":
            targets = {
                key: Target(*target) for key, target in value["targets"].items()
            }
            for key, (sentences, salient, words) in targets.items():
                if not (
                    type(sentences) is int
                    and all(type(n) is int and n >= 0 for n in salient)
                    and all(isinstance(word, str) for word in words)
                ):
                    raise TypeError(f"found no target of document {key!r:.60}")
            return cls(targets, SalienceCounts(**value["counts"]))

        return read_json_gz(path, parse, "targets of documents")


_POOL = 16  # number of batches whose documents are sorted by length together

_Batch = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Int arrays of a batch: the indices of its documents, the indices of its
sentences among all sentences, and the number of sentences of each document."""


class DocumentExamples:
    """Holds documents and their targets in memory, and streams batches.

    Args:
        documents: The documents, which are streamed once.
        targets: The salient sentences and key words of these documents.

    Raises:
        InputError: There are no documents, or a document has no target.

    Example:
    >>> examples = DocumentExamples(folder.of("train"), targets)
    >>> model.fit(examples.batches(32, epochs=1, seed=0))
    """

    def __init__(
        self, documents: Iterable[Document], targets: DocumentTargets
    ) -> None:
        sentences: list[bytes] = []
        salient: list[np.ndarray] = []
        key_words: list[str] = []
        lengths, word_counts = [], []
        for document in documents:
            target = targets.of(document)
            sentences += as_bytes(document.sentences)
            lengths.append(target.sentences)
            salient.append(target.marks())
            key_words += target.key_words
            word_counts.append(len(target.key_words))
        if not lengths:
            raise InputError(
                "found no documents to train on, expected some with the split"
                " train: check the data"
            )
        self._lengths = np.array(lengths)
        self._starts = np.cumsum(lengths) - lengths
        self._sentences = tf.constant(np.array(sentences, object), tf.string)
        self._salient = tf.constant(np.concatenate(salient), tf.bool)
        self._key_words = tf.RaggedTensor.from_row_lengths(
            tf.constant(np.array(as_bytes(key_words), object), tf.string),
            tf.constant(word_counts, tf.int64),
        )

    def __len__(self) -> int:
        """Returns the number of documents."""
        return len(self._lengths)

    def batches(
        self,
        batch_size: int = 32,
        *,
        epochs: int,
        seed: int,
        first_step: int = 0,
        excerpt: int = 0,
    ) -> tf.data.Dataset:
        """Streams all documents, in a different random order in each epoch.

        The documents of a batch have similar numbers of sentences. The order
        depends only on `batch_size`, `seed`, `excerpt` and the epoch.

        Args:
            batch_size: Number of documents in a batch. One batch of an epoch
                may be smaller.
            epochs: The number of passes over the documents.
            seed: Seed of the order, any int.
            first_step: The number of batches to skip, for a resumed run.
            excerpt: Largest number of sentences of an excerpt. Each epoch draws
                an excerpt of each document: 1 to `excerpt` random sentences in
                the document's order. The logarithm of the number of sentences
                is drawn uniformly. Default 0: whole documents.

        Returns:
            A dataset of (documents, salient, key words), see `in_order`. Its
            cardinality is known.

        Raises:
            InputError: `batch_size` is less than 1, or `excerpt` less than 0.

        Example:
        >>> model.fit(examples.batches(32, epochs=1, seed=0))
        """
        check_at_least(1, batch_size=batch_size)
        check_at_least(0, excerpt=excerpt)
        per_epoch = -(-len(self) // batch_size)
        last_step = epochs * per_epoch

        def batches() -> Iterator[_Batch]:
            for step in range(first_step, last_step):
                epoch, number = divmod(step, per_epoch)
                if number == 0 or step == first_step:
                    epoch_rows = self._epoch(batch_size, seed, epoch, excerpt)
                rows = epoch_rows[number]
                counts = self._lengths[rows]
                random = np.random.default_rng([seed % 2**64, step])
                if excerpt:
                    sizes = (excerpt + 1) ** random.uniform(size=len(rows))
                    counts = np.minimum(counts, sizes.astype(int))
                yield self._excerpts(rows, counts, random)

        return self._dataset(batches, max(0, last_step - first_step))

    def in_order(self, batch_size: int = 32) -> tf.data.Dataset:
        """Streams all documents once, in the order of `documents`.

        Returns a dataset of batches (documents, salient, key words): ragged
        strings `[batch, (sentences)]`, ragged bool `[batch, (sentences)]`,
        ragged strings `[batch, (words)]`. The cardinality is known. Raises
        `InputError` if `batch_size` is below 1.
        """
        check_at_least(1, batch_size=batch_size)
        starts = range(0, len(self), batch_size)
        all_rows = np.arange(len(self))
        random = np.random.default_rng(0)  # not used for whole documents

        def batches() -> Iterator[_Batch]:
            for start in starts:
                rows = all_rows[start : start + batch_size]
                yield self._excerpts(rows, self._lengths[rows], random)

        return self._dataset(batches, len(starts))

    def _epoch(
        self, batch_size: int, seed: int, epoch: int, excerpt: int
    ) -> list[np.ndarray]:
        order = permutation(len(self), seed, epoch)
        # Documents of `excerpt` or more sentences count as equally long. The
        # order of these documents stays random.
        lengths = np.minimum(self._lengths, excerpt or self._lengths.max())
        batches = []
        for pool in range(0, len(order), _POOL * batch_size):
            rows = order[pool : pool + _POOL * batch_size]
            rows = rows[np.argsort(lengths[rows], kind="stable")]
            batches += [
                rows[start : start + batch_size]
                for start in range(0, len(rows), batch_size)
            ]
        shuffle = permutation(len(batches), seed, epoch, 1)
        return [batches[number] for number in shuffle]

    def _excerpts(
        self, rows: np.ndarray, counts: np.ndarray, random: np.random.Generator
    ) -> _Batch:
        """Draws `counts[i]` sentences of document `rows[i]`, in text order."""
        sentences = [
            start
            + (
                np.arange(length)
                if count == length
                else np.sort(random.choice(length, count, replace=False))
            )
            for start, length, count in zip(
                self._starts[rows], self._lengths[rows], counts, strict=True
            )
        ]
        return rows, np.concatenate(sentences), counts

    def _dataset(
        self, batches: Callable[[], Iterator[_Batch]], count: int
    ) -> tf.data.Dataset:
        numbers = tf.TensorSpec([None], tf.int64)

        def examples(
            rows: tf.Tensor, sentences: tf.Tensor, counts: tf.Tensor
        ) -> tuple[tf.RaggedTensor, ...]:
            return (
                *(
                    tf.RaggedTensor.from_row_lengths(
                        tf.gather(values, sentences), counts, validate=False
                    )
                    for values in (self._sentences, self._salient)
                ),
                tf.gather(self._key_words, rows),
            )

        return (
            tf.data.Dataset.from_generator(
                batches, output_signature=(numbers, numbers, numbers)
            )
            .map(examples, tf.data.AUTOTUNE)
            .prefetch(tf.data.AUTOTUNE)
            .apply(tf.data.experimental.assert_cardinality(count))
        )
