"""Small encoders of all kinds, and their vectors computed by NumPy."""

from typing import Any

import numpy as np

import keras_lstm_dssm as dssm
from keras_lstm_dssm.encoders import WordSumEncoder
from keras_lstm_dssm.layers import WordSketch
from keras_lstm_dssm.layers.fixed_words import word_keys
from keras_lstm_dssm.text.word_hashing import distinct_words
from keras_lstm_dssm.training.word_fit import FittedWords
from tests import reference

RANDOM = np.random.default_rng(5)

ENCODERS: dict[str, tuple[type[dssm.TextEncoder], dict[str, Any]]] = {
    **{
        f"lstm_{peephole}_{'forget' if forget else 'keep'}": (
            dssm.LSTMEncoder,
            {"cells": 3, "peephole": peephole, "forget_gate": forget},
        )
        for peephole in (None, "diagonal", "full")
        for forget in (False, True)
    },
    "bilstm": (dssm.BidirectionalLSTMEncoder, {"cells": 2, "peephole": "full"}),
    "rnn": (dssm.RNNEncoder, {"units": 4}),
    "dssm": (dssm.DSSMEncoder, {"units": [4, 3, 2]}),
    "clsm_1": (dssm.CLSMEncoder, {"window": 1, "filters": 4, "units": 3}),
    "clsm_3": (dssm.CLSMEncoder, {"window": 3, "filters": 4, "units": 3}),
    "combined": (
        dssm.CombinedEncoder,
        {
            "cells": 3, "bag": 2, "sketch": 4, "shares": [1, 2, 5],
            "length_norm": 0.25,
        },
    ),
}  # fmt: skip
FITTED: dict[str, tuple[type[dssm.TextEncoder], dict[str, Any]]] = {
    "word_sum": (WordSumEncoder, {}),
    "combined_words": (
        dssm.CombinedEncoder,
        {"cells": 3, "bag": 2, "sketch": 4, "shares": [1, 2, 5, 3]},
    ),
}
"""Encoders with vectors of words that are fitted to a teacher's."""

KNOWN = ["hex", "bolt", "the", "x"]
LONG = 2.0  # some of the sketches are longer than that, some shorter
EACH = ("lstm_full_forget", "bilstm", "rnn", "dssm", "clsm_3", "combined")


def small_encoder(name: str, **arguments: Any) -> dssm.TextEncoder:
    """Make an encoder with random weights, biases and peepholes included."""
    kind, sizes = {**ENCODERS, **FITTED}[name]
    if name in FITTED:
        hashing = kind(**sizes, **arguments).trigrams
        words = hashing.distinct(KNOWN)
        ids = np.unique(words.trigrams)[::2].astype(np.int64)
        fitted = FittedWords(
            word_keys(words).numpy(), RANDOM.normal(size=(len(KNOWN), 5)), ids,
            RANDOM.normal(size=(len(ids), 5)),
        )  # fmt: skip
        sizes = sizes | fitted.config
    encoder = kind(**sizes, **arguments)
    for variable in encoder.variables:
        if "float" in variable.dtype:
            variable.assign(RANDOM.normal(size=variable.shape) * 0.7)
    if name in FITTED:
        fitted.write_to(encoder.word_rows)
    if isinstance(encoder, dssm.CombinedEncoder):
        encoder.long.assign(LONG)
    return encoder


def by_numpy(encoder: dssm.TextEncoder, text: str) -> np.ndarray:
    """Compute y of a string, hashing included."""
    split = reference.split(text, encoder.trigrams.split)
    words = [reference.counts(word) for word in split]
    tables = {
        name: getattr(encoder, name).table.numpy()
        for name in ("embedding", "backward_embedding")
        if hasattr(encoder, name)
    }
    W = tables["embedding"].T
    if isinstance(encoder, dssm.LSTMEncoder | dssm.CombinedEncoder):
        gate = reference.gates_of(encoder.lstm.cell, W.T)
        y = reference.lstm(gate, words)["y"][-1]
        if isinstance(encoder, dssm.BidirectionalLSTMEncoder):
            gate = reference.gates_of(
                encoder.backward_lstm.cell, tables["backward_embedding"]
            )
            back = reference.lstm(gate, words[::-1])["y"][-1]
            y = np.concatenate([y, back])
        if isinstance(encoder, dssm.CombinedEncoder):
            bag = sum(words) @ encoder.bag_embedding.table.numpy()
            rows = sum(word_row(encoder.word_sketch, word) for word in split)
            # One more direction brings the sketch to the length `long`.
            length = np.linalg.norm(rows)
            m = min(1, length / LONG) ** (1 - encoder.length_norm)
            rest = length * np.sqrt(m**-2 - 1)
            y = np.concatenate(
                [
                    part / np.linalg.norm(part) * (share / 8) ** 0.5
                    for part, share in zip(
                        (y, bag, [*rows, rest]), (1, 2, 5), strict=True
                    )
                ]
            )
        return y
    if isinstance(encoder, dssm.RNNEncoder):
        cell = encoder.rnn.cell
        W_rec = cell.recurrent_kernel.numpy().T
        return reference.rnn(W, W_rec, cell.bias.numpy(), words)[-1]
    if isinstance(encoder, dssm.DSSMEncoder):
        layers = [(d.kernel.numpy().T, d.bias.numpy()) for d in encoder.dense]
        return reference.dssm(W, layers, words)
    assert isinstance(encoder, dssm.CLSMEncoder)
    # One block of the table for each position in the window.
    blocks = np.split(W, encoder.window)
    dense = encoder.dense
    return reference.clsm(
        np.hstack(blocks), encoder.bias.numpy(), dense.kernel.numpy().T,
        dense.bias.numpy(), words,
    )  # fmt: skip


def word_row(sketch: WordSketch, word: str) -> np.ndarray:
    """Return the row of one word, which tests/layers proves right."""
    return sketch(distinct_words([word]))[0].numpy()
