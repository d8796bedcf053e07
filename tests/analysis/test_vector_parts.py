"""The parts of a combined vector, which the report must not confuse."""

import numpy as np

from keras_lstm_dssm import TwoTower
from keras_lstm_dssm.analysis import vector_parts
from keras_lstm_dssm.analysis.words import (
    WHOLE_VECTOR,
    cell_note,
    common_parts,
    part_products,
)
from tests.encoders.small import small_encoder


def test_parts_are_those_that_the_encoder_concatenates():
    encoder = small_encoder("combined")  # 3 cells, bag 2, sketch 4 + 1
    parts = vector_parts(encoder)
    assert [(part.start, part.stop) for part in parts] == [
        (0, 3), (3, 5), (5, 9), (9, 10),
    ]  # fmt: skip
    vectors = encoder.encode(["wood glue", "hex bolts zinc"])
    products = part_products(parts, vectors, vectors[0])
    np.testing.assert_allclose(
        products.sum(axis=1), vectors @ vectors[0], rtol=1e-5
    )
    # The squared length of the LSTM's part and of the sum's are their
    # shares, 1 and 2 of 8; sketch and length norm together have the rest.
    np.testing.assert_allclose(products[0, :2], [1 / 8, 2 / 8], rtol=1e-5)
    np.testing.assert_allclose(products[0, 2:].sum(), 5 / 8, rtol=1e-5)
    note = " The cells are those of the LSTM: the first 3 of the vector's 10"
    assert cell_note(encoder).startswith(note)


def test_other_encoders_have_one_part():
    combined, lstm = small_encoder("combined"), small_encoder("rnn")
    ((name, start, stop),) = vector_parts(lstm)
    assert (name, start, stop) == (WHOLE_VECTOR, 0, 4)
    assert cell_note(lstm) == ""
    assert "right to left" in cell_note(small_encoder("bilstm"))
    model = TwoTower(combined, combined)
    assert common_parts(model) == vector_parts(combined)
    model.document_encoder = small_encoder("dssm")
    assert len(common_parts(model)) == 1
