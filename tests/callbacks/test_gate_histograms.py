"""What TensorBoard reads from the files of the histograms."""

from keras_lstm_dssm import TwoTower
from keras_lstm_dssm.callbacks.gate_histograms import GateHistograms
from tests.encoders.small import small_encoder
from tests.training.histogram_events import read_histograms


def test_histograms_of_both_directions(tmp_path):
    forgets = small_encoder("bilstm", forget_gate=True)
    model = TwoTower(forgets, small_encoder("rnn"))
    clicks = [("wood glue", "glue")]
    gates = GateHistograms(tmp_path / "gates", model, clicks)
    gates.set_model(model)
    gates.on_train_begin()
    gates.on_epoch_end(6)
    gates.on_train_end()
    assert {
        tag for tag, step in read_histograms(tmp_path / "gates") if step == 6
    } == {
        *(
            f"query/{way}{name}"
            for way in ("", "backward/")
            for name in "ifcoy"
        ),
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
