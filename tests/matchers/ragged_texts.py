"""Texts of different lengths for matchers, and checks that suit them all."""

import functools
import pathlib
from collections.abc import Callable, Sequence

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm import PairScorer
from keras_lstm_dssm.layers import WordSequences
from keras_lstm_dssm.matchers import Matcher
from tests.kit.equal import check_equal

QUERY_LENGTHS = [7, 5, 4, 2, 1]
DOCUMENT_LENGTHS = [6, 5, 3, 1, 1]


def word_sequences(
    lengths: Sequence[int], dimension: int, seed: int = 0
) -> WordSequences:
    """Make random word vectors, 0 past the end of a text."""
    shape = len(lengths), max(lengths), dimension
    vectors = np.random.default_rng(seed).normal(size=shape)
    for text, length in zip(vectors, lengths, strict=True):
        text[length:] = 0
    return WordSequences(
        tf.constant(vectors, keras.config.floatx()),
        tf.constant(lengths, tf.int32),
        tf.zeros(shape[:2], tf.int32),
    )


def pairs(dimension: int) -> tuple[WordSequences, WordSequences]:
    """Make five pairs; the documents are not in the order of their lengths."""
    query = word_sequences(QUERY_LENGTHS, dimension)
    document = word_sequences(DOCUMENT_LENGTHS, dimension, seed=1)
    order = [3, 1, 0, 4, 2]
    return query, WordSequences(*(tf.gather(x, order) for x in document))


def texts_of(
    sequences: WordSequences, part: str = "vectors"
) -> list[np.ndarray]:
    """List the word vectors `[words, dimension]`, or words, of each text."""
    rows = getattr(sequences, part).numpy()
    lengths = sequences.lengths.numpy()
    return [row[:n] for row, n in zip(rows, lengths, strict=True)]


def randomise(layer: keras.layers.Layer, seed: int = 3) -> None:
    """Give all weights random values; vectors, such as biases, positive ones.

    So few relus are 0 everywhere."""
    random = np.random.default_rng(seed)
    for variable in layer.variables:
        values = random.normal(size=variable.shape) * 0.7
        variable.assign(abs(values) if values.ndim == 1 else values)


@functools.lru_cache(maxsize=32)
def graph_of(matcher: Matcher) -> Callable[..., tf.Tensor]:
    """Trace the matcher for any number of pairs and words, once."""
    text = WordSequences(
        tf.TensorSpec([None, None, matcher.word_dimension], matcher.dtype),
        tf.TensorSpec([None], tf.int32),
        tf.TensorSpec([None, None], tf.int32),
    )
    return tf.function(lambda *texts: matcher(*texts)).get_concrete_function(
        text, text
    )


def check_scores(
    matcher: Matcher,
    by_numpy: Callable[[np.ndarray, np.ndarray], float],
    texts: tuple[WordSequences, WordSequences] | None = None,
) -> None:
    """Compare with plain NumPy, pair by pair, and alone with in a batch.

    `by_numpy` takes the word vectors; where texts are given, their words."""
    query, document = texts or pairs(matcher.word_dimension)
    scores = matcher(query, document).numpy()
    part = "words" if texts else "vectors"
    expected = list(
        map(by_numpy, texts_of(query, part), texts_of(document, part))
    )
    assert len(set(np.round(expected, 6))) == len(expected)  # not constant
    np.testing.assert_allclose(scores, expected, rtol=1e-10, atol=1e-12)

    graph = graph_of(matcher)
    np.testing.assert_allclose(graph(*query, *document), scores, rtol=1e-12)
    for number, score in enumerate(scores):
        alone = [alone_of(text, number) for text in (query, document)]
        np.testing.assert_allclose(
            graph(*alone[0], *alone[1]), [score], rtol=1e-10, atol=1e-12
        )
    longer = [with_junk(text, 4) for text in (query, document)]
    np.testing.assert_allclose(
        graph(*longer[0], *longer[1]), scores, rtol=1e-12
    )


def alone_of(texts: WordSequences, number: int) -> WordSequences:
    """Take one text, without any padding."""
    length = texts.lengths[number]
    return WordSequences(
        texts.vectors[number : number + 1, :length],
        texts.lengths[number : number + 1],
        texts.words[number : number + 1, :length],
    )


def with_junk(texts: WordSequences, count: int) -> WordSequences:
    """Add time steps, and put large values past the end of each text."""
    pad = [[0, 0], [0, count]]
    words = tf.pad(texts.words, pad)
    longer = WordSequences(
        tf.pad(texts.vectors, [*pad, [0, 0]]), texts.lengths, words
    )
    vectors = tf.where(longer.mask[:, :, tf.newaxis], longer.vectors, 99.0)
    return longer._replace(vectors=vectors)


def check_gradients(matcher: Matcher) -> None:
    """Compare all weights' and the word vectors' gradients with differences."""
    query, document = pairs(matcher.word_dimension)
    toward = tf.constant([0.3, -0.5, 1.0, 0.7, -1.2], tf.float64)
    words = [tf.Variable(text.vectors) for text in (query, document)]

    def loss(score: Callable[..., tf.Tensor]) -> tf.Tensor:
        texts = (
            query._replace(vectors=tf.convert_to_tensor(words[0])),
            document._replace(vectors=tf.convert_to_tensor(words[1])),
        )
        return tf.reduce_sum(score(*texts) * toward)

    graph = graph_of(matcher)
    variables = [variable.value for variable in matcher.trainable_variables]
    gradients = check_central_differences(
        lambda: loss(matcher),
        [*variables, *words],
        lambda: loss(lambda one, other: graph(*one, *other)),
    )
    for gradient, text in zip(gradients[-2:], (query, document), strict=True):
        assert not gradient[~text.mask.numpy()].any()


def check_central_differences(
    loss: Callable[[], tf.Tensor],
    variables: Sequence[tf.Variable],
    traced: Callable[[], tf.Tensor] | None = None,
) -> list[np.ndarray]:
    """Compare up to 20 entries of each gradient, and return the gradients.

    `traced` is the loss by a graph, where one is traced already."""
    with tf.GradientTape() as tape:
        value = loss()
    gradients = [
        tf.convert_to_tensor(gradient).numpy()
        for gradient in tape.gradient(value, variables)
    ]
    graph = tf.function(traced or loss).get_concrete_function()
    step, random = 1e-6, np.random.default_rng(0)
    for variable, gradient in zip(variables, gradients, strict=True):
        assert gradient.any()
        start = variable.numpy()
        entries = list(np.ndindex(*start.shape))
        for number in random.permutation(len(entries))[:20]:
            ends = []
            for sign in (1, -1):
                moved = np.array(start)
                moved[entries[number]] += sign * step
                variable.assign(moved)
                ends.append(graph().numpy())
            variable.assign(start)
            slope = (ends[0] - ends[1]) / (2 * step)
            np.testing.assert_allclose(
                gradient[entries[number]], slope, rtol=1e-5, atol=1e-7
            )
    return gradients


def check_training(
    score: Callable[[bool], tf.Tensor], sources: Sequence[tf.Tensor]
) -> tf.Tensor:
    """Compare gradients in training with TensorFlow's; return the scores."""
    toward = tf.constant(np.random.default_rng(0).normal(size=99))
    results = []
    for training in True, False:
        with tf.GradientTape() as tape:
            tape.watch(sources)
            scores = score(training)
            loss = tf.reduce_sum(scores * toward[: len(scores)])
        gradients = tape.gradient(loss, sources)
        results.append([scores, *map(tf.convert_to_tensor, gradients)])
    for custom, automatic in zip(*results, strict=True):
        assert custom.numpy().any()
        np.testing.assert_allclose(custom, automatic, rtol=1e-9, atol=1e-12)
    return scores


def check_start(matcher: Matcher) -> None:
    """All scores are 0 at the start, and weights differ between layers."""
    np.testing.assert_array_equal(matcher(*pairs(matcher.word_dimension)), 0)
    weights = [v.numpy() for v in matcher.variables if v.numpy().any()]
    for weight in weights:
        small = np.abs(weight).max() <= 0.1
        assert small or np.abs(weight - np.eye(len(weight))).max() <= 0.01
    assert len({weight.flat[0] for weight in weights}) == len(weights) > 0


def check_saved_scorer(
    scorer: PairScorer, trained: Sequence[keras.Variable],
    pairs: tuple[list[str], list[str]], path: pathlib.Path,
) -> None:  # fmt: skip
    """Compare a scorer with the one that was saved, after its pre-training."""
    random = np.random.default_rng(0)
    for weight in trained:
        weight.assign(random.normal(size=weight.shape))
    scorer.save(path / "scorer.keras")
    loaded = keras.saving.load_model(path / "scorer.keras")
    assert loaded.matcher.get_config() == scorer.matcher.get_config()
    assert not loaded.matcher.needs_pretraining
    assert len(loaded.trainable_variables) == len(scorer.trainable_variables)
    check_equal(scorer, loaded)
    scores = scorer.score_pairs(*pairs)
    assert np.ptp(scores) > 1e-3
    np.testing.assert_array_equal(loaded.score_pairs(*pairs), scores)
