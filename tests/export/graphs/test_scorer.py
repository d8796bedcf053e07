"""Exported pair scorers give the model's own scores, wherever they are run."""

import json
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import export_model
from keras_lstm_dssm.export.graphs.ranking import ScorerModule
from keras_lstm_dssm.export.graphs.saved_module import save_module
from keras_lstm_dssm.serving import SavedScorer
from keras_lstm_dssm.text.strings import as_bytes
from tests.export.agreement import assert_cpp_agrees
from tests.export.ops import serving_ops, stock_ops
from tests.fresh_process import FreshProcesses
from tests.matchers.small_matchers import SMALL_MATCHERS
from tests.precision import precision
from tests.serving.wire import predict_request, warmup_requests

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
def exports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Exported]:
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


def test_every_matcher_is_here() -> None:
    presets = dssm.SCORER_PRESETS.values()
    assert {recipe.matcher for recipe in presets} == SMALL_MATCHERS.keys()


@pytest.mark.parametrize("matcher", SMALL_MATCHERS)
def test_every_matcher_as_a_stock_server_loads_it(
    matcher: str, tmp_path: Path
) -> None:
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


def check_ops(folder: Path) -> None:
    """Stock servers have every op, and the model has no gradients."""
    ops = serving_ops(folder)
    assert "CaseFoldUTF8" in ops
    assert ops <= stock_ops()
    text = (folder / "saved_model.pb").read_bytes()
    (graph,) = SavedModel.FromString(text).meta_graphs
    library = graph.graph_def.library
    assert library.function
    assert not library.registered_gradients


def test_cpp_loader_gives_the_same_scores(exports: dict[str, Exported]) -> None:
    """With the warm-up requests, which a server replays."""
    request = predict_request(
        "x", query=as_bytes(QUERIES), document=as_bytes(DOCUMENTS)
    )
    outputs = assert_cpp_agrees(
        {export.folder: request for export in exports.values()}
    )
    for output, (expected, folder) in zip(
        outputs, exports.values(), strict=True
    ):
        np.testing.assert_allclose(output["score"], expected, atol=1e-6)
        check_ops(folder)
        rows = [
            len(r.inputs["query"].string_val) for r in warmup_requests(folder)
        ]
        assert rows == [1, 8, 64]


def test_fresh_process_gives_the_same_scores(
    exports: dict[str, Exported],
    fresh_process: FreshProcesses,
) -> None:
    """By TensorFlow and TF.Text alone: without this package."""
    script = (
        "import json, sys, tensorflow as tf, tensorflow_text\n"
        "assert 'keras_lstm_dssm' not in sys.modules\n"
        "sides = [[t.encode('latin-1') for t in side]\n"
        "         for side in json.loads(sys.argv[1])]\n"
        "query, document = map(tf.constant, sides)\n"
        "for folder in sys.argv[2:]:\n"
        "    model = tf.saved_model.load(folder)\n"
        "    serve = model.signatures['serving_default']\n"
        "    found = serve(query=query, document=document)['score']\n"
        "    print(json.dumps(found.numpy().tolist()))"
    )
    folders = [export.folder for export in exports.values()]
    texts = json.dumps(
        [
            [text.decode("latin-1") for text in as_bytes(side)]
            for side in (QUERIES, DOCUMENTS)
        ]
    )
    lines = fresh_process(script, texts, *folders)
    for line, export in zip(lines, exports.values(), strict=True):
        np.testing.assert_allclose(json.loads(line), export.expected, atol=1e-6)


def test_in_process(exports: dict[str, Exported]) -> None:
    expected, folder = exports["words"]
    saved = SavedScorer(folder.parent)
    for size in (1, 4, 256):
        scores = saved.score_pairs(QUERIES, DOCUMENTS, size)
        np.testing.assert_allclose(scores, expected, atol=1e-6)
    np.testing.assert_allclose(
        saved.score(QUERIES[0], DOCUMENTS[:1]), expected[:1], atol=1e-6
    )


def test_double_precision_is_served_as_float32(tmp_path: Path) -> None:
    with precision("float64"):
        model = scorer("RecurrentCosine")
        expected = model.score_pairs(QUERIES, DOCUMENTS)
        assert expected.dtype == np.float64
        folder = export_model(model, tmp_path / "scorer", version=7)
    assert folder == tmp_path / "scorer" / "7"
    scores = SavedScorer(folder).score_pairs(QUERIES, DOCUMENTS)
    assert scores.dtype == np.float32
    np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_what_is_refused(tmp_path: Path) -> None:
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
