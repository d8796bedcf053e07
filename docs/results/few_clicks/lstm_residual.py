"""What an LSTM-RNN adds to sums of words that were fitted to a teacher.

    y = unit(sum of the words' rows r(w)) + W LSTM([r(w), l(w)])

W starts at zero, so that the first y is the sum of `word_sum`, whose rows stay
as they are. The LSTM reads these rows and trigrams, and learns by the cosine of
y and the teacher's vector of a text. --further has texts that the rows were not
fitted to, such as further spans. "refitted" are rows that were fitted to all of
them: what the same texts give without an LSTM. The best epoch is that with the
highest mean cosine of the queries of dev; titles have the teacher's vectors.

    lstm-dssm-teach --data=DATA --words --encoder=NAME --spans=2 --output=TEACH
    lstm-dssm-teach --data=DATA --words --encoder=TEACH --spans=6 --output=MORE
    python docs/results/few_clicks/lstm_residual.py --data=DATA \
        --teacher=TEACH --further=MORE --output=residual.json
"""

import argparse
import json
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data.sources import open_collection
from keras_lstm_dssm.data.teacher_folder import (
    TeacherFolder,
    TeacherVectors,
)
from keras_lstm_dssm.distillation.outside_encoder import open_outside_encoder
from keras_lstm_dssm.evaluation import DenseSystem, Task
from keras_lstm_dssm.evaluation.measures import mean
from keras_lstm_dssm.layers.letter_trigrams import gather_sum
from keras_lstm_dssm.layers.recurrent import pack
from keras_lstm_dssm.ops import unit
from keras_lstm_dssm.training.word_fit import fit_words

_BATCH = 256


class Residual(dssm.LSTMEncoder):
    """The sum of fitted rows, and W times the last state of an LSTM."""

    def __init__(self, folder: str, cells: int) -> None:
        """Fits the rows to the folder of a teacher."""
        super().__init__(
            cells, "diagonal", True, oov_buckets=8192, split="alphanumeric"
        )
        fitted = fit_words(folder, self.trigrams)
        sizes = fitted.config.values()
        self.word_rows = self._word_rows(*sizes)
        fitted.write_to(self.word_rows)
        self.dimension = units = fitted.config["units"]
        self.read = keras.layers.Dense(4 * cells, use_bias=False)
        self.added = keras.layers.Dense(
            units, use_bias=False, kernel_initializer="zeros"
        )
        self.read.build((None, units))
        self.added.build((None, cells))

    def compose(self, words: Any, training: bool = False) -> tf.Tensor:
        """Add the LSTM's output, times W, to the sum of each text's words."""
        rows = self.word_rows(words)
        total = gather_sum(rows, *words.flat(), training=False)
        steps = pack(words.words, words.lengths)
        read = self.read(rows) + self.embedding(words, training=training)
        values = gather_sum(read, steps.values, training=training)
        state = self.lstm(steps._replace(values=values), training=training)
        return unit(total) + self.added(state)


def training_step(model: Residual, optimizer: Any) -> Any:
    """Returns a function that raises the cosines of texts and targets."""
    weights = model.trainable_variables

    @tf.function(input_signature=[
        tf.TensorSpec([None], tf.string),
        tf.TensorSpec([None, model.dimension], tf.float32),
    ])  # fmt: skip
    def step(strings: tf.Tensor, target: tf.Tensor) -> None:
        words = model.trigrams.distinct(strings)
        with tf.GradientTape() as tape:
            y = unit(model.compose(words, training=True))
            y = tf.gather(y, words.text_index)
            loss = 1 - tf.reduce_mean(tf.reduce_sum(y * target, axis=1))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, weights), weights, strict=True)
        )

    return step


def main() -> None:
    """Trains and measures; writes one JSON object."""
    parser = argparse.ArgumentParser()
    for name in ("data", "teacher", "further", "output"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--min_relevant", type=int, default=1)
    parser.add_argument("--cells", type=int, default=128)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rate", type=float, default=0.001)
    options = parser.parse_args()

    data = open_collection(options.data)
    titles, further = map(
        TeacherVectors.open, (options.teacher, options.further)
    )
    teacher = open_outside_encoder(options.further)
    texts = np.array(TeacherFolder(options.further).read_texts(), object)
    targets = further.vectors
    tasks = {
        (split, mode): Task.from_collection(
            data, split, mode, options.min_relevant, 100
        )
        for split in ("dev", "test")
        for mode in ("retrieve", "rerank")
    }
    queries = {
        split: list(tasks[split, "retrieve"].queries.values())
        for split in ("dev", "test")
    }
    by_teacher = {
        split: further.completed(of_split, teacher)
        for split, of_split in queries.items()
    }

    def cosine(encode: Any, split: str) -> float:
        product = encode(queries[split]) * by_teacher[split]
        return float(np.mean(np.sum(product, axis=1)))

    def measured(encode: Any) -> dict[str, float]:
        def titles_of(texts: Any) -> np.ndarray:
            return titles.completed(texts, encode)

        system = DenseSystem(encode, titles_of)
        result = {f"{split} cosine": cosine(encode, split) for split in queries}
        for (split, mode), task in tasks.items():
            _, values = task.measure(system)
            names = {
                "retrieve": ["mrr@10", "recall@100"],
                "rerank": ["ndcg@3", "map"],
            }[mode]
            for name, value in mean(values, names).items():
                result[f"{split} {name}"] = value
        return {name: round(value, 4) for name, value in result.items()}

    result: dict[str, Any] = {
        "settings": vars(options) | {"texts": len(texts)},
        "teacher": measured(lambda texts: further.completed(texts, teacher)),
        "sum": measured(Residual(options.teacher, 1).encode),
        "refitted": measured(Residual(options.further, 1).encode),
        "residual": [],
    }
    for seed in range(options.seeds):
        keras.utils.set_random_seed(seed)
        model = Residual(options.teacher, options.cells)
        step = training_step(model, keras.optimizers.Adam(options.rate))
        rng = np.random.default_rng(seed)
        best, weights, curve = (
            cosine(model.encode, "dev"),
            model.get_weights(),
            [],
        )
        for epoch in range(options.epochs):
            order = rng.permutation(len(texts))
            for start in range(0, len(order), _BATCH):
                rows = order[start : start + _BATCH]
                step(tf.constant(texts[rows]), tf.constant(targets[rows]))
            curve.append(round(cosine(model.encode, "dev"), 4))
            print(f"seed {seed}, epoch {epoch + 1}: {curve[-1]}", flush=True)
            if curve[-1] > best:
                best, weights = curve[-1], model.get_weights()
        model.set_weights(weights)
        result["residual"].append(measured(model.encode) | {"curve": curve})
    with open(options.output, "w") as file:
        json.dump(result, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
