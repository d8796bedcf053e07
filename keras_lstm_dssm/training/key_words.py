"""KeyWords: chooses the key words of documents, the targets of `KeyVec`."""

import itertools
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator

from keras_lstm_dssm.data import Document
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.settings.choices import KEY_WORDS_OF
from keras_lstm_dssm.text import check_split, normalize
from keras_lstm_dssm.text.word_hashing import EMPTY_TEXT

KEY_WORDS = 30
"""The largest number of key words of a document, as in Bi and Ma 2017."""

_DOCUMENTS_AT_ONCE = 256


class KeyWords:
    """Chooses the key words of a document: those with the highest TF-IDF.

        tf-idf(w) = tf(w) * (ln((1 + n) / (1 + df(w))) + 1)

    tf is the count of the word in the summary, or in the whole document (see
    `source`); df is the number of the n training documents that contain it in
    their sentences or summary. The paper gives no formula; the IDF is that of
    scikit-learn.

    Args:
        documents: The training documents, which are streamed once.
        count: The number of words of each document; a summary with fewer
            distinct words gives all of them. Default 30, as in the paper.
        stop_words: Normalised words that are never chosen. By default those
            of scikit-learn, which needs the extra `[analysis]`.
        split: Rule that separates words, default `"alphanumeric"`; it must
            be that of the model's vocabulary. See `normalize_texts`.
        source: The text that key words are chosen from: `"summary"`, the
            default and the paper's, or `"document"`, the sentences and, if
            there is one, the summary.

    Attributes:
        documents: The number of training documents.
        source: `source` as given.

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
        if count < 1:
            raise InputError(f"count must be 1 or more, not {count}")
        if source not in KEY_WORDS_OF:
            raise InputError(
                f"source must be one of {', '.join(KEY_WORDS_OF)}, not "
                f"{source!r}"
            )
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
        for words in self._words(_whole(one) for one in documents):
            self.documents += 1
            self._frequency.update(set(words))
        if not self.documents:
            raise InputError(
                "found no training documents, expected those that key words"
                " are weighted by: add some with the split train"
            )

    def idf(self, word: str) -> float:
        """Returns the IDF of a normalised word.

        Args:
            word: Any word; one that no training document has gets the
                largest IDF.
        """
        ratio = (1 + self.documents) / (1 + self._frequency[word])
        return math.log(ratio) + 1

    def of(self, documents: Iterable[Document]) -> Iterator[list[str]]:
        """Yields the key words of each document.

        Args:
            documents: Any documents, which are streamed.

        Yields:
            Normalised words of two or more ASCII letters, or of others, the
            highest TF-IDF first; those with the same TF-IDF in the order of
            their first occurrence. With `source="summary"`, none for a
            document without a summary.
        """
        text = _whole if self.source == "document" else _summary
        for words in self._words(text(one) for one in documents):
            counts = Counter(filter(self._may_be_key, words))
            # `sorted` is stable, and a `Counter` has the order of the words.
            ranked = sorted(counts, key=lambda w: -counts[w] * self.idf(w))
            yield ranked[: self._count]

    def _may_be_key(self, word: str) -> bool:
        # A single letter is mostly what an apostrophe has cut off.
        is_letter = len(word) == 1 and word.isascii()
        return not is_letter and word not in self._stop_words

    def _words(self, texts: Iterable[Collection[str]]) -> Iterator[list[str]]:
        """Yields the normalised words of each list of sentences."""
        stream = (" ".join(sentences) for sentences in texts)
        while block := list(itertools.islice(stream, _DOCUMENTS_AT_ONCE)):
            for text in normalize(block, self._split):
                words = text.split(" ")
                yield words if words != [EMPTY_TEXT] else []


def _summary(document: Document) -> Collection[str]:
    return document.summary


def _whole(document: Document) -> Collection[str]:
    return (*document.sentences, *document.summary)
