"""--mix in lstm-dssm-evaluate, -search and -export, as a user gives it."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.analysis.evaluate import open_system
from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.distillation.teacher_vectors import open_outside_encoder
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Task, choose_weights, read_run
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.serving import SavedRetriever
from keras_lstm_dssm.tools import evaluate, export, search
from tests.conftest import TOPICS
from tests.tools.conftest import succeed

ENCODER = "outside_letters:encode"


@pytest.fixture(autouse=True)
def outside_encoder(tmp_path, monkeypatch) -> None:
    """Writes a module with an encoder into the working directory."""
    (tmp_path / "outside_letters.py").write_text(
        "def encode(texts):\n"
        "    return [[t.count(c) for c in 'abcdefghilmnoprstu'] for t in texts]"
    )
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def other_run(tmp_path_factory) -> Path:
    """Writes the run of other two towers, which are not trained."""
    run = RunFolder(tmp_path_factory.mktemp("other") / "run")
    model = dssm.TwoTower(dssm.DSSMEncoder([5]), dssm.DSSMEncoder([5]))
    run.create({}, model)
    run.save(model, run.model)
    return run.path


@pytest.fixture
def run_copy(trained_run, tmp_path) -> Path:
    return shutil.copytree(trained_run, tmp_path / "run")


@pytest.mark.parametrize("mode", ["retrieve", "rerank"])
def test_evaluate_gives_what_python_gives(
    mode, run_copy, other_run, collection_folder, tmp_path, capsys
):
    names = ["bm25", ENCODER, str(other_run)]
    flags = {
        "run": run_copy, "data": collection_folder, "mode": mode,
        "mix": ",".join(names), "json": tmp_path / "out.json",
        "run_file": tmp_path / "out.trec",
    }  # fmt: skip
    succeed(evaluate, **flags)
    results = json.loads((tmp_path / "out.json").read_text())["test"]
    parts = {
        "model": dssm.load_run(run_copy),
        "bm25": BM25System(),
        ENCODER: open_outside_encoder(ENCODER),
        str(other_run): dssm.load_run(other_run),
    }
    collection = Collection(collection_folder)
    measure = "mrr@10" if mode == "retrieve" else "ndcg@10"
    dev = Task.from_collection(collection, "dev", mode)
    chosen = choose_weights(parts, dev, measure)
    assert results["mixture_weights"] == pytest.approx(chosen.weights)
    assert results["mixture_dev"] == {
        measure: chosen.value,
        "alone": chosen.alone,
        "queries": len(TOPICS),
    }
    task = Task.from_collection(collection, "test", mode)
    system = dssm.Mixture(parts, chosen.weights)
    run = task.run(system)
    assert results["mixture"] == task.evaluate(run)
    assert {
        q: list(of) for q, of in read_run(tmp_path / "out.trec").items()
    } == {q: list(of) for q, of in run.items()}
    for name, part in parts.items():
        alone = task.run(dssm.Mixture({name: part}))
        assert results[name] == pytest.approx(task.evaluate(alone))
    rows = ["model", *names, "mixture", "random"]
    assert [name for name in results if name in rows] == rows
    metrics = json.loads((run_copy / "metrics.json").read_text())
    assert metrics[f"test/{mode}"] == results
    out = capsys.readouterr().out
    assert f"mixture: {measure} on the {len(TOPICS)} queries of dev" in out
    # The printed flag gives the same mixture, without dev.
    (printed,) = [
        line.partition("(")[2].rstrip(")")
        for line in out.splitlines()
        if "(--mix_weights=" in line
    ]
    weights = printed.removeprefix("--mix_weights=")
    succeed(evaluate, **flags, split="dev", mix_weights=weights)
    again = json.loads((tmp_path / "out.json").read_text())["dev"]
    assert "mixture_dev" not in again
    assert again["mixture"][measure] == pytest.approx(chosen.value)


def test_search_of_a_run_ranks_by_the_weighted_sum(
    trained_run, tmp_path, capsys
):
    titles = {name: title for name, (_, title) in TOPICS.items()}
    lines = "".join(f"{name}\t{title}\n" for name, title in titles.items())
    (tmp_path / "titles.txt").write_text(lines)
    queries = ["interior glue", "steel lamp", "interior glue"]
    succeed(
        search, *queries,
        run=trained_run, documents=tmp_path / "titles.txt", k=3,
        mix=f"bm25,{ENCODER}", mix_weights="5,2,3",
        json=tmp_path / "hits.json",
    )  # fmt: skip
    assert capsys.readouterr().out.count("interior glue\n") == 2
    parts = {
        "model": dssm.load_run(trained_run),
        "bm25": BM25System(),
        "letters": open_outside_encoder(ENCODER),
    }
    mixture = dssm.Mixture(parts, [0.5, 0.2, 0.3])
    found = json.loads((tmp_path / "hits.json").read_text())["queries"]
    assert [of_query["query"] for of_query in found] == queries
    for number, of_query in enumerate(found):
        expected = mixture.retrieve({"q": queries[number]}, titles, 3)["q"]
        hits = {hit["id"]: hit["score"] for hit in of_query["hits"]}
        assert list(hits) == list(expected)
        np.testing.assert_allclose(
            list(hits.values()), list(expected.values()), atol=1e-6
        )
    succeed(search, "steel lamp", run=trained_run, documents="titles.txt")
    assert capsys.readouterr().out.count("\n") == 6


def test_export_of_two_runs_is_one_retriever(trained_run, other_run, tmp_path):
    titles = [title for _, title in TOPICS.values()]
    (tmp_path / "titles.txt").write_text("\n".join(titles))
    succeed(
        export, run=trained_run, mix=other_run, mix_weights="0.6,0.4",
        documents="titles.txt", output="models",
    )  # fmt: skip
    (hits,) = SavedRetriever("models/retriever").search(["hex glue"], k=6)
    parts = [dssm.load_run(trained_run), dssm.load_run(other_run)]
    mixture = dssm.Mixture({"a": parts[0], "b": parts[1]}, [0.6, 0.4])
    (expected,) = dssm.Index(mixture, titles).search(["hex glue"], 6)
    assert [hit.id for hit in hits] == [hit.id for hit in expected]
    np.testing.assert_allclose(
        [hit.score for hit in hits], [hit.score for hit in expected], atol=1e-6
    )


EVALUATE = "--run={run} --data={data} --mode=retrieve"
SEARCH = "--run={run} --documents=titles.txt glue"
EXPORT = "--run={run} --output=models"


@pytest.mark.parametrize(
    ("program", "arguments", "expected"),
    [
        (
            evaluate,
            f"{EVALUATE} --mix=bm25 --mix_weights=1,-1",
            "--mix_weights: the weight of 'bm25' in the mixture is -1.0",
        ),
        (
            evaluate,
            f"{EVALUATE} --mix=bm25 --mix_weights=0,0",
            "--mix_weights: all weights of the mixture are 0",
        ),
        (
            evaluate,
            f"{EVALUATE} --mix=bm25 --mix_weights=1",
            "found 1 weights of a mixture, expected 2, for model, bm25",
        ),
        (
            evaluate,
            f"{EVALUATE} --mix=bm25 --mix_weights=1,a",
            "--mix_weights=1,a: expected numbers separated by commas",
        ),
        (evaluate, f"{EVALUATE} --mix_weights=1", "--mix_weights is for --mix"),
        (evaluate, f"{EVALUATE} --mix=bm25,bm25", "--mix: found 'bm25', which"),
        (evaluate, f"{EVALUATE} --mix=model", "--mix: found 'model', which"),
        (
            evaluate,
            f"{EVALUATE} --mix=no:thing",
            "--mix: 'no:thing' is not bm25, nor the folder of a run, nor",
        ),
        (
            evaluate,
            f"{EVALUATE} --mix=bm25 --split=dev",
            "--split=dev is what the weights of --mix would be chosen on",
        ),
        (evaluate, f"{EVALUATE} --mix=bm25 --dev=none", "none"),
        (
            evaluate,
            f"{EVALUATE} --mix={{scorer}}",
            "is a pair scorer, which only scores lists: use --mode=rerank",
        ),
        (search, "glue", "--models is missing: the folder that lstm-dssm-exp"),
        (search, "--models=m --mix=bm25 glue", "--mix is for --run, not for"),
        (search, f"--models=m {SEARCH}", "--models and --run are given"),
        (search, "--run={run} glue", "--documents is missing: With --run"),
        (search, f"--mix=bm25 {SEARCH}", "--mix_weights is missing: give the"),
        (
            search,
            "--run={scorer} --documents=titles.txt glue",
            "part 'model' of the mixture only scores lists",
        ),
        (export, f"{EXPORT} --mix={{run}}", "--mix_weights is missing: give"),
        (
            export,
            f"{EXPORT} --mix=bm25 --mix_weights=1,1",
            "--mix: 'bm25' is not the folder of a run: only encoders of runs",
        ),
        (
            export,
            f"{EXPORT} --mix={ENCODER} --mix_weights=1,1",
            "is not the folder of a run: only encoders of runs can be exported",
        ),
        (
            export,
            f"{EXPORT} --mix={{scorer}} --mix_weights=1,1",
            "found a pair scorer, which has no encoders of queries and titles",
        ),
    ],
)
def test_wrong_input_is_one_line(
    program,
    arguments,
    expected,
    trained_run,
    scorer_run,
    collection_folder,
    tmp_path,
    refused,
):
    (tmp_path / "titles.txt").write_text("wood glue\nhex bolt\n")
    filled = arguments.format(
        run=trained_run, data=collection_folder, scorer=scorer_run
    )
    refused(program.run(["program", *filled.split()]), expected)
    assert not (tmp_path / "models").exists()


@pytest.fixture(scope="module")
def scorer_run(tmp_path_factory) -> Path:
    recipe = dssm.ScorerRecipe(
        "RecurrentCosine", {"units": 2}, word_dimension=4
    )
    model = recipe.build(0, ["bolt", "glue", "hose"])
    run = RunFolder(tmp_path_factory.mktemp("scorer") / "run")
    run.create({}, model)
    run.save(model, run.model)
    return run.path


def test_a_pair_scorer_is_a_part_of_reranking(
    trained_run, scorer_run, collection_folder, run_copy, tmp_path
):
    succeed(
        evaluate, run=run_copy, data=collection_folder, mix=scorer_run,
        mix_weights="1,3", json="out.json",
    )  # fmt: skip
    results = json.loads(Path("out.json").read_text())["test"]
    parts = {
        "model": dssm.load_run(trained_run),
        "scorer": dssm.load_run(scorer_run),
    }
    task = Task.from_collection(Collection(collection_folder), "test", "rerank")
    run = task.run(dssm.Mixture(parts, [0.25, 0.75]))
    assert results["mixture"] == task.evaluate(run)


def test_a_folder_with_a_config_of_another_library_is_no_run(tmp_path):
    """The folder of an outside encoder may have a config.json, too."""
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="is not bm25, nor the folder of a"):
        open_system(str(tmp_path), BM25System())
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(InputError, match="no model here"):
        open_system(str(tmp_path), BM25System())
