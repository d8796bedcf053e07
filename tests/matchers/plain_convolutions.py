"""Convolutions and poolings in plain NumPy, one text or pair at a time."""

from typing import Any

import numpy as np

from keras_lstm_dssm.layers.convolution import (
    KMaxStack,
    ScoringMLP,
    WindowPoolingStack,
)
from tests import reference


def relu(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


FUNCTIONS = {
    "relu": relu, "tanh": np.tanh, "sigmoid": reference.sigmoid,
    None: np.asarray,
}  # fmt: skip


def at_windows(
    words: np.ndarray, kernel: Any, bias: np.ndarray | float = 0.0
) -> np.ndarray:
    """W [x_i; ..; x_{i+width-1}] + b for all windows within `words`."""
    kernel = np.asarray(kernel)
    width = len(kernel)
    weights = kernel.reshape(-1, kernel.shape[-1])
    return np.array(
        [
            np.concatenate(words[i : i + width]) @ weights + bias
            for i in range(len(words) - width + 1)
        ]
    )


def weights_of(layer: Any) -> tuple[np.ndarray, np.ndarray | float]:
    """Kernel and bias of a `MaskedConvolution`."""
    convolution = layer.convolution
    bias = convolution.bias.numpy() if layer.use_bias else 0.0
    return convolution.kernel.numpy(), bias


def wide(words: np.ndarray, width: int) -> np.ndarray:
    """Add `width - 1` zero vectors before and after the words of a text."""
    return np.pad(words, [[width - 1, width - 1], [0, 0]])


def fixed(words: np.ndarray, time: int) -> np.ndarray:
    """Pad or cut a text to a fixed length."""
    return np.pad(words[:time], [[0, max(0, time - len(words))], [0, 0]])


def halves(values: np.ndarray) -> np.ndarray:
    """Take the maximum of each window of two."""
    return np.array(
        [values[i : i + 2].max(axis=0) for i in range(0, len(values), 2)]
    )


def window_pooling(stack: WindowPoolingStack, words: np.ndarray) -> np.ndarray:
    """The flattened map of ARC-I; windows of padding only are left out."""
    values = fixed(words, stack.max_words)
    real = min(len(words), stack.max_words)
    for layer in stack.convolutions:
        values = FUNCTIONS[stack.activation](
            at_windows(values, *weights_of(layer))
        )
        size, real = (len(values) + 1) // 2, min(real, len(values))
        values = fixed(halves(values[:real]), size)
        real = (real + 1) // 2
    return values.ravel()


def k_largest(column: np.ndarray, k: int) -> np.ndarray:
    """The k largest values in their order, filled with 0."""
    best = sorted(np.argsort(-column, kind="stable")[:k])
    return np.pad(column[best], (0, max(0, k - len(column))))


def k_max_maps(stack: KMaxStack, words: np.ndarray) -> list[np.ndarray]:
    """The map of each convolution before pooling, and the last pooling."""
    layers, values, maps = len(stack.filters), words, []
    k_min = stack.k_top if stack.k_min is None else stack.k_min
    for layer, convolution in enumerate(stack.convolutions, 1):
        values = FUNCTIONS[stack.activation](
            at_windows(wide(values, stack.width), *weights_of(convolution))
        )
        maps.append(values)
        share = int(np.ceil((layers - layer) / layers * len(words) - 1e-9))
        k = stack.k_top if layer == layers else max(k_min, share)
        if layer < layers:
            k = min(k, len(values))  # zeros around a text are added anyway
        values = np.stack([k_largest(column, k) for column in values.T], axis=1)
    return [*maps, values]


def mlp(layer: ScoringMLP, features: np.ndarray) -> float:
    """The score of one pair."""
    for dense in layer.dense:
        features = FUNCTIONS[layer.activation](
            features @ dense.kernel.numpy() + dense.bias.numpy()
        )
    (score,) = features @ layer.score.kernel.numpy() + layer.score.bias.numpy()
    return score


def at_squares(
    cells: np.ndarray, kernel: np.ndarray, bias: np.ndarray
) -> np.ndarray:
    """A 2-D convolution at all squares within the matrix, linear."""
    width = len(kernel)
    rows, columns = (size - width + 1 for size in cells.shape[:2])
    return np.array(
        [
            [
                np.tensordot(cells[i : i + width, j : j + width], kernel, 3)
                + bias
                for j in range(columns)
            ]
            for i in range(rows)
        ]
    )


def plain_regions(length: int, count: int) -> list[list[int]]:
    """The positions of each region, dealt out one by one."""
    if length < count:
        return [[number % length] for number in range(count)]
    sizes = [length // count] * count
    for number in range(length % count):
        sizes[-1 - number] += 1
    ends = np.cumsum(sizes)
    return [
        list(range(end - size, end))
        for end, size in zip(ends, sizes, strict=True)
    ]


def plain_pooling(
    cells: np.ndarray, rows: int, columns: int | None = None, mode: str = "max"
) -> np.ndarray:
    """Pool one matrix `[m, n, channels]` without padding."""
    best = np.max if mode == "max" else np.min
    return np.array(
        [
            [
                best(cells[np.ix_(of_row, of_column)], axis=(0, 1))
                for of_column in plain_regions(cells.shape[1], columns or rows)
            ]
            for of_row in plain_regions(cells.shape[0], rows)
        ]
    )
