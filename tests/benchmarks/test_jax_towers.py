"""The JAX peer trains as the model does: equal losses and weights."""

from typing import Any

import numpy as np
import pytest
import tensorflow as tf

from benchmarks import towers
from benchmarks.towers import hash_texts, new_model

pytest.importorskip("jax")

QUERIES = ["hex bolt", "glue", "drill", "steel hex bolt", "wood glue", "saw"]
TITLES = ["steel hex bolt 18 mm", "glue", "18 volt drill kit with 2 batteries",
          "steel hex bolt 18 mm", "glue for wood", "a saw"]  # fmt: skip


def weights_of(model: Any) -> list[dict[str, np.ndarray]]:
    towers = model.query_encoder, model.document_encoder
    cells = [tower.lstm.cell for tower in towers]
    return [
        {"table": tower.embedding.table.numpy(), "bias": cell.bias.numpy(),
         "recurrent": cell.recurrent_kernel.numpy()}
        for tower, cell in zip(towers, cells, strict=True)
    ]  # fmt: skip


@pytest.mark.usefixtures("small_towers")
def test_losses_weights_and_vectors_equal_ours():
    import jax.numpy as jnp

    from benchmarks.peers.jax_towers import JaxTowers, distinct

    own = new_model()
    peer = JaxTowers(towers.HASHING.size, towers.CELLS)
    start = weights_of(own)
    peer.towers = tuple(
        {name: jnp.array(value) for name, value in tower.items()}
        for tower in start
    )
    for first in (0, 2, 0):
        query = tf.constant(QUERIES[first : first + 4])
        document = tf.constant(TITLES[first : first + 4])
        loss = float(own.train_on_batch(query, document)[0])
        theirs = peer.step(
            distinct(hash_texts(query)), distinct(hash_texts(document))
        )
        assert float(theirs) == pytest.approx(loss, rel=1e-5)
    own.optimizer.sync()
    for ours, tower, initial in zip(
        weights_of(own), peer.towers, start, strict=True
    ):
        for name, value in ours.items():
            assert np.abs(value - initial[name]).max() > 1e-3
            np.testing.assert_allclose(
                tower[name], value, rtol=1e-5, atol=1e-6, err_msg=name
            )
    vectors = own.document_encoder.encode(TITLES, 4)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    batches = [distinct(hash_texts(each)) for each in (TITLES[:4], TITLES[4:])]
    np.testing.assert_allclose(peer.encode(batches), vectors, atol=1e-5)
