"""Exported rankers give the scores of Python, as pairs and in two stages."""

import importlib
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import export_models
from keras_lstm_dssm.export.bulk.documents import Documents
from keras_lstm_dssm.export.graphs.ranking import (
    PADDING_SCORE,
    RankerModule,
    TwoStageModule,
)
from keras_lstm_dssm.export.graphs.retriever import Int8Vectors
from keras_lstm_dssm.export.graphs.saved_module import save_module
from keras_lstm_dssm.export.publish.models_config import served_version
from keras_lstm_dssm.ranker import Ranker
from keras_lstm_dssm.ranker.boosted_trees import BoostedTrees
from keras_lstm_dssm.ranker.overlap_features import NAMES, OverlapFeatures
from keras_lstm_dssm.ranker.ranker import (
    PairFeatures,
    source_of,
    source_of_encoder,
)
from keras_lstm_dssm.serving import SavedRetriever, SavedScorer
from keras_lstm_dssm.text.strings import as_bytes
from tests.conftest import TOPICS
from tests.export.agreement import check_export, loaded
from tests.export.ops import serving_ops
from tests.ranker.small_ranker import COLOURS, small_scorer
from tests.serving.wire import predict_request

export_module = importlib.import_module(export_models.__module__)
TITLES = [
    f"{colour} {title}" for colour in COLOURS for _, title in TOPICS.values()
] * 6  # more than the candidates
IDS = [f"id-{number}" for number in range(len(TITLES))]
QUERIES = ["hex bolt red", "glue", "", "desk lamp 3", "2x4", "hex bolt red"]
DOCUMENTS = Documents(IDS, TITLES)

# BM25, the cosine and the pair scorer's score.
_TREES = f"""tree
version=v4
num_class=1
num_tree_per_iteration=1
max_feature_idx={len(NAMES) + 2}

Tree=0
num_leaves=4
num_cat=0
split_feature=0 22 23
threshold=0.5 0.30001 0.1
decision_type=2 2 2
left_child=1 -1 -3
right_child=2 -2 -4
leaf_value=-3 -1.5 0.25 1.125
is_linear=0


end of trees
"""


@pytest.fixture(scope="module")
def ranker(trained_run: Path) -> Ranker:
    """Trees over everything, with weights that distinguish all titles."""
    towers = dssm.load_run(trained_run)
    sources = {
        "towers": source_of(towers, "towers"),
        "scorer": source_of(small_scorer(), "scorer"),
        "again": source_of(towers, "again"),
    }
    features = PairFeatures(OverlapFeatures.from_titles(TITLES), sources)
    weights = np.linspace(-1, 1, len(features.names))
    return Ranker(features, BoostedTrees(_TREES), weights)


@pytest.fixture(scope="module")
def models(ranker: Ranker, tmp_path_factory) -> dict[str, Path]:
    output = tmp_path_factory.mktemp("models")
    folders = export_models(ranker, output, DOCUMENTS)
    assert [f.parent.name for f in folders] == ["ranker", "two_stage"]
    return {folder.parent.name: folder for folder in folders}


def expected_hits(ranker: Ranker, query: str) -> list[tuple[str, float]]:
    """The 100 nearest titles by Python, in the order of their scores."""
    assert ranker.towers is not None
    model = ranker.towers
    cosines = (
        model.document_encoder.encode(TITLES)
        @ (model.query_encoder.encode([query])[0])
    )
    rows = np.argsort(-cosines, kind="stable")[:100]
    scores = ranker.score(query, [TITLES[row] for row in rows])
    order = np.argsort(-scores, kind="stable")
    return [(IDS[rows[i]], float(scores[i])) for i in order]


def test_cpp_loader_gives_the_same_scores(ranker, models):
    """With the warm-up requests, which a server replays."""
    queries = [query for query in QUERIES for _ in range(4)]
    titles = (TITLES[:3] + [""]) * len(QUERIES)
    ks = [5, 0, 1, 200, 3, 7]
    pairs = predict_request(
        "ranker", query=as_bytes(queries), document=as_bytes(titles)
    )
    search = predict_request(
        "two_stage", text=as_bytes(QUERIES), k=np.array(ks, np.int32)
    )
    scored, found = check_export(
        (models["ranker"], pairs), (models["two_stage"], search)
    )
    assert all("StringSplitV2" in serving_ops(f) for f in models.values())
    expected = ranker.score_pairs(queries, titles)
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(scored["score"], expected, atol=1e-4)
    assert found["scores"].shape == (len(QUERIES), 100)
    assert found.keys() == {"ids", "titles", "scores"}
    for row, (query, k) in enumerate(zip(QUERIES, ks, strict=True)):
        hits = expected_hits(ranker, query)[:k]
        width = len(hits)
        np.testing.assert_allclose(
            found["scores"][row, :width], [s for _, s in hits], atol=1e-4
        )
        assert (found["scores"][row, k:] == np.float32(PADDING_SCORE)).all()
        assert (found["ids"][row, k:] == b"").all()
        for key, title in zip(
            found["ids"][row, :width], found["titles"][row, :width], strict=True
        ):
            assert TITLES[IDS.index(key.decode())] == title.decode()


def test_the_exported_scores_are_those_of_lightgbm(ranker, tmp_path):
    """Exported trees give LightGBM's own scores, to 1e-6.

    They read overlap numbers, cosines of towers and scores of a pair scorer.
    No weighted scores of these are added to those of the trees.
    """
    lightgbm = pytest.importorskip("lightgbm")
    queries = [query for query in QUERIES for _ in range(24)]
    titles = TITLES[:24] * len(QUERIES)
    rows = ranker.features(queries, titles)
    read = rows[:, [0, len(NAMES), len(NAMES) + 1]]  # as _TREES do
    target = np.sum((read - read.mean(axis=0)) / read.std(axis=0), axis=1)
    settings = {
        "objective": "regression", "num_leaves": 7, "min_data_in_leaf": 3,
        "num_threads": 1, "verbose": -1,
    }  # fmt: skip
    booster = lightgbm.train(settings, lightgbm.Dataset(rows, target), 20)
    text = booster.model_to_string()
    trees = BoostedTrees(text)
    towers, scorer, _ = trees.splits()[len(NAMES) :]
    assert towers and scorer
    # Without warm-up requests, which the other tests send.
    save_module(RankerModule(Ranker(ranker.features, trees)), tmp_path)
    serve = loaded(tmp_path).signatures["serving_default"]
    scores = serve(query=tf.constant(queries), document=tf.constant(titles))
    expected = lightgbm.Booster(model_str=text).predict(rows)
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(scores["score"], expected, rtol=0, atol=1e-6)


def test_in_process(ranker, models):
    folder = models["ranker"].parent
    scores = SavedScorer(folder).score("hex bolt", TITLES[:9])
    np.testing.assert_allclose(
        scores, ranker.score("hex bolt", TITLES[:9]), atol=1e-4
    )
    (hits,) = SavedRetriever(models["two_stage"].parent).search(["glue"], 4)
    expected = expected_hits(ranker, "glue")[:4]
    np.testing.assert_allclose(
        [hit.score for hit in hits], [s for _, s in expected], atol=1e-4
    )


def test_no_rows_and_other_rows(models):
    nothing = tf.constant([], tf.string)
    serve = loaded(models["ranker"]).signatures["serving_default"]
    assert serve(query=nothing, document=nothing)["score"].shape == (0,)
    with pytest.raises(
        tf.errors.InvalidArgumentError, match="the same number of rows"
    ):
        serve(query=tf.constant(["bolt"]), document=tf.constant(["a", "b"]))


def test_int8_and_max_k(ranker, tmp_path, monkeypatch):
    """Of what is given to be written, as it would be called."""
    given: dict[str, TwoStageModule] = {}

    def publish(output: Path, modules: dict[str, TwoStageModule]) -> list[Path]:
        given.update(modules)
        return []

    monkeypatch.setattr(export_module, "publish_models", publish)
    export_models(ranker, tmp_path, DOCUMENTS, "int8", max_k=3)
    assert [*given] == ["ranker", "two_stage"]
    assert isinstance(given["two_stage"].vectors[0], Int8Vectors)
    found = given["two_stage"].serve(*map(tf.constant, (["wood glue"], [9])))
    ((score, *others),) = found["scores"].numpy()
    assert len(others) == 2
    best = max(score for _, score in expected_hits(ranker, "wood glue"))
    assert score == pytest.approx(best, abs=0.05)


def test_what_the_folder_says(models):
    folder = models["ranker"].parents[1]
    readme = (folder / "README.md").read_text()
    assert 'client.search(["bolt"], k=5, model="two_stage")' in readme
    assert '["hex bolt", "wood glue"], model="ranker")' in readme
    for name in ("ranker", "two_stage"):
        assert served_version(folder / name) == folder / name / "1"


def test_a_filter_orders_the_titles_with_a_tag(ranker):
    colour = COLOURS[-1]
    tags = [title.split()[:1] for title in TITLES]
    of_colour = [title for title in TITLES if title.startswith(colour)]
    assert 3 < len(of_colour) < 50
    module = TwoStageModule(ranker, IDS, TITLES, tags)
    found = module.filtered(
        *(tf.constant(["wood glue"] * 2), tf.constant([50, 50])),
        tf.constant([f"{colour},absent", "absent"]),
    )
    ids, titles, scores = (
        found[name].numpy() for name in ("ids", "titles", "scores")
    )
    count = len(of_colour)
    assert sorted(titles[0, :count]) == sorted(as_bytes(of_colour))
    expected = np.sort(ranker.score("wood glue", of_colour))[::-1]
    np.testing.assert_allclose(scores[0, :count], expected, atol=1e-4)
    assert {*ids[0, count:], *ids[1], *titles[1]} == {b""}
    assert (scores[0, count:] == np.float32(PADDING_SCORE)).all()


def test_what_is_refused(trained_run, tmp_path):
    overlap = OverlapFeatures.from_titles(TITLES)
    encoder = source_of_encoder(lambda texts: np.ones([len(texts), 1]))
    outside = {"minilm": encoder}
    text = _TREES.replace("split_feature=0 22 23", "split_feature=0 1 2")
    trees = BoostedTrees(text.replace("_idx=24", "_idx=22"))
    ranker = Ranker(PairFeatures(overlap, outside), trees)
    with pytest.raises(InputError, match="the cosine of minilm, which is not"):
        RankerModule(ranker)
    trees = BoostedTrees(text.replace("_idx=24", "_idx=21"))
    ranker = Ranker(PairFeatures(overlap, {}), trees)
    with pytest.raises(InputError, match="reads no towers, which find"):
        export_models(ranker, tmp_path / "models", DOCUMENTS)
    with pytest.raises(InputError, match="needs titles and as many ids"):
        export_models(ranker, tmp_path / "models", Documents([], []))
    assert [f.name for f in export_models(ranker, tmp_path / "models")] == ["1"]
    with pytest.raises(InputError, match="found trees of 22 features"):
        Ranker(PairFeatures(overlap, outside), trees)
