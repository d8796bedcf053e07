"""Exported signatures take vectors: a scalar or a matrix is an error."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import export_model, graphs
from keras_lstm_dssm.serving.saved_models import SavedGraph


@pytest.mark.parametrize("new", [dssm.LSTMEncoder, dssm.RNNEncoder])
def test_a_session_fails_and_lives_on(new, tmp_path):
    """A session, as TF Serving, does not compare shapes by itself."""
    graph = SavedGraph(export_model(new(3), tmp_path))
    encode = graph.function(graph.definitions["serving_default"])
    for texts in (np.array(b"bolt", object), np.full([1, 2], b"bolt", object)):
        with pytest.raises(
            tf.errors.InvalidArgumentError,
            match=r"Shape of tensor .*text.* is not compatible with expected",
        ):
            encode(texts)
    assert encode(np.array([b"bolt"], object))[0].shape == (1, 3)


def test_all_signatures_are_checked():
    """All are declared by `signature`, which checks the ranks."""
    folder = Path(inspect.getfile(graphs)).parent
    found = []
    for file in sorted(folder.glob("*.py")):
        lines = file.read_text().splitlines()
        for before, line in zip(lines, lines[1:], strict=False):
            name = line.strip().removeprefix("def ").split("(")[0]
            if name in ("serve", "keys", "filtered") and "def " in line:
                assert before.strip().startswith("@signature("), (file, name)
                found.append((file.stem, name))
    # Encoders and KeyVecs share one `serve`.
    assert len(found) == 7 and ("keyvec", "keys") in found
