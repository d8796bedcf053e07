"""Exported signatures take vectors: a scalar or a matrix is an error."""

import inspect
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.export import export_model, graphs
from keras_lstm_dssm.export.graphs.encoder import EncoderModule
from keras_lstm_dssm.serving.saved_models import SavedGraph


@pytest.mark.parametrize("new", [dssm.LSTMEncoder, dssm.RNNEncoder])
def test_a_session_fails_and_lives_on(new, tmp_path):
    """A session, as TF Serving, does not compare shapes by itself."""
    graph = SavedGraph(export_model(new(3), tmp_path))
    encode = graph.function(graph.definitions["serving_default"])
    error = tf.errors.InvalidArgumentError
    message = "Shape of tensor .*text.* is not compatible with expected"
    for shape in ((), (1, 2)):
        with pytest.raises(error, match=message):
            encode(np.full(shape, b"bolt", object))
    assert encode(np.array([b"bolt"], object))[0].shape == (1, 3)


def test_all_signatures_are_checked():
    """All are declared by `signature`, which checks the ranks."""
    folder = Path(inspect.getfile(graphs)).parent
    names = ("serve", "keys", "filtered", "explained")
    found = []
    for file in sorted(folder.glob("*.py")):
        lines = file.read_text().splitlines()
        for before, line in zip(lines, lines[1:], strict=False):
            name = line.strip().removeprefix("def ").split("(")[0]
            if name in names and "def " in line:
                assert before.strip().startswith("@signature("), (file, name)
                found.append((file.stem, name))
    # Encoders and KeyVecs share one `serve`, and so do all that search.
    assert len(found) == 6 and ("keyvec", "keys") in found


@pytest.mark.parametrize("new", [
    lambda: dssm.CombinedEncoder(4, bag=3, sketch=7),
    lambda: dssm.BidirectionalLSTMEncoder(3, dtype="float64"),
], ids=["combined", "bidirectional"])  # fmt: skip
def test_only_changed_rows_are_exported(new, tmp_path, monkeypatch):
    """All words, a part of them and none of them have been learnt."""
    encoder = new()
    known = encoder.trigrams.distinct(["hex bolt", "wood glue"]).trigrams
    for layer in encoder.embeddings:
        table = layer.table.numpy()
        table[known.numpy()] += 0.1
        layer.table.assign(table)
    texts = ["hex bolt", "hex xyzzy glue", "plugh", "", "wood glue"]
    changed = export_model(encoder, tmp_path / "changed")
    monkeypatch.setattr(
        dssm.TrigramEmbedding, "changed_rows", lambda self: np.arange(self.size)
    )
    whole = export_model(encoder, tmp_path / "whole")
    sizes, vectors = [], []
    for version in (changed, whole):
        serve = tf.saved_model.load(str(version)).signatures["serving_default"]
        one_by_one = [serve(text=tf.constant([text])) for text in texts]
        outputs = [serve(text=tf.constant(texts)), *one_by_one]
        vectors.append([output["embedding"].numpy() for output in outputs])
        data = version / "variables/variables.data-00000-of-00001"
        sizes.append(data.stat().st_size)
    for ours, expected in zip(*vectors, strict=True):
        np.testing.assert_array_equal(ours, expected)
    # Of each table its 20 rows, and where they are: 4 bytes a trigram.
    tables = sum(layer.table.numpy().nbytes for layer in encoder.embeddings)
    left_out = sizes[1] - sizes[0] + len(encoder.embeddings) * 4 * 50_653
    assert 0.999 * tables < left_out < tables + 4 * 50_653 + 4096


def test_an_encoder_that_was_exported_can_be_trained_on():
    """The graph of its first call, in an export, reads its own table."""
    encoder, texts = dssm.DSSMEncoder(units=[4]), ["hex bolt", "wood glue"]
    before = EncoderModule(encoder).encode_all(texts, progress=False)
    np.testing.assert_array_equal(encoder.encode(texts), before)
    (layer,) = encoder.embeddings
    layer.table.assign(layer.table.numpy()[::-1])  # as a training would
    other = dssm.DSSMEncoder(units=[4])
    other.set_weights(encoder.get_weights())
    np.testing.assert_array_equal(encoder.encode(texts), other.encode(texts))
    assert np.abs(encoder.encode(texts) - before).max() > 0.01
