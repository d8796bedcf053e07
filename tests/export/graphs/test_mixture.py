"""Several towers as one retriever: the weighted sum of their cosines."""

from pathlib import Path

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.export import Documents, export_models, export_retriever
from keras_lstm_dssm.export.graphs.encoder import mixture_towers
from keras_lstm_dssm.serving import SavedEncoder, SavedRetriever
from keras_lstm_dssm.text.strings import as_bytes
from tests.export.agreement import check_export
from tests.export.ops import serving_ops
from tests.serving.wire import predict_request

QUERIES = ["number seven", "title", "", "ünïcode"]
TITLES = [f"title number {i}" for i in range(30)]
IDS = [f"id-{i}" for i in range(30)]
PARTS = {
    "lstm": dssm.TwoTower(dssm.LSTMEncoder(6), dssm.LSTMEncoder(6)),
    "words": dssm.TwoTower(
        dssm.DSSMEncoder([4], dtype="float64"),
        dssm.DSSMEncoder([4], dtype="float64"),
    ),
}
SHARES = (0.7, 0.3)


def cosines() -> np.ndarray:
    """The weighted sum, computed from the vectors of each model."""
    return sum(
        share
        * model.query_encoder.encode(QUERIES)
        @ model.document_encoder.encode(TITLES).T
        for share, model in zip(SHARES, PARTS.values(), strict=True)
    )


@pytest.fixture(scope="module")
def models(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("mixture")
    mixture = dssm.Mixture(PARTS, SHARES)
    written = export_models(mixture, folder, Documents(IDS, TITLES))
    names = ("query_encoder", "document_encoder", "retriever")
    assert written == [folder / name / "1" for name in names]
    return folder


def test_the_retriever_ranks_by_the_weighted_sum(models):
    hits = SavedRetriever(models / "retriever").search(QUERIES, k=len(IDS))
    index = dssm.Index(dssm.Mixture(PARTS, SHARES), TITLES, IDS)
    searched = index.search(QUERIES, len(IDS))
    for row, found, in_python in zip(cosines(), hits, searched, strict=True):
        expected = dict(zip(IDS, row, strict=True))
        for of_query in (found, in_python):
            assert {hit.id for hit in of_query} == set(IDS)
            scores = [hit.score for hit in of_query]
            np.testing.assert_allclose(
                scores, [expected[hit.id] for hit in of_query], atol=1e-6
            )
            np.testing.assert_allclose(scores, np.sort(row)[::-1], atol=1e-6)


def test_the_encoders_are_those_of_the_retriever(models):
    query, document = (
        SavedEncoder(models / f"{side}_encoder").encode(texts)
        for side, texts in (("query", QUERIES), ("document", TITLES))
    )
    assert query.shape == (len(QUERIES), 10)
    np.testing.assert_allclose(query @ document.T, cosines(), atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(document, axis=1), 1, atol=1e-6)


def test_cpp_loader_gives_the_same(models):
    k = np.int32([1, 30, 0, 2**31 - 1])
    text = as_bytes(QUERIES)
    search = predict_request("retriever", text=text, k=k)
    encode = predict_request("query_encoder", text=text)
    outputs, vectors = check_export(
        (models / "retriever" / "1", search),
        (models / "query_encoder" / "1", encode),
    )
    assert {"TopKV2", "CaseFoldUTF8", "ConcatV2"} <= serving_ops(
        models / "retriever" / "1"
    )
    np.testing.assert_allclose(
        outputs["scores"][1], np.sort(cosines()[1])[::-1], atol=1e-6
    )
    assert vectors["embedding"].shape == (4, 10)


def test_a_part_of_weight_0_is_left_out(tmp_path):
    parts = {"bm25": BM25System(), **PARTS}
    towers = mixture_towers(dssm.Mixture(parts, [0, 1, 0]))
    folder = export_retriever(*towers, IDS, TITLES, tmp_path / "retriever")
    hits = SavedRetriever(folder).search(QUERIES, k=5)
    index = dssm.Index(PARTS["lstm"], TITLES, IDS)
    for found, expected in zip(hits, index.search(QUERIES, 5), strict=True):
        np.testing.assert_allclose(
            [hit.score for hit in found],
            [hit.score for hit in expected],
            atol=1e-6,
        )


@pytest.mark.parametrize(
    "part",
    [BM25System(), lambda texts: np.ones((len(texts), 2))],
    ids=["bm25", "an outside encoder"],
)
def test_what_is_not_in_a_graph_is_one_line(part, tmp_path):
    mixture = dssm.Mixture({**PARTS, "x": part})
    with pytest.raises(InputError, match="part 'x' of .* is no TwoTower") as e:
        export_models(mixture, tmp_path, Documents(IDS, TITLES))
    assert "\n" not in str(e.value)
    assert list(tmp_path.iterdir()) == []
