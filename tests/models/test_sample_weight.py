"""Weights of examples: equal to examples that are repeated as often."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.data.statistics import alphabet_warning
from keras_lstm_dssm.data.triples import Triples
from tests.models import small_matchers
from tests.models.small_towers import one_batch, two_tower

QUERIES = ["hex bolt", "wood glue", "drill", "lamp"]
TITLES = ["steel hex bolt", "wood glue 8 oz", "drill kit", "desk lamp"]
WEIGHTS = [1, 3, 2, 4]
TIMES = np.repeat(range(4), WEIGHTS)
PAIRS = list(zip(QUERIES, TITLES, strict=True))


def repeated(texts: list[Any]) -> list[Any]:
    return [texts[row] for row in TIMES]


@pytest.fixture
def logs(tmp_path) -> tuple[ClickLog, ClickLog]:
    """The same clicks with weights, and repeated."""
    paths = tmp_path / "weighted.tsv", tmp_path / "repeated.tsv"
    lines = [
        f"{query}\t{title}" + (f"\t{weight}" if weight != 1 else "")
        for (query, title), weight in zip(PAIRS, WEIGHTS, strict=True)
    ]
    paths[0].write_text("\n".join(lines))
    paths[1].write_text(
        "".join(f"{query}\t{title}\n" for query, title in repeated(PAIRS))
    )
    return ClickLog(paths[0]), ClickLog(paths[1])


def check_same(make: Callable[[], Any], *both: tf.data.Dataset) -> None:
    """Compares metrics, and the weights after two training steps."""
    found = []
    for batches in both:
        model = make()
        start = model.get_weights()
        measured = model.evaluate(batches, verbose=0)
        history = model.fit(batches.repeat(2), verbose=0).history
        found.append([*measured, history["loss"][0], *model.get_weights()])
    moved = max(
        abs(new - old).max()
        for new, old in zip(model.get_weights(), start, strict=True)
    )
    assert moved > 0.001
    for of_weights, of_repeated in zip(*found, strict=True):
        np.testing.assert_allclose(of_weights, of_repeated, atol=1e-6)


@pytest.mark.parametrize("loss", ["clicks", "sum"])
def test_towers(loss, eager):
    weighted: dict[str, Any] = {"sample_weight": np.float32(WEIGHTS)}
    losses = {
        "clicks": dssm.CosineSoftmax(),
        "sum": dssm.CosineSoftmax(reduction="sum"),
    }
    repeat = repeated(QUERIES), repeated(TITLES)
    if loss == "sum":  # Keras scales what it reports of a sum
        model = two_tower(loss=losses[loss], lazy=False)
        model.fit(QUERIES, TITLES, sample_weight=WEIGHTS, verbose=0)
        other = two_tower(loss=losses[loss], lazy=False)
        other.fit(*repeat, verbose=0)
        for new, old in zip(
            model.get_weights(), other.get_weights(), strict=True
        ):
            np.testing.assert_allclose(new, old, atol=1e-6)
    else:
        check_same(
            lambda: two_tower(loss=losses[loss]),
            one_batch(QUERIES, TITLES, weighted),
            one_batch(*repeat),
        )


def test_frequencies_and_batches_of_a_log(logs, eager):
    """The titles of a batch, each once, have the log q of the clicks."""
    frequencies = [dssm.data.ClickFrequencies.from_log(log) for log in logs]
    np.testing.assert_array_equal(*(each.counts for each in frequencies))
    given = dssm.data.GivenNegatives({"lamp": ["garden hose"]}, k=1)
    batches = [
        each.attach(
            given.attach(dssm.data.training_batches(log, 16, epochs=1, seed=1))
        )
        for each, log in zip(frequencies, logs, strict=True)
    ]
    (_, titles, extras) = next(iter(batches[0]))
    of_title = dict(zip(TITLES, WEIGHTS, strict=True))
    assert [of_title[t.decode()] for t in titles.numpy()] == (
        extras["sample_weight"].numpy().tolist()
    )
    check_same(two_tower, *batches)


def test_scorers(logs, eager):
    lists = [("hex bolt", ["steel hex bolt", "bolt"], ["lamp", "glue"])]
    weighted = Triples([(*lists[0], [2.0, 1.0])])  # type: ignore[list-item]
    again = [("hex bolt", ["steel hex bolt", *lists[0][1]], lists[0][2])]
    check_same(
        small_matchers.compiled,
        weighted.batches(8, epochs=1, seed=0),
        Triples(again).batches(8, epochs=1, seed=0),
    )
    by_log = [Triples.from_clicks(log, top=1) for log in logs]
    triples = [
        next(iter(each.batches(16, epochs=1, seed=0))) for each in by_log
    ]
    assert sorted(triples[0][3].numpy()) == sorted(WEIGHTS)
    assert len(triples[1]) == 3 and len(triples[1][0]) == sum(WEIGHTS)


def test_words_of_a_log(tmp_path):
    """An encoder that cannot read its letters is warned of before training."""
    (tmp_path / "log.tsv").write_text("Пила	пила	2\nдрель	дрель\n")
    warning = alphabet_warning(ClickLog(tmp_path / "log.tsv"))
    assert warning and warning.startswith("100% of the words are in letters")


@pytest.mark.parametrize(("line", "problem"), [
    (b"a\tb\t0", "a weight that is not a number from 1.2e-38 to 1e9"),
    (b"a\tb\t1e-38", "a weight that is not a number from 1.2e-38 to 1e9"),
    (b"a\tb\t1e-99", "a weight that is not a number from 1.2e-38 to 1e9"),
    (b"a\tb\tnan", "a weight that is not a number from 1.2e-38 to 1e9"),
    (b"a\tb\t1e30", "a weight that is not a number from 1.2e-38 to 1e9"),
    (b"a\tb\t1_0", "2 tabs"),
    (b"a\tb\t1\t", "3 tabs"),
])  # fmt: skip
def test_wrong_weights(line, problem, tmp_path):
    """A bad line is left out, and does not make the log a weighted one."""
    path = tmp_path / "clicks.tsv"
    path.write_bytes(b"a\tb\n" + line)
    log = ClickLog(path, max_bad_lines=1)
    assert log.bad_lines() == {problem: 1} and not log.weighted
    path.write_bytes(b"no tab\n" + line + b"\na\tb\t0.5\n")
    log = ClickLog(path, max_bad_lines=2)
    assert log.weighted and log.count() == 1
