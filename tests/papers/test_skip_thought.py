"""Skip-Thought: its equations, its training, and the paragraphs it reads."""

import gzip
from dataclasses import replace
from functools import partialmethod
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf
from scipy.special import log_softmax

from keras_lstm_dssm import InputError
from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.data.api_sources import documented
from keras_lstm_dssm.papers.baseline_rows import Baseline
from keras_lstm_dssm.papers.skip_thought import (
    END,
    MAX_WORDS,
    SkipThought,
    SkipThoughtSystem,
    api_paragraphs,
    mark,
    read_paragraphs,
    sentence_encoder,
    triples,
    word_ids,
)
from keras_lstm_dssm.papers.table_data import open_data
from tests.reference import sigmoid

WORDS, EMBEDDING, UNITS = 7, 3, 4
SENTENCE, PREVIOUS, NEXT = [4, 5, 3, END], [3, END], [6, 1, 4, 4, END]


def batch(**texts: list[list[int]]) -> dict[str, tf.Tensor]:
    return {
        name: tf.keras.utils.pad_sequences(ids, padding="post", dtype="int64")
        for name, ids in texts.items()
    }


def model(bidirectional: bool = False) -> SkipThought:
    """Makes a small model, and draws all of its weights at random."""
    encoder = sentence_encoder(WORDS, EMBEDDING, UNITS, bidirectional)
    result = SkipThought(encoder)
    random = np.random.default_rng(1)
    for weight in result.weights:
        weight.assign(random.normal(size=weight.shape))
    return result


def gru(layer: Any, inputs: Any, condition: Any = None) -> np.ndarray:
    """Returns all states by (1)-(4) of the paper, or (5)-(8) with C h_i.

    Keras's gates stand in the order z, r, h; its z is the paper's 1 - z."""
    kernel, recurrent, bias = map(np.asarray, layer.cell.get_weights())
    w_z, w_r, w = np.split(kernel[: inputs.shape[1]], 3, axis=1)
    c_z, c_r, c = np.split(kernel[inputs.shape[1] :], 3, axis=1)
    u_z, u_r, u = np.split(recurrent, 3, axis=1)
    b_z, b_r, b = np.split(bias, 3)
    h_i = np.zeros(len(c)) if condition is None else condition
    h, states = np.zeros(len(u)), []
    for x in inputs:
        reset = sigmoid(x @ w_r + h @ u_r + h_i @ c_r + b_r)
        keep = sigmoid(x @ w_z + h @ u_z + h_i @ c_z + b_z)
        proposed = np.tanh(x @ w + (reset * h) @ u + h_i @ c + b)
        h = keep * h + (1 - keep) * proposed
        states.append(h)
    return np.array(states)


def cross_entropies(
    skip: SkipThought, name: str, ids: list[int], vector: np.ndarray
) -> np.ndarray:
    table = skip.word_vectors.get_weights()[0]
    states = gru(skip.decoders[name], table[[END, *ids[:-1]]], vector)
    logits = states @ skip.output_words.numpy().T + skip.output_bias.numpy()
    return -log_softmax(logits, axis=1)[range(len(ids)), ids]


def encode(skip: SkipThought, ids: list[int]) -> np.ndarray:
    """Returns the last state, or those of both directions."""
    words = skip.word_vectors.get_weights()[0][ids]
    layer = skip.encoder.layers[-1]
    if isinstance(layer, keras.layers.Bidirectional):
        forward = gru(layer.forward_layer, words)[-1]
        return np.append(forward, gru(layer.backward_layer, words[::-1])[-1])
    return gru(layer, words)[-1]


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("bidirectional", [False, True])
def test_forward_is_the_papers(bidirectional):
    skip = model(bidirectional)
    vector = encode(skip, SENTENCE)
    alone = batch(sentence=[SENTENCE], previous=[PREVIOUS], next=[NEXT])
    expected = [
        cross_entropies(skip, "previous", PREVIOUS, vector),
        cross_entropies(skip, "next", NEXT, vector),
    ]
    # Padding changes nothing.
    among = batch(
        sentence=[SENTENCE, [3] * 9],
        previous=[PREVIOUS, [4] * 8],
        next=[NEXT, [0]],
    )
    for inputs in (alone, among):
        found = skip.encoder(inputs["sentence"])[0]
        np.testing.assert_allclose(found, vector, rtol=1e-12)
    one, both = skip(alone), skip(among)
    assert len(one) == 7 and len(both) == 7 + 8  # no word of a missing next
    for found in (one, np.concatenate([both[:2], both[-5:]])):
        np.testing.assert_allclose(found, np.concatenate(expected), rtol=1e-12)


def test_words_are_looked_up_by_frequency():
    sentences = [mark("b a b"), mark("c, a B!"), ""]
    lookup = word_ids(sentences, 5)
    assert lookup.get_vocabulary() == ["", "[UNK]", "</s>", "b", "a"]
    assert lookup([mark("A b. unheard")]).numpy().tolist() == [[4, 3, 1, END]]
    assert mark("x " * 99).split() == ["x"] * MAX_WORDS + ["</s>"]
    assert mark("") == "</s>"


def test_every_sentence_meets_its_neighbours():
    paragraphs = [[mark("a"), mark("b b"), mark("c c c")], [mark("d")]]
    lookup = word_ids((s for p in paragraphs for s in p), 10)
    found = {}
    batches = triples(paragraphs, lookup, 2, seed=0)
    assert len(batches) == 2
    for ids in batches:
        for row in zip(*(ids[n].numpy() for n in ids), strict=True):
            sentence, previous, following = (
                " ".join(lookup.get_vocabulary()[i] for i in text if i)
                for text in row
            )
            found[sentence] = previous, following
    assert found == {
        "a </s>": ("", "b b </s>"),
        "b b </s>": ("a </s>", "c c c </s>"),
        "c c c </s>": ("b b </s>", ""),
    }


ANIMALS = ["cat", "dog", "cow", "hen"]
TOOLS = ["saw", "nail", "bolt", "rod"]
# Words of one kind never share a sentence: only what follows says it.
PARAGRAPHS = [
    [f"this is a {word}", after]
    for words, after in (
        (ANIMALS, "it eats and sleeps at home"),
        (TOOLS, "steel gets rusty in rain"),
    )
    for word in words
] * 8
TEXTS = ["a cat", "", "unheard of", "This is a BOLT, it is a bolt"]


def train(mode: str = "uni", **options: Any) -> SkipThoughtSystem:
    arguments = {"units": 8, "embedding": 4, "epochs": 1, "batch_size": 16}
    return SkipThoughtSystem(mode, **{**arguments, **options}).fit(PARAGRAPHS)


@pytest.fixture(scope="module", params=[0, 10])
def trained(request) -> SkipThoughtSystem:
    """Trains by the softmax over all words, or over sampled ones."""
    options = {"units": 16, "embedding": 8, "epochs": 14}
    return train(**options, learning_rate=0.05, sampled=request.param)


@pytest.fixture
def eager(monkeypatch) -> None:
    """Trains eagerly: of a few batches, tracing takes most of the time."""
    compile_eagerly = partialmethod(keras.Model.compile, run_eagerly=True)
    monkeypatch.setattr(SkipThought, "compile", compile_eagerly)


def test_like_contexts_pull_sentences_together(trained):
    documents = {name: f"this is a {name}" for name in ANIMALS + TOOLS}
    run = trained.retrieve(documents, documents, 8)
    for kind in (ANIMALS, TOOLS):
        for name in kind:
            scores = list(run[name].values())
            assert set(list(run[name])[:4]) == set(kind)
            assert scores[3] > scores[4] + 0.3
    ranked = trained.rerank({"q": "a dog"}, {"q": ["saw", "hen"]}, documents)
    assert list(ranked["q"]) == ["hen", "saw"]


@pytest.mark.usefixtures("eager")
def test_combined_is_made_of_uni_and_bi():
    combined, uni, bi = train("combined"), train("uni"), train("bi", seed=1)
    vectors = combined.encode(TEXTS)
    np.testing.assert_array_equal(vectors[:, :8], uni.encode(TEXTS))
    assert combined.history["uni"] == uni.history["uni"]
    # Another seed gives other weights.
    assert np.abs(vectors[:, 8:] - bi.encode(TEXTS)).min() > 0
    assert combined.encode([]).shape == (0, 16)
    # Words; three gates, each of input, state and bias.
    words = len({w for p in PARAGRAPHS for s in p for w in s.split()}) + 3
    assert uni.parameters == words * 4 + 3 * 8 * (4 + 8 + 1)
    assert bi.parameters == words * 4 + 2 * 3 * 4 * (4 + 4 + 1)
    assert combined.parameters == uni.parameters + bi.parameters


@pytest.mark.usefixtures("eager")
def test_it_is_trained_once_for_each_setting(tmp_path, monkeypatch):
    def kept(mode: str, seed: int = 0) -> SkipThoughtSystem:
        system = SkipThoughtSystem(
            mode, units=4, embedding=3, epochs=1, seed=seed
        )
        return system.fit(PARAGRAPHS, cache=tmp_path)

    uni = kept("uni")
    (folder,) = tmp_path.iterdir()
    bi = kept("bi")
    monkeypatch.setattr(SkipThoughtSystem, "_train", None)  # not called again
    loaded, combined = kept("uni"), kept("combined")
    assert loaded.seconds == uni.seconds > 0
    assert loaded.history == uni.history
    assert loaded.parameters == uni.parameters
    np.testing.assert_array_equal(loaded.encode(TEXTS), uni.encode(TEXTS))
    # The combined one is made of the other two.
    assert combined.seconds == uni.seconds + bi.seconds
    assert combined.history == {**uni.history, **bi.history}
    both = np.concatenate([uni.encode(TEXTS), bi.encode(TEXTS)], axis=1)
    np.testing.assert_array_equal(combined.encode(TEXTS), both)
    with pytest.raises(TypeError):  # another seed is another training
        kept("uni", seed=1)
    (folder / "training.json").unlink()  # as if it had been interrupted
    with pytest.raises(TypeError):
        kept("uni")


@pytest.mark.usefixtures("eager")
def test_a_table_reads_its_paragraphs_from_a_file(
    settings, tmp_path, monkeypatch
):
    cache, file = tmp_path / "cache", tmp_path / "paragraphs.txt"
    monkeypatch.setenv("KERAS_LSTM_DSSM_CACHE", str(cache))
    file.write_text("\n\n".join("\n".join(lines) for lines in PARAGRAPHS))
    options: Any = {"units": 4, "embedding": 3, "epochs": 1, "mode": "uni"}
    data = open_data(replace(settings, paragraphs=str(file)), tmp_path)
    trained = Baseline().train("skip_thought", options, 4, data)
    # The training, and its duration, are found again in the cache.
    expected = SkipThoughtSystem(seed=4, **options)
    expected.fit(PARAGRAPHS, cache=cache)
    assert trained.train_seconds == expected.seconds
    assert trained.dev == data.measure_on_dev(expected)


@pytest.mark.parametrize(("use", "message"), [
    (lambda: SkipThoughtSystem("tri"),
     "'tri': choose one of uni, bi, combined"),
    (lambda: SkipThoughtSystem(units=7), "7 units, expected an even numbe"),
    (lambda: SkipThoughtSystem().fit(["One. Two."]),
     "paragraph 1: found 'One. Two.'"),
    (lambda: SkipThoughtSystem().fit([["a", "b"], ["a", 3]]),
     "paragraph 2: found .*list of sentences"),
    (lambda: SkipThoughtSystem().fit([["a"], ["b"]]),
     "found 2 paragraphs of one sentence or none"),
    (lambda: SkipThoughtSystem().fit([]), "found 0 paragraphs"),
])  # fmt: skip
def test_wrong_arguments_and_paragraphs(use, message):
    with pytest.raises(InputError, match=message):
        use()


SOURCE = '''"""Tools for sorted lists. They are slow to build."""

def held():
    """Sort a list in place. It is stable. Equal items keep their order."""

def _private():
    """Search a sorted list.

    It takes logarithmic time.

    Args:
      x: The value that is searched. It may be missing.

    Returns the position found.
    """
    def inner():
        """Tools for sorted lists. They are slow to build."""

class Box:
    """Holds the one value."""

    def copy(self):
        """Make another box. It holds the same value. It is empty at first."""

    def middle(self):
        """Look at both ends. Sort a list in place. Then swap the halves."""
'''


def test_api_paragraphs(tmp_path, monkeypatch):
    """Lets `SOURCE` be all there is."""
    path, seen = tmp_path / "source.py", []
    path.write_text(SOURCE)
    queries = {"q1": "Sort a list in place", "q2": "Search a sorted list"}
    qrels = {
        "train": {"q2": {"d2": 1}},
        **dict.fromkeys(("dev", "test"), {"q1": {"d1": 1}}),
    }
    collection = write_collection(
        tmp_path / "api", {"d1": "list sort", "d2": "bisect"}, queries, qrels,
        [],
    )  # fmt: skip

    def source_files(_: object) -> list[tuple[str, str]]:
        seen.append("read")
        return [(str(path), path.name), (str(tmp_path / "gone.py"), "gone.py")]

    for function in (api_paragraphs, documented):
        patched = function.__globals__
        monkeypatch.setitem(patched, "build_api_search", lambda: collection)
        monkeypatch.setitem(patched, "source_files", source_files)
        monkeypatch.setitem(patched, "read_modules", lambda _: {})
    expected = [
        ["Tools for sorted lists", "They are slow to build"],
        # The summary is a query of dev: neither it, nor a step across it.
        ["It is stable", "Equal items keep their order"],
        ["Search a sorted list", "It takes logarithmic time"],
        ["Make another box", "It holds the same value", "It is empty at first"],
    ]
    for _ in range(2):
        assert sorted(api_paragraphs()) == sorted(expected)
    assert seen == ["read"]  # the second time it was kept


@pytest.mark.parametrize("name", ["text.txt", "text.txt.gz"])
def test_read_paragraphs(name, tmp_path):
    data = "\r\nOne. \r\nTwo – and.\r\n\n \nAlone.\n".encode()
    if name.endswith(".gz"):
        data = gzip.compress(data)
    (tmp_path / name).write_bytes(data)
    found = read_paragraphs(tmp_path / name)
    assert found == [["One.", "Two – and."], ["Alone."]]


@pytest.mark.parametrize(("data", "message"), [
    (b"\n \n", "found an empty file"),
    (b"One.\n\nTwo.\n", "found no paragraph of two lines, expected"),
    (b"One.\n\xff.\n", "expected UTF-8"),
])  # fmt: skip
def test_wrong_files(data, message, tmp_path):
    path = tmp_path / "text.txt"
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        read_paragraphs(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)
