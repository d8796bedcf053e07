"""Trains on two replicas: a program, since devices are set at its start.

Prints JSON for `test_distribution.py`, which says what must hold."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import keras_lstm_dssm as dssm
from tests.training.small_models import small_best, small_keyvec, small_scorer

HALF = ["a b", "b c", "c d", "d e"]
OTHERS = ["f g", "g h", "h i", "i j"]


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


def batches(texts: list[str], steps: int = 6) -> tf.data.Dataset:
    """Equal batches; the replicas get one half of each."""
    documents = [text[::-1] for text in texts]
    pairs = tf.data.Dataset.from_tensors((texts, documents))
    return pairs.unbatch().batch(len(texts)).repeat(steps)


def difference(one: list[Any], other: list[Any]) -> float:
    """The largest difference between variables."""
    pairs = zip(one, other, strict=True)
    return max(float(abs(np.subtract(*pair)).max()) for pair in pairs)


def disagreement(model: keras.Model, strategy: Any) -> float:
    """The largest difference between the replicas' weights."""
    return max(
        float(abs(one.numpy() - other.numpy()).max())
        for one, other in (
            strategy.experimental_local_results(v.value)
            for v in model.trainable_variables
        )
    )


def equal_halves(
    strategy: Any, make: Callable[..., Any], *examples: Any
) -> dict[str, float]:
    """Both replicas see what one sees, so that the weights must agree."""
    start = make()
    # Its steps are few: tracing them would take longer.
    alone = make(run_eagerly=True)
    with strategy.scope():
        model = make()
    alone_loss, loss = (
        run.fit(*examples, batch_size=8, epochs=3, shuffle=False, verbose=0)
        for run in (alone, model)
    )
    return {
        "difference": difference(model.variables, alone.variables),
        "state": difference(
            model.optimizer.variables, alone.optimizer.variables
        ),
        "disagreement": disagreement(model, strategy),
        "change": difference(model.variables, start.variables),
        "loss": loss.history["loss"][-1],
        "alone_loss": alone_loss.history["loss"][-1],
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


class SavesPendingRows(keras.callbacks.Callback):
    """Saves the model after a step, as the checkpoint of a run does."""

    def __init__(self, path: Path, step: int) -> None:
        super().__init__()
        self.path = path
        self.step = step

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if batch == self.step:
            with self.model.optimizer.pending_rows_saved():
                self.model.save(self.path)


def saved_models(strategy: Any, folder: Path) -> dict[str, float]:
    """From one process to two replicas, and back."""
    pending, replicas = folder / "pending.keras", folder / "replicas.keras"
    # The rows of the first step are read in no other.
    first = batches(OTHERS * 2, 1).concatenate(batches(HALF * 2, 3))
    new_model(1.0, "in_batch").fit(
        first, verbose=0, callbacks=[SavesPendingRows(pending, 2)]
    )
    alone = keras.models.load_model(pending)
    behind = alone.optimizer.variables[-1].numpy()
    with strategy.scope():
        model = keras.models.load_model(pending)
    for run in alone, model:
        run.fit(batches(HALF * 2), verbose=0)
    model.save(replicas)
    loaded = keras.models.load_model(replicas)
    return {
        "pending": int((behind > 0).sum() and (behind < 3).sum()),
        "difference": difference(loaded.variables, alone.variables),
        "state": difference(
            loaded.optimizer.variables, alone.optimizer.variables
        ),
        "steps": int(loaded.optimizer.iterations.numpy()),
    }


def message(run: Callable[..., Any], *arguments: Any) -> str:
    """The error message of a call."""
    try:
        run(*arguments)
    except dssm.errors.InputError as error:
        return str(error)
    return ""


def refused(strategy: Any) -> list[str]:
    """Error messages of uses that cannot work."""
    optimizer = dssm.NesterovMomentum()
    plain = new_model(1.0, "in_batch")
    with strategy.scope():
        model = new_model(1.0, "in_batch")
        inside = message(plain.fit, batches(HALF))
    hashed = model.hasher.dataset(batches(HALF))
    return [
        message(model.fit, hashed),
        message(model.compile, optimizer, dssm.CosineSoftmax()),
        inside,
    ]


def main() -> None:
    folder = Path(sys.argv[1])
    keras.config.set_floatx("float64")
    (cpu,) = tf.config.list_physical_devices("CPU")
    logical = tf.config.LogicalDeviceConfiguration()
    tf.config.set_logical_device_configuration(cpu, [logical, logical])
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def towers(threshold: float | None) -> Callable[..., dssm.TwoTower]:
        return lambda **options: new_model(threshold, "in_batch", **options)

    pairs = batches(HALF * 2)
    triples = (HALF * 2, HALF * 2, (HALF[1:] + HALF[:1]) * 2)
    documents = (
        [[text, "b c"] for text in HALF * 2],
        [[True, False]] * 8,
        [text.split()[:1] for text in HALF * 2],
    )
    results = {
        "plain": equal_halves(strategy, towers(None), pairs),
        "renormalised": equal_halves(strategy, towers(0.1), pairs),
        "best": equal_halves(strategy, small_best, pairs),
        "scorer": equal_halves(strategy, small_scorer, triples),
        "keyvec": equal_halves(strategy, small_keyvec, documents),
        "by_hand": by_hand(strategy),
        "saved": saved_models(strategy, folder),
        "refused": refused(strategy),
    }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
