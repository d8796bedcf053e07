"""GensimSystem: training of the systems whose vectors gensim computes."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.baselines.tokenizers import Tokenizer
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.dense_system import DenseSystem


class GensimSystem(DenseSystem):
    """Base of `Word2VecSystem` and `Doc2VecSystem`.

    A subclass implements `fit` and `encode`.

    Args:
        vector_size: Width of the vectors.
        window: Largest distance of two words of a training pair.
        negative: Number of negative samples for each pair.
        epochs: Passes over the texts.
        min_count: Least number of occurrences of a word in training.
        tokenizer: String -> words.
        seed: Seed of all random numbers.

    Attributes:
        parameters: Number of learnt values; 0 before `fit`.
    """

    def __init__(
        self,
        vector_size: int,
        window: int,
        negative: int,
        epochs: int,
        min_count: int,
        tokenizer: Tokenizer,
        seed: int,
    ) -> None:
        super().__init__(self.encode, self.encode)
        self.vector_size = vector_size
        self.window = window
        self.negative = negative
        self.epochs = epochs
        self.min_count = min_count
        self.tokenizer = tokenizer
        self.seed = seed
        self.parameters = 0

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Computes the vectors of texts, float32 `[n, vector_size]`."""
        raise NotImplementedError(f"{type(self).__name__}.encode")

    def _train(
        self,
        model_class: Any,
        sentences: Sequence[Any],
        texts: str,
        **options: Any,
    ) -> Any:
        """Trains a model of gensim, in one thread so that it is reproducible.

        Args:
            model_class: `gensim.models.Word2Vec` or `gensim.models.Doc2Vec`.
            sentences: What the model is trained on.
            texts: What `fit` was given, for the message.
            **options: Further arguments of `model_class`.

        Returns:
            The trained model.

        Raises:
            InputError: No word occurs `min_count` times.
        """
        model = model_class(
            vector_size=self.vector_size,
            window=self.window,
            negative=self.negative,
            epochs=self.epochs,
            min_count=self.min_count,
            seed=self.seed,
            workers=1,
            **options,
        )
        model.build_vocab(sentences)
        if not len(model.wv):
            raise InputError(
                f"no word occurs min_count={self.min_count} times in"
                f" {texts}; lower it"
            )
        model.train(
            sentences, total_examples=len(sentences), epochs=self.epochs
        )
        return model
