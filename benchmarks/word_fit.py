"""Measure the fit of word vectors to a teacher's, and the encoding by them.

The titles are synthetic, the teacher's vectors random: neither time nor memory
depends on what is in them. Each part is a process, as memory is counted by
process:

    python -m keras_lstm_dssm.benchmarks.word_fit write TEACH TITLES
    python -m keras_lstm_dssm.benchmarks.word_fit fit TEACH

The second one prints JSON.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.benchmarks.clocks import seconds, wall_and_cpu
from keras_lstm_dssm.benchmarks.measure import memory_megabytes
from keras_lstm_dssm.benchmarks.scaling import synthetic_lines
from keras_lstm_dssm.distillation.teacher_vectors import TeacherFolder, teach
from keras_lstm_dssm.distillation.word_fit import FittedWords, fit_words
from keras_lstm_dssm.encoders import WordSumEncoder

_MODULE = "keras_lstm_dssm.benchmarks.word_fit"
_WIDTH = 384
_ENCODED = 200_000


def random_vectors(texts: Sequence[str]) -> np.ndarray:
    """Returns random vectors, as a teacher's encoder would return its own."""
    shape = len(texts), _WIDTH
    return np.random.default_rng(0).standard_normal(shape, np.float32)


def write(folder: str, titles: int) -> None:
    """Writes synthetic titles and random vectors as `lstm-dssm-teach` does."""
    lines = "".join(synthetic_lines(titles)).splitlines()
    teach(
        None,
        f"{_MODULE}:{random_vectors.__name__}",
        folder,
        titles=(line.split("\t")[1] for line in lines),
    )


def fit(folder: str) -> dict[str, Any]:
    """Measures fitting words to a folder, and encoding titles by them."""
    hashing = WordSumEncoder().trigrams
    fitted: list[FittedWords] = []
    wall, cpu = wall_and_cpu(lambda: fitted.append(fit_words(folder, hashing)))
    memory = memory_megabytes("VmHWM")
    config: dict[str, Any] = fitted[0].config
    encoder = WordSumEncoder(**config)
    fitted[0].write_to(encoder.word_rows)
    titles = TeacherFolder(folder).read_texts()[:_ENCODED]
    encoder.encode(titles[:4096])
    rate = len(titles) / seconds(lambda: encoder.encode(titles))
    return {
        "titles": TeacherFolder(folder).read_settings()["titles"],
        "words": len(fitted[0].words),
        "fit_seconds": round(wall, 1),
        "fit_processor_seconds": round(cpu, 1),
        "fit_peak_megabytes": round(memory),
        "titles_per_second": round(rate),
    }


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]))
    else:
        print(json.dumps(fit(sys.argv[2])))
