"""Trainings on logged pages of results: the run stores their clicks."""

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.models.text_model import TextModel
from keras_lstm_dssm.settings.training import TrainingConfig
from tests.data.pages import SEARCHES, TITLES, write_ubi
from tests.kit.equal import check_equal
from tests.training.small_trainings import QUICK, StopAt


@pytest.fixture
def options(tmp_path) -> dict:
    """Pages whose ids are those of a file, which is gone when resumed."""
    write_ubi(tmp_path / "ubi", 1, SEARCHES * 15)
    (tmp_path / "titles.txt").write_text(
        "".join(f"{key}\t{title}\n" for key, title in TITLES.items())
    )
    (tmp_path / "more.tsv").write_text("garden hose\those 50 ft\t2\n")
    return {
        "data": f"ubi:{tmp_path / 'ubi'},{tmp_path / 'more.tsv'}",
        "documents": str(tmp_path / "titles.txt"),
        "actions": "click:1,purchase:3",
        "recipe": QUICK.replace(batch_size=20, epochs=2),
        "verbose": 0,
    }


def test_a_run_goes_on_without_its_pages(options, tmp_path, monkeypatch, eager):
    model = dssm.train(**options, output=tmp_path / "whole")
    log = ClickLog(tmp_path / "whole" / "clicks.pages1.tsv")
    assert log.count() == 45 and log.weighted
    assert set(line for _, line in log.lines()) == {
        b"hex bolt\ttitle 1", b"lamp\ttitle 6", b"wood glue\ttitle 4\t3",
    }  # fmt: skip
    with pytest.raises(KeyboardInterrupt):
        dssm.train(**options, output=tmp_path / "run", callbacks=[StopAt(4)])
    for path in ("ubi/queries-1.ndjson", "titles.txt"):
        (tmp_path / path).unlink()
    (tmp_path / "run").rename(tmp_path / "moved")
    seen: list = []
    join = TextModel._batch
    monkeypatch.setattr(
        TextModel, "_batch",
        lambda self, data: seen.append(join(self, data)) or seen[-1],
    )  # fmt: skip
    check_equal(dssm.resume(tmp_path / "moved", verbose=0), model)
    weights = np.concatenate([batch.weights.numpy() for batch in seen])
    assert len(weights) == 26 and {*weights} <= {1.0, 2.0, 3.0}


def test_what_needs_pages(tmp_path):
    (tmp_path / "clicks.tsv").write_text("a\tb\n")
    data = str(tmp_path / "clicks.tsv")
    for wrong in ({"documents": "x"}, {"actions": "click:1"}):
        with pytest.raises(InputError, match="pages of results: expected ubi"):
            dssm.train(data, QUICK, **wrong, verbose=0)
    with pytest.raises(InputError, match="lstm-dssm-train and lstm-dssm-split"):
        dssm.data.open_log("ubi:somewhere")
    config = TrainingConfig("ubi:logs,a.tsv", QUICK)
    first, second = config.to_dict()["data"].split(",")
    assert first.startswith("ubi:/") and second.startswith("/")
