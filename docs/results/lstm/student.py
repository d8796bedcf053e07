"""An LSTM in two directions on fitted words, taught by vectors of texts.

    y = unit(sum over t of 2 sigmoid(v h_t) r(w_t) + W sum over t of h_t)

r are rows that `fit_words` fits; h_t the states at word t of LSTMs that read
the first principal components of the rows. W and v start at zero, so that the
first y is the sum of the rows. The loss is 1 - cos(y, teacher), and with --rank
also the divergence of the student's neighbours from the teacher's in a batch.

    python student.py --teacher=TEACH --data=DATA --output=lstm.json

TEACH is a folder of `lstm-dssm-teach` with the texts of `corpus.py`. 500
sentences of DATA are left out of the training: of each, the teacher's vector is
compared with y and with y of its words in another order.
"""

import argparse
import json
import time
from pathlib import Path
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
from keras_lstm_dssm.encoders.feed_forward_encoders import WordSumEncoder
from keras_lstm_dssm.evaluation import DenseSystem, Task, mean
from keras_lstm_dssm.layers.bidirectional_recurrence import (
    FlatSequences,
    run_on_rows,
)
from keras_lstm_dssm.ops import unit
from keras_lstm_dssm.text.word_hashing import WordBatch
from keras_lstm_dssm.training.word_fit import fit_words

BATCH, LONGEST, TEMPERATURE, READ = 256, 40, 0.05, 96


class Student(WordSumEncoder):
    """Adds weights by context, and an LSTM's states, to sums of words."""

    def __init__(self, teacher: str, cells: int, directions: int) -> None:
        """Fits the rows to the folder of a teacher."""
        fitted = fit_words(teacher, WordSumEncoder().trigrams)
        super().__init__(**fitted.config)
        fitted.write_to(self.word_rows)
        rows = fitted.word_rows
        components = np.linalg.svd(rows.T @ rows)[2][:READ].T
        scale = np.sqrt(np.mean((rows @ components) ** 2))
        self.components = tf.constant(components / scale)
        self.lstms = [dssm.PeepholeLSTM(cells, None) for _ in range(directions)]
        for layer in self.lstms:
            layer.build((None, None, READ))
        width = cells * directions
        self.added = keras.layers.Dense(
            self.units, use_bias=False, kernel_initializer="zeros"
        )
        self.weight = keras.layers.Dense(
            1, use_bias=False, kernel_initializer="zeros"
        )
        self.added.build((None, width))
        self.weight.build((None, width))

    def compose(self, words: WordBatch, training: bool = False) -> tf.Tensor:
        """Computes y before it is scaled."""
        rows = self.word_rows(words)
        word, text = words.flat()
        texts = words.text_count
        lengths = tf.math.bincount(text, minlength=texts)
        sequences = FlatSequences(rows @ self.components, word, lengths)
        states = run_on_rows(self.lstms, sequences, training)
        weights = 2 * tf.sigmoid(self.weight(states))
        total = tf.math.unsorted_segment_sum(
            weights * tf.gather(rows, word), text, texts
        )
        sums = tf.math.unsorted_segment_sum(states, text, texts)
        return total + self.added(sums)


def neighbours(y: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
    """Divergence from the teacher's neighbours of each text in the batch."""
    own = tf.eye(tf.shape(y)[0]) * -1e9
    p = tf.matmul(target, target, transpose_b=True) / TEMPERATURE + own
    q = tf.matmul(y, target, transpose_b=True) / TEMPERATURE + own
    return tf.reduce_mean(
        tf.reduce_sum(
            tf.nn.softmax(p) * (tf.nn.log_softmax(p) - tf.nn.log_softmax(q)), 1
        )
    )


def training_step(model: Student, optimizer: Any, rank: float) -> Any:
    """Returns a function that takes a training step, and returns the loss."""
    weights = model.trainable_variables

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string),
            tf.TensorSpec([None, model.units], tf.float32),
        ]
    )
    def step(texts: tf.Tensor, target: tf.Tensor) -> tf.Tensor:
        words = model.trigrams.distinct(texts)
        with tf.GradientTape() as tape:
            y = unit(tf.gather(model.compose(words, True), words.text_index))
            loss = 1 - tf.reduce_mean(tf.reduce_sum(y * target, axis=1))
            if rank:
                loss += rank * neighbours(y, target)
        gradients = tape.gradient(loss, weights)
        optimizer.apply_gradients(zip(gradients, weights, strict=True))
        return loss

    return step


def measured(
    model: Student, data: list[str], split: str, teacher: TeacherVectors
) -> dict[str, list[float]]:
    """MRR@10 and recall@100 of each collection: own titles, the teacher's."""
    result = {}
    for spec in data:
        name, _, least = spec.partition(":")
        task = Task.from_collection(
            open_collection(name), split, "retrieve", int(least or 1)
        )

        def titles(texts: Any) -> np.ndarray:
            return teacher.completed(texts, model.encode)

        result[name] = [
            round(value, 4)
            for documents in (model.encode, titles)
            for value in mean(
                task.measure(DenseSystem(model.encode, documents))[1],
                ["mrr@10", "recall@100"],
            ).values()
        ]
    return result


def in_order(
    model: Student, texts: list[str], targets: np.ndarray, seed: int = 5
) -> float:
    """Share of texts that are nearer to the teacher's than when shuffled."""
    rng = np.random.default_rng(seed)
    mixed = [" ".join(rng.permutation(text.split())) for text in texts]
    right, wrong = (
        np.sum(model.encode(each) * targets, axis=1) for each in (texts, mixed)
    )
    return float(np.mean((right > wrong) + 0.5 * (right == wrong)))


def main() -> None:
    """Trains, measures after each epoch, and writes one JSON object."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--teacher", required=True)
    parser.add_argument("--data", action="append", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--split", default="dev")
    parser.add_argument("--cells", type=int, default=128)
    parser.add_argument("--directions", type=int, default=2)
    parser.add_argument("--rank", type=float, default=0.0)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--rate", type=float, default=0.003)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    keras.utils.set_random_seed(options.seed)
    rng = np.random.default_rng(options.seed)

    teacher = TeacherVectors.open(options.teacher)
    texts = np.array(TeacherFolder(options.teacher).read_texts(), object)
    lengths = np.array([len(text.split()) for text in texts])
    sentences = np.flatnonzero((lengths > 4) & (lengths <= LONGEST))
    held = np.random.default_rng(99).permutation(sentences)[:500]
    order = list(texts[held]), teacher.vectors[held]
    use = np.setdiff1d(
        np.flatnonzero((lengths > 1) & (lengths <= LONGEST)), held
    )

    model = Student(options.teacher, options.cells, options.directions)

    def measure() -> dict[str, Any]:
        found = measured(model, options.data, options.split, teacher)
        return {**found, "in order": round(in_order(model, *order), 3)}

    result: dict[str, Any] = {"settings": vars(options), "words": measure()}
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0,
        options.epochs * len(use) // BATCH,
        alpha=0.02,
        warmup_target=options.rate,
        warmup_steps=100,
    )
    optimizer = keras.optimizers.Adam(schedule, clipnorm=1.0)
    step = training_step(model, optimizer, options.rank)
    for epoch in range(options.epochs):
        begin = time.process_time()
        for rows in np.array_split(rng.permutation(use), len(use) // BATCH):
            loss = step(tf.constant(texts[rows]), teacher.vectors[rows])
        seconds = time.process_time() - begin
        found = {"seconds": round(seconds), "loss": round(float(loss), 4)}
        result[f"epoch {epoch + 1}"] = found | measure()
        print(result[f"epoch {epoch + 1}"], flush=True)
    Path(options.output).write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
