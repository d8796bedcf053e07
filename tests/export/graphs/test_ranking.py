"""Exported pair scorers and rankers: every matcher, trees, two stages."""

import importlib

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import Documents, export_model, export_models
from keras_lstm_dssm.export.graphs import ranking
from keras_lstm_dssm.export.graphs.retriever import Int8Vectors
from keras_lstm_dssm.export.graphs.saved_module import save_module
from keras_lstm_dssm.export.publish.models_config import served_version
from keras_lstm_dssm.ranker import Ranker
from keras_lstm_dssm.ranker.boosted_trees import BoostedTrees
from keras_lstm_dssm.ranker.overlap_features import NAMES, OverlapFeatures
from keras_lstm_dssm.ranker.ranker import PairFeatures, source_of_encoder
from keras_lstm_dssm.text.strings import as_bytes
from tests.export.agreement import check_ops, loaded
from tests.export.graphs import kinds
from tests.matchers.small_matchers import SMALL_MATCHERS
from tests.ranker.small_ranker import COLOURS

export_module = importlib.import_module(export_models.__module__)
RANKED_DOCUMENTS = Documents(kinds.RANKED_IDS, kinds.RANKED)


@pytest.fixture
def ranker(exported) -> Ranker:
    return exported("ranker").model


def test_every_matcher_is_here():
    presets = dssm.SCORER_PRESETS.values()
    assert {recipe.matcher for recipe in presets} == SMALL_MATCHERS.keys()


@pytest.mark.parametrize("matcher", SMALL_MATCHERS)
def test_every_matcher_as_a_stock_server_loads_it(matcher, tmp_path):
    """A row alone, all rows and no rows; its ops, and no gradients."""
    model = kinds.pair_scorer(matcher)
    # Without warm-up requests, which the other tests send.
    save_module(ranking.ScorerModule(model), tmp_path)
    check_ops(tmp_path)
    expected = model.score_pairs(kinds.QUERIES, kinds.DOCUMENTS)
    assert np.ptp(expected) > 1e-3
    serve = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    texts = as_bytes(kinds.QUERIES), as_bytes(kinds.DOCUMENTS)
    for rows in map(slice, (0, 0, 2, 8, 3, 0), (None, 1, 3, 9, 7, 0)):
        query, document = (
            tf.constant(side[rows], tf.string, [len(side[rows])])
            for side in texts
        )
        scores = serve(query=query, document=document)["score"].numpy()
        assert scores.dtype == np.float32
        np.testing.assert_allclose(scores, expected[rows], atol=1e-6)


@pytest.mark.parametrize("kind", ["scorer", "ranker"])
def test_sides_of_other_sizes_are_refused(exported, kind):
    """One query would else be compared with all documents."""
    signatures = loaded(exported(kind).cases[0].version).signatures
    serve, wrong = signatures["serving_default"], "the same number of rows"
    with pytest.raises(tf.errors.InvalidArgumentError, match=wrong):
        serve(query=tf.constant(["bolt"]), document=tf.constant(["a", "b"]))


def test_a_matcher_that_has_not_been_pretrained_is_refused(tmp_path):
    recipe = dssm.ScorerRecipe(
        "DeepMatch", SMALL_MATCHERS["DeepMatch"], word_dimension=4
    )
    with pytest.raises(InputError, match="DeepMatch has not been pre-trained"):
        export_model(recipe.build(0, kinds.WORDS), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_the_exported_scores_are_those_of_lightgbm(ranker, tmp_path):
    """Exported trees give LightGBM's own scores, to 1e-6.

    They read overlap numbers, cosines of towers and scores of a pair scorer.
    No weighted scores of these are added to those of the trees.
    """
    lightgbm = pytest.importorskip("lightgbm")
    queries = [query for query in kinds.RANKED_QUERIES for _ in range(24)]
    titles = kinds.RANKED[:24] * len(kinds.RANKED_QUERIES)
    rows = ranker.features(queries, titles)
    read = rows[:, [0, len(NAMES), len(NAMES) + 1]]  # as TREES do
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
    save_module(ranking.RankerModule(Ranker(ranker.features, trees)), tmp_path)
    serve = loaded(tmp_path).signatures["serving_default"]
    scores = serve(query=tf.constant(queries), document=tf.constant(titles))
    expected = lightgbm.Booster(model_str=text).predict(rows)
    assert np.ptp(expected) > 1
    np.testing.assert_allclose(scores["score"], expected, rtol=0, atol=1e-6)


def test_int8_and_max_k(ranker, tmp_path, monkeypatch):
    """Of what is given to be written, as it would be called."""
    given: dict[str, ranking.TwoStageModule] = {}

    def publish(
        output: object, modules: dict[str, ranking.TwoStageModule]
    ) -> list:
        given.update(modules)
        return []

    monkeypatch.setattr(export_module, "publish_models", publish)
    export_models(ranker, tmp_path, RANKED_DOCUMENTS, "int8", max_k=3)
    assert [*given] == ["ranker", "two_stage"]
    assert isinstance(given["two_stage"].vectors[0], Int8Vectors)
    found = given["two_stage"].serve(*map(tf.constant, (["wood glue"], [9])))
    ((score, *others),) = found["scores"].numpy()
    assert len(others) == 2
    best = max(score for _, score in kinds.ranked_hits(ranker, "wood glue"))
    assert score == pytest.approx(best, abs=0.05)


def test_two_stages_give_titles_in_order_and_are_served(exported):
    model, folder, cases = exported("ranker")
    found = loaded(cases[1].version).signatures["serving_default"](
        text=tf.constant(kinds.RANKED_QUERIES), k=tf.constant([200] * 6)
    )
    assert found.keys() == {"ids", "titles", "scores"}
    titles = dict(
        zip(as_bytes(kinds.RANKED_IDS), as_bytes(kinds.RANKED), strict=True)
    )
    for ids, shown in zip(*map(lambda n: found[n].numpy(), ("ids", "titles")),
                          strict=True):  # fmt: skip
        assert [titles[key] for key in ids] == shown.tolist()
        assert len({*ids}) == 100
    readme = (folder / "README.md").read_text()
    assert 'client.search(["bolt"], k=5, model="two_stage")' in readme
    assert '["hex bolt", "wood glue"], model="ranker")' in readme
    for name in ("ranker", "two_stage"):
        assert served_version(folder / name) == folder / name / "1"


def test_a_filter_orders_the_titles_with_a_tag(ranker):
    colour = COLOURS[-1]
    tags = [title.split()[:1] for title in kinds.RANKED]
    of_colour = [title for title in kinds.RANKED if title.startswith(colour)]
    assert 3 < len(of_colour) < 50
    documents = Documents(kinds.RANKED_IDS, kinds.RANKED, tags=tags)
    module = ranking.TwoStageModule(ranker, documents)
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
    assert (scores[0, count:] == np.float32(ranking.PADDING_SCORE)).all()


def test_what_is_refused(tmp_path):
    overlap = OverlapFeatures.from_titles(kinds.RANKED)
    encoder = source_of_encoder(lambda texts: np.ones([len(texts), 1]))
    outside = {"minilm": encoder}
    text = kinds.TREES.replace("split_feature=0 22 23", "split_feature=0 1 2")
    trees = BoostedTrees(text.replace("_idx=24", "_idx=22"))
    ranker = Ranker(PairFeatures(overlap, outside), trees)
    with pytest.raises(InputError, match="the cosine of minilm, which is not"):
        ranking.RankerModule(ranker)
    trees = BoostedTrees(text.replace("_idx=24", "_idx=21"))
    ranker = Ranker(PairFeatures(overlap, {}), trees)
    with pytest.raises(InputError, match="reads no towers, which find"):
        export_models(ranker, tmp_path / "models", RANKED_DOCUMENTS)
    with pytest.raises(InputError, match="needs titles and as many ids"):
        export_models(ranker, tmp_path / "models", Documents([], []))
    assert [f.name for f in export_models(ranker, tmp_path / "models")] == ["1"]
    with pytest.raises(InputError, match="found trees of 22 features"):
        Ranker(PairFeatures(overlap, outside), trees)
