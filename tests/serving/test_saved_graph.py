"""SavedGraph: outputs of a SavedModel, its memory, folders without a model."""

import gc
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.serving.saved_models import SavedGraph, SavedSignature
from tests.serving.memory import resident_mb


def save(folder: Path, numbers: int) -> Path:
    """Saves a model that adds the sum of its variable, `numbers` ones, to x."""
    module = tf.Module()
    module.ones = tf.Variable(tf.ones([numbers]))
    module.serve = tf.function(
        lambda x: {"sum": x + tf.reduce_sum(module.ones), "text": "a"},
        input_signature=[tf.TensorSpec([None], tf.float32, "x")],
    )
    tf.saved_model.save(module, str(folder), module.serve)
    return folder


def test_outputs_by_name(tmp_path: Path) -> None:
    graph = SavedGraph(save(tmp_path, 3))
    run = SavedSignature(graph, "serving_default")
    assert run.inputs == ["x"]
    outputs = run(x=np.array([1, 2], np.float32))
    assert list(outputs) == ["sum", "text"]
    assert outputs["sum"].tolist() == [4, 5]
    # A scalar of the graph is an array without dimensions.
    assert outputs["text"].shape == () and outputs["text"].item() == b"a"


def test_memory_is_free_when_the_last_reference_is_gone(tmp_path: Path) -> None:
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


def test_a_variable_file_is_missing(tmp_path: Path) -> None:
    (save(tmp_path, 3) / "variables" / "variables.index").unlink()
    with pytest.raises(InputError, match=r"load it: .*index: not found"):
        SavedGraph(tmp_path)
