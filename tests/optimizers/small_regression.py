"""A linear regression for a model of Keras, and its gradient for NumPy."""

from typing import Any

import keras
import numpy as np

RANDOM = np.random.default_rng(3)
BATCH, BATCHES = 4, 5
X = RANDOM.normal(size=(BATCH * BATCHES, 3))
Y = RANDOM.normal(size=(BATCH * BATCHES, 2))
START = RANDOM.normal(size=(3, 2))
RATE = 0.25


def regression(optimizer: Any, **options: Any) -> keras.Sequential:
    """Makes the model, compiled; its only weight is START."""
    model = keras.Sequential(
        [keras.Input((3,)), keras.layers.Dense(2, use_bias=False)]
    )
    model.compile(optimizer, "mse", **options)
    model.set_weights([START])
    return model


def fit(model: keras.Model, epochs: int = 1, **options: Any) -> Any:
    """Fits the model to X and Y, in their order."""
    return model.fit(
        X, Y, batch_size=BATCH, epochs=epochs, shuffle=False, verbose=0,
        **options,
    )  # fmt: skip


def gradient(k: int, parameters: list[np.ndarray]) -> list[np.ndarray]:
    """Computes the gradient of the mean squared error of batch k."""
    rows = slice(BATCH * (k % BATCHES), BATCH * (k % BATCHES + 1))
    error = X[rows] @ parameters[0] - Y[rows]
    return [2 * X[rows].T @ error / error.size]


def loss(weights: np.ndarray) -> float:
    """Computes the mean squared error of all rows."""
    return float(np.mean((X @ weights - Y) ** 2))
