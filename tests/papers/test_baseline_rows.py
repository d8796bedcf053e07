"""The baselines of a table are trained by name, and measured on dev."""

import dataclasses
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.evaluation.bm25 import stemmed
from keras_lstm_dssm.papers.baseline_rows import Baseline, baseline_grid
from keras_lstm_dssm.papers.baselines import RandomVectorSystem, TfidfSystem
from keras_lstm_dssm.papers.gensim_baselines import Doc2VecSystem
from keras_lstm_dssm.papers.plsa import PLSASystem
from keras_lstm_dssm.papers.skip_thought import SkipThoughtSystem
from keras_lstm_dssm.papers.table_data import open_data
from tests.papers.eager_skip_thought import train_eagerly

PARAGRAPHS = [["The cat sat down", "It slept all day"]] * 3


def test_grids():
    assert len(baseline_grid("bm25")) == 3 * 5 * 5
    assert len(baseline_grid("plsa")) == 2 * 2
    assert baseline_grid("random") == [{}]


def test_skip_thought_is_trained_once_for_each_setting(tmp_path, monkeypatch):
    train_eagerly(monkeypatch)
    options: Any = {"units": 4, "embedding": 3, "epochs": 1}

    def train(mode: str, seed: int = 0) -> SkipThoughtSystem:
        system = SkipThoughtSystem(mode, seed=seed, **options)
        return system.fit(PARAGRAPHS, cache=tmp_path)

    uni = train("uni")
    (folder,) = tmp_path.iterdir()
    bi = train("bi")
    monkeypatch.setattr(SkipThoughtSystem, "_train", None)  # not called again
    loaded = train("uni")
    assert loaded.seconds == uni.seconds > 0
    assert loaded.history == uni.history
    assert loaded.parameters == uni.parameters
    texts = ["the cat"]
    np.testing.assert_array_equal(loaded.encode(texts), uni.encode(texts))
    # The combined one is made of the other two.
    combined = train("combined")
    assert combined.seconds == uni.seconds + bi.seconds
    assert combined.history == {**uni.history, **bi.history}
    np.testing.assert_array_equal(
        combined.encode(texts),
        np.concatenate([uni.encode(texts), bi.encode(texts)], axis=1),
    )
    with pytest.raises(TypeError):  # another seed is another training
        train("uni", seed=1)
    (folder / "training.json").unlink()  # as if it had been interrupted
    with pytest.raises(TypeError):
        train("uni")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("plsa", {"tokenizer": "stemmed", "topics": 2}),
        ("doc2vec", {"tokenizer": "stemmed", "vector_size": 5, "sample": 0.0}),
        ("tfidf", {"tokenizer": "stemmed"}),
        ("random_vectors", {}),
    ],
)
def test_a_baseline_is_what_its_name_and_options_say(
    name, options, settings, tmp_path
):
    data = open_data(settings, tmp_path)
    expected = {
        "plsa": lambda: PLSASystem(
            tokenizer=stemmed, topics=2, seed=4
        ).fit(data.texts),
        "doc2vec": lambda: Doc2VecSystem(
            tokenizer=stemmed, vector_size=5, sample=0.0, seed=4
        ).fit(data.texts),
        "tfidf": lambda: TfidfSystem(tokenizer=stemmed).fit(data.texts),
        "random_vectors": lambda: RandomVectorSystem(seed=4),
    }[name]()  # fmt: skip
    trained = Baseline().train(name, options, 4, data)
    assert data.dev.run(trained.system) == data.dev.run(expected)
    assert trained.dev == data.measure_on_dev(expected)
    assert trained.parameters == expected.parameters
    assert trained.train_seconds > 0
    assert options == {} or options["tokenizer"] == "stemmed"  # as it was


def test_skip_thought_reads_its_paragraphs_from_a_file(
    settings, tmp_path, monkeypatch
):
    monkeypatch.setenv("KERAS_LSTM_DSSM_CACHE", str(tmp_path / "cache"))
    train_eagerly(monkeypatch)
    file = tmp_path / "paragraphs.txt"
    file.write_text("\n\n".join("\n".join(lines) for lines in PARAGRAPHS))
    options: Any = {"units": 4, "embedding": 3, "epochs": 1, "mode": "uni"}
    ours = dataclasses.replace(settings, paragraphs=str(file))
    data = open_data(ours, tmp_path)
    trained = Baseline().train("skip_thought", options, 4, data)
    # The training, and its duration, are found again in the cache.
    expected = SkipThoughtSystem(seed=4, **options)
    expected.fit(PARAGRAPHS, cache=tmp_path / "cache")
    assert trained.train_seconds == expected.seconds
    assert trained.dev == data.measure_on_dev(expected)


def test_a_baseline_without_a_name(settings, tmp_path):
    data = open_data(settings, tmp_path)
    with pytest.raises(ValueError, match="bm26"):
        Baseline().train("bm26", {}, 0, data)
