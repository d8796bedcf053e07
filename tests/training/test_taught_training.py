"""Towers that learn from a teacher: its order, and what it must know."""

from collections.abc import Callable
from typing import Any

import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import ClickLog, Collection
from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.tower_training import TowerTraining
from tests.conftest import TOPICS
from tests.kit.kinds import KINDS, crossed
from tests.training.small_trainings import BEST, QUICK

pytestmark = pytest.mark.usefixtures("kinds_data")


def nearest_other(model: dssm.TwoTower, name: str) -> str:
    """The topic whose title is nearest to a query, beside its own."""
    index = dssm.Index(model, [title for _, title in TOPICS.values()], TOPICS)
    hits = index.search([TOPICS[name][0]], k=6)[0]
    return next(hit.id for hit in hits if hit.id != name)


def teacher_loss(model: dssm.TwoTower) -> float:
    """The teacher's part of the loss for all queries and titles."""
    sides = [list(side) for side in zip(*TOPICS.values(), strict=True)]
    vectors = [TeacherVectors.open("TEACH")[side] for side in sides]
    encoders = (model.query_encoder, model.document_encoder)
    student = [e.encode(side) for e, side in zip(encoders, sides, strict=True)]
    return float(
        dssm.Distillation().teacher_loss(
            vectors[0] @ vectors[1].T, student[0] @ student[1].T
        )
    )


@pytest.mark.parametrize(
    ("towers", "negatives"), [("equal_start", "in_batch"), ("tied", "random")]
)
def test_a_student_moves_towards_the_teachers_order(
    collection_folder, towers, negatives
):
    recipe = QUICK.replace(
        encoder_config={"units": [8]}, epochs=12, learning_rate=0.3,
        towers=towers, negatives=negatives, title_pairs=1, batch_size=32,
    )  # fmt: skip
    model = dssm.train(collection_folder, recipe, teacher="TEACH", verbose=0)
    pairs = {"bolt": "lamp", "glue": "hose", "drill": "paint"}
    for one, other in pairs.items():
        assert nearest_other(model, one) == other
        assert nearest_other(model, other) == one
    # The clicked titles stay the nearest.
    index = dssm.Index(model, [title for _, title in TOPICS.values()], TOPICS)
    hits = index.search([query for query, _ in TOPICS.values()], k=1)
    assert [hit[0].id for hit in hits] == list(TOPICS)


def test_best_learns_from_a_teacher(collection_folder, eager):
    recipe = BEST.replace(mine_every=2)  # all titles are in each batch
    taught, untaught = (
        dssm.train(collection_folder, recipe, teacher=vectors, verbose=0)
        for vectors in ("TEACH", None)
    )
    assert teacher_loss(taught) < 0.7 * teacher_loss(untaught)


def test_a_teacher_must_know_the_data(tmp_path):
    pairs = [*TOPICS.values(), ("hex bolt", "brass bolt"), ("nut", "hex nut")]
    with pytest.raises(InputError, match="no vector of 1 texts.*'nut'"):
        dssm.train(pairs, QUICK, teacher="TEACH", verbose=0)
    with pytest.raises(InputError, match="no vector of 1 texts.*'brass bolt'"):
        dssm.train(pairs[:-1], QUICK, teacher="TEACH", verbose=0)
    with pytest.raises(InputError, match="found no teacher's vectors"):
        dssm.train(pairs, QUICK, teacher=tmp_path, verbose=0)


def test_queries_and_titles_are_each_read_once(
    collection_folder, tmp_path, monkeypatch
):
    """Titles of the collection, too, though some have no click."""
    reads: list[str] = []

    def count(name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: (reads.append(name), read(*args))[1]

    monkeypatch.setattr(
        ClickLog, "__iter__", count("clicks", ClickLog.__iter__)
    )
    monkeypatch.setattr(
        Collection, "_texts", count("corpus", Collection._texts)
    )
    recipe = KINDS["a teacher of tied towers"].recipe
    config = TrainingConfig(str(collection_folder), recipe, teacher="TEACH")
    training = TowerTraining(config, RunFolder(tmp_path))
    training.prepare(training.new_model())
    assert training.taught is not None
    # For the queries, for the clicked titles, and for the first ones.
    assert sorted(reads) == ["clicks", "clicks", "corpus"]


def test_vectors_of_python_teach_a_run_that_is_not_written(tmp_path):
    pairs = list(TOPICS.values())
    texts = [text for pair in pairs for text in pair]
    vectors = TeacherVectors(texts, crossed(texts))
    dssm.train(pairs, QUICK, teacher=vectors, verbose=0)
    with pytest.raises(InputError, match="vectors of no folder, which a resum"):
        dssm.train(
            pairs, QUICK, teacher=vectors, output=tmp_path / "run", verbose=0
        )
