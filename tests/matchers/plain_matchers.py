"""Scores of the matchers in plain NumPy, from the words of one pair."""

from typing import Any

import numpy as np

from keras_lstm_dssm.layers.interactions import PhraseSimilarity
from keras_lstm_dssm.matchers.multi_gran_cnn import MultiGranCNN
from keras_lstm_dssm.matchers.mv_lstm import (
    MVLSTM,
    PositionalBiLSTM,
    RecurrentCosine,
)
from keras_lstm_dssm.matchers.sentence_convolutions import ARCI, ARCII, CNTN
from tests import reference
from tests.matchers import plain_convolutions as plain


def arc_i(matcher: ARCI, query: np.ndarray, document: np.ndarray) -> float:
    def features(stack: Any, words: np.ndarray) -> np.ndarray:
        if matcher.pooling == "windows":
            return plain.window_pooling(stack, words)
        return plain.k_max_maps(stack, words)[-1].ravel()

    both = [
        features(matcher.query_stack, query),
        features(matcher.document_stack, document),
    ]
    return plain.mlp(matcher.mlp, np.concatenate(both))


def first_layer(
    matcher: ARCII, query: np.ndarray, document: np.ndarray
) -> tuple[np.ndarray, list[int]]:
    """One convolution over both windows, cell by cell; numbers of real ones.

    `[windows of the query, of the document, filters]`, of padding 0."""
    texts = [plain.fixed(t, matcher.max_words) for t in (query, document)]
    counts = [min(len(t), matcher.max_words) for t in (query, document)]
    width = matcher.width
    if matcher.padding == "wide":
        texts = [plain.wide(text, width) for text in texts]
        counts = [count + width - 1 for count in counts]
    kernels = [plain.weights_of(layer)[0] for layer in matcher.first]
    size = len(texts[0]) - width + 1
    weights = np.concatenate([k.reshape(-1, k.shape[2]) for k in kernels])
    cells = np.zeros([size, size, matcher.filters[0]])
    real = [min(count, size) for count in counts]
    for i, j in np.ndindex(*real):
        windows = [*texts[0][i : i + width], *texts[1][j : j + width]]
        bias = matcher.first[0].convolution.bias.numpy()
        cells[i, j] = plain.relu(np.concatenate(windows) @ weights + bias)
    return cells, real


def squares_of_two(cells: np.ndarray) -> np.ndarray:
    by_row = plain.halves(cells)
    return plain.halves(by_row.swapaxes(0, 1)).swapaxes(0, 1)


def arc_ii(matcher: ARCII, query: np.ndarray, document: np.ndarray) -> float:
    cells, real = first_layer(matcher, query, document)
    cells = squares_of_two(cells)
    for layer in matcher.convolutions:
        convolved = plain.relu(
            plain.at_squares(cells, layer.kernel.numpy(), layer.bias)
        )
        real = [min((n + 1) // 2, len(convolved)) for n in real]
        cells = np.zeros_like(convolved)
        cells[: real[0], : real[1]] = convolved[: real[0], : real[1]]
        cells = squares_of_two(cells)
    return plain.mlp(matcher.mlp, cells.ravel())


def cntn(matcher: CNTN, query: np.ndarray, document: np.ndarray) -> float:
    v = []
    for number, words in enumerate([query, document]):
        v.append(plain.k_max_maps(matcher.stacks[number], words)[-1].ravel())
        if matcher.dense:
            kernel, bias = (w.numpy() for w in matcher.dense[number].weights)
            v[-1] = np.tanh(v[-1] @ kernel + bias)
    slices = np.array([v[0] @ M @ v[1] for M in matcher.tensor.numpy()])
    linear = np.concatenate(v) @ matcher.projection.numpy()
    hidden = np.tanh(slices + linear + matcher.bias.numpy())
    return matcher.combination.numpy() @ hidden


def similarity(
    layer: PhraseSimilarity, one: np.ndarray, other: np.ndarray
) -> float:
    if layer.kind == "direct":
        return np.exp(-np.sum((one - other) ** 2) / 4)
    W = layer.kernel.numpy()
    if layer.kind == "indirect":
        value = one @ W @ other
    else:
        value = W.ravel() @ np.concatenate([one, other])
    value += layer.bias.numpy() if layer.use_bias else 0
    if layer.activation == "relu":
        return max(0, value)
    return reference.sigmoid(value)


def multi_gran_cnn(
    matcher: MultiGranCNN, query: np.ndarray, document: np.ndarray
) -> float:
    one, other = (
        np.concatenate([words, *plain.k_max_maps(stack, words)])
        for stack, words in zip(matcher.stacks, [query, document], strict=True)
    )
    layer = matcher.phrase_similarity
    cells = np.array([[[similarity(layer, g1, g2)] for g2 in other]
                      for g1 in one])  # fmt: skip
    cells = plain.plain_pooling(cells, matcher.sizes[0])
    for convolution, size in zip(
        matcher.convolutions, matcher.sizes[1:], strict=True
    ):
        around = np.pad(cells, [[1, 1], [1, 1], [0, 0]])
        kernel, bias = convolution.kernel.numpy(), convolution.bias.numpy()
        cells = np.tanh(plain.at_squares(around, kernel, bias))
        cells = plain.plain_pooling(cells, size)
    return plain.mlp(matcher.mlp, cells.ravel())


def states(lstm: Any, words: np.ndarray) -> np.ndarray:
    gates = reference.gates_of(lstm.cell, lstm.cell.kernel)
    return reference.lstm(gates, words)["y"]


def recurrent_cosine(
    matcher: RecurrentCosine, query: np.ndarray, document: np.ndarray
) -> float:
    """5 cos of h_forward(m), or of [h_forward(m); h_backward(1)]."""
    vectors = [
        np.concatenate([
            states(lstm, text)[-1]
            for lstm, text in zip(lstms, [words, words[::-1]], strict=False)
        ])
        for lstms, words in (
            (matcher.query_lstms, query), (matcher.document_lstms, document),
        )
    ]  # fmt: skip
    return 5.0 * reference.cosine(*vectors)


def positions(layer: PositionalBiLSTM, words: np.ndarray) -> np.ndarray:
    """p_t of one text."""
    forward = states(layer.forward_lstm, words)
    backward = states(layer.backward_lstm, words[::-1])[::-1]
    parts = [words] if layer.include_word else []
    p = np.concatenate([*parts, forward, backward], axis=1)
    if layer.unit_length:
        p /= np.linalg.norm(p, axis=1, keepdims=True)
    return p


def mv_lstm_cells(
    matcher: MVLSTM, query: np.ndarray, document: np.ndarray
) -> np.ndarray:
    """s(u_i, v_j) of one pair, `[slices, m, n]`."""
    u = positions(matcher.query_positions, query)
    v = positions(matcher.document_positions, document)
    M, *others = [v.numpy() for v in matcher.comparison.variables] or [None]
    if M is not None and matcher.rank:
        M = M @ M.swapaxes(-1, -2)
    if matcher.interaction == "dot":
        return (u @ v.T)[np.newaxis]
    if matcher.interaction == "cosine":
        norms = [np.linalg.norm(x, axis=1) for x in (u, v)]
        return (u @ v.T / np.outer(*norms))[np.newaxis]
    if matcher.interaction == "bilinear":
        (b,) = others
        return (u @ M @ v.T + b)[np.newaxis]
    W, b = others
    by_u, by_v = np.split(W, 2, axis=1)
    return np.array([
        plain.relu(
            u @ M[k] @ v.T + (u @ by_u[k])[:, np.newaxis] + v @ by_v[k] + b[k]
        )
        for k in range(matcher.slices)
    ])  # fmt: skip


def k_max(values: np.ndarray, k: int) -> np.ndarray:
    """Sort the cells of each slice and keep k, or zeros."""
    result = np.zeros((len(values), k))
    for row, one in zip(result, values, strict=True):
        largest = np.sort(one.ravel())[::-1][:k]
        row[: len(largest)] = largest
    return result


def mv_lstm(matcher: MVLSTM, query: np.ndarray, document: np.ndarray) -> float:
    values = mv_lstm_cells(matcher, query, document)
    if matcher.pooling == "k_max":
        q = k_max(values, matcher.k)
    else:
        q = plain.plain_pooling(np.moveaxis(values, 0, -1), *matcher.grid)
    return plain.mlp(matcher.mlp, q.ravel())
