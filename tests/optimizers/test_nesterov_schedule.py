import keras
import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm import (
    CosineSoftmax,
    DSSMEncoder,
    InputError,
    NesterovMomentum,
    NesterovSchedule,
    TwoTower,
)

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


def new_model() -> TwoTower:
    towers = [DSSMEncoder([2]) for _ in range(2)]
    model = TwoTower(*towers, negatives="in_batch")
    model.compile(NesterovMomentum(), CosineSoftmax())
    return model


@pytest.fixture(scope="module")
def traced() -> tuple[TwoTower, list[np.ndarray]]:
    """A model that is traced once, and its optimizer as it starts."""
    model = new_model()
    return model, [variable.numpy() for variable in model.optimizer.variables]


@pytest.fixture
def model(traced) -> TwoTower:
    """As if it had never been trained, but for its weights."""
    model, start = traced
    store = {str(number): value for number, value in enumerate(start)}
    model.optimizer.load_own_variables(store)
    return model


def batches(count: int) -> tf.data.Dataset:
    pairs = tf.data.Dataset.from_tensors((tf.constant(TEXTS),) * 2)
    return pairs.repeat(count)


def test_every_step_of_a_fit_has_its_momentum(model):
    """50 training steps: 2 % is 1, so 0.9, then 48 times 0.995, then 0.9."""
    seen = Recorder()
    model.fit(
        batches(25), epochs=2, verbose=0, callbacks=[NesterovSchedule(), seen]
    )
    assert seen.momenta == [0.9] + [0.995] * 48 + [0.9]
    assert seen.steps == list(range(1, 51))


def test_a_second_fit_goes_on(model):
    seen = Recorder()
    for count in (3, 7):
        schedule = NesterovSchedule(10, ends=0.5, middle=0.75, fraction=0.2)
        model.fit(batches(count), verbose=0, callbacks=[schedule, seen])
    assert seen.momenta == [0.5] * 2 + [0.75] * 6 + [0.5] * 2


def test_a_fit_that_begins_at_a_later_epoch(model):
    """Its own steps are the whole: epochs 3 and 4, of 5 steps each."""
    seen = Recorder()
    schedule = NesterovSchedule(ends=0.5, middle=0.75, fraction=0.2)
    model.fit(
        batches(5),
        initial_epoch=2,
        epochs=4,
        verbose=0,
        callbacks=[schedule, seen],
    )
    assert seen.momenta == [0.5] * 2 + [0.75] * 6 + [0.5] * 2


def test_a_fit_of_its_own_has_a_schedule_of_its_own(model):
    """Without `total_steps`, training a loaded model on starts anew."""
    for _ in range(2):
        seen = Recorder()
        schedule = NesterovSchedule(ends=0.5, middle=0.75, fraction=0.2)
        model.fit(batches(5), verbose=0, callbacks=[schedule, seen])
        assert seen.momenta == [0.5] + [0.75] * 3 + [0.5]


def test_parts_are_2_96_and_2_percent():
    schedule = NesterovSchedule()
    momenta = [schedule.momentum(k, 1000) for k in range(1000)]
    assert momenta == [0.9] * 20 + [0.995] * 960 + [0.9] * 20


def test_a_saved_run_goes_on_as_if_it_had_not_stopped(model, tmp_path):
    """Velocity, momentum and count of training steps are part of the file."""

    def schedule() -> list[NesterovSchedule]:
        return [NesterovSchedule(8, fraction=0.25)]

    model.fit(batches(5), verbose=0, callbacks=schedule())
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert loaded.optimizer.iterations.numpy() == 5
    for run in (model, loaded):
        run.fit(batches(3), verbose=0, callbacks=schedule())
        assert run.optimizer.momentum.numpy() == np.float32(0.9)
    for one, other in zip(model.variables, loaded.variables, strict=True):
        np.testing.assert_array_equal(one, other)
    pairs = zip(
        model.optimizer.variables, loaded.optimizer.variables, strict=True
    )
    assert all(np.array_equal(one, other) for one, other in pairs)


def test_needs_to_know_how_many_steps_there_will_be(model):
    unknown = batches(2).filter(lambda query, document: True)
    with pytest.raises(InputError, match="cardinality is unknown; give total"):
        model.fit(unknown, verbose=0, callbacks=[NesterovSchedule()])
    seen = Recorder()
    with pytest.warns(UserWarning, match="ran out of data"):  # Keras's own
        model.fit(unknown, verbose=0, callbacks=[NesterovSchedule(2), seen])
    assert len(seen.momenta) == 2


def test_needs_a_momentum_that_a_trace_reads():
    model = new_model()
    model.compile(keras.optimizers.SGD(0.1, 0.9), CosineSoftmax())
    with pytest.raises(InputError, match="needs an optimizer .* has SGD"):
        model.fit(batches(1), verbose=0, callbacks=[NesterovSchedule()])


def test_needs_one_step_at_a_time():
    model = new_model()
    model.compile(NesterovMomentum(), CosineSoftmax(), steps_per_execution=2)
    with pytest.raises(InputError, match="steps_per_execution=1, not 2"):
        model.fit(batches(2), verbose=0, callbacks=[NesterovSchedule()])
