"""An index over exported vectors, compared with exact search."""

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Index
from keras_lstm_dssm.export.bulk import faiss_index
from tests.limits import largest_file

faiss = pytest.importorskip("faiss")


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    made = np.random.default_rng(3).normal(size=(2000, 16))
    made /= np.linalg.norm(made, axis=1, keepdims=True)
    return made.astype(np.float32)


@pytest.mark.parametrize(("factory", "search", "least", "most"), [
    ("Flat", "", 1, 1),
    ("IVF32,Flat", "nprobe=1", 0.1, 0.7),
    ("IVF32,Flat", "nprobe=16", 0.7, 0.999),
    ("HNSW16_SQ8", "efSearch=200", 0.9, 1),
])  # fmt: skip
def test_recall(vectors, factory, search, least, most):
    index = faiss_index.build_index(vectors, factory, search)
    recall = faiss_index.index_recall(index, vectors, vectors[:50], 10)
    assert least <= recall <= most
    if factory == "Flat":
        scores, rows = index.search(vectors[:5], 3)
        expected = Index.from_vectors(vectors).nearest(vectors[:5], 3)
        np.testing.assert_array_equal(rows, expected[0])
        np.testing.assert_allclose(scores, expected[1], atol=1e-6)


@pytest.mark.parametrize(
    ("factory", "search"),
    [("Flut", ""), ("Flat", "nprobe=2"), ("IVF9999,Flat", "")],
)
def test_parameters_that_faiss_refuses(vectors, factory, search):
    with pytest.raises(InputError, match=f"accept '{factory}' '{search}': "):
        faiss_index.build_index(vectors, factory, search)


def test_no_room(vectors, tmp_path):
    path = tmp_path / "titles.faiss"
    index = faiss_index.build_index(vectors, "Flat")
    with (
        largest_file(10_000),
        pytest.raises(InputError, match="titles.faiss: faiss cannot write it"),
    ):
        faiss_index.write_index(path, index)
    assert not list(tmp_path.iterdir())
    faiss_index.write_index(path, index)
    assert faiss.read_index(str(path)).ntotal == len(vectors)
