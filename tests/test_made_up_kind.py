"""A kind of model that only this file knows is trained, served and reported.

It is what docs/keras.md describes: one record, `KIND`, and the classes that it
names. Programs run in new processes, which import this file first.
"""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Triples
from keras_lstm_dssm.data.sources import open_collection
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.export.graphs.saved_module import (
    ServedModule,
    ServedWeights,
    signature,
)
from keras_lstm_dssm.models.pair_scorer import triple_batches
from keras_lstm_dssm.models.text_model import Hasher, TextModel
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.serving import PredictionServer
from keras_lstm_dssm.settings.fields import setting
from keras_lstm_dssm.settings.kinds import KINDS, ModelKind, register_kind
from keras_lstm_dssm.settings.recipes import ModelRecipe
from keras_lstm_dssm.training.train import Training, open_clicks
from lstm_dssm_client import Client
from tests.conftest import TOPICS
from tests.kit.equal import check_equal
from tests.training.small_trainings import StopAt

BUCKETS = 256


def bag(texts: tf.Tensor) -> tf.Tensor:
    """Counts the words of texts by buckets: float32 `[batch, BUCKETS]`."""
    words = tf.strings.to_hash_bucket_fast(tf.strings.split(texts), BUCKETS)
    counts = tf.one_hot(words.values, BUCKETS)
    rows = words.value_rowids()
    return tf.math.unsorted_segment_sum(counts, rows, words.nrows())


class Bags(NamedTuple):
    query: tf.Tensor
    positive: tf.Tensor
    negative: tf.Tensor


class BagHasher(Hasher):
    hashed = Bags

    def __call__(self, *texts: tf.Tensor) -> Bags:
        return Bags(*map(bag, texts))


@keras.saving.register_keras_serializable("made_up")
class BagScorer(TextModel):
    """Compares sums of word vectors."""

    kind = "bag"
    rankings_hint = "measure rankings with lstm-dssm-evaluate"
    weights_hint = "give three lists"
    batches_of = staticmethod(triple_batches)

    def __init__(self, width: int, seed: int = 0, **kwargs: Any) -> None:
        super().__init__(BagHasher(), seed, **kwargs)
        self.width = width
        start = keras.initializers.RandomNormal(seed=seed)
        self.dense = keras.layers.Dense(width, kernel_initializer=start)
        self.dense.build((None, BUCKETS))

    def call(self, inputs: Any, training: bool = False) -> tf.Tensor:
        query, document = (self.dense(bag(texts)) for texts in inputs)
        return tf.reduce_sum(query * document, axis=-1)

    def batch_loss(self, batch: Bags, training: bool) -> tf.Tensor:
        query, *documents = map(self.dense, batch)
        scores = [tf.reduce_sum(query * each, axis=-1) for each in documents]
        predicted = tf.stack(scores, axis=1)
        labels = tf.ones_like(predicted) * [1.0, 0.0]
        loss = self.compute_loss(y=labels, y_pred=predicted, training=training)
        self._record(loss, scores[0] > scores[1])
        return loss

    def score_pairs(
        self, queries: list[str], documents: list[str], **_: Any
    ) -> np.ndarray:
        return self((tf.constant(queries), tf.constant(documents))).numpy()

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "width": self.width, "seed": self.seed}


@dataclasses.dataclass(frozen=True)
class BagRecipe(ModelRecipe):
    """Settings of a `BagScorer`.

    Attributes:
        bag_width: Width of the word vectors.
        learning_rate: Learning rate of Adam.
        epochs: Passes over the triples.
        batch_size: Triples in a batch.
    """

    kind = "bag"

    bag_width: int = 4
    learning_rate: float = setting(0.1, above=0)
    epochs: int = 4
    batch_size: int = 20


def build_bag(recipe: BagRecipe, seed: int) -> BagScorer:
    return BagScorer(recipe.bag_width, seed)


class BagTraining(Training):
    recipe: BagRecipe
    examples_name = "triples"

    def open(self) -> None:
        config = self.config
        self.log, source = open_clicks(config.data, self.run)
        self.spec = source.spec
        self.triples = Triples.from_clicks(self.log, 2, seed=config.seed)

    def new_model(self, initial: Any = None) -> BagScorer:
        model = dssm.build_model(self.recipe, self.config.seed)
        rate = self.recipe.learning_rate
        model.compile(keras.optimizers.Adam(rate), dssm.PairwiseHinge())
        return model

    def count(self) -> int:
        return len(self.triples)

    def batches(self, first: int) -> tf.data.Dataset:
        recipe = self.recipe
        return self.triples.batches(
            recipe.batch_size, epochs=recipe.epochs, seed=self.config.seed,
            first_step=first,
        )  # fmt: skip

    def describe(self) -> str:
        return self.triples.describe()

    def warn(self, model: BagScorer) -> None:
        pass

    def dev_task(self, spec: str) -> Task:
        return Task.from_collection(open_collection(spec), "dev", "rerank")


class BagModule(ServedModule):
    def __init__(self, model: BagScorer) -> None:
        super().__init__()
        self._served = ServedWeights(model)
        self.weights = self._served.variables
        self._score = lambda *pair: model(pair)

    @signature(query=tf.string, document=tf.string)
    def serve(
        self, query: tf.Tensor, document: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        with self._served.reading():
            return {"score": self._score(query, document)}


def bag_graphs(model: BagScorer, *_: Any) -> dict[str, Any]:
    return {"bag": lambda: BagModule(model)}


KIND = ModelKind(
    name="bag",
    noun="bag scorer",
    plural="bag scorers",
    recipe=BagRecipe,
    marker="bag_width",
    model=f"{__name__}:BagScorer",
    build=f"{__name__}:build_bag",
    training=f"{__name__}:BagTraining",
    graphs=f"{__name__}:bag_graphs",
    presets={"bag": BagRecipe(), "bag_wide": BagRecipe(bag_width=9)},
    pipeline_tag="text-ranking",
)

START = """
import sys
from tests.test_made_up_kind import KIND, register_kind
register_kind(KIND)
import lstm_dssm_programs
lstm_dssm_programs.start(sys.argv.pop(1))
"""


@pytest.fixture(autouse=True)
def registered(monkeypatch) -> Iterator[None]:
    """The kind is known to one test only, as all tests share `KINDS`."""
    with monkeypatch.context() as patch:
        patch.setitem(KINDS, "bag", KIND)
        del KINDS["bag"]
        register_kind(KIND)
        yield


@pytest.fixture(scope="module")
def trained(collection_folder, tmp_path_factory, fresh_process) -> Path:
    """A run of `lstm-dssm-train`, with a setting of the recipe changed."""
    run = tmp_path_factory.mktemp("bag") / "RUN"
    flags = (
        f"--data={collection_folder}", "--preset=bag", "--epochs=3",
        "--set=bag_width=5", f"--output={run}", f"--dev={collection_folder}",
        "--seed=2",
    )  # fmt: skip
    lines = fresh_process(START, "train", *flags)
    assert any(line.startswith("240 triples of 6 queries") for line in lines)
    assert f"wrote {run / 'model.keras'}" in lines
    return run


def test_python_and_the_program_give_one_model(trained, collection_folder):
    recipe = KIND.presets["bag"].replace(epochs=3, bag_width=5)
    options: dict[str, Any] = {"seed": 2, "dev": str(collection_folder)}
    model = dssm.train(str(collection_folder), recipe, verbose=0, **options)
    assert type(model) is BagScorer
    check_equal(model, dssm.load_run(trained))
    written = json.loads((trained / "config.json").read_text())["recipe"]
    assert written == recipe.to_dict()


def test_a_stopped_run_ends_as_an_undisturbed_one(
    trained, collection_folder, tmp_path
):
    recipe = KIND.presets["bag"].replace(epochs=3, bag_width=5)
    stops = [StopAt(step) for step in (5, 16)]
    run, options = tmp_path / "run", {"callbacks": stops, "verbose": 0}
    with pytest.raises(KeyboardInterrupt):
        dssm.train(
            str(collection_folder), recipe, output=run, seed=2,
            dev=str(collection_folder), **options,
        )  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        dssm.resume(run, **options)
    stopped = keras.saving.load_model(run / "checkpoints/last.keras")
    assert stopped.optimizer.iterations == 16
    check_equal(dssm.resume(run, verbose=0), dssm.load_run(trained))


def test_what_only_other_kinds_have_is_refused(collection_folder):
    clicks = str(collection_folder)
    for options, message in (
        ({"salience": "lead"}, "used by KeyVecs only: leave it out for bag sc"),
        ({"teacher": "TEACH"}, "teacher is used by two towers only"),
    ):
        with pytest.raises(dssm.InputError, match=message):
            dssm.train(clicks, "bag", **options)


def test_it_is_evaluated_exported_served_and_reported(
    trained, collection_folder, tmp_path, fresh_process
):
    run, models = f"--run={trained}", tmp_path / "models"
    fresh_process(
        START, "evaluate", run, f"--data={collection_folder}",
        f"--json={tmp_path / 'measured.json'}",
    )  # fmt: skip
    measured = json.loads((tmp_path / "measured.json").read_text())["test"]
    # Test has the judgments of dev, which chose the best epoch.
    best = max(row["dev_mrr@10"] for row in RunFolder(trained).read_history())
    assert measured["model"]["mrr@10"] == pytest.approx(best)
    assert best > 0.9 > measured["random"]["mrr@10"]
    assert measured["bm25_words"] == "alphanumeric"

    fresh_process(START, "export", run, f"--output={models}")
    query, titles = TOPICS["bolt"][0], [title for _, title in TOPICS.values()]
    expected = dssm.load_run(trained).score_pairs([query] * 6, titles)
    with (
        PredictionServer(models, port=0) as server,
        Client(server.address) as client,
    ):
        scores = client.score(query, titles, model="bag")
    np.testing.assert_allclose(scores, expected, rtol=1e-5)
    assert titles[int(scores.argmax())] == TOPICS["bolt"][1]
    card = (models / "CARD.md").read_text()
    assert "## RUN: bag scorer" in card and "| `bag` | 1 |" in card

    page = tmp_path / "report.html"
    fresh_process(START, "analyze", run, f"--output={page}")
    html = page.read_text()
    assert "What a bag scorer was trained on" in html and "test/rerank" in html
    card = (trained / "CARD.md").read_text()
    assert "pipeline_tag: text-ranking" in card
    assert "A bag scorer, trained by keras_lstm_dssm." in card
    assert "| bag_width | `5` |" in card
