import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import read_csv, read_json
from keras_lstm_dssm.papers.results import read_results
from keras_lstm_dssm.papers.table import check_pairs, run_learning_curve
from keras_lstm_dssm.papers.table_data import open_data
from tests.papers.conftest import ROWS


def test_what_fails_is_named_and_left_out(
    table_folder, settings, tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "keras_lstm_dssm.papers.table.run_systems",
        lambda folder, rows, *_: dict.fromkeys(rows, "no memory"),
    )
    data = open_data(settings, tmp_path)
    results = read_results(table_folder, ROWS, 2)
    pictures, failed = run_learning_curve(data, results, 2, [40])
    assert failed == {"dssm with 40 clicks": "no memory"}
    assert list(pictures) == [
        "Learning curve, rerank", "Learning curve, retrieve"
    ]  # fmt: skip
    sizes = {
        (row["system"], row["pairs"])
        for row in read_csv(tmp_path / "curve.csv")
    }
    assert sizes == {
        ("random", "40"), ("bm25", "40"),
        ("random", "120"), ("bm25", "120"), ("dssm", "120"),
    }  # fmt: skip
    part = read_json(tmp_path / "pairs/40/settings.json")
    assert (part["pairs"], part["clicks"], part["updates_of"]) == (40, 40, 120)


def test_a_part_is_smaller_than_the_whole(settings, tmp_path):
    data = open_data(settings, tmp_path)
    check_pairs([119], data)
    with pytest.raises(InputError, match="--pairs=120: found a log of 120"):
        check_pairs([40, 120], data)
