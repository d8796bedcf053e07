"""What Keras users try with a model of any kind: right, or one clear line."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import NOT_FINITE, InputError
from keras_lstm_dssm.layers import TrigramVectors, VocabularyVectors
from keras_lstm_dssm.matchers import MVLSTM, RAE, DeepMatch, RecurrentCosine
from keras_lstm_dssm.models.document_batch import document_batches
from keras_lstm_dssm.models.pair_batch import pair_batches
from keras_lstm_dssm.models.pair_scorer import triple_batches
from tests.kit.equal import check_equal
from tests.models import small_keyvec, small_matchers
from tests.models.small_keyvec import EXAMPLES
from tests.models.small_matchers import (
    POSITIVES,
    TRIPLES,
    MeanDot,
    hashed_words,
    small_scorer,
)
from tests.models.small_towers import QUERIES, TITLES, two_tower
from tests.precision import precision


class Sample(NamedTuple):
    """A small model of a kind."""

    make: Callable[..., Any]  # compiled; with options of `compile`
    lists: tuple[Any, ...]  # the first arguments of `fit`
    batches: Callable[..., tf.data.Dataset]  # of such lists
    random: dict[str, Any]  # options of a model whose loss depends on chance
    loss: dict[str, Any]  # with a value that is not its default


SAMPLES = {
    "towers": Sample(
        two_tower, (QUERIES, TITLES), pair_batches,
        {"negatives": "random"}, {"loss": dssm.CosineSoftmax(5.0)},
    ),
    "scorer": Sample(
        small_matchers.compiled, (TRIPLES,), triple_batches,
        {}, {"margin": 0.5},
    ),
    "keyvec": Sample(
        small_keyvec.compiled, (EXAMPLES,), document_batches,
        {"sizes": {"dropout": 0.5}}, {"loss": dssm.KeyVecLoss(normalize=True)},
    ),
}  # fmt: skip
each_kind = pytest.mark.parametrize("kind", SAMPLES)


@each_kind
def test_lists_and_datasets_train_alike_eagerly_or_in_a_graph(kind, warm):
    make, lists, batches, *_ = SAMPLES[kind]
    graph, eager = warm(make), make(run_eagerly=True)
    expected = graph.fit(batches(*lists, batch_size=3), epochs=2, verbose=0)
    found = eager.fit(*lists, batch_size=3, epochs=2, shuffle=False, verbose=0)
    for name, values in expected.history.items():
        np.testing.assert_allclose(found.history[name], values, rtol=1e-5)
    check_equal(graph, eager, atol=1e-6)


@each_kind
def test_one_batch_of_lists(kind):
    """A training step on lists is a fit of them as one batch."""
    make, lists, *_ = SAMPLES[kind]
    model, fitted = (make(run_eagerly=True) for _ in range(2))
    found = model.train_on_batch(*lists, return_dict=True)
    history = fitted.fit(*lists, shuffle=False, verbose=0).history
    assert {name: [value] for name, value in found.items()} == history
    check_equal(model, fitted)
    expected = fitted.evaluate(*lists, verbose=0)
    np.testing.assert_allclose(model.test_on_batch(*lists), expected, rtol=1e-6)


@each_kind
def test_each_fit_of_lists_has_an_order_of_its_own(kind, monkeypatch):
    """And all of them are functions of the seed."""
    make, lists, *_ = SAMPLES[kind]
    orders: list[list[str]] = []

    def recorded(self: Any, batches: Any, **options: Any) -> tf.data.Dataset:
        orders.append([str(batch[0].numpy()) for batch in batches])
        return dataset(self, batches.take(1), **options)

    hasher = type(make().hasher)
    dataset = hasher.dataset
    monkeypatch.setattr(hasher, "dataset", recorded)
    for _ in range(2):
        model = make(run_eagerly=True)
        for _ in range(2):
            model.fit(*lists, batch_size=1, verbose=0)
    assert orders[:2] == orders[2:]
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])


@each_kind
def test_measuring_is_repeatable_and_moves_nothing(kind):
    """What is drawn at random for a measurement is its own."""
    make, lists, _, random, _ = SAMPLES[kind]
    one, other = (make(run_eagerly=True, **random) for _ in range(2))
    data = lists if len(lists) > 1 else lists[0]
    for model, validation_data in ((one, None), (other, data)):
        model.fit(
            *lists, batch_size=8, validation_data=validation_data, verbose=0
        )
        first = model.evaluate(*lists, batch_size=8, verbose=0)
        assert model.evaluate(*lists, batch_size=8, verbose=0) == first
    check_equal(one, other)


@pytest.mark.parametrize(("kind", "options", "numbers"), [
    ("towers", {}, [np.nan]),
    ("scorer", {}, [np.nan, np.inf]),
    ("keyvec", {}, [np.nan, np.inf]),
    ("keyvec", {"optimizer": dssm.NesterovMomentum}, [np.nan]),
])  # fmt: skip
def test_a_loss_that_is_not_finite_leaves_the_weights(
    kind, options, numbers, warm
):
    """Bit for bit, or, after a look ahead, but for one rounding."""
    make, lists, *_ = SAMPLES[kind]
    model = warm(make, **options)
    model.fit(*lists, verbose=0)
    nesterov = isinstance(model.optimizer, dssm.NesterovMomentum)
    for number in numbers:
        last = model.trainable_variables[-1]
        last.assign(np.full(last.shape, number))
        before = model.get_weights()
        with pytest.raises(tf.errors.InvalidArgumentError, match=NOT_FINITE):
            model.fit(*lists, verbose=0)
        check_equal(model, before, atol=1e-7 if nesterov else 0.0)
        assert int(model.optimizer.iterations) == 1


@each_kind
def test_a_loaded_model_goes_on_as_the_saved_one(kind, tmp_path):
    make, lists, batches, _, loss = SAMPLES[kind]
    model = make(**loss)
    (batch,) = batches(*lists, batch_size=99)
    model.train_step(batch)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.get_config() == model.get_config()
    assert loaded.loss.get_config() == model.loss.get_config()
    check_equal(loaded, model)
    check_equal(loaded.optimizer.variables, model.optimizer.variables)
    assert int(loaded.optimizer.iterations) == 1
    before = model.get_weights()
    for each in (loaded, model):
        each.train_step(batch)
    check_equal(loaded, model, atol=1e-6)
    moved = zip(before, model.get_weights(), strict=True)
    assert max(abs(one - other).max() for one, other in moved) > 1e-3


@each_kind
def test_callbacks_of_keras_know_what_is_better(kind):
    """Of each metric, with mode="auto": accuracy grows, losses shrink."""
    make, lists, *_ = SAMPLES[kind]
    model = make(run_eagerly=True)
    metrics = list(model.train_on_batch(*lists, return_dict=True))
    assert {"loss", "accuracy"} <= set(metrics)
    data = lists if len(lists) > 1 else lists[0]
    stops = {
        name: keras.callbacks.EarlyStopping(f"val_{name}") for name in metrics
    }
    plateaus = keras.callbacks.ReduceLROnPlateau("val_accuracy")
    model.fit(
        *lists, validation_data=data, verbose=0,
        callbacks=[*stops.values(), plateaus],
    )  # fmt: skip
    for name, stop in stops.items():
        better = "greater" if name == "accuracy" else "less"
        assert stop.monitor_op is getattr(keras.ops, better), name
    assert plateaus.monitor_op is keras.ops.greater


Refusals = Iterable[tuple[str, Callable[[], Any]]]
"""A part of each message, and the call that raises it."""


def check_refused(refusals: Refusals) -> None:
    for message, call in refusals:
        with pytest.raises(InputError, match=message) as caught:
            call()
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("kind", "metrics", "rankings", "lists"), [
    ("towers", "accuracy is a metric of every", "accuracy is a metric",
     "repeat the pairs"),
    ("scorer", "two metrics", r"evaluate_systems\(Task",
     "x=.queries, positives, neg"),
    ("keyvec", "four metrics", "with evaluation.evaluate_systems",
     "x=.documents, salient, key_words"),
])  # fmt: skip
def test_what_no_model_takes(kind, metrics, rankings, lists):
    make, examples, *_ = SAMPLES[kind]
    rows = examples if kind == "towers" else examples[0]
    m, ones = make(), np.ones(len(rows[0]))
    empty: Any = ([], []) if kind == "towers" else (([], [], []),)
    sgd = keras.optimizers.SGD()
    scaled = keras.optimizers.LossScaleOptimizer(sgd)
    weights = f"is not supported: .*{lists}"
    check_refused([
        (metrics, lambda: m.compile(sgd, m.loss, metrics=["accuracy"])),
        (rankings, lambda: m.compile(sgd, m.loss, weighted_metrics=["acc"])),
        ("XLA has no", lambda: m.compile(sgd, m.loss, jit_compile=True)),
        ("mixed precision", lambda: m.compile(scaled, m.loss)),
        (f"^{type(m).__name__} cannot be exported as 'onnx', which has no",
         lambda: m.export("folder", format="onnx")),
        *(
            (f"^class_weight {weights}",
             lambda call=call: call(*examples, class_weight=ones))
            for call in (m.fit, m.train_on_batch)
        ),
        *(
            (f"^sample_weight {weights}" if kind == "keyvec" else found,
             lambda call=call, given=given: call(
                 *examples, sample_weight=given))
            for given, found in (
                ([1.0], "^sample_weight has the shape"),
                (-ones, "^sample_weight has numbers that are negative"),
            )
            for call in (m.fit, m.train_on_batch, m.test_on_batch)
        ),
        *(
            ("^found no examples: ", lambda call=call: call(*empty))
            for call in (m.fit, m.evaluate, m.train_on_batch)
        ),
    ])  # fmt: skip


def test_what_towers_do_not_take():
    m, ones, data = two_tower(), np.ones(16), (QUERIES, TITLES)
    rows = tf.data.Dataset.from_tensor_slices(data)
    check_refused([
        ("sample_weight cannot be combined with validation_split: give",
         lambda: m.fit(*data, validation_split=0.5, sample_weight=ones)),
        ("sample_weight is for lists",
         lambda: m.evaluate(rows.batch(2), sample_weight=ones)),
        ("got one list", lambda: m.fit(QUERIES)),
        ("got one tuple", lambda: m.predict_on_batch((*data, TITLES))),
        (r"\.batch\(256\)", lambda: m.fit(rows)),
        ("found 4 for queries and 8 for documents",
         lambda: dssm.TwoTower(dssm.RNNEncoder(4), dssm.RNNEncoder(8))),
        ("one of random, in_batch, corpus, not 'hard'",
         lambda: dssm.TwoTower(*m.towers, negatives="hard")),
        ("n is 0: expected a whole number of 1 or more",
         lambda: dssm.TwoTower(*m.towers, n=0)),
    ])  # fmt: skip


def test_what_scorers_do_not_take():
    m: Any = small_matchers.compiled()
    queries = TRIPLES[0]
    pairs = tf.data.Dataset.from_tensor_slices(TRIPLES[:2]).batch(2)
    single = tf.data.Dataset.from_tensor_slices(TRIPLES)
    nothing = ([], [], [])
    check_refused([
        *(
            (message, lambda call=call, x=x: call(x))
            for x, message in (
                (TRIPLES[:2], "three lists of texts in a tuple; got tuple of"),
                ("abc", "got str of 3 parts"),
                (None, "got NoneType"),
                ((queries, POSITIVES, ["x"]), "4 queries, 4 positives and 1"),
                (pairs, "batches, string tensors"),
                (single, r"with .batch\(128\)"),
            )
            for call in (m.fit, m.evaluate)
        ),
        ("^y is not supported", lambda: m.fit(TRIPLES, y=np.zeros(4))),
        ("^y is not", lambda: m.train_on_batch(TRIPLES, y=np.zeros(4))),
        (r"batch_size is array\(", lambda: m.fit(TRIPLES, np.ones(4))),
        ("^found no examples: ",
         lambda: m.fit(TRIPLES, validation_data=nothing, verbose=0)),
        (r"query is \['a'\] \(list\)", lambda: m.score(["a"], ["b"])),
        ("expected a list of texts", lambda: m.score("a", "b")),
        ("batch_size is 0: expected a whole number of 1 or more",
         lambda: m.score("a", ["b"], 0)),
        ("1 queries and 0 documents", lambda: m.score_pairs(["a"], [])),
        ("width 4, but words has 3",
         lambda: dssm.PairScorer(hashed_words(3), MeanDot(4))),
    ])  # fmt: skip


@pytest.mark.parametrize("matcher", [DeepMatch, RAE])
def test_fit_asks_for_pretraining(matcher):
    words = VocabularyVectors(["bolt", "glue"], 3)
    scorer = dssm.PairScorer(words, matcher(3))
    scorer.compile(dssm.Adagrad(), dssm.PairwiseHinge())
    message = f"^{matcher.__name__} has not been pretrained: call scorer.mat"
    check_refused([(message, lambda: scorer.fit(TRIPLES))])


def test_what_a_keyvec_does_not_take():
    m: Any = small_keyvec.compiled()
    small, adam = small_keyvec.small_keyvec, keras.optimizers.Adam()
    check_refused([
        ("expected KeyVecLoss", lambda: m.compile(adam, dssm.CosineSoftmax())),
        (r"got 'text' \(str\); write \[docum", lambda: m.encode("text")),
        ("expected a list of documents, got 3", lambda: m.encode(3)),
        ("document 1 is neither a string nor", lambda: m.encode(["a", 3])),
        ("document 0 .* text 1 is 3", lambda: m.encode([["a", 3]])),
        ("n is 0: expected a whole", lambda: m.key_sentences("a", 0)),
        ("n is None: expected a whole", lambda: m.key_sentences("a", None)),
        ("n is True: expected a whole", lambda: m.key_words("a", True)),
        ("n is 1.5: expected a whole", lambda: m.key_words("a", 1.5)),
        ("^y is not supported: give x=", lambda: m.fit(EXAMPLES, y=[1])),
        ("^y is not supported", lambda: m.fit(EXAMPLES, y=np.zeros(4))),
        ("^validation_split is not supported: give x=",
         lambda: m.fit(EXAMPLES, validation_split=0.5)),
        (r"got 'text' \(str\); write \[docu", lambda: m.predict("text")),
        ("max_sentences is 0: expected a whole number of 1 or more, or None",
         lambda: small(max_sentences=0)),
        ("at least 0 and less than 1, not 1", lambda: small(dropout=1)),
        (r"vocabulary\[0\]", lambda: small(key_vocabulary=["A b"])),
        ("^words has no vocabulary: give",
         lambda: dssm.KeyVec(TrigramVectors(4))),
    ])  # fmt: skip


@pytest.mark.parametrize("policy", ["mixed_float16", "float16", "bfloat16"])
def test_half_precision_is_refused(policy):
    """In each layer with weights, and in models of float32 layers."""
    towers, words = two_tower().towers, VocabularyVectors(["bolt"], 4)
    scorer = small_scorer()
    only = f" computes in float32 or float64, not in {policy}, in which sums"
    with precision("float32"):
        keras.config.set_dtype_policy(policy)
        models = (
            (dssm.TwoTower(*towers), dssm.CosineSoftmax()),
            (dssm.PairScorer(scorer.words, scorer.matcher),
             dssm.PairwiseHinge()),
            (dssm.KeyVec(words), dssm.KeyVecLoss()),
        )  # fmt: skip
        check_refused([
            (only, lambda: dssm.DSSMEncoder([3])),
            (only, lambda: dssm.LSTMEncoder(2, dtype=policy)),
            (only, lambda: VocabularyVectors(["bolt"], 4)),
            (only, lambda: TrigramVectors(4)),
            (only, lambda: MVLSTM(4, 2, hidden=3)),
            (only, lambda: RecurrentCosine(4, 2)),
            *(
                (f"^{type(model).__name__}{only}",
                 lambda model=model, loss=loss: model.compile("sgd", loss))
                for model, loss in models
            ),
        ])  # fmt: skip
        assert dssm.DSSMEncoder([3], dtype="float32").dtype == "float32"
