import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.papers.skip_thought import (
    END,
    MAX_WORDS,
    SkipThought,
    mark,
    sentence_encoder,
    triples,
    word_ids,
)

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


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gru(
    layer: keras.layers.GRU,
    inputs: np.ndarray,
    condition: np.ndarray | None = None,
) -> np.ndarray:
    """Returns all states by (1)-(4) of the paper, or (5)-(8) with C h_i.

    Keras's gates stand in the order z, r, h, and its z is the paper's 1 - z.
    """
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
    odds = np.exp(logits)
    return -np.log(
        (odds / odds.sum(axis=1, keepdims=True))[range(len(ids)), ids]
    )


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
    inputs = batch(sentence=[SENTENCE], previous=[PREVIOUS], next=[NEXT])
    np.testing.assert_allclose(
        skip.encoder(inputs["sentence"])[0], vector, rtol=1e-12
    )
    expected = [
        cross_entropies(skip, "previous", PREVIOUS, vector),
        cross_entropies(skip, "next", NEXT, vector),
    ]
    np.testing.assert_allclose(
        skip(inputs), np.concatenate(expected), rtol=1e-12
    )


@pytest.mark.usefixtures("float64")
def test_gradient_of_the_condition():
    """dL/dC and dL/dh_i of the next sentence against central differences."""
    skip = model()
    decoder = skip.decoders["next"]
    inputs = batch(sentence=[SENTENCE], previous=[[0]], next=[NEXT])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(skip(inputs))
    kernel = decoder.cell.kernel
    vectors = skip.word_vectors.embeddings
    of_kernel, of_vectors = tape.gradient(loss, [kernel.value, vectors.value])
    of_vectors = tf.convert_to_tensor(of_vectors)

    def numeric(weight: keras.Variable, place: tuple[int, int]) -> float:
        start, losses = weight.numpy(), []
        for step in (1e-6, -1e-6):
            moved = start.copy()
            moved[place] += step
            weight.assign(moved)
            vector = encode(skip, SENTENCE)
            losses.append(cross_entropies(skip, "next", NEXT, vector).sum())
        weight.assign(start)
        return (losses[0] - losses[1]) / 2e-6

    for place in np.ndindex(*kernel.shape):
        assert of_kernel[place].numpy() == pytest.approx(
            numeric(kernel, place), rel=1e-5, abs=1e-8
        )
    # Word 5 is in the sentence alone: what moves it went through h_i.
    for column in range(EMBEDDING):
        assert of_vectors[5, column].numpy() == pytest.approx(
            numeric(vectors, (5, column)), rel=1e-5, abs=1e-8
        )
        assert abs(of_vectors[5, column]) > 1e-3


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("bidirectional", [False, True])
def test_padding_changes_nothing(bidirectional):
    skip = model(bidirectional)
    alone = batch(sentence=[SENTENCE], previous=[PREVIOUS], next=[NEXT])
    among = batch(
        sentence=[SENTENCE, [3] * 9],
        previous=[PREVIOUS, [4] * 8],
        next=[NEXT, [0]],
    )
    np.testing.assert_allclose(
        skip.encoder(among["sentence"])[0],
        skip.encoder(alone["sentence"])[0],
        rtol=1e-12,
    )
    one, both = skip(alone).numpy(), skip(among).numpy()
    assert len(one) == 7 and len(both) == 7 + 8  # no word of a missing next
    np.testing.assert_allclose(both[:2], one[:2], rtol=1e-12)
    np.testing.assert_allclose(both[-5:], one[-5:], rtol=1e-12)


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
