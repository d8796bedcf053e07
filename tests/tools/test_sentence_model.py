"""The program sentence_model, with a stand-in for SentenceTransformer."""

import json
import pathlib
import sys
import types

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.evaluation import DenseSystem, Task
from keras_lstm_dssm.tools import sentence_model
from tests.tools.conftest import Refused


def test_each_text_is_encoded_once() -> None:
    asked = []

    def encode(texts: list[str]) -> list[list[int]]:
        asked.append(texts)
        return [[len(text), 1] for text in texts]

    timed = sentence_model.TimedEncoder(encode)
    np.testing.assert_array_equal(timed(["a", "bcd"]), [[1, 1], [3, 1]])
    np.testing.assert_array_equal(timed(["bcd", "ef"]), [[3, 1], [2, 1]])
    assert asked == [["a", "bcd"], ["ef"]]
    assert timed.per_second > 0


def test_a_model_on_a_collection(
    collection_folder: pathlib.Path,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder = dssm.LSTMEncoder(4)

    class Model:
        def __init__(self, name: str, device: str) -> None:
            assert (name, device) == ("some/model", "cpu")

        def encode(self, texts: list[str], batch_size: int) -> np.ndarray:
            return encoder.encode(texts, batch_size)

    module = types.ModuleType("sentence_transformers")
    module.SentenceTransformer = Model
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    out = tmp_path / "out.json"
    flags = [
        f"--data={collection_folder}", "--model=some/model", f"--json={out}",
        "--mode=retrieve", "--min_relevant=2",
    ]  # fmt: skip
    assert sentence_model.run(["sentence_model", *flags]) == 0
    task = Task.from_collection(
        open_collection(str(collection_folder)), "test", "retrieve"
    )
    task = task._replace(min_relevant=2)
    system = DenseSystem(encoder.encode, encoder.encode)
    found = json.loads(out.read_text())
    assert found["retrieve"] == pytest.approx(task.evaluate(task.run(system)))
    assert found["texts_per_second"] > 0


def test_the_package_is_missing(
    collection_folder: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    refused: Refused,
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    flags = ["sentence_model", f"--data={collection_folder}"]
    code = sentence_model.run(flags)
    refused(code, "pip install sentence-transformers==")
