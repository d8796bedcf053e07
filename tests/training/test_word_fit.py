"""fit_words: the vectors that NumPy finds, and those of words it never saw."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import teacher_folder
from keras_lstm_dssm.layers import WordRows
from keras_lstm_dssm.layers.fixed_words import word_keys
from keras_lstm_dssm.training import word_fit
from keras_lstm_dssm.training.word_fit import fit_words, ridge

QUERIES = ["hex bolts", "glue for wood", "garden"]
TITLES = [
    "steel hex bolt", "wood glue", "desk lamp", "Bolt, hex-bolt 3/8", "hose",
    "garden hose of steel", "上海 lamp",
]  # fmt: skip
SPANS = ["hose of steel", "steel hex"]
WORDS = ["hex", "bolts", "glue", "garden", "wood", "lamp"]
WIDTH = 70  # more than one block of columns


def vectors_of(texts: list[str]) -> np.ndarray:
    """Returns unit vectors of texts, the same ones in every call."""
    rows = [
        np.random.default_rng(list(text.encode())).normal(size=WIDTH)
        for text in texts
    ]
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype("f4")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A teacher's folder of several blocks."""
    for module in (teacher_folder, word_fit):
        monkeypatch.setattr(module, "BLOCK", 4)
    texts = list(dict.fromkeys([*QUERIES, *TITLES, *SPANS, *WORDS]))
    files = teacher_folder.TeacherFolder(tmp_path)
    files.write_texts(texts)
    (tmp_path / "vectors").mkdir()
    for number, start in enumerate(range(0, len(texts), 4)):
        np.save(files.block(number), vectors_of(texts[start : start + 4]))
    settings = {
        "encoder": "mine:random", "queries": len(QUERIES),
        "titles": len(TITLES), "texts": len(texts),
        "spans": len(SPANS),
        "words": len(texts) - len(QUERIES + TITLES + SPANS),
        "sha256": teacher_folder.fingerprint(texts),
    }  # fmt: skip
    files.settings.write_text(json.dumps(settings))
    return tmp_path


def solved(
    matrix: np.ndarray, targets: np.ndarray, strength: float, start: np.ndarray
) -> np.ndarray:
    """Solves a ridge regression by its normal equations, in float64."""
    left = matrix.T @ matrix + strength * np.eye(matrix.shape[1])
    return np.linalg.solve(left, matrix.T @ targets + strength * start)


def test_words_have_the_vectors_of_the_normal_equations(folder):
    hashing = dssm.LetterTrigrams(split="alphanumeric", oov_buckets=64)
    fitted = fit_words(folder, hashing)
    layer = WordRows(len(fitted.words), len(fitted.trigrams), WIDTH)
    fitted.write_to(layer)

    split = {
        text: text.lower().replace(",", "").replace("/", " ").replace("-", " ")
        for text in QUERIES + TITLES + SPANS
    }
    words = sorted({word for text in split.values() for word in text.split()})
    counts = np.array(
        [[text.split().count(w) for w in words] for text in split.values()]
    )
    n, titles = len(TITLES), counts[len(QUERIES) : len(QUERIES + TITLES)]
    frequency = (titles > 0).sum(axis=0)
    weight = np.sqrt(np.log1p((n - frequency + 0.5) / (frequency + 0.5)))
    matrix = counts * weight
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    importance = np.sqrt([3.0] * len(QUERIES) + [1.0] * (n + len(SPANS)))
    importance = importance[:, np.newaxis]
    alone = {*WORDS, "hose"}  # texts of one word, whatever they are
    start = np.array([vectors_of([w])[0] * (w in alone) for w in words])
    x = solved(
        importance * matrix, importance * vectors_of(list(split)), 0.1, start
    )
    expected = x * weight[:, np.newaxis]
    found = layer(hashing.distinct(words)).numpy()
    order = hashing.distinct(words).words.numpy()[:, 0]
    index = hashing.distinct(words).text_index.numpy()
    np.testing.assert_allclose(
        found[order][index], expected, atol=np.abs(expected).max() / 120
    )

    # A word that is not known is the sum of its known trigrams.
    trigrams = [
        [f"#{w}#"[i : i + 3] for i in range(len(w))]
        for w in words
        if w != "上海"
    ]
    ids = sorted({t for of_word in trigrams for t in of_word})
    of_words = np.array([[part.count(t) for t in ids] for part in trigrams])
    kept = [words.index(w) for w in words if w != "上海"]
    u = solved(of_words, x[kept], 1.0, np.zeros([len(ids), WIDTH]))
    new = "bolte"
    expected = weight.max() * sum(
        u[ids.index(t)] for t in ("#bo", "bol", "olt") if t in ids
    )
    found = layer(hashing.distinct([new])).numpy()[0]
    np.testing.assert_allclose(found, expected, atol=0.02)
    assert not layer(hashing.distinct(["qqqq"])).numpy().any()


def test_conjugate_gradients_end_at_the_solution():
    random = np.random.default_rng(3)
    matrix = random.normal(size=(50, 20)).astype("f4")
    targets = random.normal(size=(50, WIDTH)).astype("f4")
    start = random.normal(size=(20, WIDTH)).astype("f4")
    found = ridge(sparse.csr_matrix(matrix), matrix.T @ targets, 0.5, start)
    expected = solved(matrix, targets, 0.5, start)
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_a_word_of_many_texts_has_one_row_and_its_own_key(folder):
    hashing = dssm.LetterTrigrams(split="alphanumeric")
    fitted = fit_words(folder, hashing)
    assert len(np.unique(fitted.words)) == len(fitted.words)
    keys = word_keys(hashing.distinct(["hex", "bolt"])).numpy()
    assert np.isin(keys, fitted.words).all()
    assert fitted.config == {
        "known_words": len(fitted.words),
        "known_trigrams": len(fitted.trigrams),
        "units": WIDTH,
    }
