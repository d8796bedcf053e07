"""Gives PyTorch peers the weights of our models; compares the gradients."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf


def copy_weights(peer: Any, arrays: Iterable[np.ndarray]) -> None:
    """Assigns arrays to the parameters of a `torch.nn.Module`."""
    import torch

    with torch.no_grad():
        for parameter, array in zip(peer.parameters(), arrays, strict=True):
            parameter.copy_(torch.from_numpy(array.copy()))


def check_gradients(
    model: Any,
    gradients: Sequence[Any],
    peer: Any,
    arrays_of: Callable[[Any], Iterable[np.ndarray]],
    **tolerances: float,
) -> int:
    """Checks that a peer's gradients equal ours.

    Args:
        model: Our model. Its weights are replaced by their gradients, so that
            `arrays_of` brings these into the layout of the peer.
        gradients: Gradients of `model.trainable_variables`.
        peer: A `torch.nn.Module` after a step backward.
        arrays_of: Function from our model to the weights of the peer.
        **tolerances: Of `np.testing.assert_allclose`.

    Returns:
        The number of our gradients that are 0, which are not compared.
    """
    variables = model.trainable_variables
    for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign(tf.convert_to_tensor(gradient))
    zeros = 0
    for parameter, ours in zip(
        peer.parameters(), arrays_of(model), strict=True
    ):
        if not ours.any():
            zeros += 1
            continue
        assert np.abs(ours).max() > 1e-4
        np.testing.assert_allclose(parameter.grad, ours, **tolerances)
    return zeros
