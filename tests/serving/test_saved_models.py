"""Exported models in this process: any number of texts, clear refusals."""

import gc
import shutil
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.publish.server_files import update_models_config
from keras_lstm_dssm.serving import SavedEncoder, SavedRetriever, SavedScorer
from keras_lstm_dssm.serving.saved_models import SavedGraph, SavedSignature
from lstm_dssm_client import Hit
from tests.memory import resident_mb
from tests.serving.tiny_models import TITLES, save_function


def test_more_queries_than_one_chunk_holds(tiny_models):
    retriever = SavedRetriever(tiny_models / "retriever")
    found = retriever.search([*TITLES] * 200, k=2)
    assert len(found) == 600
    assert [hits[0].id for hits in found] == [*TITLES] * 200
    assert found[:3] == found[-3:]
    assert [len(hits) for hits in retriever.search(["bolt"], k=9)] == [3]
    assert retriever.search([], k=2) == []


def test_a_hybrid_explains_and_another_retriever_does_not(tiny_models):
    hybrid = SavedRetriever(tiny_models / "hybrid")
    found = hybrid.explain([*TITLES] * 200, k=2)
    searched = hybrid.search([*TITLES] * 200, k=2)
    assert [
        [Hit(hit.id, hit.score, hit.title) for hit in hits] for hits in found
    ] == searched
    assert {hit.words["bm25"]["bolt"] for hits in found for hit in hits} == {
        0.25
    }
    with pytest.raises(InputError, match="no signature explained"):
        SavedRetriever(tiny_models / "retriever").explain(["bolt"])


def test_scores_are_in_the_order_of_the_pairs(tiny_models):
    """`Scorer` subtracts a document's length from twice the query's."""
    scorer = SavedScorer(tiny_models / "scorer")
    titles = ["x" * (number % 9) for number in range(1300)]
    scores = scorer.score("bolt", iter(titles))
    assert scores.dtype == np.float32
    assert scores.tolist() == [8 - len(title) for title in titles]
    scores = scorer.score_pairs(["a", "bb"], ["xxx", b"\xff"], batch_size=1)
    assert scores.tolist() == [-1, 3]
    assert scorer.score("bolt", []).shape == (0,)
    for arguments, message in (
        ((["bolt"], ["x"]), r"query is \['bolt'\]"),
        (("bolt", "x"), "got one text, 'x'"),
        (
            ("bolt", ["x"], 0),
            "batch_size is 0: expected a whole number of 1 or more",
        ),
    ):
        with pytest.raises(InputError, match=message):
            scorer.score(*arguments)


def test_a_folder_of_versions_stands_for_the_one_that_is_served(
    tiny_models, tmp_path
):
    base = shutil.copytree(
        tiny_models / "query_encoder", tmp_path / "query_encoder"
    )
    first, second = (
        SavedEncoder(base / version).encode(["a b"]) for version in "12"
    )
    assert np.abs(first - second).max() > 0.01
    np.testing.assert_array_equal(SavedEncoder(base).encode(["a b"]), second)
    update_models_config(
        tmp_path / "models.config", [base.name], {base.name: 1}
    )
    np.testing.assert_array_equal(SavedEncoder(base).encode(["a b"]), first)


def test_what_is_refused(tiny_models, tmp_path):
    with pytest.raises(InputError, match="no SavedModel"):
        SavedEncoder(tmp_path)
    with pytest.raises(InputError, match=r"inputs are \['k', 'text'\]"):
        SavedEncoder(tiny_models / "retriever")
    with pytest.raises(InputError, match=r"inputs are \['text'\]"):
        SavedRetriever(tiny_models / "query_encoder")
    with pytest.raises(InputError, match=r"'text'\], expected \['document',"):
        SavedScorer(tiny_models / "retriever")
    retriever = SavedRetriever(tiny_models / "retriever")
    for k in (0, 2**31):
        with pytest.raises(InputError, match=f"k is {k}"):
            retriever.search(["x"], k)


def save(folder: Path, count: int) -> Path:
    """Saves a model that adds the sum of its variable, `count` ones, to x."""
    ones = tf.Variable(tf.ones([count]))
    serve = lambda x: {"sum": x + tf.reduce_sum(ones), "text": "a"}  # noqa: E731
    return save_function(folder, serve, ones, x="float32")


def test_outputs_by_name(tmp_path):
    graph = SavedGraph(save(tmp_path, 3))
    run = SavedSignature(graph, "serving_default")
    assert run.inputs == ["x"]
    outputs = run(x=np.array([1, 2], np.float32))
    assert list(outputs) == ["sum", "text"]
    assert outputs["sum"].tolist() == [4, 5]
    # A scalar of the graph is an array without dimensions.
    assert outputs["text"].shape == () and outputs["text"].item() == b"a"


def test_memory_is_free_when_the_last_reference_is_gone(tmp_path):
    """Without the garbage collector: a server drops a version in this way."""
    megabytes = 48
    save(tmp_path, megabytes << 18)

    def load_and_run() -> None:
        run = SavedSignature(SavedGraph(tmp_path), "serving_default")
        assert run(x=np.zeros(1, np.float32))["sum"].tolist() == [
            megabytes << 18
        ]

    load_and_run()
    gc.collect()
    before = resident_mb()
    gc.disable()
    try:
        for _ in range(5):
            load_and_run()
        assert resident_mb() - before < 2 * megabytes
    finally:
        gc.enable()


def test_a_variable_file_is_missing(tmp_path):
    (save(tmp_path, 3) / "variables" / "variables.index").unlink()
    with pytest.raises(InputError, match=r"load it: .*index: not found"):
        SavedGraph(tmp_path)
