"""The time of a pair in a recipe that mines negatives between epochs."""

from pathlib import Path
from typing import Any

import pytest

from keras_lstm_dssm.benchmarks import recipe_cost
from keras_lstm_dssm.benchmarks.click_data import write_log
from keras_lstm_dssm.evaluation.index import IVFIndex
from keras_lstm_dssm.models import PRESETS


@pytest.mark.parametrize("clusters", [0, 3])
def test_mining_and_preparation_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clusters: int
) -> None:
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

    monkeypatch.setattr(recipe_cost, "fit_seconds", fit_seconds)
    read: list[int] = []
    nearest = IVFIndex.nearest

    def nearest_titles(self: IVFIndex, *given: Any) -> Any:
        read.append(given[-1])
        return nearest(self, *given)

    monkeypatch.setattr(IVFIndex, "nearest", nearest_titles)
    log = tmp_path / "clicks.tsv"
    write_log(log, 60)
    costs = recipe_cost.measure_recipe(str(log), "small", 7, clusters)
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
