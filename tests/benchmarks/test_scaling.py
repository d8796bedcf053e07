"""The suites `cores` and `scale`, and the synthetic logs."""

import collections
import os
from pathlib import Path
from typing import Any

import pytest

from keras_lstm_dssm.benchmarks import scaling
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation.index import IVFIndex
from keras_lstm_dssm.models import PRESETS


def test_amdahls_law_is_fitted():
    times = {n: 20 + 80 / n for n in (1, 2, 4)}
    found = scaling.predict(times)
    assert [*found] == ["serial_share", "speedup_8", "speedup_16"]
    assert [*found.values()] == pytest.approx([0.2, round(100 / 30, 2), 4.0])
    # Two cores that are more than twice as fast leave no serial part.
    assert [*scaling.predict({1: 100, 2: 49}).values()] == [0, 8, 16]
    assert scaling.predict({1: 100, 2: 101})["speedup_16"] == 1
    assert scaling.predict({1: 100}) == {}


def test_each_number_of_cores_is_a_process(monkeypatch, tmp_path):
    scaling.write_log(tmp_path / "a.tsv", 64)
    log = ClickLog(str(tmp_path / "a.tsv"))
    calls: list[tuple[str, ...]] = []

    def results(module: str, *arguments: str) -> dict[str, float]:
        calls.append(arguments)
        cores = int(arguments[-1])
        return {"train": 10 + 90 / cores, "encode": 60 / cores}

    monkeypatch.setattr(scaling, "results_of_process", results)
    usable = set(range(6))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: usable, False)
    monkeypatch.setattr(os, "sched_setaffinity", None, False)
    found: Any = scaling.measure_cores(log, 32, 4, rounds=1)
    # The first round is a warm-up.
    words = "cores", log.paths[0], "32", "4"
    assert calls == [(*words, cores) for cores in "1246"] * 2
    assert found["cores"]["4"] == {"train": 32.5, "encode": 15}
    assert found["train"]["serial_share"] == pytest.approx(0.1)
    assert found["encode"]["speedup_8"] == 8
    monkeypatch.delattr(os, "sched_setaffinity")
    with pytest.raises(InputError, match="use Linux for --suite=cores"):
        scaling.measure_cores(log, 32, 4, rounds=1)


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="Linux limits processes"
)
def test_a_process_with_one_core(log_path):
    words = "cores", str(log_path), "16", "1", "1"
    found = scaling.results_of_process(scaling.__name__, *words)
    assert list(found) == ["train", "encode"] and min(found.values()) > 0


def test_summary_sets_the_largest_log_beside_the_smallest():
    rounds = {
        10: [{"microseconds_per_pair": v, "peak_gigabytes": 1.0} for v in
             (7.0, 4.0, 5.0)],
        1000: [{"microseconds_per_pair": 6.0, "peak_gigabytes": 2.0}],
    }  # fmt: skip
    results = scaling.summary(rounds)
    assert results["logs"]["10"]["microseconds_per_pair"] == 5.0
    assert results["cost_ratio"] == 1.2
    assert results["peak_gigabytes"] == 2.0


@pytest.mark.parametrize("clusters", [0, 3])
def test_mining_and_preparation_are_counted(tmp_path, monkeypatch, clusters):
    """The steps that are timed read mined negatives and synthetic pairs."""
    small = PRESETS["lstm_32"].replace(
        negatives="in_batch", title_pairs=1, hard_negatives=2, mine_every=3,
        epochs=4, batch_size=16, mine_top=5,
    )  # fmt: skip
    monkeypatch.setitem(PRESETS, "small", small)
    timed: list[Any] = []

    def fit_seconds(model: Any, batches: Any, steps: int) -> float:
        timed.extend([model, next(iter(batches)), steps])
        return 0.008

    monkeypatch.setattr(scaling, "fit_seconds", fit_seconds)
    read: list[int] = []
    nearest = IVFIndex.nearest

    def nearest_titles(self: IVFIndex, *given: Any) -> Any:
        read.append(given[-1])
        return nearest(self, *given)

    monkeypatch.setattr(IVFIndex, "nearest", nearest_titles)
    log = tmp_path / "clicks.tsv"
    scaling.write_log(log, 60)
    costs = scaling.measure_recipe(str(log), "small", 7, clusters)
    assert read == [clusters] * bool(clusters)
    model, batch, steps = timed
    assert steps == 7
    assert model.query_encoder.cells == 32
    assert batch[0].shape == batch[1].shape == (16,)
    assert batch[2]["negatives"].shape == (16, 2)
    assert costs["step_microseconds_per_pair"] == pytest.approx(500)
    pairs = 120  # each title has a synthetic pair
    assert costs["microseconds_per_pair"] == pytest.approx(
        500
        + 1e6 * costs["mining_seconds"] / 3 / pairs
        + 1e6 * costs["prepare_seconds"] / 4 / pairs
    )
    assert costs["mining_seconds"] > 0
    assert costs["prepare_seconds"] > 0
    assert 0.1 < costs["peak_gigabytes"] < 30


@pytest.fixture(scope="module")
def log_path(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("logs") / "clicks.tsv"
    scaling.write_log(path, 100)
    return path


def test_small_log_is_the_beginning_of_a_large_one():
    small = "".join(scaling.synthetic_lines(70))
    assert small.count("\n") == 70
    assert "".join(scaling.synthetic_lines(50_001)).startswith(small)


def test_words_follow_zipf_and_queries_begin_the_titles():
    pairs = [
        line.split("\t")
        for line in "".join(scaling.synthetic_lines(20_000)).splitlines()
    ]
    assert all(title.startswith(query) for query, title in pairs)
    lengths = [len(title.split()) for _, title in pairs]
    assert (min(lengths), max(lengths)) == (6, 18)
    counts = collections.Counter(
        word for _, title in pairs for word in title.split()
    ).most_common(10)
    # Rank 1 is ten times as frequent as rank 10.
    assert 8 < counts[0][1] / counts[9][1] < 12
