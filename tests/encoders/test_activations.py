import numpy as np
import pytest

from keras_lstm_dssm.encoders.activations import (
    activations,
    each_activations,
    words_of,
)
from keras_lstm_dssm.errors import InputError
from tests import reference
from tests.encoders.small import ENCODERS, small_encoder

TEXT = "Shanghai hotels  accommodation in Shanghai"
WORDS = ("shanghai", "hotels", "accommodation", "in", "shanghai")
LSTMS = [name for name in ENCODERS if "lstm" in name]


@pytest.mark.parametrize("name", LSTMS)
def test_equals_the_plain_cell_step_by_step(float64, name):
    encoder = small_encoder(name, dtype="float64")
    read = activations(encoder, TEXT)
    assert read.words == WORDS
    networks = [(encoder.lstm.cell, encoder.embedding)]
    if name == "bilstm":
        networks.append(
            (encoder.backward_lstm.cell, encoder.backward_embedding)
        )
    assert len(read.directions) == len(networks)
    letters = [reference.counts(word) for word in WORDS]
    for one, (cell, embedding) in zip(read.directions, networks, strict=True):
        order = slice(None, None, -1 if one.reverse else 1)
        gate = reference.gates_of(cell, embedding.table.numpy())
        steps = reference.lstm(gate, letters[order])
        for key in ("i", "f", "c", "o", "y"):
            array = getattr(one, key)
            if key == "f" and not cell.forget_gate:
                assert array is None
                continue
            np.testing.assert_allclose(array, steps[key][order], rtol=1e-12)
        change = np.diff(steps["y"], axis=0, prepend=0)[order]
        np.testing.assert_allclose(one.change, change, atol=1e-14)
    assert [one.first_read for one in read.directions] == [0, 4][
        : len(networks)
    ]
    np.testing.assert_allclose(
        read.recurrent_vector, encoder([TEXT])[0].numpy(), rtol=1e-12
    )


def test_an_rnn_has_y_alone(float64):
    encoder = small_encoder("rnn", dtype="float64")
    read = activations(encoder, TEXT)
    cell = encoder.rnn.cell
    y = reference.rnn(
        encoder.embedding.table.numpy().T, cell.recurrent_kernel.numpy().T,
        cell.bias.numpy(), [reference.counts(word) for word in WORDS],
    )  # fmt: skip
    np.testing.assert_allclose(read.y, y, rtol=1e-12)
    assert (read.i, read.f, read.c, read.o) == (None,) * 4


def test_a_combined_encoder_has_the_activations_of_its_lstm():
    encoder = small_encoder("combined")
    read = activations(encoder, TEXT)
    lstm = encoder.encode([TEXT])[0][:3]
    assert read.y.shape == (5, 3)
    np.testing.assert_allclose(
        read.recurrent_vector / np.linalg.norm(read.recurrent_vector),
        lstm / np.linalg.norm(lstm),
        rtol=1e-5,
    )


def test_lazily_updated_rows_are_brought_up_to_date_first():
    encoder = small_encoder("rnn")
    before = activations(encoder, TEXT)
    table = encoder.embedding.table
    encoder.before_read = lambda: table.assign(2 * table)
    assert not np.allclose(activations(encoder, TEXT).y, before.y)


@pytest.mark.parametrize("name", ["lstm_full_forget", "bilstm", "rnn"])
def test_each_text_is_as_if_alone(name):
    encoder = small_encoder(name)
    texts = ["hotels", TEXT, "", "hotels in shanghai", TEXT]
    together = list(each_activations(encoder, texts, batch_size=3))
    assert [one.words for one in together] == words_of(encoder, texts)
    for text, one in zip(texts, together, strict=True):
        alone = activations(encoder, text)
        assert one.words == alone.words
        for a, b in zip(one.directions, alone.directions, strict=True):
            np.testing.assert_allclose(a.y, b.y, atol=1e-6)


def test_long_texts_are_cut_as_the_encoder_cuts_them():
    encoder = small_encoder("rnn", max_words=2)
    assert activations(encoder, TEXT).words == WORDS[:2]


@pytest.mark.parametrize("name", ["dssm", "clsm_3"])
def test_without_a_recurrence_there_is_one_line(name):
    encoder = small_encoder(name)
    assert not encoder.networks
    with pytest.raises(InputError, match="reads all words at once"):
        activations(encoder, TEXT)
