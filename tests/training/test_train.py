"""dssm.train: one recipe and one seed, the same weights by all roads."""

import functools
from typing import Any

import keras
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import ClickLog
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.files import lock_folder
from keras_lstm_dssm.papers.neural_rows import Neural
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.settings.papers import TableSettings
from keras_lstm_dssm.tools import train as program
from tests.conftest import TOPICS
from tests.training.small_trainings import BEST, PAPER, QUICK, check_equal


class StartWeights(keras.callbacks.Callback):
    """Keeps the weights before the first training step."""

    def on_train_begin(self, logs: Any = None) -> None:
        self.weights = [v.numpy() for v in self.model.trainable_variables]


@pytest.mark.parametrize(
    ("preset", "recipe"), [("dssm", PAPER), ("best", BEST)]
)
def test_three_roads_lead_to_one_model(
    preset, recipe, collection_folder, tmp_path, monkeypatch
):
    """Python, the program and the table: weights equal bit for bit."""
    monkeypatch.setitem(dssm.PRESETS, preset, recipe)
    if preset == "best":  # its eight steps take less time than their trace
        compile_eagerly = functools.partialmethod(
            dssm.TwoTower.compile, run_eagerly=True
        )
        monkeypatch.setattr(dssm.TwoTower, "compile", compile_eagerly)
    start = StartWeights()
    python = dssm.train(
        collection_folder, preset, seed=3, verbose=0, callbacks=[start]
    )
    built = dssm.TwoTower.from_preset(preset, seed=3)
    check_equal([v.numpy() for v in built.trainable_variables], start.weights)

    run = tmp_path / "run"
    flags = [f"--data={collection_folder}", f"--preset={preset}", "--seed=3"]
    assert program.run(["train", *flags, f"--output={run}"]) == 0
    check_equal(dssm.load_run(run).get_weights(), python.get_weights())

    settings = TableSettings(
        str(collection_folder),
        epochs=recipe.epochs,
        batch_size=recipe.batch_size,
        dev_evaluations=1,  # after the last epoch, which then is the best
    )
    trained = Neural(recipe, tuned=preset != "best").train(
        "a row",
        {"learning_rate": recipe.learning_rate, "gamma": recipe.gamma},
        3,
        open_data(settings, tmp_path),
    )
    for tower, encode in (
        (python.query_encoder, trained.system.encode_query),
        (python.document_encoder, trained.system.encode_document),
    ):
        check_equal(encode.func.__self__.get_weights(), tower.get_weights())
    if preset == "best":
        assert not python.needs_adapt
        assert built.needs_adapt
        assert len((run / "title_pairs.tsv").read_text().splitlines()) == 6
        assert (run / "hard_negatives.json.gz").exists()


def test_clicks_may_come_in_any_form(tmp_path):
    """A path, a log or pairs: the same clicks give the same weights."""
    pairs = list(TOPICS.values()) * 3
    path = tmp_path / "clicks.tsv"
    path.write_text("".join(f"{query}\t{title}\n" for query, title in pairs))
    recipe = QUICK.replace(epochs=1)
    models = [
        dssm.train(clicks, recipe, verbose=0)
        for clicks in (str(path), ClickLog(path), iter(pairs))
    ]
    for model in models[1:]:
        check_equal(model.get_weights(), models[0].get_weights())


@pytest.mark.parametrize("buckets", [0, 8])
def test_a_log_in_another_script(buckets, capsys):
    """Its words are known by their lengths alone, unless rows are added."""
    recipe = QUICK.replace(epochs=1).with_encoder(oov_buckets=buckets)
    dssm.train([("болт", "стальной болт")] * 4, recipe, verbose=2)
    warned = "oov_buckets" in capsys.readouterr().err
    assert warned == (buckets == 0)


def test_a_task_is_for_a_training_without_a_folder(tmp_path):
    names = {name: texts[1] for name, texts in TOPICS.items()}
    task = Task(
        {name: query for name, (query, _) in TOPICS.items()},
        names,
        {name: {name: 1} for name in names},
        depth=6,
    )
    pairs = list(TOPICS.values())
    with pytest.raises(InputError, match="dev is a Task, which a run folder c"):
        dssm.train(pairs, QUICK, dev=task, output=tmp_path / "run", verbose=0)
    assert not (tmp_path / "run").exists()
    seen = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda epoch, logs: figures.append(logs["dev_p@1"])
    )
    figures: list[float] = []
    dssm.train(
        pairs, QUICK, dev=task, select="p@1", verbose=0, callbacks=[seen]
    )
    assert len(figures) == 3 and all(0 < figure <= 1 for figure in figures)


# --- what is written, and where


def test_the_lock_is_taken_before_anything_is_written(
    collection_folder, tmp_path
):
    run = tmp_path / "run"
    with (
        lock_folder(run, "training"),
        pytest.raises(InputError, match="another process is training here"),
    ):
        dssm.train(list(TOPICS.values()), QUICK, output=run, verbose=0)
    assert [path.name for path in run.iterdir()] == [".lock"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dev": "nowhere"}, "nowhere: found nothing there, expected 'api'"),
        ({"select": "mrr@7", "dev": "{}"}, "measure is 'mrr@7': expected one"),
        ({"patience": 0, "dev": "{}"}, "patience is 0: expected 1 or more"),
        ({"validation": "nowhere.tsv"}, "nowhere.tsv: no such file"),
        ({"recipe": "gru"}, "unknown preset 'gru'"),
    ],
    ids=str,
)  # fmt: skip
def test_wrong_input_leaves_no_folder(
    options, message, collection_folder, tmp_path
):
    options = {"recipe": QUICK, "verbose": 0, **options}
    if options.get("dev") == "{}":
        options["dev"] = collection_folder
    with pytest.raises(InputError, match=message) as caught:
        dssm.train(list(TOPICS.values()), output=tmp_path / "run", **options)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()
