"""The retriever: exact, with its own k for each query, in both forms."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import export_retriever
from keras_lstm_dssm.export.documents import int8_codes
from keras_lstm_dssm.serving import SavedEncoder, SavedRetriever
from keras_lstm_dssm.text import as_bytes
from tests.export.agreement import assert_cpp_agrees
from tests.export.ops import serving_ops, stock_ops
from tests.serving.wire import predict_request

ASKED = ["number seven", "title", "", b"\xff\xfe broken"]
TITLES = [f"title number {i}" for i in range(50)]
# Longer and shorter than a small string holds (22 bytes), and other scripts.
IDS = [f"id-{i} " + "上海" * (i % 9) for i in range(50)]


class Made(NamedTuple):
    """Scores of ASKED by all TITLES, and the folder of the retriever."""

    cosines: np.ndarray
    folder: Path


@pytest.fixture(scope="module")
def encoders() -> tuple[dssm.TextEncoder, dssm.TextEncoder]:
    return dssm.LSTMEncoder(8), dssm.LSTMEncoder(8)


@pytest.fixture(scope="module", params=["float32", "int8"])
def made(
    request: pytest.FixtureRequest,
    encoders: tuple[dssm.TextEncoder, dssm.TextEncoder],
    tmp_path_factory: pytest.TempPathFactory,
) -> Made:
    query, document = encoders
    vectors = document.encode(TITLES)
    if request.param == "int8":
        codes, scales = int8_codes(vectors)
        vectors = codes * scales[:, np.newaxis]
    base = tmp_path_factory.mktemp(request.param) / "retriever"
    folder = export_retriever(
        query, document, IDS, TITLES, base, vectors=request.param
    )
    return Made(query.encode(ASKED) @ vectors.T, folder)


@pytest.mark.parametrize("k", [3, 50, 99])
def test_it_finds_the_nearest(made: Made, k: int) -> None:
    found = SavedRetriever(made.folder).search(ASKED, k)
    for row, hits in zip(made.cosines, found, strict=True):
        scores = [hit.score for hit in hits]
        best = np.sort(row)[::-1][:k]
        np.testing.assert_allclose(scores, best, atol=1e-6)
        # Each id once, with the score of its own title.
        places = [IDS.index(hit.id) for hit in hits]
        assert len(set(places)) == min(k, 50)
        np.testing.assert_allclose(scores, row[places], atol=1e-6)


def test_each_row_has_its_own_k(made: Made) -> None:
    loaded = SavedRetriever(made.folder)
    found = loaded._serve(
        text=tf.constant(["title", "title", "title"]), k=tf.constant([1, 3, 0])
    )
    assert found["ids"].shape == (3, 3)
    ids, scores = found["ids"].numpy(), found["scores"].numpy()
    assert ids[0, 0] == ids[1, 0]
    assert ids[0, 1:].tolist() == [b"", b""]
    assert scores[0, 1:].tolist() == scores[2, :2].tolist() == [-2, -2]
    assert loaded.search([], k=2) == []


def test_cpp_loader_gives_the_same(made: Made) -> None:
    k = np.int32([1, 50, 0, 7])
    request = predict_request("retriever", text=as_bytes(ASKED), k=k)
    (outputs,) = assert_cpp_agrees(made.folder, request)
    assert outputs["ids"].shape == (4, 50)
    np.testing.assert_allclose(
        outputs["scores"][1], np.sort(made.cosines[1])[::-1], atol=1e-6
    )


def test_more_queries_than_are_searched_at_once(made: Made) -> None:
    queries = [*TITLES, ""] * 11  # 561
    found = SavedRetriever(made.folder).search(queries, 2)
    scores = np.array([[hit.score for hit in hits] for hits in found])
    assert scores.shape == (561, 2)
    np.testing.assert_allclose(scores[:51], scores[-51:], atol=1e-6)


def test_stock_servers_have_every_op(made: Made) -> None:
    ops = serving_ops(made.folder)
    assert {"TopKV2", "TFText>WhitespaceTokenizeWithOffsetsV2"} <= ops
    assert ops <= stock_ops()


def test_what_is_refused(
    made: Made,
    encoders: tuple[dssm.TextEncoder, dssm.TextEncoder],
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="2 titles and 1 ids"):
        export_retriever(*encoders, ["a"], ["x", "y"], tmp_path)
    with pytest.raises(InputError, match="id 1 is empty"):
        export_retriever(*encoders, ["a", ""], ["x", "y"], tmp_path)
    for k in (0, 2**31):
        with pytest.raises(InputError, match=f"k is {k}"):
            SavedRetriever(made.folder).search(["x"], k)
    with pytest.raises(InputError, match="vectors 'int4': expected one of"):
        export_retriever(*encoders, ["a"], ["x"], tmp_path, vectors="int4")
    with pytest.raises(InputError, match=r"inputs are \['k', 'text'\]"):
        SavedEncoder(made.folder)
    assert not list(tmp_path.iterdir())
