import numpy as np
import pytest

from keras_lstm_dssm.analysis.title_map import METHODS, title_map
from keras_lstm_dssm.errors import InputError

TITLES = [f"wood glue {n} oz" for n in range(8)] + [
    f"steel bolt {n} in" for n in range(8)
]
VECTORS = np.repeat([[1.0, 0, 0], [0, 0, 1.0]], 8, axis=0) + (
    np.random.default_rng(0).normal(scale=0.01, size=(16, 3))
)


@pytest.mark.parametrize("method", METHODS)
def test_groups_are_found_named_and_kept_together(method) -> None:
    found = title_map(TITLES, VECTORS, method, clusters=2)
    first = found.clusters[0]
    assert found.clusters.tolist() == [first] * 8 + [1 - first] * 8
    assert found.names[first] == "glue, oz, wood"
    assert found.names[1 - first] == "bolt, in, steel"
    centres = found.places[:8].mean(axis=0), found.places[8:].mean(axis=0)
    apart = np.linalg.norm(centres[0] - centres[1])
    spread = np.linalg.norm(found.places[:8] - centres[0], axis=1)
    assert spread.max() < apart


def test_fewer_distinct_vectors_than_clusters() -> None:
    found = title_map(TITLES, VECTORS[[0] * 8 + [8] * 8], "pca", clusters=6)
    assert len(found.names) == 2


def test_wrong_input() -> None:
    with pytest.raises(InputError, match="unknown map 'circle'"):
        title_map(TITLES, VECTORS, "circle")
    with pytest.raises(InputError, match="3 titles or more, not 2"):
        title_map(TITLES[:2], VECTORS[:2])
