"""The program sentence_model, with a stand-in for SentenceTransformer."""

import json
import pathlib

import numpy as np
import pytest

from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.distillation.teacher_vectors import open_outside_encoder
from keras_lstm_dssm.evaluation import DenseSystem, Task
from keras_lstm_dssm.tools import sentence_model
from tests.distillation.test_outside_encoder import write_sentence_transformers


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
    """Measures the model in a process of its own, from the hub if need be."""
    (tmp_path / "letters_of_texts.py").write_text(
        "def encode(texts):\n"
        "    return [[t.count(c) for c in 'abdeghilnorst'] for t in texts]\n"
    )
    write_sentence_transformers(
        tmp_path,
        "import letters_of_texts\n"
        "class SentenceTransformer:\n"
        "    def __init__(self, name, local_files_only):\n"
        "        assert (name, local_files_only) == ('some/model', False)\n"
        "    def encode(self, texts, **options):\n"
        "        return letters_of_texts.encode(texts)\n",
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    flags = [
        f"--data={collection_folder}", "--model=some/model",
        "--json=out.json", "--mode=retrieve", "--min_relevant=2",
    ]  # fmt: skip
    assert sentence_model.run(["sentence_model", *flags]) == 0
    task = Task.from_collection(
        open_collection(str(collection_folder)), "test", "retrieve"
    )
    task = task._replace(min_relevant=2)
    encode = open_outside_encoder("letters_of_texts:encode")
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["retrieve"] == pytest.approx(
        task.evaluate(task.run(DenseSystem(encode, encode)))
    )
    assert found["texts_per_second"] > 0
