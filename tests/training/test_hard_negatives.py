"""Mined negatives: what is found, in bounded time, and when it is mined."""

from pathlib import Path

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import (
    ClickLog,
    GivenNegatives,
    Pair,
    write_pairs,
)
from keras_lstm_dssm.data.triples import clicked_lists
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import index
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training import HardNegatives, mine_negatives
from keras_lstm_dssm.training.scorer_training import (
    FILE_NAME,
    ScorerTraining,
    mine_lists,
    read_lists,
)
from keras_lstm_dssm.training.tower_training import TowerTraining
from tests.conftest import TOPICS
from tests.kit.kinds import SCORER
from tests.training.small_trainings import BEST

CLICKS = [
    Pair("garden hose", "rubber garden hose"),
    Pair("garden hose", "hose, 50 ft"), Pair("desk lamp", "small desk lamp"),
    Pair("rope", "nylon rope"), Pair("lamp", "small desk lamp"),
]  # fmt: skip


@pytest.fixture(scope="module")
def model() -> dssm.TwoTower:
    return dssm.build_model(dssm.Recipe("DSSMEncoder", {"units": [16]}))


@pytest.fixture(scope="module")
def best_model() -> dssm.TwoTower:
    """Its words are runs of letters and digits."""
    best = dssm.build_model(BEST)
    best.adapt([title for _, title in CLICKS])
    return best


@pytest.mark.parametrize("at_once", [1, 2**24])
def test_the_nearest_titles_that_were_not_clicked(at_once, model, monkeypatch):
    monkeypatch.setattr(index, "_BLOCK", at_once)
    titles = sorted({title for _, title in CLICKS})
    cosine = (
        model.query_encoder.encode(["garden hose", "lamp"])
        @ model.document_encoder.encode(titles).T
    )
    found = mine_negatives(model, CLICKS, top=2)
    assert list(found) == ["garden hose", "desk lamp", "rope", "lamp"]
    for row, (query, clicked) in enumerate(
        (("garden hose", [0, 2]), ("lamp", [3]))
    ):
        clicked_titles = {t for q, t in CLICKS if q == query}
        assert {titles[i] for i in clicked} == clicked_titles
        best = [titles[i] for i in np.argsort(-cosine[row]) if i not in clicked]
        assert found[query] == best[:2]


def test_as_many_as_there_are(model):
    found = mine_negatives(model, CLICKS, top=30)
    assert {query: len(titles) for query, titles in found.items()} == {
        "garden hose": 2, "desk lamp": 3, "rope": 3, "lamp": 3,
    }  # fmt: skip
    one = [Pair("rope", "nylon rope")]
    assert mine_negatives(model, one) == {"rope": []}
    unclicked = ["Nylon  rope", "desk", "desk"]
    assert mine_negatives(model, one, titles=unclicked) == {"rope": ["desk"]}


def test_texts_of_the_same_words_are_one_text(model, best_model):
    """No encoder can distinguish them: neither is the other's negative."""
    clicks = [
        Pair("angle bracket", "Angle bracket"),
        Pair("Angle  Bracket", "ANGLE BRACKET"),
        Pair("rope", "angle-bracket"),
    ]
    assert mine_negatives(model, clicks) == {
        "angle bracket": ["angle-bracket"], "rope": ["Angle bracket"],
    }  # fmt: skip
    assert mine_negatives(best_model, clicks) == {
        "angle bracket": [], "rope": [],
    }  # fmt: skip


@pytest.mark.parametrize("clusters", [0, 2])
def test_known_pairs_are_no_negatives(clusters, best_model, tmp_path):
    """Nor are old clicks that an epoch does not replay.

    Queries and titles of old clicks only are neither mined nor found."""
    old = [
        Pair("Garden-Hose", "small  desk LAMP"), Pair("lamp", "nylon rope"),
        Pair("lamp", "old lamp"), Pair("old query", "hose, 50 ft"),
    ] * 2  # fmt: skip
    log = write_pairs(CLICKS, tmp_path / "new.tsv")
    recipe = BEST.replace(mine_clusters=clusters, mine_every=1)
    old_path = write_pairs(old, tmp_path / "old.tsv").paths[0]
    config = TrainingConfig(
        log, recipe, seed=1, init=best_model, replay=(old_path, 0.1)
    )
    training = TowerTraining(config, RunFolder(tmp_path))
    training.prepare(best_model)
    assert isinstance(training.negatives, HardNegatives)
    training.negatives.of_epoch(0, best_model, begins=True)
    found = training.negatives._read(0)
    assert set(found["garden hose"]) == {"nylon rope"}
    assert set(found["lamp"]) == {"rubber garden hose", "hose, 50 ft"}
    assert set(found["rope"]) == {title for _, title in CLICKS} - {"nylon rope"}


def test_negatives_are_looked_up_by_the_words_that_the_encoder_reads(
    best_model, tmp_path
):
    """A query that differs in punctuation only has the same negatives."""
    log = write_pairs(CLICKS, tmp_path / "clicks.tsv")
    mined = HardNegatives(tmp_path / "mined.json.gz", log, BEST)
    given = mined.of_epoch(1, best_model, begins=True)
    config = TrainingConfig(
        log, BEST.replace(judged_negatives=1), judged={"garden hose": ["desk"]}
    )
    training = TowerTraining(config, RunFolder(tmp_path))
    training.prepare(best_model)
    for negatives in (given, training.negatives):
        assert isinstance(negatives, GivenNegatives)
        assert negatives.split == "alphanumeric"


def test_the_time_is_bounded_by_samples(model):
    """Drawn by the seed: repeated mining reaches all queries and titles."""
    clicks = [Pair(f"query {n}", f"title no {n}") for n in range(40)]
    every = mine_negatives(model, clicks, top=40)
    assert [len(titles) for titles in every.values()] == [39] * 40

    def mined(seed: int, most: int) -> dict[str, list[str]]:
        return mine_negatives(model, clicks, 40, most, seed)

    # All titles fit in, and as many queries as the bound then allows.
    some = mined(0, 40 * 7)
    assert len(some) == 7
    assert all(titles == every[query] for query, titles in some.items())
    assert some == mined(0, 40 * 7) != mined(1, 40 * 7)
    reached = {query for seed in range(30) for query in mined(seed, 40 * 7)}
    assert reached == set(every)
    # No room for all titles: one query, and a sample of them.
    ((query, titles),) = mined(0, 12).items()
    assert 11 <= len(titles) <= 12
    assert titles == [title for title in every[query] if title in titles]


def test_when_is_mined(model, tmp_path):
    log = write_pairs(CLICKS * 8, tmp_path / "clicks.tsv")
    recipe = BEST.replace(mine_every=2)
    mined = HardNegatives(tmp_path / "mined.json.gz", log, recipe)
    assert mined.of_epoch(1, model, begins=True) is None
    assert isinstance(mined.of_epoch(2, model, begins=True), GivenNegatives)
    assert mined.of_epoch(3, model, begins=True) is not None
    with pytest.raises(
        InputError, match="epoch 3.; expected .* before epoch 7"
    ):
        mined.of_epoch(7, model, begins=True)
    assert [mined.next_mining(epoch) for epoch in range(4)] == [2, 2, 4, 4]


# --- lists of a pair scorer, whose negatives towers find


def test_the_towers_nearest_titles_are_a_scorers_negatives(kinds_data):
    towers = dssm.load_run("PARENT")
    titles = [title for _, title in TOPICS.values()]

    def nearest(query: str, clicked: str) -> list[str]:
        """The two titles nearest to a query beside the clicked one."""
        cosines = towers.document_encoder.encode(
            titles
        ) @ towers.query_encoder.encode([query]).reshape(-1)
        ranked = [titles[row] for row in cosines.argsort()[::-1]]
        return [title for title in ranked if title != clicked][:2]

    log = ClickLog("clicks.tsv")
    path = Path(FILE_NAME)
    lists = mine_lists(path, log, "PARENT", top=2, seed=0)
    assert [(one.query, {*one.positives}, one.negatives) for one in lists] == [
        (query, {title}, nearest(query, title))
        for query, title in TOPICS.values()
    ]
    assert lists != list(clicked_lists(log, 2))  # those of BM25
    assert read_lists(path, log) == lists
    assert mine_lists(path, log, towers, top=2, seed=0) == lists

    recipe = SCORER.replace(mined_negatives=2)
    config = TrainingConfig(log, recipe, negatives_from=towers)
    triples = ScorerTraining(config, RunFolder(".")).triples
    assert set(triples) == {
        (one.query, one.positives[0], negative)
        for one in lists
        for negative in one.negatives
    }
