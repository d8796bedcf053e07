"""What TensorBoard itself reads from the files."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorboard.plugins.base_plugin import TBContext
from tensorboard.plugins.projector.projector_plugin import ProjectorPlugin
from werkzeug.test import Client

from keras_lstm_dssm import CosineSoftmax, NesterovMomentum, TwoTower
from keras_lstm_dssm.analysis import each_activations
from keras_lstm_dssm.analysis.title_map import write_projector
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.tools import train
from keras_lstm_dssm.training import RunFolder
from keras_lstm_dssm.training.gate_histograms import GateHistograms
from tests.encoders.small import small_encoder


def test_the_projector_shows_titles_and_vectors(tmp_path) -> None:
    titles = ["wood\tglue", "", "8 oz glue"]
    vectors = np.array([[0.5, -1], [0, 1], [0.25, 3]], "float32")
    write_projector(tmp_path, titles, vectors)
    plugin = ProjectorPlugin(TBContext(logdir=str(tmp_path)))
    apps = plugin.get_plugin_apps()
    info = Client(apps["/info"]).get("/info?run=.")
    embedding = json.loads(info.data)["embeddings"][0]
    assert embedding["tensorShape"] == [3, 2]
    query = "?run=.&name=titles"
    tensor = Client(apps["/tensor"]).get(f"/tensor{query}").data
    found = np.frombuffer(tensor, "float32").reshape(3, 2)
    np.testing.assert_array_equal(found, vectors)
    labels = Client(apps["/metadata"]).get(f"/metadata{query}").data
    assert labels.decode().splitlines() == ["wood glue", '""', "8 oz glue"]
    with pytest.raises(InputError, match="2 titles and 3 vectors"):
        write_projector(tmp_path, titles[:2], vectors)


def events(folder) -> dict[tuple[str, int], np.ndarray]:
    """(tag, step) -> buckets `[n, (left, right, count)]`."""
    found = {}
    for file in folder.iterdir():
        for record in tf.data.TFRecordDataset(str(file)):
            event = tf.compat.v1.Event.FromString(record.numpy())
            for value in event.summary.value:
                buckets = tf.make_ndarray(value.tensor)
                found[value.tag, event.step] = buckets
    return found


def test_histograms_of_every_gate_and_epoch(tmp_path) -> None:
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("wood glue\tinterior wood glue\nhex bolt\tsteel bolt\n")
    model = TwoTower(
        small_encoder("lstm_None_forget"), small_encoder("lstm_None_forget")
    )
    model.compile(NesterovMomentum(0.1), CosineSoftmax())
    gates = GateHistograms.of(tmp_path / "gates", model, ClickLog(clicks))
    queries, titles = (list(texts) for texts in gates.texts.values())
    assert titles == ["interior wood glue", "steel bolt"]
    model.fit(queries, titles, epochs=2, callbacks=[gates], verbose=0)
    found = events(tmp_path / "gates")
    assert set(found) == {
        (f"{tower}/{name}", epoch)
        for tower in ("query", "document")
        for name in "ifcoy"
        for epoch in (0, 1)
    }
    # Every activation at every word: 4 and 5 words, 3 cells.
    assert found["query/i", 0][:, 2].sum() == 4 * 3
    assert found["document/c", 1][:, 2].sum() == 5 * 3
    assert 0 < found["query/f", 0][0, 0] < found["query/f", 0][-1, 1] < 1


def test_histograms_of_both_directions(tmp_path) -> None:
    gates = GateHistograms(tmp_path / "gates", ["wood glue"], ["glue"])
    gates.set_model(TwoTower(small_encoder("bilstm"), small_encoder("rnn")))
    gates.on_train_begin()
    gates.on_epoch_end(6)
    gates.on_train_end()
    assert {tag for tag, step in events(tmp_path / "gates") if step == 6} == {
        *(f"query/{way}{name}" for way in ("", "backward/") for name in "icoy"),
        "document/y",
    }


def test_train_writes_histograms_on_request(
    collection_folder, trained_run, tmp_path, capsys
) -> None:
    command = ["train", f"--data={collection_folder}", "--histograms"]
    run = tmp_path / "run"
    assert not train.run([*command, "--preset=lstm_32", "--epochs=2",
                          f"--output={run}"])  # fmt: skip
    found = events(run / "logs/gates")
    assert set(found) == {
        (f"{tower}/{name}", epoch)
        for tower in ("query", "document")
        for name in "icoy"
        for epoch in (0, 1)
    }
    # What was trained is what the model that was written shows.
    model = RunFolder(run).load_model()
    queries = [query for query, _ in ClickLog(
        collection_folder / "clicks.train.tsv.gz")]  # fmt: skip
    i = np.concatenate(
        [read.i for read in each_activations(model.query_encoder, queries)]
    )
    last = found["query/i", 1]
    assert last[:, 2].sum() == i.size
    np.testing.assert_allclose(
        [last[0, 0], last[-1, 1]], [i.min(), i.max()], rtol=1e-6
    )
    assert not (trained_run / "logs/gates").exists()
    capsys.readouterr()
    assert train.run([*command, "--preset=dssm", f"--output={run}2"]) == 1
    assert "no activations by word" in capsys.readouterr().err
    assert not (tmp_path / "run2").exists()  # before anything is written


def test_histograms_want_gates(tmp_path) -> None:
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("glue\twood glue\n")
    model = TwoTower(small_encoder("dssm"), small_encoder("dssm"))
    with pytest.raises(InputError, match="no activations by word"):
        GateHistograms.of(tmp_path, model, ClickLog(clicks))
