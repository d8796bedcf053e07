"""Trains skip-gram vectors, from which pair scorers and KeyVecs start."""

import functools
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError, check_at_least, import_optional
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.plain_files import read_array
from keras_lstm_dssm.text.vocabulary import split_in_batches


def train_gensim(
    model: str, texts: Sequence[Any], name: str, **settings: Any
) -> Any:
    """Trains a `model` of gensim, such as `"Word2Vec"`."""
    models = import_optional("gensim.models", "baselines")
    # With one thread, equal texts and seeds give equal results.
    trained = getattr(models, model)(workers=1, **settings)
    trained.build_vocab(texts)
    if not len(trained.wv):
        raise InputError(
            f"no word occurs min_count={trained.min_count} times in {name};"
            " lower min_count"
        )
    trained.train(texts, total_examples=len(texts), epochs=trained.epochs)
    return trained


_cache_folder: ContextVar[Path | None] = ContextVar("cache", default=None)


@contextmanager
def skip_gram_cache(folder: Path) -> Iterator[None]:
    """Caches the results of `skip_gram_vectors` in a folder."""
    token = _cache_folder.set(folder)
    try:
        yield
    finally:
        _cache_folder.reset(token)


def skip_gram_vectors(
    texts: Iterable[str | bytes],
    vocabulary: Sequence[str],
    dimension: int = 50,
    window: int = 5,
    epochs: int = 5,
    seed: int = 0,
    split: str = "alphanumeric",
) -> np.ndarray:
    """Trains skip-gram vectors of a vocabulary, float32 `[words, dimension]`.

    The method is skip-gram with negative sampling (Mikolov et al. 2013).
    Settings without an argument are gensim's defaults, except `min_count=1` and
    `workers=1`. gensim ignores the rest of a text after 10,000 words. Words
    that are not in the vocabulary are removed from the texts first.
    """
    check_at_least(1, dimension=dimension, window=window, epochs=epochs)
    check_at_least(0, seed=seed)
    import_optional("gensim.models.word2vec", "baselines")
    # A single string is passed on, because `_train` raises an error for it.
    if not isinstance(texts, str | bytes):
        texts = tuple(texts)
    words = tuple(vocabulary)
    arguments = (texts, words, dimension, window, epochs, seed, split)
    folder = _cache_folder.get()
    if folder is None:
        # `_train` is cached, and the caller may change the array.
        return _train(*arguments).copy()
    digest = hashlib.sha256(ascii(arguments).encode()).hexdigest()
    path = folder / f"{digest[:16]}.npy"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        with replacing(path) as partial:
            np.save(partial, _train(*arguments))
    return np.array(read_array(path, "remove the file"))


@functools.lru_cache(4)
def _train(
    texts: Iterable[str | bytes],
    vocabulary: tuple[str, ...],
    dimension: int,
    window: int,
    epochs: int,
    seed: int,
    split: str,
) -> np.ndarray:
    word_of = {word.encode(): word for word in vocabulary}
    sentences = [
        [word_of[token] for token in text if token in word_of]
        for batch in split_in_batches(texts, split)
        for text in batch.to_list()
    ]
    if not any(sentences):
        raise InputError(
            f"found no word of the vocabulary in {len(sentences)} texts, "
            "expected the texts that the vocabulary was made of"
        )
    vector_of = train_gensim(
        "Word2Vec", sentences, "the sentences", sg=1, vector_size=dimension,
        window=window, min_count=1, epochs=epochs, seed=seed,
    ).wv  # fmt: skip
    # Words that occur in no text keep random vectors.
    random_vectors = np.random.default_rng(seed).uniform(
        -0.1, 0.1, (len(vocabulary), dimension)
    )
    vectors = random_vectors.astype(np.float32)
    for row, word in enumerate(vocabulary):
        if word in vector_of:
            vectors[row] = vector_of[word]
    return vectors
