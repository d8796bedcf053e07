"""Trains on two replicas; a program, for logical devices are set at start.

Prints JSON for `test_distribution.py`, which says what must hold.
"""

import json
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import keras_lstm_dssm as dssm

HALF = ["a b", "b c", "c d", "d e"]


def new_model(
    threshold: float | None, negatives: str, **options: Any
) -> dssm.TwoTower:
    """The same weights each time."""
    keras.utils.set_random_seed(0)
    towers = [dssm.DSSMEncoder([3]) for _ in range(2)]
    model = dssm.TwoTower(*towers, negatives=negatives)
    model.compile(
        dssm.NesterovMomentum(0.1, threshold=threshold),
        dssm.CosineSoftmax(),
        **options,
    )
    return model


def batches(texts: list[str]) -> tf.data.Dataset:
    """Six batches; the replicas get one half of each."""
    documents = [text[::-1] for text in texts]
    pairs = tf.data.Dataset.from_tensors((texts, documents))
    return pairs.unbatch().batch(len(texts)).repeat(6)


def difference(model: dssm.TwoTower, other: dssm.TwoTower) -> float:
    pairs = zip(model.variables, other.variables, strict=True)
    return max(float(abs(np.subtract(*pair)).max()) for pair in pairs)


def disagreement(model: dssm.TwoTower, strategy: Any) -> float:
    """The largest difference between the replicas' weights."""
    return max(
        float(abs(one.numpy() - other.numpy()).max())
        for one, other in (
            strategy.experimental_local_results(v.value)
            for v in model.trainable_variables
        )
    )


def equal_halves(strategy: Any, threshold: float | None) -> dict[str, float]:
    """Both replicas see what one sees, so that the weights must agree."""
    start = new_model(threshold, "in_batch")
    # Its steps are few: tracing them would take longer.
    alone = new_model(threshold, "in_batch", run_eagerly=True)
    with strategy.scope():
        model = new_model(threshold, "in_batch")
    alone_loss, loss = (
        run.fit(batches(HALF * 2), verbose=0).history["loss"][0]
        for run in (alone, model)
    )
    return {
        "difference": difference(model, alone),
        "disagreement": disagreement(model, strategy),
        "change": difference(model, start),
        "loss": loss,
        "alone_loss": alone_loss,
    }


def by_hand(strategy: Any) -> dict[str, float]:
    """`strategy.run` around `train_step`, random negatives, no `fit`."""
    with strategy.scope():
        model = new_model(1.0, "random")
    step = tf.function(
        lambda batch: strategy.run(model.train_step, args=(batch,)),
        autograph=False,
    )
    texts = [*HALF, "e f", "f g", "g h", "h"]
    losses = []
    for _ in range(3):
        model.reset_metrics()
        for batch in strategy.experimental_distribute_dataset(batches(texts)):
            step(batch)
        losses.append(float(model.get_metrics_result()["loss"]))
    return {
        "disagreement": disagreement(model, strategy),
        "first": losses[0],
        "last": losses[-1],
        "evaluated": model.evaluate(batches(texts), verbose=0)[0],
        "steps": int(model.optimizer.iterations.numpy()),
    }


def main() -> None:
    (cpu,) = tf.config.list_physical_devices("CPU")
    logical = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [logical, logical])
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    results = {
        "plain": equal_halves(strategy, None),
        "renormalised": equal_halves(strategy, 0.1),
        "by_hand": by_hand(strategy),
    }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
