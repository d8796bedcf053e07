import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import DenseSystem
from keras_lstm_dssm.evaluation.systems import (
    CachedEncoder,
    with_cached_vectors,
)


def test_each_text_is_encoded_once_and_in_order():
    seen: list[list[str]] = []

    def encode(texts: list[str]) -> np.ndarray:
        seen.append(list(texts))
        return np.array([[len(text), 1.0] for text in texts]).reshape(-1, 2)

    remembered = CachedEncoder(encode)
    first = remembered(["abc", "a", "abc"])
    np.testing.assert_array_equal(first, [[3, 1], [1, 1], [3, 1]])
    np.testing.assert_array_equal(remembered(["ab", "a"]), [[2, 1], [1, 1]])
    assert remembered([]).shape == (0, 2)
    assert seen == [["abc", "a"], ["ab"], []]


def test_another_number_of_vectors():
    with pytest.raises(InputError, match="found 3 vectors for 1 texts"):
        CachedEncoder(lambda texts: np.ones((3, 2)))(["a"])


def test_a_system_remembers_once_and_both_sides_together():
    seen: list[str] = []

    def encode(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return np.array([[len(text), 1.0] for text in texts])

    system = with_cached_vectors(DenseSystem(encode, encode))
    assert with_cached_vectors(system) is system
    system.encode_query(["a"])
    system.encode_document(["a", "b"])
    assert seen == ["a", "b"]
    apart = with_cached_vectors(
        DenseSystem(encode, lambda texts: -encode(texts))
    )
    np.testing.assert_array_equal(apart.encode_query(["a"]), [[1, 1]])
    np.testing.assert_array_equal(apart.encode_document(["a"]), [[-1, -1]])
