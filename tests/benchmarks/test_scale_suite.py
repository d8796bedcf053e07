from keras_lstm_dssm.benchmarks.scale_suite import summary


def test_summary_sets_the_largest_log_beside_the_smallest() -> None:
    rounds = {
        10: [{"microseconds_per_pair": v, "peak_gigabytes": 1.0} for v in
             (7.0, 4.0, 5.0)],
        1000: [{"microseconds_per_pair": 6.0, "peak_gigabytes": 2.0}],
    }  # fmt: skip
    results = summary(rounds)
    assert results["logs"]["10"]["microseconds_per_pair"] == 5.0
    assert results["cost_ratio"] == 1.2
    assert results["peak_gigabytes"] == 2.0
