"""Measures a pre-trained sentence-transformers model.

This is the work of the program sentence_model. Its help and its flags are in
`tools/flags/sentence_model.py`, which is imported first and without TensorFlow.
"""

import sys
import time
from typing import Any

import numpy as np

from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.distillation.teacher_vectors import open_outside_encoder
from keras_lstm_dssm.evaluation import DenseSystem, Task
from keras_lstm_dssm.tools.flags.sentence_model import COMMAND_LINE, FLAGS


class TimedEncoder:
    """Encodes each distinct text once, and counts texts and seconds.

    Args:
        encode: Function from n texts to vectors `[n, d]`.
    """

    def __init__(self, encode: Any) -> None:
        self.encode = encode
        self.vectors: dict[str, np.ndarray] = {}
        self.seconds = 0.0

    def __call__(self, texts: list[str]) -> np.ndarray:
        """Return the vectors, `[n, d]`."""
        new = [text for text in texts if text not in self.vectors]
        start = time.perf_counter()
        vectors = self.encode(new) if new else []
        self.seconds += time.perf_counter() - start
        self.vectors.update(zip(new, vectors, strict=True))
        return np.stack([self.vectors[text] for text in texts])

    @property
    def per_second(self) -> float:
        """Number of distinct texts encoded a second."""
        return len(self.vectors) / max(self.seconds, 1e-9)


def main(_: list[str]) -> dict[str, Any]:
    """Return the measures of each mode, from 0 to 1, and the speed."""
    encode = TimedEncoder(open_outside_encoder(FLAGS.model, download=True))
    system = DenseSystem(encode, encode)
    collection = open_collection(FLAGS.data)
    results: dict[str, Any] = {}
    for mode in FLAGS.mode:
        task = Task.from_collection(
            collection, FLAGS.split, mode, FLAGS.min_relevant
        )
        results[mode] = task.evaluate(task.run(system))
        measures = ", ".join(
            f"{name} {100 * value:.1f}" for name, value in results[mode].items()
        )
        print(f"{mode}: {measures}")
    results["texts_per_second"] = encode.per_second
    print(f"{encode.per_second:,.0f} texts a second")
    return results


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
