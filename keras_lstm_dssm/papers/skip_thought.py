"""Skip-Thought: sentence vectors that predict neighbouring sentences."""

import hashlib
import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.data.api_search import build_api_search
from keras_lstm_dssm.data.api_sources import documented, sentence_runs
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.bm25 import alphanumeric, not_fitted
from keras_lstm_dssm.evaluation.systems import DenseSystem
from keras_lstm_dssm.files import replacing, write_json
from keras_lstm_dssm.plain_files import (
    check_unpacked_size,
    read_json,
    text_lines,
    write_lines,
)
from keras_lstm_dssm.text.many_texts import encode_in_batches
from keras_lstm_dssm.version import __version__

MAX_WORDS = 30
END_WORD = "</s>"
END = 2
"""The id of `END_WORD`. Id 0 is padding, and id 1 is any unknown word."""

NEIGHBOURS = ("previous", "next")


def check_paragraphs(paragraphs: Sequence[Sequence[str]]) -> None:
    """Checks that there are sentences with neighbours."""
    for number, paragraph in enumerate(paragraphs, 1):
        if isinstance(paragraph, str) or not all(
            isinstance(sentence, str) for sentence in paragraph
        ):
            raise InputError(
                f"paragraph {number}: found {paragraph!r:.40}, expected a list"
                " of sentences"
            )
    if max(map(len, paragraphs), default=0) < 2:
        raise InputError(
            f"found {len(paragraphs)} paragraphs of one sentence or none,"
            " expected sentences with neighbours: give contiguous text"
        )


def mark(text: str) -> str:
    """Joins the first `MAX_WORDS` words of a text and `END_WORD` by spaces."""
    return " ".join([*alphanumeric(text)[:MAX_WORDS], END_WORD])


def word_ids(
    sentences: Iterable[str], size: int
) -> keras.layers.TextVectorization:
    """Makes the layer that maps the most frequent words to ids below `size`."""
    counts = Counter(chain.from_iterable(map(str.split, sentences)))
    del counts[END_WORD]
    common = sorted(counts, key=lambda word: (-counts[word], word))
    return keras.layers.TextVectorization(
        standardize=None, vocabulary=[END_WORD, *common[: size - END - 1]]
    )


def triples(
    paragraphs: Sequence[Sequence[str]],
    lookup: keras.layers.TextVectorization,
    batch_size: int,
    seed: int,
) -> tf.data.Dataset:
    """Batches word ids of sentences and neighbours. Neighbours may be empty."""
    contiguous = [paragraph for paragraph in paragraphs if len(paragraph) > 1]
    texts = {
        "sentence": chain.from_iterable(contiguous),
        "previous": chain.from_iterable(["", *p[:-1]] for p in contiguous),
        "next": chain.from_iterable([*p[1:], ""] for p in contiguous),
    }
    ids = {name: lookup(list(t)).numpy() for name, t in texts.items()}
    lengths = {name: np.count_nonzero(rows, 1) for name, rows in ids.items()}
    longest = np.max(list(lengths.values()), axis=0)
    random = np.random.default_rng(seed)

    def epoch() -> Iterator[dict[str, np.ndarray]]:
        order = random.permutation(len(longest))
        # Sentences of similar lengths share a batch, so that padding is short.
        order = order[np.argsort(longest[order], kind="stable")]
        starts = np.arange(0, len(order), batch_size)
        for start in random.permutation(starts):
            rows = order[start : start + batch_size]
            # A decoder needs a time step, even if all neighbours are empty.
            yield {
                name: word_ids[rows, : max(1, lengths[name][rows].max())]
                for name, word_ids in ids.items()
            }

    spec = tf.TensorSpec([None, None], tf.int64)
    batches = -(-len(longest) // batch_size)
    return (
        tf.data.Dataset.from_generator(
            epoch, output_signature=dict.fromkeys(ids, spec)
        )
        .apply(tf.data.experimental.assert_cardinality(batches))
        .prefetch(2)
    )


def sentence_encoder(
    vocabulary: int, embedding: int, units: int, bidirectional: bool
) -> keras.Model:
    """Makes an encoder: word ids `(batch, words)` -> last state of a GRU."""
    ids = keras.Input((None,), dtype="int64")
    words = keras.layers.Embedding(
        vocabulary,
        embedding,
        # The paper draws uniformly from -0.1 to 0.1. The states of small
        # encoders would then be near 0.
        keras.initializers.RandomNormal(stddev=1.0),
        mask_zero=True,
        name="words",
    )(ids)
    if bidirectional:
        layer = keras.layers.Bidirectional(_gru(units // 2))
    else:
        layer = _gru(units)
    return keras.Model(ids, layer(words))


class SkipThought(keras.Model):
    """Trains an encoder with two decoders: Kiros et al. 2015, section 2.1.

    Each decoder is a GRU that predicts each word of a neighbouring sentence
    from the word before and the encoded sentence. The decoders use the
    encoder's word vectors, and share a softmax over all words. Inputs are word
    ids `(batch, words)` of `sentence`, `previous` and `next`, padded with 0.
    """

    def __init__(
        self,
        encoder: keras.Model,
        sampled: int = 0,  # random words in the training softmax; 0: all words
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.sampled = sampled
        self.word_vectors = encoder.get_layer("words")
        units = encoder.output_shape[-1]
        self.vocabulary = self.word_vectors.input_dim
        self.decoders = {
            name: _gru(units, return_sequences=True) for name in NEIGHBOURS
        }
        for decoder in self.decoders.values():
            decoder.build((None, None, self.word_vectors.output_dim + units))
        self.output_words = self.add_weight(
            (self.vocabulary, units), "zeros", name="output_words"
        )
        self.output_bias = self.add_weight(
            (self.vocabulary,), "zeros", name="output_bias"
        )
        self.per_word = keras.metrics.Mean("nats_per_word")

    def call(
        self, inputs: Mapping[str, tf.Tensor], training: bool = False
    ) -> tf.Tensor:
        """Returns -log P of each word of both neighbours, `(words,)`."""
        vector = self.encoder(inputs["sentence"])
        return tf.concat(
            [
                self._decode(decoder, vector, inputs[name], training)
                for name, decoder in self.decoders.items()
            ],
            axis=0,
        )

    def compute_loss(
        self,
        x: Any = None,
        y: Any = None,
        y_pred: Any = None,
        sample_weight: Any = None,
        training: bool = True,
    ) -> tf.Tensor:
        """Returns -log P of both neighbours, averaged over the sentences."""
        self.per_word.update_state(y_pred)
        batch = tf.shape(x["sentence"])[0]
        return tf.reduce_sum(y_pred) / tf.cast(batch, y_pred.dtype)

    def _decode(
        self,
        decoder: keras.layers.GRU,
        vector: tf.Tensor,
        words: tf.Tensor,
        training: bool,
    ) -> tf.Tensor:
        # The first word is predicted from `END`.
        last = tf.pad(words[:, :-1], [[0, 0], [1, 0]], constant_values=END)
        steps = tf.shape(words)[1]
        condition = tf.repeat(vector[:, None], steps, axis=1)
        inputs = tf.concat([self.word_vectors(last), condition], axis=-1)
        is_word = words != 0
        states = tf.boolean_mask(decoder(inputs), is_word)
        words = tf.boolean_mask(words, is_word)
        table = tf.convert_to_tensor(self.output_words)
        bias = tf.convert_to_tensor(self.output_bias)
        if training and self.sampled:
            # Small ids, which belong to frequent words, are drawn most often.
            return tf.nn.sampled_softmax_loss(
                table, bias, words[:, None], states, self.sampled,
                self.vocabulary,
            )  # fmt: skip
        logits = tf.matmul(states, table, transpose_b=True) + bias
        return tf.nn.sparse_softmax_cross_entropy_with_logits(words, logits)


def _gru(units: int, return_sequences: bool = False) -> keras.layers.GRU:
    # As in the paper, the reset gate acts before the matrix product.
    return keras.layers.GRU(
        units, reset_after=False, return_sequences=return_sequences
    )


_ENCODERS = {"uni": ("uni",), "bi": ("bi",), "combined": ("uni", "bi")}
_ENCODER, _TRAINING = "encoder.keras", "training.json"
_ENCODE_BATCH = 512


class SkipThoughtSystem(DenseSystem):
    """Ranks by the cosine of Skip-Thought vectors of query and title.

    An encoder is trained on paragraphs: from the vector of a sentence, two
    decoders predict the sentences before and after. The encoder reads the first
    30 words of a text. A word is a case-folded sequence of letters and digits.
    Words that are rare in the paragraphs share one id. The defaults suit about
    44,000 sentences. Kiros et al. 2015 have 74 million sentences, 2,400 units
    and 20,000 words.

    Args:
        mode: `"uni"`, a GRU that reads left to right; `"bi"`, a GRU of half the
            width in each direction; `"combined"`, a uni and a bi encoder
            trained separately, with concatenated vectors.
        units: Width of a uni or bi vector. A combined vector is twice as wide.
        embedding: Width of the word vectors.
        vocabulary: Largest number of word ids, including padding, unknown words
            and the end of a sentence.
        epochs: Passes over the paragraphs.
        batch_size: Number of sentences in a training batch.
        learning_rate: Learning rate of Adam.
        sampled: Number of negative words of the sampled softmax; 0 for the
            full softmax, as in the paper.
        seed: Seed of the weights, the order of sentences and the samples.

    Attributes:
        encoders: Models that encode strings, by name: `"uni"`, `"bi"` or both.
        history: For each encoder, the mean -log P of a word in each epoch. A
            sampled softmax gives lower values than a full softmax.
        seconds: Duration of the training; for cached encoders, of the training
            that made the cached files.

    Reference: Kiros et al. 2015, "Skip-Thought Vectors".

    Example:
    >>> system = SkipThoughtSystem("uni").fit(read_paragraphs("novel.txt"))
    >>> system.encode(["a red hat", ""]).shape
    (2, 128)
    """

    def __init__(
        self,
        mode: str = "combined",
        units: int = 128,
        embedding: int = 64,
        vocabulary: int = 8000,
        epochs: int = 6,
        batch_size: int = 64,
        learning_rate: float = 3e-3,
        sampled: int = 500,
        seed: int = 0,
    ) -> None:
        super().__init__(self.encode, self.encode)
        if mode not in _ENCODERS:
            raise InputError(
                f"unknown mode {mode!r}: choose one of {', '.join(_ENCODERS)}"
            )
        if units < 2 or units % 2:
            raise InputError(
                f"found {units} units, expected an even number: one half for"
                " each direction"
            )
        self.mode = mode
        self.units = units
        self.embedding = embedding
        self.vocabulary = vocabulary
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.sampled = sampled
        self.seed = seed
        self.encoders: dict[str, keras.Model] = {}
        self.history: dict[str, list[float]] = {}
        self.seconds = 0.0
        self._graphs: list[Callable[[tf.Tensor], tf.Tensor]] = []

    def fit(
        self,
        paragraphs: Sequence[Sequence[str]],
        progress: bool = False,
        cache: str | os.PathLike[str] | None = None,
    ) -> "SkipThoughtSystem":
        """Trains on contiguous sentences; sets Keras's global seed.

        Args:
            paragraphs: The sentences of each paragraph in order; see
                `api_paragraphs`.
            progress: Whether to show Keras's progress bar.
            cache: Folder in which trained encoders are stored, and from which
                they are loaded. Default `None`: nothing is stored.

        Returns:
            This object.

        Raises:
            InputError: The paragraphs are not lists of strings, or no paragraph
                has two sentences.
        """
        check_paragraphs(paragraphs)
        for name in _ENCODERS[self.mode]:
            if cache is None:
                encoder, training = self._train(name, paragraphs, progress)
            else:
                arguments = (
                    self.units, self.embedding, self.vocabulary, self.epochs,
                    self.batch_size, self.learning_rate, self.sampled,
                    self.seed,
                )  # fmt: skip
                key = json.dumps([__version__, name, arguments, paragraphs])
                digest = hashlib.sha256(key.encode()).hexdigest()[:16]
                folder = Path(cache, f"skip_thought-{digest}")
                # `_TRAINING` is written last, and marks a complete folder.
                if not (folder / _TRAINING).exists():
                    encoder, training = self._train(name, paragraphs, progress)
                    folder.mkdir(parents=True, exist_ok=True)
                    with replacing(folder / _ENCODER) as partial:
                        encoder.save(partial)
                    write_json(folder / _TRAINING, training)
                check_unpacked_size(folder / _ENCODER)
                encoder = keras.saving.load_model(
                    folder / _ENCODER, compile=False
                )
                training = read_json(folder / _TRAINING)
            self.encoders[name] = encoder
            self.history[name] = training["history"]
            self.seconds += training["seconds"]
        text = tf.TensorSpec([None], tf.string)
        self._graphs = [
            tf.function(encoder, autograph=False).get_concrete_function(text)
            for encoder in self.encoders.values()
        ]
        return self

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Encodes texts; a text may be empty. Needs `fit`.

        Returns float32 `[texts, units]`; `[texts, 2 * units]` if "combined".
        """
        if not self.encoders:
            raise not_fitted("SkipThoughtSystem")
        if not len(texts):  # without texts, there is no time step for the GRU
            return np.zeros((0, self.units * len(self.encoders)), np.float32)
        lines = [mark(text) for text in texts]
        return np.hstack(
            [
                encode_in_batches(graph, lines, _ENCODE_BATCH, progress=False)
                for graph in self._graphs
            ]
        )

    @property
    def parameters(self) -> int:
        """Number of parameters of the encoders, without the decoders."""
        return sum(model.count_params() for model in self.encoders.values())

    def _train(
        self, name: str, paragraphs: Sequence[Sequence[str]], progress: bool
    ) -> tuple[keras.Model, dict[str, Any]]:
        """Returns an encoder of strings, and its `history` and `seconds`."""
        start = time.perf_counter()
        marked = [[mark(s) for s in paragraph] for paragraph in paragraphs]
        lookup = word_ids(chain.from_iterable(marked), self.vocabulary)
        keras.utils.set_random_seed(self.seed)
        words = lookup.vocabulary_size()
        encoder = sentence_encoder(
            words, self.embedding, self.units, bidirectional=name == "bi"
        )
        model = SkipThought(encoder, self.sampled * (self.sampled < words))
        model.compile(
            # The paper also uses Adam, and clips gradients with a limit of 10.
            keras.optimizers.Adam(self.learning_rate, global_clipnorm=10.0),
            jit_compile=False,  # XLA cannot compile `tf.boolean_mask`
        )
        run = model.fit(
            triples(marked, lookup, self.batch_size, self.seed),
            epochs=self.epochs,
            shuffle=False,
            verbose="auto" if progress else 0,
        )
        text = keras.Input((), dtype="string", name="text")
        return keras.Model(text, encoder(lookup(text)), name=name), {
            "history": run.history[model.per_word.name],
            "seconds": time.perf_counter() - start,
        }


PROSE_FORMAT = 1  # increment when a change of this code changes the paragraphs


def api_paragraphs() -> list[list[str]]:
    """Reads the prose of `api`, except sentences that are held-out queries."""
    collection = build_api_search()
    path = os.path.join(collection.folder, f"paragraphs-{PROSE_FORMAT}.txt.gz")
    if not os.path.isfile(path):
        held_out = {
            collection.queries[query].casefold()
            for split in ("dev", "test")
            for query in collection.qrels(split)
        }
        docs = (definition.doc for definition in documented())
        with replacing(path) as partial:
            paragraphs = _new_paragraphs(docs, held_out)
            write_lines(partial, ("\n".join(p) + "\n\n" for p in paragraphs))
    return read_paragraphs(path)


def read_paragraphs(path: str | os.PathLike[str]) -> list[list[str]]:
    """Reads a sentence from each line. Blank lines separate paragraphs."""
    paragraphs: list[list[str]] = [[]]
    for line in map(str.strip, text_lines(path)):
        if line:
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    if max(map(len, paragraphs)) < 2:
        raise InputError(
            f"{os.fspath(path)}: found no paragraph of two lines, expected"
            " each sentence on its own line, and blank lines only between"
            " paragraphs"
        )
    return [paragraph for paragraph in paragraphs if paragraph]


def _new_paragraphs(
    docs: Iterable[str], held_out: set[str]
) -> Iterator[list[str]]:
    """Yields runs of 2 or more allowed sentences that are not all known."""
    known: set[str] = set()
    for doc in dict.fromkeys(docs):
        for run in sentence_runs(doc):
            for is_allowed, group in itertools.groupby(
                run, lambda sentence: sentence.casefold() not in held_out
            ):
                paragraph = list(group)
                if (
                    is_allowed
                    and len(paragraph) > 1
                    and not known.issuperset(paragraph)
                ):
                    known.update(paragraph)
                    yield paragraph
