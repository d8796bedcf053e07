from pathlib import Path

import pytest

from keras_lstm_dssm.benchmarks.click_data import write_log
from keras_lstm_dssm.benchmarks.scale_suite import log_figures, summary


@pytest.mark.usefixtures("small_towers")
def test_figures_of_one_log(tmp_path: Path) -> None:
    path = tmp_path / "clicks.tsv"
    write_log(path, 100)
    figures = log_figures(str(path), batch_size=50, steps=1)
    assert figures["microseconds_per_pair"] == pytest.approx(
        figures["step_microseconds_per_pair"]
        + figures["count_seconds"] / 100 * 1e6
    )
    assert 0.1 < figures["peak_gigabytes"] < 30


def test_summary_sets_the_largest_log_beside_the_smallest() -> None:
    rounds = {
        10: [{"microseconds_per_pair": v, "peak_gigabytes": 1.0} for v in
             (7.0, 4.0, 5.0)],
        1000: [{"microseconds_per_pair": 6.0, "peak_gigabytes": 2.0}],
    }  # fmt: skip
    figures = summary(rounds)
    assert figures["logs"]["10"]["microseconds_per_pair"] == 5.0
    assert figures["cost_ratio"] == 1.2
    assert figures["peak_gigabytes"] == 2.0
