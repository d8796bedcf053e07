"""The names of Keras and TensorFlow that are not documented still exist."""

import ast
import pathlib
from collections.abc import Iterable
from typing import Any

import keras
import pytest
import tensorflow as tf

import keras_lstm_dssm
from keras_lstm_dssm import private_api

PACKAGE = pathlib.Path(keras_lstm_dssm.__file__).parent

NAMES: list[tuple[Any, str]] = [
    (keras.layers.Layer(), "_convert_input_args"),
    (keras.layers.Layer(), "_allow_non_tensor_positional_args"),
    (keras.layers.Layer(), "_build_shapes_dict"),
    (keras.Model, "distribute_strategy"),
    (keras.Model, "_maybe_symbolic_build"),
    (keras.layers.Layer, "_flatten_layers"),
    (keras.optimizers.Optimizer, "_backend_update_step"),
    (keras.optimizers.Optimizer, "_var_key"),
    (keras.optimizers.Optimizer, "_get_variable_index"),
    (keras.optimizers.SGD(), "_distribution_strategy"),
    (keras.optimizers.SGD(), "_trainable_variables"),
    (keras.metrics.Accuracy(), "_direction"),
    (tf.compat.v1.Session, "_make_callable_from_options"),
]


DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
PYTHON_NAMES = {"_replace", "_asdict", "_fields", "_make", "_exit"}
"""Documented names of Python that begin with an underscore."""

KERAS_NAMES = set().union(
    *(
        dir(owner)
        for owner in (
            keras.Model(), keras.layers.Layer(), keras.optimizers.SGD(),
            keras.losses.Loss(), keras.metrics.Accuracy(),
            keras.callbacks.Callback(),
        )
    )
)  # fmt: skip


@pytest.mark.parametrize(("owner", "name"), NAMES, ids=[n for _, n in NAMES])
def test_the_name_exists(owner, name):
    assert hasattr(owner, name), (
        f"{name} has vanished: keras {keras.__version__}, tensorflow "
        f"{tf.__version__}; keras_lstm_dssm/private_api.py was tried with "
        f"{private_api.TRIED_WITH}"
    )


def test_fit_calls_the_overridden_build():
    """An override of a method that nothing calls would do nothing."""
    with tf.distribute.OneDeviceStrategy("/cpu:0").scope():
        model = TextModel()
        model.compile()
    called = []
    model._maybe_symbolic_build = lambda **_: called.append(True)
    texts = tf.data.Dataset.from_tensors(tf.constant(["a"]))
    model.fit(texts, verbose=0, shuffle=False)
    assert called
    assert private_api.is_distributed(model)
    assert not private_api.is_distributed(keras.Model())


def test_a_strategy_and_the_only_copy_of_its_variable():
    outside = keras.optimizers.SGD()
    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        model, inside = keras.Model(), keras.optimizers.SGD()
        copy = private_api.only_copy(tf.Variable([1.0, 2.0]))
    copy.scatter_update(tf.IndexedSlices([3.0], [1]))
    assert copy.numpy().tolist() == [1.0, 3.0]
    assert private_api.only_copy(copy) is copy
    assert private_api.shares_strategy(model, inside)
    assert not private_api.shares_strategy(model, outside)


class TextModel(private_api.BuiltModel):
    def train_step(self, texts: Any) -> dict[str, Any]:
        return {"length": tf.reduce_sum(tf.strings.length(texts))}


def test_the_list_above_is_that_of_the_module():
    private_api_names = private_names([PACKAGE / "private_api.py"])
    assert private_api_names == {
        name for _, name in NAMES if name.startswith("_")
    }


def test_no_other_module_takes_private_names():
    folders = [PACKAGE, *(PACKAGE / name for name in ("export", "tools"))]
    modules = {path for folder in folders for path in folder.rglob("*.py")}
    assert len(modules) > 100
    assert private_names(modules - {PACKAGE / "private_api.py"}) == set()


def private_names(paths: Iterable[pathlib.Path]) -> set[str]:
    """Return names with a leading underscore that modules take from others.

    They are read and not defined there, or defined by Keras's classes, too."""
    read: set[str] = set()
    defined: set[str] = set()
    overridden: set[str] = set()
    for path in paths:
        text = path.read_text(encoding="utf-8")
        nodes = list(ast.walk(ast.parse(text)))
        attributes = [n for n in nodes if isinstance(n, ast.Attribute)]
        read |= {n.attr for n in attributes if isinstance(n.ctx, ast.Load)}
        names = {n.attr for n in attributes if isinstance(n.ctx, ast.Store)}
        names |= {n.name for n in nodes if isinstance(n, DEFINITIONS)}
        defined |= names
        if "(keras." in text:
            overridden |= names & KERAS_NAMES
    return {
        name
        for name in (read - defined - PYTHON_NAMES) | overridden
        if name == "__internal__" or (name[0] == "_" and name[1] != "_")
    }


def test_call_with_strings_and_lists():
    class Count(keras.layers.Layer):
        def __init__(self) -> None:
            super().__init__()
            private_api.accept_any_inputs(self)

        def call(self, texts: Any, more: Any) -> Any:
            return tf.size(texts), more

    size, more = Count()(tf.constant(["a", "b"]), [1, 2])
    assert (int(size), more) == (2, [1, 2])


def test_a_mean_with_a_direction():
    """`DirectedMean` has the values of `keras.metrics.Mean`."""
    ours = private_api.DirectedMean("share", grows=True)
    stock = keras.metrics.Mean("share")
    for metric in (ours, stock):
        metric.update_state([1.0, 0.0, 1.0])
        metric.update_state([1.0, 0.0], sample_weight=[2.0, 0.5])
    assert float(ours.result()) == float(stock.result())
    assert float(ours.result()) == pytest.approx(4 / 5.5)
    assert (float(ours.total), float(ours.count)) == (4, 5.5)
    assert len(ours.variables) == 2
    ours.reset_state()
    assert float(ours.result()) == 0


def test_update_all_variables_at_once():
    class Descent(private_api.JointUpdateOptimizer):
        def update_variables(
            self, gradients: Any, variables: Any, learning_rate: Any
        ) -> None:
            assert [self.variable_index(v) for v in variables] == [0, 1]
            for variable, gradient in zip(variables, gradients, strict=True):
                variable.assign_sub(learning_rate * gradient)

    weights = [keras.Variable([1.0, 2.0]), keras.Variable([3.0])]
    optimizer = Descent(learning_rate=0.5)
    optimizer.build(weights)
    keys = {optimizer.variable_key(weight) for weight in weights}
    assert keys == {optimizer.variable_key(weight.value) for weight in weights}
    optimizer.apply([tf.constant([2.0, 2.0]), tf.constant([-2.0])])
    assert weights[0].numpy().tolist() == [0.0, 1.0]
    assert weights[1].numpy().tolist() == [4.0]
