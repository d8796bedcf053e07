"""Interactions against their formulas, in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.layers.interactions import (
    BilinearInteraction,
    CosineInteraction,
    DotInteraction,
    Interaction,
    TensorInteraction,
)
from tests import reference
from tests.matchers.ragged_texts import randomise

RANDOM = np.random.default_rng(0)
WIDTH = 4
QUERY = RANDOM.normal(size=(2, 3, WIDTH))
DOCUMENT = RANDOM.normal(size=(2, 5, WIDTH))

pytestmark = pytest.mark.usefixtures("float64")


INTERACTIONS: dict[str, Callable[[], Interaction]] = {
    "cosine": CosineInteraction,
    "dot": DotInteraction,
    "bilinear": lambda: BilinearInteraction(WIDTH, rank=6),
    "bilinear, full": lambda: BilinearInteraction(WIDTH, rank=None),
    "tensor": lambda: TensorInteraction(WIDTH, slices=3, rank=6),
    "tensor, full": lambda: TensorInteraction(WIDTH, slices=3, rank=None),
}
each = pytest.mark.parametrize("name", INTERACTIONS)


def new(name: str) -> Interaction:
    interaction = INTERACTIONS[name]()
    randomise(interaction)
    return interaction


def matrices(interaction: BilinearInteraction | TensorInteraction) -> Any:
    """Return M, A A' where there are factors, in plain NumPy."""
    A = interaction.factors.numpy()
    return A if interaction.rank is None else A @ A.swapaxes(-1, -2)


def formula(
    interaction: Interaction,
) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Return s(u, v) of section 3.2 of Wan et al. 2016, in plain NumPy."""
    if isinstance(interaction, CosineInteraction):
        return lambda u, v: np.array([reference.cosine(u, v)])
    if isinstance(interaction, BilinearInteraction):
        M, b = matrices(interaction), interaction.bias.numpy()
        return lambda u, v: np.array([u @ M @ v + b])
    if isinstance(interaction, TensorInteraction):
        M = matrices(interaction)
        W, b = (v.numpy() for v in interaction.variables[1:])
        return lambda u, v: np.maximum(
            [
                u @ M[k] @ v + W[k] @ np.concatenate([u, v]) + b[k]
                for k in range(3)
            ],
            0,
        )
    return lambda u, v: np.array([u @ v])


@each
def test_cells_equal_the_formula(name):
    interaction = new(name)
    s = formula(interaction)
    expected = [
        [[s(u, v) for v in document] for u in query]
        for query, document in zip(QUERY, DOCUMENT, strict=True)
    ]
    assert np.shape(expected) == (2, 3, 5, interaction.slices)
    np.testing.assert_allclose(
        interaction(QUERY, DOCUMENT), expected, rtol=1e-12, atol=1e-14
    )
    np.testing.assert_allclose(  # in a graph, with unknown shapes
        tf.function(interaction.call).get_concrete_function(
            *[tf.TensorSpec([None, None, WIDTH], tf.float64)] * 2
        )(tf.constant(QUERY), tf.constant(DOCUMENT)),
        expected,
        rtol=1e-12,
        atol=1e-14,
    )


@each
def test_chosen_cells_and_their_gradients_are_those_of_all_cells(name):
    interaction = new(name)
    query, document = tf.constant(QUERY), tf.constant(DOCUMENT)
    shape = 2, interaction.slices, 4
    rows, columns = (
        RANDOM.integers(3, size=shape),
        RANDOM.integers(5, size=shape),
    )
    toward = RANDOM.normal(size=shape)
    sources = [query, document, *(v.value for v in interaction.variables)]
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([query, document])
        cells = tf.transpose(interaction(query, document), [0, 3, 1, 2])
        index = np.stack([rows, columns], axis=-1)
        expected = tf.gather_nd(cells, index, batch_dims=2)
        chosen = interaction.compare_at(
            tf.reshape(query, [-1, WIDTH]),
            tf.reshape(document, [-1, WIDTH]),
            rows + 3 * np.arange(2)[:, None, None],
            columns + 5 * np.arange(2)[:, None, None],
        )
        losses = [tf.reduce_sum(x * toward) for x in (chosen, expected)]
    np.testing.assert_allclose(chosen, expected, rtol=1e-12, atol=1e-13)
    for one, other in zip(
        *(tape.gradient(loss, sources) for loss in losses), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-12)


def test_the_cosine_of_a_zero_vector_is_finite_and_has_no_gradient():
    query = tf.zeros([1, 2, WIDTH], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(query)
        cells = CosineInteraction()(query, tf.constant(DOCUMENT[:1]))
    assert np.isfinite(cells).all()
    np.testing.assert_array_equal(tape.gradient(cells, query), query)


def test_parameters_of_wan_et_al_and_their_start():
    assert BilinearInteraction(rank=None).count_params() == 10_001
    assert BilinearInteraction().count_params() == 100 * 150 + 1
    tensor = TensorInteraction()
    assert tensor.count_params() == 5 * 100 * 150 + 1_000 + 5
    for weight in tensor.factors, tensor.linear:
        assert 0.049 < np.abs(weight).max() <= 0.05
    np.testing.assert_array_equal(tensor.bias, np.zeros(5))


@pytest.mark.parametrize("kind", [BilinearInteraction, TensorInteraction])
def test_matrices_start_near_a_multiple_of_the_identity(kind):
    """So that equal words match before anything is learnt."""
    M = kind().matrices().numpy().reshape(-1, 100, 100)
    diagonal = M[:, range(100), range(100)]
    np.testing.assert_allclose(diagonal, 150 * 0.05**2 / 3, rtol=0.3)
    rest = M - diagonal[..., np.newaxis] * np.eye(100)
    assert np.std(rest) < 0.012
    np.testing.assert_allclose(M, M.swapaxes(1, 2), atol=1e-15)
    full = kind(rank=None).matrices().numpy() - np.eye(100)
    assert 0.0099 < np.abs(full).max() <= 0.01
