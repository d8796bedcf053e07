"""One-line explanations of why a training has failed, and a watch for it."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import keras
import tensorflow as tf

from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.errors import NOT_FINITE, FailedTraining, InputError
from keras_lstm_dssm.run_folder import RunFolder

_TEXTS = 3

_LOST = (
    tf.errors.AbortedError,
    tf.errors.CancelledError,
    tf.errors.DeadlineExceededError,
    tf.errors.UnavailableError,
)
"""Errors of a connection to another worker, which the files do not explain."""


class Diverged(ArithmeticError):
    """Reports that the named variable is NaN or infinite."""


class DeadNetwork(ArithmeticError):
    """Raised after an epoch in which nearly all pairs had the same score."""

    def __init__(self, epoch: int) -> None:
        super().__init__(f"the scores of epoch {epoch} are equal")
        self.epoch = epoch


def check_finite(model: Any) -> None:
    """Raises `Diverged` unless all variables of a checkpoint are finite.

    A finite loss does not suffice: an infinite weight saturates a gate, and the
    loss stays finite.
    """
    owners = [
        (layer.name.replace("_", " "), layer.variables)
        for layer in model.layers
    ]
    for owner, variables in (
        *owners,
        ("optimizer", model.optimizer.variables),
    ):
        for variable in variables:
            if variable.dtype.startswith("float") and not tf.reduce_all(
                tf.math.is_finite(variable.value)
            ):
                raise Diverged(f"{variable.path} of the {owner}")


def explain_failure(
    error: Exception,
    run: RunFolder | None,
    model: Any,
    logs: Iterable[ClickLog],
    batches: Callable[[int], tf.data.Dataset],
) -> None:
    """Raises an `InputError` that says what to do, if the cause is known.

    `batches(step)` are those from a step on: it has read hashed words only, but
    their order is a function of the seed. `logs` are as when training began.
    """
    if isinstance(error, _LOST):
        return
    if isinstance(error, DeadNetwork):
        raise FailedTraining(
            f"epoch {error.epoch}: found equal scores for both documents of"
            " the triples: the network is dead (its hidden units have one"
            " value for all texts) and learns nothing more;"
            f" {_advice('the state before this epoch', run)} with a smaller"
            " --learning_rate"
        ) from error
    steps = int(model.optimizer.iterations.numpy())
    if isinstance(error, Diverged):
        # The training step that diverged has been counted.
        raise _diverged(f"{error} is", run, steps, batches(steps - 1))
    if NOT_FINITE in str(error):
        raise _diverged("the loss is", run, steps + 1, batches(steps))
    if run and str(run.logs) in str(error):
        raise InputError(
            f"{run.logs}: cannot be written to ({str(error).splitlines()[0]});"
            " make room, and go on with --resume"
        )
    for log in logs:
        now = ClickLog(log.paths, log.max_bad_lines)
        for before, after in zip(log.files(), now.files(), strict=True):
            if before != after:
                raise InputError(
                    f"{after.path}: found {after.lines:,} lines, expected the"
                    f" {before.lines:,} that were there when training began:"
                    " restore the file, and go on with --resume"
                )


def _diverged(
    what: str, run: RunFolder | None, step: int, batches: tf.data.Dataset
) -> FailedTraining:
    batch = next(iter(batches))
    if isinstance(batch[0], tf.RaggedTensor):  # the sentences of documents
        columns = [[one[0] for one in batch[0][:_TEXTS].to_list()]]
    else:
        columns = [column[:_TEXTS].numpy().tolist() for column in batch[:2]]
    texts = "; ".join(
        " -> ".join(repr(text.decode(errors="replace")[:60]) for text in each)
        for each in zip(*columns, strict=True)
    )
    advice = _advice("the last good state", run)
    return FailedTraining(
        f"training step {step:,}: {what} NaN or infinite; its batch begins"
        f" with {texts}; {advice} with a smaller --learning_rate, or correct"
        " the texts"
    )


def _advice(state: str, run: RunFolder | None) -> str:
    if run is None:
        return "train anew"
    return f"{state} is in {run.checkpoint}; train anew in another --output"


_TOLERANCE = 1e-4
_FEW = 0.25  # the accuracy of random scores is 0.5


class DeadNetworkWatch(keras.callbacks.Callback):
    """Stops when the scores of nearly all triples of an epoch are equal.

    If the relu units of the last hidden layer are 0 for every pair of texts, or
    its tanh units are 1 or -1, all pairs have one score and hardly a weight has
    a gradient: the loss of each triple is the margin, its accuracy 0.
    """

    def __init__(self, margin: float, steps: int) -> None:
        super().__init__()
        self.margin = margin
        self.steps = steps

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        """Compares the epoch's loss with the margin."""
        # The first epoch is no sign of it, because it starts with equal
        # scores, and neither is the rest of an epoch that was interrupted. A
        # few pairs may still differ by rounding.
        if (
            epoch
            and self.params["steps"] == self.steps
            and logs["accuracy"] < _FEW
            and math.isclose(logs["loss"], self.margin, rel_tol=_TOLERANCE)
        ):
            raise DeadNetwork(epoch + 1)
