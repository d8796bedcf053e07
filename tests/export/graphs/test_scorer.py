"""Exported pair scorers give the model's own scores, wherever they are run."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import export_model
from keras_lstm_dssm.export.graphs.ranking import ScorerModule
from keras_lstm_dssm.export.graphs.saved_module import save_module
from keras_lstm_dssm.serving import SavedScorer
from keras_lstm_dssm.text.strings import as_bytes
from tests.export.agreement import check_export, check_ops
from tests.matchers.small_matchers import SMALL_MATCHERS
from tests.precision import precision
from tests.serving.wire import predict_request

WORDS = ["bolt", "hex", "steel", "glue", "wood", "上海"]
QUERIES = [
    *("hex bolt", "wood glue", "", "glue", "hex bolt"),
    *("上海 steel", b"\xff\xfe", "nul\x00bolt", "bolt " * 200, ""),
]
DOCUMENTS = [
    *("steel hex bolt", "hex bolt", "wood", "", "steel hex bolt"),
    *("wood 酒店 glue", "glue", "steel hose", "wood glue " * 30, ""),
]


def scorer(matcher: str, words: str = "vocabulary") -> dssm.PairScorer:
    """A small pair scorer whose scores differ."""
    recipe = dssm.ScorerRecipe(
        matcher,
        SMALL_MATCHERS[matcher],
        words=words,
        word_dimension=4,
        max_words=8,
    )
    vocabulary = WORDS if words == "vocabulary" else ()
    model = recipe.build(0, vocabulary)
    if matcher == "RAE":  # its pretraining takes seconds, see test_rae.py
        model.matcher.statistics.assign([1.0, 0.5, 1.0, 1.0])
        model.matcher.pretrained.assign(1)
    elif model.matcher.needs_pretraining:
        queries = ["hex bolt", "wood glue", "steel hex", "glue"] * 4
        documents = ["steel bolt", "wood", "bolt", "glue steel"] * 4
        model.matcher.pretrain(model.words, queries, documents)
    random = np.random.default_rng(5)
    for weight in model.trainable_weights:
        weight.assign(weight + random.uniform(0, 0.5, weight.shape))
    return model


class Exported(NamedTuple):
    """Expected scores of the pairs, and the folder of the exported scorer."""

    expected: np.ndarray
    folder: Path


@pytest.fixture(scope="module")
def exports(tmp_path_factory) -> dict[str, Exported]:
    """A scorer that reads words, and one that reads letter trigrams."""
    base = tmp_path_factory.mktemp("exported")
    models = scorer("MVLSTM"), scorer("RecurrentCosine", "trigrams")
    return {
        name: Exported(
            model.score_pairs(QUERIES, DOCUMENTS),
            export_model(model, base / name),
        )
        for name, model in zip(("words", "trigrams"), models, strict=True)
    }


def test_every_matcher_is_here():
    presets = dssm.SCORER_PRESETS.values()
    assert {recipe.matcher for recipe in presets} == SMALL_MATCHERS.keys()


@pytest.mark.parametrize("matcher", SMALL_MATCHERS)
def test_every_matcher_as_a_stock_server_loads_it(matcher, tmp_path):
    """A row alone, all rows and no rows; its ops, and no gradients."""
    model = scorer(matcher)
    # Without warm-up requests, which the other tests send.
    save_module(ScorerModule(model), tmp_path)
    check_ops(tmp_path)
    expected = model.score_pairs(QUERIES, DOCUMENTS)
    assert np.ptp(expected) > 1e-3
    check_scores(tmp_path, expected)


def check_scores(folder: Path, expected: np.ndarray) -> None:
    """Runs several batches of the pairs."""
    serve = tf.saved_model.load(str(folder)).signatures["serving_default"]

    def scores(rows: slice) -> np.ndarray:
        texts = as_bytes(QUERIES)[rows], as_bytes(DOCUMENTS)[rows]
        query, document = (tf.constant(t, tf.string, [len(t)]) for t in texts)
        output = serve(query=query, document=document)["score"].numpy()
        assert output.dtype == np.float32
        return output

    np.testing.assert_allclose(scores(slice(None)), expected, atol=1e-6)
    for part in (slice(1), slice(2, 3), slice(8, 9), slice(3, 7)):
        np.testing.assert_allclose(scores(part), expected[part], atol=1e-6)
    assert scores(slice(0)).shape == (0,)
    # One query would else be compared with all documents.
    with pytest.raises(
        tf.errors.InvalidArgumentError,
        match="query and document must have the same number of rows",
    ):
        serve(query=tf.constant(["bolt"]), document=tf.constant(["a", "b"]))


def test_cpp_loader_gives_the_same_scores(exports):
    """With the warm-up requests, which a server replays."""
    request = predict_request(
        "x", query=as_bytes(QUERIES), document=as_bytes(DOCUMENTS)
    )
    outputs = check_export(
        *((export.folder, request) for export in exports.values())
    )
    for output, export in zip(outputs, exports.values(), strict=True):
        np.testing.assert_allclose(output["score"], export.expected, atol=1e-6)


def test_in_process(exports):
    expected, folder = exports["words"]
    saved = SavedScorer(folder.parent)
    for size in (1, 4, 256):
        scores = saved.score_pairs(QUERIES, DOCUMENTS, size)
        np.testing.assert_allclose(scores, expected, atol=1e-6)
    np.testing.assert_allclose(
        saved.score(QUERIES[0], DOCUMENTS[:1]), expected[:1], atol=1e-6
    )


def test_double_precision_is_served_as_float32(tmp_path):
    with precision("float64"):
        model = scorer("RecurrentCosine")
        expected = model.score_pairs(QUERIES, DOCUMENTS)
        assert expected.dtype == np.float64
        folder = export_model(model, tmp_path / "scorer", version=7)
    assert folder == tmp_path / "scorer" / "7"
    scores = SavedScorer(folder).score_pairs(QUERIES, DOCUMENTS)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_what_is_refused(tmp_path):
    recipe = dssm.ScorerRecipe(
        "RecurrentCosine", {"units": 2}, word_dimension=4
    )
    model = recipe.build(0, WORDS)
    table = model.words.embedding.table
    table.assign(table * np.nan)
    with pytest.raises(
        InputError, match="embedding/table: .* that are not finite"
    ):
        export_model(model, tmp_path)
    model = recipe.replace(
        matcher="DeepMatch", matcher_config=SMALL_MATCHERS["DeepMatch"]
    )
    with pytest.raises(InputError, match="DeepMatch has not been pre-trained"):
        export_model(model.build(0, WORDS), tmp_path)
    assert list(tmp_path.iterdir()) == []
