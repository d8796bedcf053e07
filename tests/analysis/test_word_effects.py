"""What single words do to a vector and to a cosine."""

import numpy as np
import pytest

from keras_lstm_dssm import TextEncoder, TwoTower
from keras_lstm_dssm.analysis import attenuation, growth
from keras_lstm_dssm.analysis.words import each_change
from tests.encoders.small import small_encoder

TEXT, TITLE = "hotels in shanghai", "Shanghai hotels, discount"
KINDS = ["lstm_None_keep", "bilstm", "rnn", "dssm", "clsm_3", "combined"]


@pytest.fixture(scope="module", params=KINDS)
def encoder(request) -> TextEncoder:
    return small_encoder(request.param)


def test_attenuation_leaves_out_each_word(encoder):
    other = encoder.encode(["cheap hotels"])[0]
    whole, *rest = encoder.encode(
        [TEXT, "in shanghai", "hotels shanghai", "hotels in"]
    )
    effects = attenuation(encoder, TEXT, other)
    assert [one.word for one in effects] == ["hotels", "in", "shanghai"]
    np.testing.assert_allclose(
        [one.change for one in effects],
        [1 - whole @ vector for vector in rest],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        [one.cosine for one in effects],
        [(whole - vector) @ other for vector in rest],
        atol=1e-6,
    )
    assert attenuation(encoder, TEXT)[0].cosine is None
    first, second = each_change(encoder, [("hotels",), tuple(TEXT.split())])
    assert first.shape == (1,)
    np.testing.assert_allclose(
        second, [one.change for one in effects], atol=1e-6
    )


def test_growth_ends_at_the_cosine_and_parts_add_up_to_it(encoder):
    growing = growth(TwoTower(encoder, encoder), TEXT, TITLE)
    assert growing.query_words == ("hotels", "in", "shanghai")
    comma = "," * (encoder.trigrams.split == "space")
    assert growing.document_words == ("shanghai", f"hotels{comma}", "discount")
    first, query, title = encoder.encode(["hotels", TEXT, TITLE])
    assert growing.query_cosines[0] == pytest.approx(first @ title, abs=1e-5)
    assert growing.query_cosines[-1] == pytest.approx(query @ title, abs=1e-5)
    assert growing.document_cosines[-1] == growing.query_cosines[-1]
    for parts, cosines in (
        (growing.query_parts, growing.query_cosines),
        (growing.document_parts, growing.document_cosines),
    ):
        assert parts.shape == (3, len(growing.parts))
        np.testing.assert_allclose(parts.sum(axis=1), cosines, atol=1e-6)


def test_the_cosine_is_that_of_the_model():
    model = TwoTower(small_encoder("rnn"), small_encoder("rnn"))
    cosine = float(model((np.array([TEXT]), np.array([TITLE])))[0])
    growing = growth(model, TEXT, TITLE)
    assert growing.query_cosines[-1] == pytest.approx(cosine, abs=1e-5)
