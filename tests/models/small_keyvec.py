"""A small KeyVec, its documents, and the model in plain NumPy."""

from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.layers import VocabularyVectors
from keras_lstm_dssm.losses import KeyVecLoss
from keras_lstm_dssm.models import KeyVec
from tests import reference
from tests.matchers.ragged_texts import randomise

VOCABULARY = ["hex", "bolt", "glue", "wood", "drill", "lamp", "the", "of"]
DOCUMENTS = [
    ["The hex bolt of steel", "Glue", "", "Glue", "The drill of the lamp"],
    ["Wood"],
    ["The glue of wood", "Wood glue"],
    ["lamp the lamp of the wood", "bolt", "xyz", "Drill of wood", "Glue",
     "The hex bolt of steel", "of"],
]  # fmt: skip
SALIENT = [
    [True, False, False, False, True], [False], [True, True],
    [False, True, False, False, False, True, False],
]  # fmt: skip
KEY_WORDS = [["hex", "Bolt"], ["wood", "unknown"], [], ["lamp"]]
EXAMPLES = (DOCUMENTS, SALIENT, KEY_WORDS)
ODD = {
    "empty": "",
    "no sentences": [],
    "an empty sentence": [""],
    "one word": "glue",
    "one sentence": "The glue of wood.",
    "5,000 sentences": "The hex bolt. " * 5000,
    "no full stop": "glue wood " * 3000,
    "Chinese": "今天天气很好。我们去公园！「好吗？」好" * 20,
    "invalid UTF-8": b"\xff\xfe glue. \xc3 Wood.",
    "surrogates": "glue \ud800. \udcff Wood.",
    "control characters": "\x00\x01\x02. \x1bGlue.",
}
"""Documents that must neither stop a program nor give NaN, by what is odd."""


def small_keyvec(**options: Any) -> KeyVec:
    """Make a model of random weights in Keras's default dtype."""
    words = VocabularyVectors(VOCABULARY, 4, max_words=60)
    sizes = {"filters": 2, "windows": [1, 2, 3, 5], "units": 3, "dimension": 5}
    model = KeyVec(words, **{**sizes, **options})
    randomise(model)
    model.sentence_encoder.bias.assign(tf.linspace(-0.4, 0.6, 8))
    return model


def compiled(
    rate: float = 0.02, optimizer: Any = keras.optimizers.Adam,
    loss: KeyVecLoss | None = None, sizes: dict[str, Any] | None = None,
    **options: Any,
) -> KeyVec:  # fmt: skip
    """Make a compiled model; the options are those of `compile`."""
    model = small_keyvec(**sizes or {})
    model.compile(optimizer(rate), loss or KeyVecLoss(), **options)
    return model


def ragged_examples() -> tuple[tf.RaggedTensor, ...]:
    """Return all examples as one batch."""
    dtypes = tf.string, tf.bool, tf.string
    return tuple(
        tf.ragged.constant(column, dtype, 1)
        for column, dtype in zip(EXAMPLES, dtypes, strict=True)
    )


def take_step(model: KeyVec) -> None:
    """Take one training step without tracing, which takes seconds."""
    model.train_step(ragged_examples())


class PlainDocument(NamedTuple):
    """p and d of one document, and the logits of the key words."""

    p: np.ndarray
    vector: np.ndarray
    words: np.ndarray


def by_numpy(model: KeyVec, document: list[str]) -> PlainDocument:
    """Compute eq. (1) to (3), one sentence after the other."""
    sentences = [_sentence(model, sentence) for sentence in document]
    reader = model.reader
    ways = []
    for layer, step in ((reader.forward_lstm, 1), (reader.backward_lstm, -1)):
        gates = reference.gates_of(layer.cell, layer.cell.kernel)
        ways.append(reference.lstm(gates, sentences[::step])["y"][::step])
    states = np.concatenate(ways, axis=1)
    p = np.ones(len(document))
    if model.weighted:
        p = reference.sigmoid(_dense(reader.score, states)[:, 0])
    mean = sum(each / sum(p) * h for each, h in zip(p, states, strict=True))
    vector = np.tanh(_dense(model.document_encoder.dense, mean))
    return PlainDocument(p, vector, _dense(model.word_scores, vector))


def _sentence(model: KeyVec, sentence: str) -> np.ndarray:
    table = model.words.embedding.table.numpy()
    known = {word: row + 1 for row, word in enumerate(VOCABULARY)}
    words = [
        table[known.get(word, 0)]
        for word in reference.split(sentence, "alphanumeric")
    ]
    encoder, values = model.sentence_encoder, []
    for width, kernel in zip(encoder.windows, encoder.kernels, strict=True):
        padded = words + [np.zeros(4)] * (width - len(words))
        weights = kernel.numpy()
        values.append(
            np.max(
                [
                    sum(padded[t + o] @ weights[o] for o in range(width))
                    for t in range(len(padded) - width + 1)
                ],
                axis=0,
            )
        )
    return np.maximum(0, np.concatenate(values) + encoder.bias.numpy())


def _dense(layer: keras.layers.Dense, inputs: np.ndarray) -> np.ndarray:
    kernel, bias = (weight.numpy() for weight in layer.weights)
    return inputs @ kernel + bias
