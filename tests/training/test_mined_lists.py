"""Negatives of clicks that trained towers find, also after a resume."""

import json
import pathlib
import shutil

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.data.triples import clicked_lists
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.tools import train
from keras_lstm_dssm.training.mining import FILE_NAME, MinedLists
from keras_lstm_dssm.training.scorer_training import ScorerTraining
from tests.conftest import TOPICS
from tests.training.small_trainings import EpochWeights, StopAt, check_equal

TITLES = [title for _, title in TOPICS.values()]
RECIPE = dssm.ScorerRecipe(
    "RecurrentCosine", {"units": 2}, word_dimension=2, epochs=2, batch_size=4,
    mined_negatives=2, skip_gram=False,
)  # fmt: skip
STEPS = 3  # 6 queries, a positive and 2 negatives each


@pytest.fixture
def clicks(tmp_path) -> pathlib.Path:
    path = tmp_path / "clicks.tsv"
    path.write_text("".join(f"{q}\t{t}\n" for q, t in TOPICS.values()))
    return path


def nearest(towers: dssm.TwoTower, query: str, clicked: str) -> list[str]:
    """The two titles nearest to a query beside the clicked one, by NumPy."""
    cosines = towers.document_encoder.encode(
        TITLES
    ) @ towers.query_encoder.encode([query]).reshape(-1)
    ranked = [TITLES[row] for row in cosines.argsort()[::-1]]
    return [title for title in ranked if title != clicked][:2]


def test_the_towers_nearest_titles_are_the_negatives(
    clicks, trained_run, tmp_path
):
    towers = dssm.load_run(trained_run)
    log = ClickLog(clicks)
    mined = MinedLists(tmp_path / FILE_NAME, log, top=2, seed=0)
    lists = mined.mine(trained_run)
    assert [(one.query, one.positives, one.negatives) for one in lists] == [
        (q, [t], nearest(towers, q, t)) for q, t in TOPICS.values()
    ]
    assert lists != list(clicked_lists(log, 2))  # those of BM25
    assert mined.read() == mined.mine(towers) == lists

    run = dssm.run_folder.RunFolder(tmp_path)
    config = TrainingConfig(log, RECIPE, negatives_from=towers)
    work = ScorerTraining(config, run)
    assert set(work.triples) == {
        (one.query, one.positives[0], negative)
        for one in lists
        for negative in one.negatives
    }


def test_a_resumed_run_has_the_same_triples_without_the_towers(
    clicks, trained_run, tmp_path, monkeypatch
):
    towers = shutil.copytree(trained_run, tmp_path / "towers")
    undisturbed = EpochWeights()
    dssm.train(
        clicks, RECIPE, verbose=0, negatives_from=dssm.load_run(towers),
        callbacks=[undisturbed],
    )  # fmt: skip
    output = tmp_path / "run"
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        dssm.train(
            clicks, RECIPE, output=output, verbose=0, negatives_from="towers",
            callbacks=[StopAt(STEPS + 1)],
        )  # fmt: skip
    config = json.loads((output / "config.json").read_text())
    assert config["negatives_from"] == str(towers)
    shutil.rmtree(towers)
    # Given again it is the run's setting; another folder is not.
    again = ["lstm-dssm-train", "--resume", f"--output={output}"]
    assert train.run([*again, "--negatives_from=elsewhere"]) == 1
    assert train.run([*again, "--negatives_from=towers"]) == 0
    resumed = dssm.load_run(output)
    check_equal(resumed.get_weights(), undisturbed.of[2])

    mined = output / FILE_NAME
    kept = mined.read_bytes()
    with clicks.open("a") as file:
        file.write("rope\tnylon rope\n")
    with pytest.raises(InputError, match=r"found 7 clicks, expected the 6"):
        dssm.resume(output, verbose=0)
    for damaged in (kept[:40], None):
        mined.unlink()
        if damaged:
            mined.write_bytes(damaged)
        with pytest.raises(InputError, match="found no mined negatives"):
            dssm.resume(output, verbose=0)
        mined.touch()
