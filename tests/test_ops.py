"""Gradients of `custom_gradient` are TensorFlow's, and graphs end; cosines."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework.ops import gradient_registry

import keras_lstm_dssm as dssm
from keras_lstm_dssm.layers import unit
from keras_lstm_dssm.ops import cosine_matrix, cosine_pairs, custom_gradient
from tests import reference
from tests.models.small_towers import QUERIES, TITLES, two_tower

X = np.array([[1.0, -2.0], [0.5, 3.0]])
Y = np.array([[2.0, 1.0]])
INSIDE = tf.constant([[3.0, 4.0], [5.0, 6.0]], tf.float64)


def two_results(x: tf.Tensor, y: tf.Tensor) -> Any:
    """Two results, whose gradients are no true ones, so that they are seen."""
    squares = x * x * INSIDE

    def gradient(*errors: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        of_squares, of_sum = map(tf.convert_to_tensor, errors)
        return of_squares * squares + of_sum, tf.reduce_sum(of_sum) * y

    return [squares, x + tf.cast(y, x.dtype)], gradient


def one_result(x: tf.Tensor, y: tf.Tensor) -> Any:
    def gradient(error: Any) -> tuple[tf.Tensor, tf.Tensor]:
        error = tf.convert_to_tensor(error)
        return 7 * error, 11 * error[:1]

    return x * y, gradient


def plain(call: Callable[..., Any], x: Any, y: Any) -> list[Any]:
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        results = tf.nest.flatten(call(x, y))
        rows = [tf.gather(result, [1, 1, 0]) for result in results]
        loss = tf.add_n([tf.reduce_sum(row**2) for row in rows])
    return [*results, *tape.gradient(loss, [x, y])]


def in_a_loop(call: Callable[..., Any], x: Any, y: Any) -> list[Any]:
    """The second passes over a loop take the values of the first."""

    def body(number: Any, x: Any) -> Any:
        return number + 1, tf.nest.flatten(call(x, y))[0]

    with tf.GradientTape() as tape:
        tape.watch([x, y])
        _, last = tf.while_loop(lambda number, _: number < 3, body, (0, x))
        loss = tf.reduce_sum(last)
    return [last, *tape.gradient(loss, [x, y])]


@pytest.mark.parametrize("function", [two_results, one_result])
@pytest.mark.parametrize("caller", [plain, in_a_loop])
def test_results_and_gradients_are_those_of_tensorflow(function, caller):
    x, y = tf.constant(X), tf.constant(Y)
    expected = caller(tf.custom_gradient(function), x, y)
    ours = custom_gradient(function)
    traced = tf.function(lambda x, y: caller(ours, x, y))
    for results in (caller(ours, x, y), traced(x, y)):
        for found, wanted in zip(results, expected, strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_a_tape_outside_of_the_graph():
    ours = custom_gradient(one_result)
    traced = tf.function(lambda x, y: ours(x, y))
    x, y = tf.Variable(X), tf.Variable(Y)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(traced(x, y))
    of_x, of_y = tape.gradient(loss, [x, y])
    assert of_x.numpy().tolist() == [[7, 7]] * 2
    assert of_y.numpy().tolist() == [[11, 11]]


def test_a_graph_ends_with_its_last_use():
    """`tf.custom_gradient` registers a gradient, and so keeps each graph."""
    inner: list[weakref.ref] = []

    def doubled(x: tf.Tensor) -> Any:
        inner.append(weakref.ref(x.graph))
        return 2 * x, lambda error: 3 * error

    def trace(decorate: Any) -> tuple[Any, weakref.ref]:
        call = decorate(doubled)
        # On Python 3.13, AutoGraph keeps frames, and they the graph.
        function = tf.function(lambda x: call(x), autograph=False)
        traced = function.get_concrete_function(tf.constant(1.0))
        return traced, weakref.ref(traced.graph)

    function, graph = trace(custom_gradient)
    x = tf.Variable(1.0)
    with tf.GradientTape() as tape:
        y = function(x)
    assert (float(y), float(tape.gradient(y, x))) == (2, 3)
    names = set(gradient_registry.list())
    del function, tape, y
    gc.collect()
    assert (graph(), inner[0]()) == (None, None)
    trace(custom_gradient)  # under the name of the first
    assert set(gradient_registry.list()) == names
    function, graph = trace(tf.custom_gradient)
    del function
    gc.collect()
    assert graph() is not None  # if not: use TensorFlow's again


def test_the_graphs_of_a_model_end_with_it():
    """So do its weights, and their momentum."""
    graphs: list[weakref.ref] = []

    class Recorded(dssm.CosineSoftmax):
        def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
            graphs.append(weakref.ref(y_pred.graph))
            return super().call(y_true, y_pred)

    model = two_tower(loss=Recorded())
    model.fit(QUERIES[:4], TITLES[:4], verbose=0)
    table = weakref.ref(model.query_encoder.embeddings[0].table)
    assert graphs and graphs[0]() is not None
    del model
    tf.keras.backend.clear_session()
    gc.collect()
    assert [graph() for graph in graphs] == [None] * len(graphs)
    assert table() is None


@pytest.mark.parametrize("function", [two_results, one_result])
def test_a_saved_model_has_the_gradients(function, tmp_path):
    """Two calls in one graph have each their own."""

    def both(x: tf.Tensor, y: tf.Tensor) -> Any:
        first = tf.nest.flatten(custom_gradient(function)(x, y))
        return [*first, custom_gradient(one_result)(x, y)]

    module = tf.Module()
    specs = [tf.TensorSpec(each.shape, tf.float64) for each in (X, Y)]
    module.call = tf.function(both, specs)
    x, y = tf.constant(X), tf.constant(Y)
    expected = plain(both, x, y)
    tf.saved_model.save(module, tmp_path)
    del module
    gc.collect()
    found = plain(tf.saved_model.load(tmp_path).call, x, y)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


@pytest.mark.parametrize("again", [0, 3])
def test_a_saved_model_without_gradients_gets_no_other(again, tmp_path):
    """Its name may be that of another graph's gradient, or of none."""

    def traced(factor: float) -> Any:
        call = custom_gradient(lambda x: (2 * x, lambda e: factor * e))
        specs = [tf.TensorSpec([2], tf.float64)]
        function = tf.function(lambda x: call(x), specs)
        return function, function.get_concrete_function()

    module = tf.Module()
    module.call, concrete = traced(5)
    x = tf.Variable([1.0, 2.0], dtype=tf.float64)
    tf.saved_model.save(
        module,
        tmp_path,
        options=tf.saved_model.SaveOptions(experimental_custom_gradients=False),
    )
    del module, concrete
    gc.collect()
    others = [traced(77)[1] for _ in range(again)]
    loaded = tf.saved_model.load(tmp_path)
    with pytest.raises(LookupError, match="saved without its gradients: save"):
        with tf.GradientTape() as tape:
            y = loaded.call(x)
        tape.gradient(y, x)
    for other in others:
        with tf.GradientTape() as tape:
            y = other(x)
        assert tape.gradient(y, x).numpy().tolist() == [77, 77]


RANDOM = np.random.default_rng(0)
QUERY, DOCUMENT = RANDOM.normal(size=(4, 6)), RANDOM.normal(size=(3, 6))


def test_matrix_and_pairs_equal_the_formula():
    expected = [[reference.cosine(q, d) for d in DOCUMENT] for q in QUERY]
    matrix = cosine_matrix(tf.constant(QUERY), tf.constant(DOCUMENT))
    pairs = cosine_pairs(QUERY[:, np.newaxis], tf.constant(DOCUMENT))
    np.testing.assert_allclose(matrix, expected, rtol=1e-14)
    np.testing.assert_allclose(pairs, expected, rtol=1e-14)


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_unit_vectors_have_length_one(scale):
    for dtype, error in ("float32", 3e-7), ("float64", 1e-15):
        vectors = tf.constant(QUERY * scale, dtype)
        length = np.linalg.norm(unit(vectors), axis=-1)
        np.testing.assert_allclose(length, 1, atol=error)


def test_a_zero_vector_is_the_first_basis_vector_without_gradient():
    zero = tf.zeros([2, 3], tf.float64)
    other = tf.constant([0.6, 0.8, 0.0], tf.float64)
    with tf.GradientTape() as tape:
        tape.watch([zero, other])
        cosine = cosine_pairs(zero, other)
    gradient, toward = tape.gradient(cosine, [zero, other])
    np.testing.assert_allclose(cosine, [0.6, 0.6])
    np.testing.assert_array_equal(gradient, np.zeros((2, 3)))
    np.testing.assert_allclose(toward, [2 * 0.64, -2 * 0.48, 0])


@pytest.mark.parametrize(
    ("dtype", "error"), [("float64", 1e-12), ("float32", 1e-5)]
)
def test_the_gradient_of_a_matrix_is_that_of_the_formula(dtype, error):
    """As TensorFlow derives it; some vectors are zero."""
    query, document = (
        tf.Variable(QUERY, dtype=dtype),
        tf.Variable(DOCUMENT, dtype=dtype),
    )
    query[1].assign(tf.zeros([6], dtype))
    document[2].assign(tf.zeros([6], dtype))
    weights = tf.constant(RANDOM.normal(size=(4, 3)), dtype)
    any_width = tf.TensorSpec([None, None], dtype)
    matrix = tf.function(cosine_matrix, input_signature=[any_width, any_width])
    with tf.GradientTape(persistent=True) as tape:
        fast = matrix(query * 2, document * 2)
        plain = tf.matmul(unit(query * 2), unit(document * 2), transpose_b=True)
        of_fast = tf.reduce_sum(weights * tf.exp(fast))
        of_plain = tf.reduce_sum(weights * tf.exp(plain))
    np.testing.assert_allclose(fast, plain, rtol=error, atol=error)
    for variable in (query, document):
        expected = tape.gradient(of_plain, variable)
        found = tape.gradient(of_fast, variable)
        np.testing.assert_allclose(found, expected, rtol=error, atol=error)


def test_nan_stays_nan():
    """A spoilt vector must not pass for the first basis vector."""
    vectors = unit(tf.constant([[1.0, float("nan")], [3.0, 4.0]]))
    np.testing.assert_array_equal(np.isnan(vectors), [[True] * 2, [False] * 2])
    np.testing.assert_allclose(vectors[1], [0.6, 0.8], rtol=1e-6)
