import numpy as np
import pytest

from keras_lstm_dssm.baselines import words
from keras_lstm_dssm.baselines.counted_corpus import (
    Corpus,
    cached_corpus,
    count_matrix,
    training_corpus,
)
from keras_lstm_dssm.errors import InputError


def test_ids_and_counts() -> None:
    corpus = Corpus(["Red hat red", "", "blue hat"], words)
    assert corpus.vocabulary == {"red": 0, "hat": 1, "blue": 2}
    assert corpus.ids == [[0, 1, 0], [], [2, 1]]
    counts = corpus.counts
    assert counts.toarray().tolist() == [[2, 1, 0], [0, 0, 0], [0, 1, 1]]
    assert counts.dtype == np.float32
    assert counts.indices.tolist() == [0, 1, 1, 2]


def test_given_vocabulary() -> None:
    corpus = Corpus(["hat coat hat"], words, {"red": 0, "hat": 1})
    assert corpus.ids == [[1, 1]]
    assert corpus.counts.toarray().tolist() == [[0, 2]]


def test_no_titles() -> None:
    assert count_matrix([], 3).shape == (0, 3)


def test_cache_compares_the_titles() -> None:
    first = cached_corpus(("red hat", "hose"), words)
    assert cached_corpus(("red hat", "hose"), words) is first
    assert cached_corpus(("red hat", "hoses"), words).ids == first.ids
    assert "hoses" not in first.vocabulary


@pytest.mark.parametrize(
    ("titles", "message"),
    [
        ([], "found no word in 0 titles, expected a sequence of titles"),
        (["", " \n"], "found no word in 2 titles"),
        ("red hat", "found 'red hat', expected a sequence of titles"),
        (iter(["red"]), "expected a sequence of titles with at least one"),
        (None, "found None, expected a sequence"),
        (["red", b"hat"], "title 2: found b'hat', expected a str"),
    ],
)
def test_wrong_titles(titles, message) -> None:
    with pytest.raises(InputError, match=message) as error:
        training_corpus(titles, words)
    assert "\n" not in str(error.value)
