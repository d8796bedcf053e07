"""SkipThoughtSystem: sentence vectors that predict neighbouring sentences."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import keras
import numpy as np
import tensorflow as tf

from keras_lstm_dssm.baselines.skip_thought.model import (
    SkipThought,
    sentence_encoder,
)
from keras_lstm_dssm.baselines.skip_thought.triples import (
    check_paragraphs,
    mark,
    triples,
    word_ids,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.dense_system import DenseSystem
from keras_lstm_dssm.files import (
    check_unpacked_size,
    read_json,
    replacing,
    write_json,
)
from keras_lstm_dssm.text import encode_in_batches

_ENCODERS = {"uni": ("uni",), "bi": ("bi",), "combined": ("uni", "bi")}
_ENCODER, _SETTINGS = "encoder.keras", "settings.json"
_ENCODE_BATCH = 512
_ARGUMENTS = (
    "mode", "units", "embedding", "vocabulary", "epochs", "batch_size",
    "learning_rate", "sampled", "seed",
)  # fmt: skip


class SkipThoughtSystem(DenseSystem):
    """Ranks by the cosine of Skip-Thought vectors of query and title.

    An encoder is trained so that two decoders predict the sentences before
    and after a sentence from its vector (`SkipThought`). It is trained
    on paragraphs, not on clicks. Words are runs of letters and digits, case
    folded, the first 30 of a text. Words that are not among the most frequent
    of the paragraphs share one id; the paper's vocabulary expansion, which
    needs published word vectors, is not supported. The defaults suit about
    44,000 sentences and a laptop; the paper has 74 million sentences, 2,400
    units and 20,000 words.

    Args:
        mode: `"uni"`, a GRU that reads left to right; `"bi"`, two GRUs of half
            the width in both directions; `"combined"`, a uni and a bi encoder
            trained one after the other, their vectors concatenated.
        units: Width of a uni or bi vector; `"combined"` has twice as many.
        embedding: Width of the word vectors.
        vocabulary: Largest number of word ids, including those of padding, of
            unknown words and of the end of a sentence.
        epochs: Passes over the paragraphs.
        batch_size: Number of sentences in a training batch.
        learning_rate: Learning rate of Adam.
        sampled: Number of negative words of the sampled softmax; 0 for the
            full softmax, as in the paper.
        seed: Seed of the weights, the order of sentences and the samples.

    Attributes:
        history: Encoder -> mean -log P of a word, by epoch; lower with a
            sampled softmax than with the full one.

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
        self.history: dict[str, list[float]] = {}
        self._encoder_and_graph: (
            tuple[keras.Model, Callable[[tf.Tensor], tf.Tensor]] | None
        ) = None

    def fit(
        self, paragraphs: Sequence[Sequence[str]], progress: bool = False
    ) -> "SkipThoughtSystem":
        """Trains on contiguous sentences.

        It sets Keras's global seed, so that training is reproducible.

        Args:
            paragraphs: The sentences of each paragraph, in their order; see
                `data.api_paragraphs`.
            progress: Whether to show Keras's progress bar.

        Returns:
            This object.

        Raises:
            InputError: The paragraphs are not lists of strings, or none has
                two sentences.
        """
        check_paragraphs(paragraphs)
        marked = [[mark(s) for s in paragraph] for paragraph in paragraphs]
        lookup = word_ids(
            (sentence for paragraph in marked for sentence in paragraph),
            self.vocabulary,
        )
        text = keras.Input((), dtype="string", name="text")
        ids = lookup(text)
        vectors = [
            self._train(name, marked, lookup, progress)(ids)
            for name in _ENCODERS[self.mode]
        ]
        vector = vectors[0]
        if len(vectors) > 1:
            vector = keras.layers.Concatenate()(vectors)
        self._use(keras.Model(text, vector, name=self.mode))
        return self

    @classmethod
    def combine(
        cls, uni: "SkipThoughtSystem", bi: "SkipThoughtSystem"
    ) -> "SkipThoughtSystem":
        """Makes a "combined" system of two that are trained already.

        Args:
            uni: A system trained in mode "uni".
            bi: A system trained in mode "bi", with the same other arguments
                and on the same paragraphs.
        """
        same = {name: getattr(uni, name) for name in _ARGUMENTS}
        system = cls(**{**same, "mode": "combined"})
        system.history = {**uni.history, **bi.history}
        text = keras.Input((), dtype="string", name="text")
        vectors = [part._trained()[0](text) for part in (uni, bi)]
        system._use(keras.Model(text, keras.layers.Concatenate()(vectors)))
        return system

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Encodes texts, which may be empty.

        Args:
            texts: The texts to encode.

        Returns:
            float32 `[texts, units]`, twice as wide if "combined".

        Raises:
            InputError: The system was neither trained nor loaded.
        """
        encoder, graph = self._trained()
        if not len(texts):  # the recurrence needs a time step
            return np.zeros((0, encoder.output_shape[-1]), np.float32)
        lines = [mark(text) for text in texts]
        return encode_in_batches(graph, lines, _ENCODE_BATCH, progress=False)

    @property
    def parameters(self) -> int:
        """Number of parameters of the encoder; decoders are dropped."""
        return self._trained()[0].count_params()

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the encoder with its vocabulary, arguments and history.

        Args:
            folder: The folder, created if it does not exist.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        with replacing(path / _ENCODER) as partial:
            self._trained()[0].save(partial)
        settings = {name: getattr(self, name) for name in _ARGUMENTS}
        write_json(
            path / _SETTINGS, {"arguments": settings, "history": self.history}
        )

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "SkipThoughtSystem":
        """Loads a system from a folder that `save` wrote.

        Raises:
            InputError: The folder has no such system.
        """
        path = Path(folder)
        check_unpacked_size(path / _ENCODER)
        try:
            settings = read_json(path / _SETTINGS)
            system = cls(**settings["arguments"])
            system.history = settings["history"]
            encoder = keras.saving.load_model(path / _ENCODER, compile=False)
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise InputError(
                f"{path}: found {' '.join(str(error).split())[:90]!r}, expected"
                f" {_ENCODER} and {_SETTINGS} as `save` writes them: check the"
                " path, or train again"
            ) from error
        system._use(encoder)
        return system

    def _train(
        self,
        name: str,
        marked: Sequence[Sequence[str]],
        lookup: keras.layers.TextVectorization,
        progress: bool,
    ) -> keras.Model:
        keras.utils.set_random_seed(self.seed)
        words = lookup.vocabulary_size()
        encoder = sentence_encoder(
            words, self.embedding, self.units, bidirectional=name == "bi"
        )
        model = SkipThought(encoder, self.sampled * (self.sampled < words))
        # The paper's optimizer and clipping; XLA cannot compile the mask.
        model.compile(
            keras.optimizers.Adam(self.learning_rate, global_clipnorm=10.0),
            jit_compile=False,
        )
        run = model.fit(
            triples(marked, lookup, self.batch_size, self.seed),
            epochs=self.epochs,
            shuffle=False,
            verbose="auto" if progress else 0,
        )
        self.history[name] = run.history[model.per_word.name]
        return encoder

    def _use(self, encoder: keras.Model) -> None:
        text = tf.TensorSpec([None], tf.string)
        graph = tf.function(encoder).get_concrete_function(text)
        self._encoder_and_graph = encoder, graph

    def _trained(self) -> tuple[keras.Model, Callable[[tf.Tensor], tf.Tensor]]:
        if self._encoder_and_graph is None:
            raise InputError(
                "Skip-Thought is not trained: call fit or load first"
            )
        return self._encoder_and_graph
