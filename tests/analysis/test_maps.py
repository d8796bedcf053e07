"""Maps of titles and of documents, and what TensorBoard's projector reads."""

import json

import numpy as np
import pytest
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
from werkzeug.test import Client

from keras_lstm_dssm.analysis.maps import (
    MAP_METHODS,
    document_map,
    draw_map,
    plane_positions,
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
DOCUMENTS = np.random.default_rng(0).normal(size=(40, 5))


@pytest.mark.parametrize("method", MAP_METHODS)
def test_groups_are_found_named_and_kept_together(method):
    found = title_map(TITLES, VECTORS, method)
    first = found.groups[0]
    assert found.groups.tolist() == [first] * 8 + [1 - first] * 8
    assert found.names[first] == "glue, oz"
    assert found.names[1 - first] == "bolt, in"
    centres = found.positions[:8].mean(axis=0), found.positions[8:].mean(axis=0)
    apart = np.linalg.norm(centres[0] - centres[1])
    spread = np.linalg.norm(found.positions[:8] - centres[0], axis=1)
    assert spread.max() < apart


def test_titles_between_clusters_belong_to_none():
    lamp = np.array([[0, 3.0, 0]])
    found = title_map([*TITLES, "desk lamp"], np.vstack([VECTORS, lamp]), "pca")
    assert found.groups[-1] == -1
    assert sorted(found.names) == ["bolt, in", "glue, oz"]


@pytest.mark.parametrize("method", MAP_METHODS)
def test_equal_vectors_and_few_titles(method, tmp_path):
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


def test_the_projector_shows_titles_and_vectors(tmp_path):
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


def test_largest_classes_come_first():
    labels = ["b", "a", "", "c", "b", "a", "c", "b"]
    found = document_map(3 * DOCUMENTS[:8], labels, "pca")
    assert found.names == ["b", "a", "c"]
    assert found.groups.tolist() == [0, 1, -2, 2, 0, 1, 2, 0]
    unit = DOCUMENTS[:8] / np.linalg.norm(DOCUMENTS[:8], axis=1, keepdims=True)
    # Only the directions of the vectors matter.
    np.testing.assert_allclose(
        found.positions, plane_positions(unit, "pca"), atol=1e-5
    )


def test_the_legend_names_the_largest_classes(tmp_path, drawn):
    labels = [f"c{n}" for n in range(15)] + ["c3"] * 4 + ["c1$_$"] * 3
    labels += [""] * 2
    layout = document_map(DOCUMENTS[:24], labels, "pca")
    draw_map(tmp_path / "map.png", layout, legend=True)
    assert (tmp_path / "map.png").stat().st_size > 1000
    (axis,) = drawn
    points = {
        one.get_label(): len(one.get_offsets()) for one in axis.collections
    }
    # Sixteen classes: twelve have a colour, four of one document have none.
    assert list(points)[:4] == [
        "4 smaller classes (4)", "without a class (2)", "c3 (5)", "c1$_$ (3)",
    ]  # fmt: skip
    assert len(points) == 14 and sum(points.values()) == 24
    looks = {
        (tuple(one.get_facecolor()[0]), one.get_paths()[0].vertices.tobytes())
        for one in axis.collections[2:]
    }
    assert len(looks) == 12  # no two of the same colour and marker


def test_documents_without_classes(tmp_path, drawn):
    found = document_map(DOCUMENTS[:3], [""] * 3)
    draw_map(tmp_path / "map.png", found, legend=True)
    (points,) = drawn[0].collections
    assert points.get_label() == "without a class (3)"
    assert found.names == []


@pytest.mark.parametrize(("use", "message"), [
    (lambda: title_map(TITLES, VECTORS, "circle"), "unknown map 'circle'"),
    (lambda: title_map(TITLES[:2], VECTORS[:2]),
     "found 2 titles, expected 3 or more for a map"),
    (lambda: document_map(DOCUMENTS[:2], ["a", "b"]),
     "found 2 documents, expected 3 or more"),
    (lambda: document_map(DOCUMENTS, ["a"] * 40, "circle"),
     "unknown map 'circle'"),
])  # fmt: skip
def test_wrong_input(use, message):
    with pytest.raises(InputError, match=message):
        use()
