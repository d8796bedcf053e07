"""The momentum of every training step, and what `NesterovSchedule` needs."""

import keras
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm

TEXTS = ["a", "b", "c", "d"]


class Recorder(keras.callbacks.Callback):
    """Notes mu and the number of complete training steps."""

    def __init__(self) -> None:
        super().__init__()
        self.momenta: list[float] = []
        self.steps: list[int] = []

    def on_train_batch_end(self, batch: int, logs: object = None) -> None:
        optimizer = self.model.optimizer
        self.momenta.append(round(float(optimizer.momentum.numpy()), 6))
        self.steps.append(int(optimizer.iterations.numpy()))


def new_model() -> dssm.TwoTower:
    model = dssm.TwoTower(
        dssm.DSSMEncoder([2]), dssm.DSSMEncoder([2]), negatives="in_batch"
    )
    model.compile(dssm.NesterovMomentum(), dssm.CosineSoftmax())
    return model


@pytest.fixture
def model(warm) -> dssm.TwoTower:
    return warm(new_model)


def batches(count: int) -> tf.data.Dataset:
    pairs = tf.data.Dataset.from_tensors((tf.constant(TEXTS),) * 2)
    return pairs.repeat(count)


FIFTHS = {"ends": 0.5, "middle": 0.75, "fraction": 0.2}
OF_TEN = [0.5] * 2 + [0.75] * 6 + [0.5] * 2


@pytest.mark.parametrize(("schedule", "fits", "momenta"), [
    # 50 training steps: 2 % is 1, so 0.9, then 48 times 0.995, then 0.9.
    ({}, [(25, {"epochs": 2})], [0.9] + [0.995] * 48 + [0.9]),
    # A second fit goes on.
    ({"total_steps": 10, **FIFTHS}, [(3, {}), (7, {})], OF_TEN),
    # A fit that begins at a later epoch: its own steps are the whole.
    (FIFTHS, [(5, {"initial_epoch": 2, "epochs": 4})], OF_TEN),
    # Without `total_steps`, training a loaded model on starts anew.
    (FIFTHS, [(5, {})] * 2, ([0.5] + [0.75] * 3 + [0.5]) * 2),
], ids=["two epochs", "a second fit", "later epochs", "two fits"])  # fmt: skip
def test_every_step_has_its_momentum(model, schedule, fits, momenta):
    seen = Recorder()
    for count, options in fits:
        callbacks = [dssm.NesterovSchedule(**schedule), seen]
        model.fit(batches(count), verbose=0, callbacks=callbacks, **options)
    assert seen.momenta == momenta
    assert seen.steps == list(range(1, len(momenta) + 1))


def test_parts_are_2_96_and_2_percent():
    schedule = dssm.NesterovSchedule()
    momenta = [schedule.momentum(k, 1000) for k in range(1000)]
    assert momenta == [0.9] * 20 + [0.995] * 960 + [0.9] * 20


def test_needs_to_know_how_many_steps_there_will_be(model):
    unknown = batches(2).filter(lambda query, document: True)
    with pytest.raises(
        dssm.InputError, match="cardinality is unknown; give total"
    ):
        model.fit(unknown, verbose=0, callbacks=[dssm.NesterovSchedule()])
    seen = Recorder()
    with pytest.warns(UserWarning, match="ran out of data"):  # Keras's own
        model.fit(
            unknown, verbose=0, callbacks=[dssm.NesterovSchedule(2), seen]
        )
    assert len(seen.momenta) == 2


@pytest.mark.parametrize(("optimizer", "options", "message"), [
    # A trace reads the momentum of SGD.
    (keras.optimizers.SGD, {}, "needs an optimizer .* has SGD"),
    (dssm.NesterovMomentum, {"steps_per_execution": 2}, "execution=1, not 2"),
])  # fmt: skip
def test_what_it_needs(optimizer, options, message):
    model = new_model()
    model.compile(optimizer(0.1, 0.9), dssm.CosineSoftmax(), **options)
    with pytest.raises(dssm.InputError, match=message):
        model.fit(batches(1), verbose=0, callbacks=[dssm.NesterovSchedule()])
