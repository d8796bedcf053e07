"""The map of documents: projection, classes, legend."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.analysis import maps as module
from keras_lstm_dssm.analysis.maps import (
    document_map,
    draw_map,
    plane_positions,
)
from keras_lstm_dssm.errors import InputError

VECTORS = np.random.default_rng(0).normal(size=(40, 5))


def test_largest_classes_come_first() -> None:
    labels = ["b", "a", "", "c", "b", "a", "c", "b"]
    found = document_map(3 * VECTORS[:8], labels, "pca")
    assert found.names == ["b", "a", "c"]
    assert found.groups.tolist() == [0, 1, -2, 2, 0, 1, 2, 0]
    unit = VECTORS[:8] / np.linalg.norm(VECTORS[:8], axis=1, keepdims=True)
    # Only the directions of the vectors matter.
    np.testing.assert_allclose(
        found.positions, plane_positions(unit, "pca"), atol=1e-5
    )


@pytest.fixture
def axes(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Returns a list, to which the axes of each picture are added."""
    found: list[Any] = []
    drawing = module.drawing

    @contextmanager
    def recorded(*arguments: Any, **options: Any) -> Iterator[list[Any]]:
        with drawing(*arguments, **options) as opened:
            found.extend(opened)
            yield opened

    monkeypatch.setattr(module, "drawing", recorded)
    return found


def test_the_legend_names_the_largest_classes(
    tmp_path: Path, axes: list[Any]
) -> None:
    labels = [f"c{n}" for n in range(15)] + ["c3"] * 4 + ["c1$_$"] * 3
    labels += [""] * 2
    layout = document_map(VECTORS[:24], labels, "pca")
    draw_map(tmp_path / "map.png", layout, legend=True)
    assert (tmp_path / "map.png").stat().st_size > 1000
    (axis,) = axes
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


def test_documents_without_classes(tmp_path: Path, axes: list[Any]) -> None:
    found = document_map(VECTORS[:3], [""] * 3)
    draw_map(tmp_path / "map.png", found, legend=True)
    (points,) = axes[0].collections
    assert points.get_label() == "without a class (3)"
    assert found.names == []


def test_wrong_input() -> None:
    with pytest.raises(InputError, match="found 2 documents, a map needs 3"):
        document_map(VECTORS[:2], ["a", "b"])
    with pytest.raises(InputError, match="unknown map 'circle'"):
        document_map(VECTORS, ["a"] * 40, "circle")
