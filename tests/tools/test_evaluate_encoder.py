"""lstm-dssm-evaluate with an encoder that this package did not train."""

import json

import pytest

from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.distillation.teacher_vectors import open_outside_encoder
from keras_lstm_dssm.evaluation import DenseSystem, Task
from keras_lstm_dssm.tools import evaluate


def test_an_encoder_alone(collection_folder, tmp_path, monkeypatch):
    """Measures the encoder, each text once, and stores nothing."""
    (tmp_path / "letters_of_texts.py").write_text(
        "def encode(texts):\n"
        "    return [[t.count(c) for c in 'abdeghilnorst'] for t in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    name = "letters_of_texts:encode"
    flags = [
        f"--data={collection_folder}", f"--run={name}", "--json=out.json",
        "--mode=retrieve", "--min_relevant=2",
    ]  # fmt: skip
    assert evaluate.run(["evaluate", *flags]) == 0
    task = Task.from_collection(
        open_collection(str(collection_folder)), "test", "retrieve"
    )
    task = task._replace(min_relevant=2)
    encode = open_outside_encoder(name)
    found = json.loads((tmp_path / "out.json").read_text())["test"]
    assert found["model"] == pytest.approx(
        task.evaluate(task.run(DenseSystem(encode, encode)))
    )
    assert found["texts_per_second"] > 0
    assert {path.name for path in tmp_path.iterdir()} <= {
        "letters_of_texts.py", "out.json", "__pycache__",
    }  # fmt: skip


def test_neither_a_run_nor_an_encoder(collection_folder, tmp_path, refused):
    flags = [f"--data={collection_folder}", "--run=no_such_module:encode"]
    message = "'no_such_module:encode' is not the folder of a run, nor an enc"
    refused(evaluate.run(["evaluate", *flags]), message)
    flags[1] = f"--run={tmp_path}"
    refused(evaluate.run(["evaluate", *flags]), "no model here")
