"""Trains on batches of two workers: as one of two processes, or as one.

Arguments: a `.npz` for weights and figures of `test_joint_step.py`; recipes."""

import os
import random
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.distributed.collectives import Collectives, connect
from keras_lstm_dssm.distributed.joint_step import JointStep
from keras_lstm_dssm.models import Recipe

STEPS, ROWS = 12, (12, 9)

RECIPES = {
    # The paper's: random negatives, two towers.
    "lstm": Recipe("LSTMEncoder", {"cells": 8}, learning_rate=0.5),
    # Like `best`: in-batch and mined negatives, a sketch; and logQ.
    "best": dssm.PRESETS["best"]
    .with_encoder(cells=6, bag=5, sketch=7)
    .replace(learning_rate=0.3, logq=True),
    # Clicks with weights, whose sums differ more than the workers' rows do.
    "weighted": Recipe("DSSMEncoder", {"units": [6, 4]}, learning_rate=0.2,
                       negatives="in_batch"),
    "tied": Recipe(
        "DSSMEncoder", {"units": [6, 4]}, towers="tied",
        negatives="in_batch", learning_rate=0.5, threshold=0.05,
    ),
    # Negatives that the batches have, and no others.
    "corpus": Recipe("DSSMEncoder", {"units": [6, 4]}, learning_rate=0.2,
                     negatives="corpus"),
    "lstm_96": dssm.PRESETS["lstm_96"],
    "whole_best": dssm.PRESETS["best"],
}  # fmt: skip

_WORDS = ("hex bolt steel glue wood lamp led hose paint white drill zinc "
          "rubber interior garden").split()  # fmt: skip


def rows_of(recipe: Recipe, step: int, alone: bool) -> tuple[Any, ...]:
    """Returns the batch of a step, of which each worker trains on a part.

    Some titles occur in both parts, or twice. With the recipe "weighted",
    clicks have whole numbers as weights; in a process that trains `alone` each
    click is repeated as often instead.
    """
    draw = random.Random(step)

    def texts(words: int) -> list[str]:
        return [
            " ".join(draw.choices(_WORDS, k=draw.randint(1, words)))
            for _ in range(sum(ROWS))
        ]

    queries, titles = texts(3), texts(2)
    if recipe is RECIPES["weighted"]:
        weights = [1 + row for row in range(sum(ROWS))]
        if alone:
            both = [np.repeat(texts, weights) for texts in (queries, titles)]
            return tuple(each.tolist() for each in both)
        return queries, titles, {"sample_weight": np.float32(weights).tolist()}
    if recipe.negatives == "corpus":
        negatives = [[text, text + " white"] for text in texts(2)]
        return queries, titles, {"negatives": negatives}
    if not recipe.hard_negatives:
        return queries, titles
    log_q = [[-0.5 * len(t), -3.0] for t in titles]
    negatives = [[text] for text in texts(2)]
    return queries, titles, {"negatives": negatives, "log_q": log_q}


def batches(recipe: Recipe, part: slice, alone: bool) -> tf.data.Dataset:
    """Returns a part of each whole batch."""
    steps = [rows_of(recipe, step, alone) for step in range(STEPS)]
    queries, titles, *extras = zip(*steps, strict=True)
    columns: list[Any] = [
        [texts[part] for texts in side] for side in (queries, titles)
    ]
    for each in extras:
        names = each[0]
        columns += [{name: [one[name][part] for one in each] for name in names}]
    return tf.data.Dataset.from_tensor_slices(tuple(columns))


def train(recipe: Recipe, collectives: Collectives | None) -> dict[str, Any]:
    model = dssm.build_model(recipe, seed=1)
    if model.needs_adapt:
        model.adapt(_WORDS)
    model.compile(
        dssm.NesterovMomentum(recipe.learning_rate, 0.9, recipe.threshold),
        dssm.CosineSoftmax(recipe.gamma),
    )
    start = model.get_weights()
    part = slice(None)
    if collectives is not None:
        model.train_jointly(JointStep(collectives, 2 * max(ROWS)))
        first = sum(ROWS[: collectives.cluster.rank])
        part = slice(first, first + ROWS[collectives.cluster.rank])
    count, sent = counters(collectives)
    history = model.fit(
        batches(recipe, part, collectives is None), epochs=1, verbose=0,
        callbacks=[dssm.NesterovSchedule(STEPS, 0.5, 0.9, 0.2)],
    ).history  # fmt: skip
    results = {f"weight_{n}": w for n, w in enumerate(model.get_weights())}
    results["change"] = max(
        abs(new - old).max()
        for new, old in zip(model.get_weights(), start, strict=True)
    )
    results["loss"] = history["loss"][0]
    results["accuracy"] = history["accuracy"][0]
    if collectives is not None:
        results["sent"] = int(sent) / STEPS
        results["collectives"] = (int(collectives.count) - count) / STEPS
    results["dense"] = sum(v.numpy().nbytes for v in model.trainable_variables)
    return results


def counters(collectives: Collectives | None) -> tuple[int, tf.Variable]:
    """The number of collectives, and the bytes that this worker sends now."""
    sent = tf.Variable(0, trainable=False, dtype=tf.int64)
    if collectives is None:
        return 0, sent
    size = collectives.cluster.size

    def counted(exchange: Callable[..., Any], times: float) -> Any:
        def call(values: tf.Tensor, *counts: Any) -> tf.Tensor:
            length = tf.size(values, tf.int64) * values.dtype.size
            part = tf.cast(length, tf.float64) * times
            sent.assign_add(tf.cast(part, tf.int64))
            return exchange(values, *counts)

        return call

    for name, times in (  # in a ring
        ("gather", size - 1),
        ("sum", 2 * (size - 1) / size),
        ("sum_own_rows", (size - 1) / size),
    ):
        method = getattr(type(collectives), name).__get__(collectives)
        setattr(collectives, name, counted(method, times))
    return int(collectives.count), sent


def main(output: str, *names: str) -> None:
    collectives = None
    if "TF_CONFIG" in os.environ:
        collectives = connect()
    results = {
        f"{name}/{key}": value
        for name in names
        for key, value in train(RECIPES[name], collectives).items()
    }
    np.savez(output, **results)
    if collectives is not None:
        collectives.barrier()


if __name__ == "__main__":
    main(*sys.argv[1:])
