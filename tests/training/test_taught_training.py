"""Towers that learn from a teacher: its order, resumed, and checked."""

import inspect
import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import ClickLog, Collection
from keras_lstm_dssm.distillation.teacher_vectors import TeacherVectors, teach
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.tower_training import TowerTraining
from tests.conftest import TOPICS
from tests.training.small_trainings import BEST, QUICK, StopAt, check_equal

TAUGHT = QUICK.replace(title_pairs=2, hard_negatives=1)
"""Mined before the third epoch; synthetic pairs in each."""


def crossed(texts: list[str]) -> np.ndarray:
    """An encoder for which the bolt is near the lamp, and so on.

    No click and no letter says so.
    """
    near = {"bolt": 0, "lamp": 0, "glue": 1, "hose": 1, "drill": 2, "paint": 2}
    vectors = np.zeros([len(texts), 9])
    for row, text in enumerate(texts):
        (name,) = (name for name in TOPICS if name in text)
        vectors[row, near[name]] = 2
        vectors[row, 3 + list(TOPICS).index(name)] = 1
    return vectors


@pytest.fixture(scope="module")
def teacher(collection_folder, tmp_path_factory) -> pathlib.Path:
    """The folder of its vectors."""
    folder = tmp_path_factory.mktemp("taught")
    (folder / "encoder_of_topics.py").write_text(
        f"import numpy as np\nTOPICS = {list(TOPICS)}\n"
        + inspect.getsource(crossed)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        spec = "encoder_of_topics:crossed"
        teach(str(collection_folder), spec, folder / "teacher")
    return folder / "teacher"


def nearest_other(model: dssm.TwoTower, name: str) -> str:
    """The topic whose title is nearest to a query, beside its own."""
    index = dssm.Index(model, [title for _, title in TOPICS.values()], TOPICS)
    hits = index.search([TOPICS[name][0]], k=6)[0]
    return next(hit.id for hit in hits if hit.id != name)


def teacher_loss(model: dssm.TwoTower, teacher: pathlib.Path) -> float:
    """The teacher's part of the loss for all queries and titles."""
    sides = [list(side) for side in zip(*TOPICS.values(), strict=True)]
    vectors = [TeacherVectors.open(teacher)[side] for side in sides]
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
    collection_folder, teacher, towers, negatives
):
    recipe = QUICK.replace(
        encoder_config={"units": [8]}, epochs=12, learning_rate=0.3,
        towers=towers, negatives=negatives, title_pairs=1, batch_size=32,
    )  # fmt: skip
    model = dssm.train(collection_folder, recipe, teacher=teacher, verbose=0)
    pairs = {"bolt": "lamp", "glue": "hose", "drill": "paint"}
    for one, other in pairs.items():
        assert nearest_other(model, one) == other
        assert nearest_other(model, other) == one
    # The clicked titles stay the nearest.
    index = dssm.Index(model, [title for _, title in TOPICS.values()], TOPICS)
    hits = index.search([query for query, _ in TOPICS.values()], k=1)
    assert [hit[0].id for hit in hits] == list(TOPICS)


def test_stopped_within_epochs_and_resumed_bit_for_bit(
    collection_folder, teacher, tmp_path
):
    whole = dssm.train(
        collection_folder, TAUGHT, output=tmp_path / "whole", verbose=0,
        teacher=TeacherVectors.open(teacher),
    )  # fmt: skip
    pairs = (tmp_path / "whole" / "epoch_pairs.tsv").read_text()
    assert pairs != (tmp_path / "whole" / "title_pairs.tsv").read_text()
    # 120 clicks and 12 pairs are 9 training steps in each of 3 epochs.
    stops = [StopAt(step) for step in (4, 9, 23)]
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        dssm.train(
            collection_folder, TAUGHT, output=run, verbose=0, callbacks=stops,
            teacher=teacher,
        )  # fmt: skip
    for _ in stops[1:]:
        with pytest.raises(KeyboardInterrupt):
            dssm.resume(run, verbose=0, callbacks=stops)
        (run / "epoch_pairs.tsv").unlink()
    resumed = dssm.resume(run, verbose=0)
    check_equal(resumed.get_weights(), whole.get_weights())
    check_equal(dssm.load_run(run).get_weights(), whole.get_weights())
    assert (run / "epoch_pairs.tsv").read_text() == pairs
    untaught = dssm.train(collection_folder, TAUGHT, verbose=0)
    difference = untaught.get_weights()[0] - whole.get_weights()[0]
    assert abs(difference).max() > 1e-3


def test_best_learns_from_a_teacher(collection_folder, teacher):
    """Repeats the training, and compares it with one without the teacher."""
    recipe = BEST.replace(mine_every=2)  # all titles are in each batch
    taught, again, untaught = (
        dssm.train(collection_folder, recipe, teacher=vectors, verbose=0)
        for vectors in (teacher, teacher, None)
    )
    check_equal(taught.get_weights(), again.get_weights())
    differences = [
        abs(one - other).max()
        for one, other in zip(
            taught.get_weights(), untaught.get_weights(), strict=True
        )
    ]
    assert max(differences) > 1e-2
    loss, without = (
        teacher_loss(model, teacher) for model in (taught, untaught)
    )
    assert loss < 0.7 * without


def test_another_teacher_cannot_resume_a_run(
    collection_folder, teacher, tmp_path
):
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        dssm.train(
            collection_folder, QUICK, output=run, verbose=0,
            callbacks=[StopAt(2)], teacher=teacher,
        )  # fmt: skip
    block = teacher / "vectors" / "000000.npy"
    before = block.read_bytes()
    np.save(block, -np.load(block))
    with pytest.raises(InputError, match="found other vectors than those tha"):
        dssm.resume(run, verbose=0)
    block.write_bytes(before)
    dssm.resume(run, verbose=0)


def test_a_teacher_must_know_the_data(teacher, tmp_path):
    pairs = [*TOPICS.values(), ("hex bolt", "brass bolt"), ("nut", "hex nut")]
    with pytest.raises(InputError, match="no vector of 1 texts.*'nut'"):
        dssm.train(pairs, QUICK, teacher=teacher, verbose=0)
    with pytest.raises(InputError, match="no vector of 1 texts.*'brass bolt'"):
        dssm.train(pairs[:-1], QUICK, teacher=teacher, verbose=0)
    with pytest.raises(InputError, match="found no teacher's vectors"):
        dssm.train(pairs, QUICK, teacher=tmp_path, verbose=0)


def test_queries_and_titles_are_each_read_once(
    collection_folder, teacher, tmp_path, monkeypatch
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
    config = TrainingConfig(str(collection_folder), TAUGHT, teacher=teacher)
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
    with pytest.raises(InputError, match="teacher is used by two towers only"):
        dssm.train(pairs, "mv_lstm_cosine", teacher=vectors, verbose=0)


def test_the_recipe_has_the_teachers_options():
    recipe = QUICK.replace(teacher_weight=2.0, teacher_temperature=0.1)
    assert dssm.Recipe.from_dict(recipe.to_dict()) == recipe
    for name in ("teacher_weight", "teacher_temperature", "teacher_gamma"):
        with pytest.raises(InputError, match=f"{name} is -1"):
            QUICK.replace(**{name: -1})
