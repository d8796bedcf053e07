"""What single words do to a vector and to a cosine."""

import numpy as np
import pytest

from keras_lstm_dssm import TwoTower
from keras_lstm_dssm.analysis import attenuation, growth
from keras_lstm_dssm.analysis.word_effects import each_change
from tests.encoders.small import small_encoder

TEXT = "hotels in shanghai"
KINDS = ["lstm_None_keep", "bilstm", "rnn", "dssm", "clsm_3"]


@pytest.mark.parametrize("name", KINDS)
def test_attenuation_leaves_out_each_word(name) -> None:
    encoder = small_encoder(name)
    other = encoder.encode(["cheap hotels"])[0]
    whole, *parts = encoder.encode(
        [TEXT, "in shanghai", "hotels shanghai", "hotels in"]
    )
    found = attenuation(encoder, TEXT, other)
    assert [one.word for one in found] == ["hotels", "in", "shanghai"]
    np.testing.assert_allclose(
        [one.change for one in found],
        [1 - whole @ part for part in parts],
        atol=1e-6,
    )
    np.testing.assert_allclose(
        [one.cosine for one in found],
        [(whole - part) @ other for part in parts],
        atol=1e-6,
    )
    assert attenuation(encoder, TEXT)[0].cosine is None
    first, second = each_change(encoder, [("hotels",), tuple(TEXT.split())])
    assert first.shape == (1,)
    np.testing.assert_allclose(second, [one.change for one in found], atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_growth_ends_at_the_cosine(name) -> None:
    model = TwoTower(small_encoder(name), small_encoder(name))
    title = "Shanghai hotels, discount"
    found = growth(model, TEXT, title)
    assert found.query == ("hotels", "in", "shanghai")
    assert found.document == ("shanghai", "hotels,", "discount")
    cosine = float(model((np.array([TEXT]), np.array([title])))[0])
    assert found.by_query[-1] == pytest.approx(cosine, abs=1e-5)
    assert found.by_document[-1] == pytest.approx(cosine, abs=1e-5)
    first = float(model((np.array(["hotels"]), np.array([title])))[0])
    assert found.by_query[0] == pytest.approx(first, abs=1e-5)
