"""dssm.train by hand and by a table; its clicks, warnings, and the lock."""

import keras
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import ClickLog, training_batches, write_pairs
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.files import lock_folder
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.programs import TableSettings
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.training.tower_training import TowerTraining
from keras_lstm_dssm.training.train import open_clicks
from tests.conftest import TOPICS
from tests.kit.equal import check_equal
from tests.training.small_trainings import (
    BEST,
    PAPER,
    QUICK,
    StopAt,
)

PAIRS = list(TOPICS.values())


def test_python_and_the_recipe_by_hand_give_one_model(tmp_path):
    """What `train` does for the paper's recipes: weights, order, schedule."""
    trained = dssm.train(PAIRS * 4, PAPER, seed=3, output=tmp_path, verbose=0)
    model = dssm.build_model(PAPER, 3)
    model.compile(
        dssm.NesterovMomentum(PAPER.learning_rate, threshold=PAPER.threshold),
        dssm.CosineSoftmax(PAPER.gamma),
    )
    batches = training_batches(
        ClickLog(tmp_path / "clicks.tsv"), 16, epochs=2, seed=3
    )
    model.fit(
        batches, epochs=2, steps_per_epoch=2, verbose=0,
        callbacks=[dssm.NesterovSchedule(4)],
    )  # fmt: skip
    check_equal(model, trained)


@pytest.mark.parametrize("recipe", [PAPER, BEST], ids=["paper", "best"])
def test_a_row_of_a_table_is_that_model(
    recipe, collection_folder, tmp_path, eager
):
    python = dssm.train(collection_folder, recipe, seed=3, verbose=0)
    settings = TableSettings(
        str(collection_folder),
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        dev_evaluations=1,  # after the last epoch, which then is the best
    )
    trained = Neural(recipe, tuned=recipe is PAPER).train(
        "a row", {"learning_rate": recipe.learning_rate, "gamma": recipe.gamma},
        3, open_data(settings, tmp_path),
    )  # fmt: skip
    for tower, encode in (
        (python.query_encoder, trained.system.encode_query),
        (python.document_encoder, trained.system.encode_document),
    ):
        check_equal(encode.func.__self__, tower)
    assert not python.needs_adapt


def test_clicks_may_come_in_any_form(tmp_path):
    path = tmp_path / "log.tsv"
    path.write_text("".join(f"{query}\t{title}\n" for query, title in PAIRS))
    for clicks in (str(path), path, ClickLog(path), iter(PAIRS)):
        log, source = open_clicks(clicks, RunFolder(tmp_path))
        for each in (log, source.log()):
            assert [tuple(pair) for pair in each] == PAIRS


def test_titles_and_judged_titles_of_python(tmp_path, eager):
    """A resumed run has the texts and negatives of an uninterrupted one."""
    recipe = QUICK.replace(judged_negatives=1, title_pairs=1)
    judged = {query: (f"not {query}", "n\u00e4gel") for query, _ in PAIRS}

    def trained(name: str, *callbacks: StopAt) -> dssm.TwoTower:
        return dssm.train(
            PAIRS * 4, recipe, output=tmp_path / name, verbose=0,
            titles=iter(["a title without clicks"]), judged=judged,
            callbacks=callbacks,
        )  # fmt: skip

    whole, cut = trained("whole"), tmp_path / "cut"
    with pytest.raises(KeyboardInterrupt):
        trained("cut", StopAt(3))
    (cut / "title_pairs.tsv").unlink()  # is made again of all titles
    check_equal(dssm.resume(cut, verbose=0), whole)
    assert "without" in (cut / "title_pairs.tsv").read_text()


def test_negatives_of_the_corpus(tmp_path, eager):
    """The titles of all pairs; a resumed run draws as an uninterrupted one."""
    pairs = [(f"query {n % 40}", f"title {n}") for n in range(60)]
    validation = write_pairs(pairs[:20], tmp_path / "validation.tsv")
    recipe = QUICK.replace(negatives="corpus", n=2, epochs=2, title_pairs=1)

    def trained(name: str, *callbacks: StopAt) -> dssm.TwoTower:
        return dssm.train(
            pairs, recipe, output=tmp_path / name, verbose=0,
            titles=["only synthetic"], validation=validation.paths[0],
            callbacks=callbacks,
        )  # fmt: skip

    whole = trained("whole")
    with pytest.raises(KeyboardInterrupt):
        trained("cut", StopAt(11))  # of 8 steps in an epoch
    check_equal(dssm.resume(tmp_path / "cut", verbose=0), whole)
    histories = [
        RunFolder(tmp_path / name).read_history() for name in ("whole", "cut")
    ]
    assert histories[0][1]["val_loss"] == histories[1][1]["val_loss"]
    config = TrainingConfig(pairs, recipe, titles=["only synthetic"])
    training = TowerTraining(config, RunFolder(tmp_path))
    training.prepare(whole)
    drawn = {
        title
        for *_, extras in training.batches(0)
        for title in extras["negatives"].numpy().ravel().astype(str).tolist()
    }
    assert drawn == {*(title for _, title in pairs), "only synthetic"}


def test_a_log_in_which_there_is_nothing_to_mine(tmp_path, capsys, eager):
    """Each epoch is a `fit` of its own; one line warns of the loss of 0."""
    recipe = QUICK.replace(hard_negatives=2, mine_every=1, epochs=2)
    pairs = [("rope", "nylon rope")] * 20
    dssm.train(pairs, recipe, output=tmp_path, verbose=2)
    assert len(RunFolder(tmp_path).read_history()) == 2
    error = capsys.readouterr().err
    assert error.count("warning: the loss of epoch 1 is 0: nothing") == 1
    assert error.count("warning") == 1


@pytest.mark.parametrize(("epochs", "init", "lines"), [
    (2, None, 1), (3, None, 0), (2, "run", 0),
])  # fmt: skip
def test_too_few_epochs_to_mine_in(tmp_path, capsys, epochs, init, lines):
    """One line says so; with `init` the first epoch begins with mining."""
    recipe = QUICK.replace(hard_negatives=1, epochs=epochs)
    config = TrainingConfig([("rope", "nylon rope")], recipe, init=init)
    training = TowerTraining(config, RunFolder(tmp_path))
    training.prepare(model := training.new_model())
    training.warn(model)
    error = capsys.readouterr().err
    message = "hard_negatives=1 mines nothing: mining begins after mine_every=2"
    assert error.count(message) == error.count("\n") == lines


@pytest.mark.parametrize("buckets", [0, 8])
def test_a_log_in_another_script(buckets, capsys, eager):
    """Its words are known by their lengths alone, unless rows are added."""
    recipe = QUICK.replace(epochs=1).with_encoder(oov_buckets=buckets)
    dssm.train([("болт", "стальной болт")] * 4, recipe, verbose=2)
    warned = "oov_buckets" in capsys.readouterr().err
    assert warned == (buckets == 0)


def test_a_task_is_for_a_training_without_a_folder(tmp_path, eager):
    names = {name: texts[1] for name, texts in TOPICS.items()}
    task = Task(
        {name: query for name, (query, _) in TOPICS.items()}, names,
        {name: {name: 1} for name in names}, depth=6,
    )  # fmt: skip
    with pytest.raises(
        InputError, match="dev is a Task, which cannot be stored"
    ):
        dssm.train(PAIRS, QUICK, dev=task, output=tmp_path / "run", verbose=0)
    assert not (tmp_path / "run").exists()
    seen = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: figures.append(logs["dev_p@1"])
    )
    figures: list[float] = []
    dssm.train(
        PAIRS, QUICK, dev=task, select="p@1", verbose=0, callbacks=[seen]
    )
    assert len(figures) == 3 and all(0 < figure <= 1 for figure in figures)


def test_the_lock_is_taken_before_anything_is_written(tmp_path):
    run = tmp_path / "run"
    with (
        lock_folder(run, "training"),
        pytest.raises(InputError, match="another process is training here"),
    ):
        dssm.train(PAIRS, QUICK, output=run, verbose=0)
    assert [path.name for path in run.iterdir()] == [".lock"]
