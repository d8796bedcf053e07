"""What TensorBoard reads from the files of the histograms."""

from keras_lstm_dssm import CosineSoftmax, NesterovMomentum, TwoTower
from keras_lstm_dssm.callbacks.gate_histograms import GateHistograms
from keras_lstm_dssm.data import ClickLog
from tests.encoders.small import small_encoder
from tests.training.histogram_events import read_histograms


def test_histograms_of_every_gate_and_epoch(tmp_path):
    clicks = tmp_path / "clicks.tsv"
    clicks.write_text("wood glue\tinterior wood glue\nhex bolt\tsteel bolt\n")
    model = TwoTower(
        small_encoder("lstm_None_forget"), small_encoder("lstm_None_forget")
    )
    model.compile(NesterovMomentum(0.1), CosineSoftmax())
    gates = GateHistograms.from_log(tmp_path / "gates", model, ClickLog(clicks))
    queries, titles = (list(texts) for texts in gates.texts.values())
    assert titles == ["interior wood glue", "steel bolt"]
    model.fit(queries, titles, epochs=2, callbacks=[gates], verbose=0)
    found = read_histograms(tmp_path / "gates")
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


def test_histograms_of_both_directions(tmp_path):
    gates = GateHistograms(tmp_path / "gates", ["wood glue"], ["glue"])
    gates.set_model(TwoTower(small_encoder("bilstm"), small_encoder("rnn")))
    gates.on_train_begin()
    gates.on_epoch_end(6)
    gates.on_train_end()
    assert {
        tag for tag, step in read_histograms(tmp_path / "gates") if step == 6
    } == {
        *(f"query/{way}{name}" for way in ("", "backward/") for name in "icoy"),
        "document/y",
    }


def test_training_imports_no_library_of_reports(fresh_process):
    # Keras has imported those that are installed.
    code = (
        "import sys\n"
        "for name in ('jinja2', 'matplotlib', 'pandas', 'sklearn'):\n"
        "    sys.modules[name] = None\n"
        "import keras_lstm_dssm.callbacks.gate_histograms\n"
    )
    fresh_process(code)
