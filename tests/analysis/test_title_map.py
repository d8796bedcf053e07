"""The map of titles, and what TensorBoard's projector reads of them."""

import json

import numpy as np
import pytest
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
from werkzeug.test import Client

from keras_lstm_dssm.analysis.maps import (
    MAP_METHODS,
    TextMap,
    draw_map,
    title_map,
    write_projector,
)
from keras_lstm_dssm.errors import InputError

TITLES = [f"wood glue {n} oz" for n in range(8)] + [
    f"steel bolt {n} in" for n in range(8)
]
VECTORS = np.repeat([[1.0, 0, 0], [0, 0, 1.0]], 8, axis=0) + (
    np.random.default_rng(0).normal(scale=0.01, size=(16, 3))
)


@pytest.mark.parametrize("method", MAP_METHODS)
def test_groups_are_found_named_and_kept_together(method) -> None:
    found = title_map(TITLES, VECTORS, method)
    first = found.groups[0]
    assert found.groups.tolist() == [first] * 8 + [1 - first] * 8
    assert found.names[first] == "glue, oz"
    assert found.names[1 - first] == "bolt, in"
    centres = found.positions[:8].mean(axis=0), found.positions[8:].mean(axis=0)
    apart = np.linalg.norm(centres[0] - centres[1])
    spread = np.linalg.norm(found.positions[:8] - centres[0], axis=1)
    assert spread.max() < apart


def test_titles_between_clusters_belong_to_none() -> None:
    lamp = np.array([[0, 3.0, 0]])
    found = title_map([*TITLES, "desk lamp"], np.vstack([VECTORS, lamp]), "pca")
    assert found.groups[-1] == -1
    assert sorted(found.names) == ["bolt, in", "glue, oz"]


@pytest.mark.parametrize("method", MAP_METHODS)
def test_equal_vectors_and_few_titles(method, tmp_path) -> None:
    equal = np.repeat(VECTORS[:1], 16, axis=0)
    layout = title_map(TITLES, equal + 1e-9 * VECTORS, method)
    assert layout.positions.shape == (16, 2)
    same = title_map(TITLES, np.zeros((16, 3), "float32"), method)
    assert np.isfinite(same.positions).all()
    found = title_map(TITLES[6:9], VECTORS[6:9], method)
    assert found.names == []  # too few for a cluster
    assert found.groups.tolist() == [-1] * 3
    draw_map(tmp_path / "map.png", found)
    assert (tmp_path / "map.png").stat().st_size > 1000


def test_a_name_is_not_read_as_a_formula(tmp_path) -> None:
    found = TextMap(np.eye(2), np.array([0, 1]), ["$5_$", r"$\frac$"])
    draw_map(tmp_path / "map.png", found)
    assert (tmp_path / "map.png").stat().st_size > 1000


def test_wrong_input() -> None:
    with pytest.raises(InputError, match="unknown map 'circle'"):
        title_map(TITLES, VECTORS, "circle")
    with pytest.raises(
        InputError, match="found 2 titles, a map needs 3 or more"
    ):
        title_map(TITLES[:2], VECTORS[:2])


def test_the_projector_shows_titles_and_vectors(tmp_path) -> None:
    titles = ["wood\tglue", "", "8 oz glue"]
    vectors = np.array([[0.5, -1], [0, 1], [0.25, 3]], "float32")
    write_projector(tmp_path, titles, vectors)
    plugin = ProjectorPlugin(TBContext(logdir=str(tmp_path)))
    apps = plugin.get_plugin_apps()
    info = Client(apps["/info"]).get("/info?run=.")
    embedding = json.loads(info.data)["embeddings"][0]
    assert embedding["tensorShape"] == [3, 2]
    query = "?run=.&name=titles"
    tensor = Client(apps["/tensor"]).get(f"/tensor{query}").data
    found = np.frombuffer(tensor, "float32").reshape(3, 2)
    np.testing.assert_array_equal(found, vectors)
    labels = Client(apps["/metadata"]).get(f"/metadata{query}").data
    assert labels.decode().splitlines() == ["wood glue", '""', "8 oz glue"]
    with pytest.raises(InputError, match="found 2 titles and 3 vectors"):
        write_projector(tmp_path, titles[:2], vectors)
