"""Rankers are trained on grades or clicks, stored, and read again."""

import dataclasses
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Pair, open_collection, write_collection
from keras_lstm_dssm.distillation.teacher_vectors import teach
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task, system_of
from keras_lstm_dssm.ranker import graded_lists
from keras_lstm_dssm.ranker.overlap_features import NAMES
from keras_lstm_dssm.ranker.train_ranker import choose_trees
from keras_lstm_dssm.run_folder import RunFolder
from tests.conftest import TOPICS
from tests.ranker.small_ranker import small_scorer, small_trees, write_graded

pytest.importorskip("lightgbm")


@pytest.fixture(scope="module")
def graded(tmp_path_factory) -> Path:
    return write_graded(tmp_path_factory.mktemp("graded") / "folder")


@pytest.fixture(scope="module")
def scorer_run(tmp_path_factory) -> Path:
    run = RunFolder(tmp_path_factory.mktemp("scorer"))
    run.save(small_scorer(), run.model)
    return run.path


@pytest.fixture(scope="module")
def ranker_run(graded, trained_run, scorer_run, tmp_path_factory) -> Path:
    """Trained on overlap, the cosine of towers and a pair scorer's scores."""
    output = tmp_path_factory.mktemp("ranker") / "run"
    dssm.train_ranker(
        str(graded), [trained_run, scorer_run], dev=str(graded),
        output=output, options=small_trees(), verbose=0,
    )  # fmt: skip
    return output


def test_it_learns_the_grades(graded, ranker_run, trained_run, scorer_run):
    ranker = dssm.load_run(ranker_run)
    assert isinstance(ranker, dssm.Ranker)
    names = (*NAMES, str(trained_run), str(scorer_run))
    assert ranker.features.names == names
    task = Task.from_collection(open_collection(str(graded)), "test", "rerank")
    measured = task.evaluate(task.run(system_of(ranker)))
    assert measured["ndcg@3"] == pytest.approx(1.0)
    run = RunFolder(ranker_run)
    config, metrics = run.read_config(), run.read_metrics()["train"]
    assert config["data"] == config["dev"] == str(graded)
    assert (config["select"], config["pairs"]) == ("ndcg@3", 48)
    settings = config["ranker"]
    assert settings["features"] == [str(trained_run), str(scorer_run)]
    assert settings["encoder"] is None
    assert settings["options"]["leaves"] == [4, 3]
    assert metrics["dev"]["ndcg@3"] == pytest.approx(1.0)
    assert metrics["trees"] == ranker.trees.trees
    assert list(metrics["splits"]) == list(names)
    assert sum(metrics["splits"].values()) > 0


def test_the_cosine_is_that_of_the_towers(ranker_run, trained_run, scorer_run):
    ranker, towers = dssm.load_run(ranker_run), dssm.load_run(trained_run)
    queries = ["hex bolt", "hex bolt", "glue"]
    titles = ["steel hex bolt", "wood glue", "wood glue"]
    rows = ranker.features(queries, titles)
    assert rows.shape == (3, 24) and rows.dtype == np.float32
    cosines = np.sum(
        towers.query_encoder.encode(queries)
        * towers.document_encoder.encode(titles),
        axis=1,
    )
    np.testing.assert_allclose(rows[:, 22], cosines, atol=2.0**-13 + 1e-6)
    scores = dssm.load_run(scorer_run).score_pairs(queries, titles)
    np.testing.assert_allclose(rows[:, 23], scores, atol=2.0**-13 + 1e-6)
    np.testing.assert_array_equal(
        ranker.score("hex bolt", titles[:2]),
        ranker.score_pairs(queries, titles, batch_size=2)[:2],
    )
    assert ranker.score_pairs([], []).shape == (0,)


def test_the_same_seed_gives_the_same_files(
    graded, ranker_run, trained_run, scorer_run,
    tmp_path,
):  # fmt: skip
    dssm.train_ranker(
        graded, [trained_run, scorer_run], dev=open_collection(str(graded)),
        output=tmp_path / "run", options=small_trees(), verbose=0,
    )  # fmt: skip
    for name in ("trees.txt", "overlap.json.gz", "config.json"):
        again = (tmp_path / "run" / name).read_bytes()
        assert again == (ranker_run / name).read_bytes(), name


def test_scores_of_systems_can_be_added(graded, trained_run):
    """Where only a weight is allowed to use the cosine."""
    collection = open_collection(str(graded))
    task = Task.from_collection(collection, "dev")
    random = np.random.default_rng(0)
    train = random.normal(size=(400, 3)).astype(np.float32)
    of_train = random.integers(0, 4, 400)
    train[:, 2] = of_train  # the system knows the answers of train

    def features(queries: list[str], titles: list[str]) -> np.ndarray:
        return random.normal(size=(len(titles), 3)).astype(np.float32)

    dev = graded_lists.JudgedPairs.from_task(task, "ndcg@3", features)
    # And the right order for new queries.
    dev.features[:, 2] = 0.01 * dev.grades
    options = small_trees()
    chosen = choose_trees(
        graded_lists.JudgedPairs(train, of_train, [4] * 100), dev, [2], options
    )
    assert chosen.weights[2] > 0 and not chosen.weights[:2].any()
    assert chosen.trees.splits()[2] == 0
    assert chosen.dev is not None and chosen.dev > 0.9


def test_clicks(tmp_path, trained_run):
    """Mined titles are of grade 0; clicks become grades of at least 1."""
    clicks = [Pair(*pair) for pair in TOPICS.values()] * 3
    clicks += [Pair("hex bolt", "wood glue")]
    path = tmp_path / "clicks.tsv"
    path.write_text("".join(f"{q}\t{d}\n" for q, d in clicks))
    for features in ([], [trained_run]):
        ranker = dssm.train_ranker(
            path, features, options=small_trees(), mined_negatives=3, verbose=0
        )
        best = [
            ranker.score(
                query, [title for _, title in TOPICS.values()]
            ).argmax()
            for query, _ in TOPICS.values()
        ]
        assert best == list(range(6))
    lists = graded_lists.GradedLists.from_clicks(
        open_collection(str(write_clicks(tmp_path / "beir"))).training_log(), 2
    )
    first = lists.lists[0]
    assert first.query == "hex bolt"
    assert first.grades == [4, 3, 0, 0]
    assert lists.describe() == "8 titles of 2 queries"


def write_clicks(folder: Path) -> Path:
    """A folder without grades of the training split."""
    titles = {"a": "hex bolt", "b": "steel bolt", "c": "glue", "d": "lamp"}
    clicks = [Pair("hex bolt", "hex bolt")] * 2 + [
        Pair("hex bolt", "steel bolt")
    ]
    clicks += [Pair("glue", "glue")] + [Pair("glue", "lamp")]
    write_collection(
        folder, titles, {"q": "lamp"}, {"test": {"q": {"d": 1, "a": 0}}}, clicks
    )
    return folder


def test_lists():
    lists = graded_lists.GradedLists(
        [
            graded_lists.GradedList("a", ["x", "y"], [2, 0]),
            graded_lists.GradedList("b", ["x"], [1]),
            graded_lists.GradedList("c", ["y", "z"], [1, 1]),
        ]
    )
    assert [one.query for one in lists.lists] == ["a"]
    assert lists.titles == ["x", "y", "z"]
    assert graded_lists.pairs_of(lists.lists) == (["a", "a"], ["x", "y"])


def test_queries_of_dev_and_test_are_left_out(graded):
    collection = open_collection(str(graded))
    before = len(graded_lists.GradedLists.from_collection(collection).lists)
    asked = next(iter(collection.qrels("test")))
    held_out = next(iter(collection.qrels("train")))
    collection.queries[held_out] = collection.queries[asked].upper() + " !"
    after = graded_lists.GradedLists.from_collection(collection).lists
    assert len(after) == before - 1


def test_what_is_refused(
    graded, ranker_run, trained_run, scorer_run,
    tmp_path,
):  # fmt: skip
    def refused(message: str, *arguments: object, **options: object) -> None:
        with pytest.raises(InputError, match=message) as error:
            dssm.train_ranker(
                *arguments, output=tmp_path / "new", verbose=0, **options
            )  # type: ignore[arg-type]
        assert "\n" not in str(error.value)
        assert not (tmp_path / "new").exists()

    refused("found a run twice", graded, [trained_run, trained_run])
    refused("select is 'f1'", graded, dev=graded, select="f1")
    task = Task.from_collection(open_collection(str(graded)), "dev", "retrieve")
    with pytest.raises(InputError, match="a Task that searches a corpus"):
        dssm.train_ranker(graded, dev=task, verbose=0)
    same = tmp_path / "same"
    write_equal(same)
    refused("same, split train|no click|no score of 1", same)
    with pytest.raises(InputError, match="there is a run here already"):
        dssm.train_ranker(graded, output=ranker_run)
    with pytest.raises(InputError, match="a ranker, which is trained in one"):
        dssm.resume(ranker_run)
    with pytest.raises(InputError, match="found a ranker, which has no enc"):
        RunFolder(ranker_run).load_towers()


def write_equal(folder: Path) -> None:
    """All titles of each query have grade 0: nothing can be learnt."""
    write_collection(
        folder, {"a": "x", "b": "y"}, {"q": "x"},
        {"train": {"q": {"a": 0, "b": 0}}}, [],
    )  # fmt: skip
    for path in folder.glob("clicks*"):
        path.unlink()


def test_damaged_files_and_changed_runs(graded, scorer_run, tmp_path):
    run, features = tmp_path / "run", tmp_path / "features"
    features.mkdir()
    for path in scorer_run.iterdir():
        if path.is_file():
            (features / path.name).write_bytes(path.read_bytes())
    dssm.train_ranker(
        graded, [features], output=run, options=small_trees(), verbose=0
    )
    dssm.load_run(run)
    other = RunFolder(features)
    model = other.load_model()
    model.trainable_weights[0].assign(model.trainable_weights[0] + 1)
    other.save(model, other.model)
    with pytest.raises(InputError, match="features: found another model than"):
        dssm.load_run(run)
    other.model.unlink()
    with pytest.raises(InputError, match="features: no model here"):
        dssm.load_run(run)
    trees = (run / "trees.txt").read_text()
    (run / "trees.txt").write_text(trees[: len(trees) // 2])
    with pytest.raises(InputError, match="not a ranker this version can read"):
        dssm.load_run(run)
    (run / "trees.txt").write_text(trees)
    with gzip.open(run / "overlap.json.gz", "wt") as file:
        json.dump({"words": []}, file)
    with pytest.raises(InputError, match="not a ranker this version can read"):
        dssm.load_run(run)


def test_grades_are_learnt_by_least_squares_and_clicks_by_their_order(
    graded, monkeypatch
):
    lightgbm = pytest.importorskip("lightgbm")
    objectives = []
    train = lightgbm.train

    def recorded(parameters: dict, *rest: Any, **options: Any) -> Any:
        objectives.append(parameters["objective"])
        return train(parameters, *rest, **options)

    monkeypatch.setattr(lightgbm, "train", recorded)
    clicks = [("red bolt", "bolt red hex"), ("blue lamp", "lamp blue desk")]
    few = small_trees()
    for data, options in (
        (str(graded), few),
        (clicks, few),
        (clicks, dataclasses.replace(few, objective="regression")),
    ):
        dssm.train_ranker(data, options=options, verbose=0, mined_negatives=1)
    assert objectives == ["regression", "lambdarank", "regression"]


# --- one of whose features is the cosine of an outside encoder

NAME = "letter_counts:encode"
PAIRS = (["red hex bolt", "lamp"], ["blue steel hex bolt", "eee"])


@pytest.fixture
def graded_here(tmp_path, monkeypatch) -> Path:
    """Writes graded titles, and a module with an encoder of others."""
    (tmp_path / "letter_counts.py").write_text(
        "import numpy as np\n"
        "def encode(texts):\n"
        "    return np.array([[t.count('e'), 1.0] for t in texts])\n"
    )
    monkeypatch.chdir(tmp_path)
    return write_graded(tmp_path / "graded")


def train(folder: Path, encoder: str, output: str | None) -> dssm.Ranker:
    return dssm.train_ranker(
        folder, encoder=encoder, output=output, options=small_trees(), verbose=0
    )


def test_a_function_is_named_as_it_is(graded_here):
    ranker = train(graded_here, NAME, "run")
    assert ranker.features.names == (*NAMES, NAME)
    assert ranker.trees.trees == 20 and ranker.towers is None
    row = ranker.features(["eee"], ["x"])[0]
    assert row[-1] == pytest.approx(1 / np.sqrt(10), abs=2.0**-13)
    settings = json.loads(Path("run/config.json").read_text())["ranker"]
    assert (settings["encoder"], settings["encoder_digest"]) == (NAME, None)


def test_a_teachers_folder_is_found_anywhere_and_must_not_change(
    graded_here, tmp_path, monkeypatch
):
    Path("clicks.tsv").write_text("red hex bolt\tblue steel hex bolt\n")
    teach("clicks.tsv", NAME, "TEACH")
    ranker = train(graded_here, "TEACH", "run")
    assert ranker.features.names == (*NAMES, str(tmp_path / "TEACH"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.syspath_prepend(tmp_path)  # of the module
    monkeypatch.chdir(tmp_path / "elsewhere")
    loaded = dssm.load_run(tmp_path / "run")
    np.testing.assert_array_equal(
        loaded.score_pairs(*PAIRS), ranker.score_pairs(*PAIRS)
    )
    monkeypatch.chdir(tmp_path)

    def refused(message: str) -> None:
        with pytest.raises(InputError, match=message) as error:
            dssm.load_run("run")
        assert str(error.value).startswith(f"{tmp_path / 'TEACH'}: ")
        assert "\n" not in str(error.value)

    block = Path("TEACH/vectors/000000.npy")
    vectors = np.load(block)
    np.save(block, -vectors)
    refused("found other vectors than those the ranker was trained with")
    config = Path("run/config.json")
    content = json.loads(config.read_text())
    digest = content["ranker"].pop("encoder_digest")
    config.write_text(json.dumps(content))
    dssm.load_run("run")  # older files have no digest
    content["ranker"]["encoder_digest"] = digest
    config.write_text(json.dumps(content))
    np.save(block, vectors)
    dssm.load_run("run")
    Path("TEACH").rename("MOVED")
    refused("found no vectors here, expected the folder of lstm-dssm-teach")
