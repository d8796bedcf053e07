import io
from contextlib import redirect_stderr

import numpy as np
import pytest

from keras_lstm_dssm import CombinedEncoder, InputError, TextEncoder
from tests.encoders.small import EACH, small_encoder

ODD = [
    "",
    " \t ",
    "a",
    b"\xff\xfe\xc3 hotel",
    "a\0b \0",
    "😀 👩‍👩‍👧",
    "上海 酒店",
    "فنادق في شنغهاي",
    "hotel " * 10_000,
    "\ud800",
    "#",
]


@pytest.fixture(scope="module", params=EACH)
def encoder(request: pytest.FixtureRequest) -> TextEncoder:
    return small_encoder(request.param, max_words=None)


@pytest.fixture(scope="module")
def rnn() -> TextEncoder:
    return small_encoder("rnn", oov_buckets=64)


def test_odd_texts_have_unit_vectors(encoder: TextEncoder) -> None:
    vectors = encoder.encode(ODD)
    assert vectors.shape == (len(ODD), encoder.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
    empty, blank, *_, hash_sign = vectors
    np.testing.assert_allclose(empty, blank, atol=1e-6)
    np.testing.assert_allclose(empty, hash_sign, atol=1e-6)


def test_zero_weights_give_the_first_basis_vector(
    encoder: TextEncoder,
) -> None:
    """A vector without length has no direction, yet a defined one.

    Each of the parts of a combined vector has one of its own.
    """
    before = encoder.get_weights()
    encoder.set_weights([np.zeros_like(weight) for weight in before])
    vectors = encoder.encode(["hotels", ""])
    encoder.set_weights(before)
    expected = np.eye(encoder.dimension)[[0, 0]]
    if isinstance(encoder, CombinedEncoder):
        # A sketch without length is all filled up, by the last number.
        expected[:, [0, 3, 9]] = np.sqrt([1 / 8, 2 / 8, 5 / 8])
    np.testing.assert_allclose(vectors, expected, atol=1e-7)


def test_of_no_texts_there_are_no_vectors(encoder: TextEncoder) -> None:
    assert encoder.encode([]).shape == (0, encoder.dimension)
    assert encoder(np.array([], object)).shape == (0, encoder.dimension)


def test_a_row_does_not_depend_on_the_others(encoder: TextEncoder) -> None:
    texts = ["hotels in shanghai", "a", "", "shanghai " * 30, "a"]
    together = encoder.encode(texts)
    alone = np.concatenate([encoder.encode([text]) for text in texts])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    np.testing.assert_array_equal(together[1], together[4])


def test_order_and_batch_size(rnn: TextEncoder) -> None:
    """Texts are batched by length, but returned in their order."""
    texts = [f"{'word ' * (place % 7)}{place}" for place in range(50)]
    vectors = rnn.encode(texts)
    for size in (1, 7, 50):
        np.testing.assert_allclose(
            rnn.encode(texts, batch_size=size), vectors, atol=1e-6
        )
    np.testing.assert_allclose(
        rnn.encode(texts[::-1])[::-1], vectors, atol=1e-6
    )
    assert len(np.unique(vectors.round(5), axis=0)) == 50


def test_kinds_of_text(rnn: TextEncoder) -> None:
    texts = ["hotel", "上海"]
    vectors = rnn.encode(texts)
    for other in (np.array(texts), [text.encode() for text in texts]):
        np.testing.assert_array_equal(rnn.encode(other), vectors)


def test_progress_bar(rnn: TextEncoder) -> None:
    shown = io.StringIO()
    with redirect_stderr(shown):
        rnn.encode(["a", "b", "c"], batch_size=2, progress=True)
        rnn.encode(["a"])
    assert "encode: 100%" in shown.getvalue() and "2/2" in shown.getvalue()


def test_what_is_no_text(rnn: TextEncoder) -> None:
    with pytest.raises(InputError, match=r"text 1 is 7 \(int\), expected str"):
        rnn.encode(["a", 7])  # type: ignore[list-item]
    with pytest.raises(InputError, match="got one text, 'hotels'"):
        rnn.encode("hotels")


def test_max_words(rnn: TextEncoder) -> None:
    short = small_encoder("rnn", max_words=2)
    vectors = short.encode(["a b c d", "a b", "a"])
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert abs(vectors[1] - vectors[2]).max() > 0.01
