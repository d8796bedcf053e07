"""The preset word_sum: from titles to a search, without a click."""

from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm import InputError
from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.distillation import teach
from keras_lstm_dssm.export import Documents, export_models, export_portable
from keras_lstm_dssm.tools import evaluate as evaluate_program
from keras_lstm_dssm.tools import export as export_program
from keras_lstm_dssm.tools import teach as teach_program
from keras_lstm_dssm.tools import train as train_program
from lstm_dssm_client import LocalModel
from tests.kit.equal import check_equal
from tests.models.small_matchers import small_scorer
from tests.tools.conftest import refused, succeed

__all__ = ["refused"]  # a fixture

ENCODER = """
import numpy as np
TOPICS = [
    "bolt bolts screw screws hex nut steel", "glue wood paint oak",
    "lamp light desk led",
]
def encode(texts):
    return np.array([
        [1e-3 + sum(w in t.split() for w in x.lower().split()) for t in TOPICS]
        for x in texts
    ])
"""
TITLES = ["steel hex bolt", "wood glue", "desk lamp", "oak paint", "hex nut"]
CLICKS = [("screws", "steel hex bolt"), ("light", "desk lamp")] * 8


@pytest.fixture
def teacher(tmp_path, monkeypatch, capsys) -> str:
    """A teacher of titles and words, without clicks."""
    (tmp_path / "topics.py").write_text(ENCODER)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "titles.txt").write_text("\n".join(TITLES) + "\n")
    succeed(
        teach_program, documents="titles.txt", encoder="topics:encode",
        output="TEACH",
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert printed == (
        "wrote TEACH: 0 queries, 5 titles, 10 words, vectors (15, 3)\n"
    )
    return "TEACH"


def test_titles_are_found_without_a_click_also_misspelled(teacher):
    succeed(train_program, preset="word_sum", teacher=teacher, output="RUN")
    model = dssm.load_run("RUN")
    index = dssm.Index(model, TITLES)
    for query, topic in (
        ("bolt steel", {"steel hex bolt", "hex nut"}),
        ("stel hex blt", {"steel hex bolt", "hex nut"}),
        ("gluee", {"wood glue", "oak paint"}),
        ("lamps", {"desk lamp"}),
    ):
        assert index.search([query], k=1)[0][0].id in topic
    again = dssm.train(None, "word_sum", teacher=teacher, verbose=0)
    check_equal(model, again)


def test_a_fit_has_nothing_to_resume(teacher):
    dssm.train(None, "word_sum", teacher=teacher, output="RUN", verbose=0)
    with pytest.raises(InputError, match="found a word_sum, which is trained"):
        dssm.resume("RUN")
    with pytest.raises(InputError, match="there is a run here already"):
        dssm.train(None, "word_sum", teacher=teacher, output="RUN", verbose=0)


def test_known_titles_have_the_teachers_own_vectors_when_served(
    teacher, capsys
):
    succeed(train_program, preset="word_sum", teacher=teacher, output="RUN")
    with open("titles.txt", "a") as file:
        file.write("steel screws\n")
    succeed(
        export_program, run="RUN", documents="titles.txt", teacher=teacher,
        output="MODELS",
    )  # fmt: skip
    known = "5 titles have the teacher's own vectors, "
    assert f"{known}1 have sums of word vectors\n" in capsys.readouterr().out
    model, titles = dssm.load_run("RUN"), [*TITLES, "steel screws"]
    vectors = np.vstack(
        [
            TeacherVectors.open(teacher)[TITLES],
            model.document_encoder.encode(titles[-1:]),
        ]
    )
    queries = ["hex", "paint for wood", "qqq"]
    expected = model.query_encoder.encode(queries) @ vectors.T
    retriever = tf.saved_model.load("MODELS/retriever/1")
    found = retriever.signatures["serving_default"](
        text=tf.constant(queries), k=tf.constant([6] * 3)
    )
    scores = np.sort(expected, axis=1)[:, ::-1]
    np.testing.assert_allclose(found["scores"], scores, atol=1e-6)

    options = {"teacher": TeacherVectors.open(teacher)}
    export_portable(
        model, "shop.safetensors", Documents(titles, titles), **options
    )
    hits = LocalModel("shop.safetensors").search(queries, k=6)
    for row, of_query in enumerate(hits):
        local = [hit.score for hit in of_query]
        np.testing.assert_allclose(local, scores[row], atol=1e-6)
    write_collection(
        "judged", dict(zip("abcde", TITLES, strict=True)),
        {"q": queries[1]}, {"test": {"q": {"d": 1, "a": 0}}}, [],
    )  # fmt: skip
    for flags in {}, {"teacher": teacher}:
        succeed(
            evaluate_program, run="RUN", data="judged", mode="retrieve",
            run_file="run.trec", **flags,
        )  # fmt: skip
        best = Path("run.trec").read_text().split("\n")[0].split()
        found = float(best[4])
        among = expected[1, :5] if flags else _by_words(model, queries[1])
        assert found == pytest.approx(among.max(), abs=1e-5)
    other = dssm.build_model("dssm")
    with pytest.raises(InputError, match="fitted to: expected a run of w"):
        export_models(other, "OTHER", Documents(titles, titles), **options)
    with pytest.raises(InputError, match="found a pair scorer, and only two"):
        export_models(small_scorer(), "OTHER", **options)


def _by_words(model: dssm.TwoTower, query: str) -> np.ndarray:
    """Returns the cosines of a query and of titles as sums of words."""
    return (
        model.document_encoder.encode(TITLES)
        @ model.query_encoder.encode([query])[0]
    )


def test_clicks_train_the_other_parts(teacher):
    """The fitted part stays as it is."""
    teach_folder = teach(None, "topics:encode", "T2", titles=[
        *TITLES, *{query for query, _ in CLICKS}
    ], words=True).folder  # fmt: skip
    recipe = dssm.PRESETS["best_words"].replace(
        epochs=2, hard_negatives=0, batch_size=4
    )
    recipe = recipe.with_encoder(cells=2, bag=2, sketch=15)
    model = dssm.train(
        CLICKS, recipe, teacher=teach_folder, verbose=0, output="RUN"
    )
    fitted = dssm.train(None, "word_sum", teacher=teach_folder, verbose=0)
    for tower in model.towers:
        check_equal(tower.word_rows, fitted.query_encoder.word_rows)
    texts = ["hex bolt", "lampp"]
    part = model.query_encoder.encode(texts)[:, -3:]
    np.testing.assert_allclose(
        2 * part, fitted.query_encoder.encode(texts), atol=1e-6
    )
    np.testing.assert_allclose(
        dssm.load_run("RUN").document_encoder.encode(texts),
        model.document_encoder.encode(texts),
        atol=1e-6,
    )


@pytest.mark.parametrize(("options", "message"), [
    ({"data": "clicks.tsv"}, "data is not used by word_sum, which is fitt"),
    ({"dev": "api"}, "dev is not used by word_sum, which is fitted to"),
    ({"teacher": None}, "teacher is missing: expected the folder of lstm-"),
    ({"teacher": "NONE"}, "NONE: found no teacher's vectors"),
    ({"preset": "best_words", "data": None}, "data is missing: expected"),
], ids=str)  # fmt: skip
def test_wrong_input_is_one_line(options, message, teacher, refused):
    given = {"preset": "word_sum", "teacher": teacher, "output": "RUN"}
    flags = [f"--{k}={v}" for k, v in {**given, **options}.items() if v]
    refused(train_program.program.run(["train", *flags]), message)
    assert not Path("RUN/config.json").exists()


def test_titles_or_clicks_are_needed(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    flags = ["--encoder=topics:encode", "--output=TEACH"]
    code = teach_program.program.run(["teach", *flags])
    refused(code, "--data and --documents are missing: expected clicks,")
