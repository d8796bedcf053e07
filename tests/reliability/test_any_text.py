"""Any text has a unit vector, the same in any batch and through a server."""

import pathlib
import random
from collections.abc import Iterator

import keras
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import export_models
from keras_lstm_dssm.serving import Client, PredictionServer
from tests.encoders.small import EACH, small_encoder

# Surrogates too: Python's strings may hold them, and bytes hold anything.
TEXT = st.text(st.characters(), max_size=60) | st.binary(max_size=60)
BLANK = st.text(" \t\n\r\u00a0\u2003\u3000", max_size=4)
WORDS = st.lists(st.text("abc\u00e9\u4e0a\U0001f600", min_size=1), min_size=1)
PROPERTY = settings(
    deadline=None, max_examples=40, suppress_health_check=list(HealthCheck)
)
CLOSE = {"rtol": 0, "atol": 2e-6}  # sums of another batch, in float32


@pytest.fixture(scope="module", params=EACH)
def encoder(request) -> dssm.TextEncoder:
    return small_encoder(request.param, oov_buckets=64)


@PROPERTY
@given(texts=st.lists(TEXT, min_size=1, max_size=30), data=st.data())
def test_any_text_has_a_unit_vector_which_does_not_depend_on_its_neighbours(
    encoder, texts, data
):
    vectors = encoder.encode(texts)
    assert vectors.shape == (len(texts), encoder.dimension)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    chosen = data.draw(st.integers(0, len(texts) - 1))
    alone = encoder.encode([texts[chosen]])[0]
    np.testing.assert_allclose(alone, vectors[chosen], **CLOSE)
    order = data.draw(st.permutations(range(len(texts))))
    others = encoder.encode([texts[i] for i in order], batch_size=7)
    np.testing.assert_allclose(others, vectors[order], **CLOSE)


@PROPERTY
@given(words=WORDS, blanks=st.lists(BLANK, min_size=3, max_size=3))
def test_padding_changes_nothing(encoder, words, blanks):
    """White space around words, and the padding beside a longer text."""
    first, middle, last = blanks
    padded = first + f" {middle}".join(words) + last
    longer = "a " * 100
    text = " ".join(words)
    alone = encoder.encode([text])
    beside = encoder.encode([padded, longer, text])
    np.testing.assert_allclose(beside[[0]], alone, **CLOSE)
    np.testing.assert_allclose(beside[[2]], alone, **CLOSE)


def random_texts(count: int) -> list[bytes]:
    """Words, any Unicode and any bytes, each after a distinct word."""
    draw = random.Random(7)

    def text() -> bytes:
        kind, size = draw.randrange(3), draw.randrange(40)
        if kind == 0:
            letters = draw.choices("abcdefghij  ", k=size)
            return "".join(letters).encode()
        if kind == 1:
            points = (draw.randrange(0x3000) for _ in range(size // 2))
            return "".join(map(chr, points)).encode()
        return draw.randbytes(size)

    return [b"%x " % number + text() for number in range(count)]


@pytest.fixture(scope="module")
def served(tmp_path_factory) -> Iterator[tuple[dssm.TwoTower, Client]]:
    keras.utils.set_random_seed(2)
    model = dssm.TwoTower(dssm.LSTMEncoder(16), dssm.LSTMEncoder(16))
    folder: pathlib.Path = tmp_path_factory.mktemp("served") / "models"
    export_models(model, folder)
    with PredictionServer(folder, port=0) as server:
        with Client(server.address, timeout=60) as client:
            yield model, client


def test_no_text_is_lost_or_reordered_on_the_way(served):
    """Their vectors differ, so that only the right order is equal."""
    model, client = served
    count = 100_000
    texts = random_texts(count)
    vectors = client.encode(texts)
    expected = model.query_encoder.encode(texts)
    assert vectors.shape == (count, 16)
    np.testing.assert_allclose(vectors, expected, **CLOSE)
    # Texts with equal vectors could change places unseen: there are few.
    assert len(np.unique(vectors.round(4), axis=0)) > 0.99 * count
