from keras_lstm_dssm.analysis.word_statistics import distinctive


def test_often_here_and_seldom_elsewhere() -> None:
    groups = [
        ["the"] * 4 + ["fft"] * 3 + ["once"],
        ["the"] * 9 + ["csv", "csv"],
    ]
    # 16 / (13 + 5) and 9 / (3 + 5); 81 / 18 and 4 / 7.
    assert distinctive(groups, 2) == [
        [("fft", 3), ("the", 4)],
        [("the", 9), ("csv", 2)],
    ]
    assert distinctive([["b", "a"], []], 1) == [[("a", 1)], []]
