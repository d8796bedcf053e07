"""DocumentTargets: the salient sentences and key words of documents."""

import gzip
import json
import os
import zlib
from collections.abc import Iterable
from dataclasses import asdict
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.data import Document
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import open_gzip, replacing
from keras_lstm_dssm.training.key_words import KeyWords
from keras_lstm_dssm.training.salience import (
    SalienceCounts,
    salience_threshold,
    salient_sentences,
)
from keras_lstm_dssm.training.salience_teachers import SalienceTeacher

TARGETS_FILE = "document_targets.json.gz"


class Target(NamedTuple):
    """Holds the salient sentences and the key words of one document.

    Attributes:
        sentences: The number of sentences of the document.
        salient: The positions of the salient ones, from 0, ascending.
        key_words: The key words, normalised; there may be none.
    """

    sentences: int
    salient: list[int]
    key_words: list[str]

    def marks(self) -> np.ndarray:
        """Returns whether each sentence is salient, bool `[sentences]`."""
        return np.isin(np.arange(self.sentences), self.salient)


class DocumentTargets:
    """Holds the targets that `KeyVec` is trained on, for each document.

    Targets depend on documents, teacher and threshold only. A run writes
    them to a file before it starts, so that it resumes with the same ones
    even if the teacher has been trained anew or removed since.

    Args:
        targets: Document id -> target.
        counts: How many sentences are salient.

    Attributes:
        targets: Document id -> target.
        counts: How many sentences are salient, with the threshold.

    Example:
    >>> train = folder.of("train")
    >>> teacher = salience_teacher("build/run", train)
    >>> targets = DocumentTargets.from_teacher(train, teacher, KeyWords(train))
    >>> targets.of(next(iter(train))).salient
    [3, 17, 20, 41, 102]
    """

    def __init__(
        self, targets: dict[str, Target], counts: SalienceCounts
    ) -> None:
        self.targets = targets
        self.counts = counts

    @classmethod
    def from_teacher(
        cls,
        documents: Iterable[Document],
        teacher: SalienceTeacher,
        key_words: KeyWords,
        theta: float | None = None,
    ) -> "DocumentTargets":
        """Computes the targets of documents.

        Args:
            documents: The documents: a list, or another iterable that can
                be read more than once, such as `DocumentFolder.of` returns.
            teacher: Compares sentences with the summary.
            key_words: Chooses words of the summary or of all the text. It is
                made from the training documents, for documents of other
                splits, too.
            theta: Threshold of the similarity. By default that of the
                teacher, or else it is computed from these documents (see
                `salience_threshold`), which must then be the training ones;
                it is 0 where none has a summary.

        Raises:
            InputError: No document has a summary, and the key words are to be
                words of it.
        """
        similarities = list(teacher.similarities(documents))
        if theta is None:
            theta = teacher.theta
        if theta is None:
            no_summaries = all(np.isnan(values[0]) for values in similarities)
            if no_summaries and key_words.source == "document":
                theta = 0.0  # not used: the first K are salient
            else:
                theta = salience_threshold(similarities)
        targets = {
            document.id: Target(
                len(similarity),
                np.flatnonzero(salient_sentences(similarity, theta)).tolist(),
                words,
            )
            for document, similarity, words in zip(
                documents, similarities, key_words.of(documents), strict=True
            )
        }
        counts = SalienceCounts.from_similarities(similarities, theta)
        return cls(targets, counts)

    def of(self, document: Document) -> Target:
        """Returns the target of a document.

        Raises:
            InputError: There is none, or the document had another number of
                sentences when its target was computed.
        """
        target = self.targets.get(document.id)
        sentences = target and target.sentences
        if target is None or sentences != len(document.sentences):
            raise InputError(
                f"document {document.id!r}: found {len(document.sentences)}"
                f" sentences, expected {sentences or 'no such document'} as"
                " when its targets were computed: restore the documents, or"
                " train anew in another --output"
            )
        return target

    def describe(self) -> str:
        """Describes salient sentences and key words in two lines."""
        words = [len(target.key_words) for target in self.targets.values()]
        none = words.count(0)
        return (
            f"{self.counts.describe()}\nkey words: {np.mean(words):.1f} a"
            f" document; {none:,} documents have none"
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """Writes the targets to a file, `.json.gz`."""
        value = {"counts": asdict(self.counts), "targets": self.targets}
        with (
            replacing(path) as partial,
            gzip.open(partial, "wt", encoding="utf-8") as file,
        ):
            json.dump(value, file)

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> "DocumentTargets":
        """Reads the targets that `write` has written.

        Raises:
            InputError: The file is missing or damaged.
        """
        try:
            with open_gzip(path) as file:
                value = json.load(file)
            targets = {
                key: Target(*target) for key, target in value["targets"].items()
            }
            return cls(targets, SalienceCounts(**value["counts"]))
        except (
            OSError, EOFError, zlib.error, ValueError, KeyError, TypeError,
            AttributeError,
        ) as error:  # fmt: skip
            raise InputError(
                f"{os.fspath(path)}: found no targets of documents ({error});"
                " restore the file, or train anew in another --output"
            ) from error
