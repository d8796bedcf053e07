"""A recipe says which fields of a product are read, with which weight."""

import math
import random
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.data.prepare import prepare
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluate import evaluate_run
from keras_lstm_dssm.evaluation.bm25 import BM25System, alphanumeric
from keras_lstm_dssm.export.bulk.documents import read_documents
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import ReplaySpec
from keras_lstm_dssm.tools import export
from keras_lstm_dssm.training.tower_training import Replay
from lstm_dssm_client import LocalModel
from tests.export.agreement import loaded
from tests.kit.eager import eager_steps
from tests.tools.conftest import succeed
from tests.training.small_trainings import QUICK

FIELDS = "brand:0.5,title:1,notes:0"
THINGS = ["bolt", "nut", "glue", "lamp", "hose", "rope", "tape", "saw"]
PRODUCTS = [
    {
        "id": f"p{n}",
        "title": f"{THINGS[n % 8]} {THINGS[n // 8]} size {n}",
        "brand": THINGS[(n + 3) % 8] + " works" * (n % 2),
        "notes": f"secret{n} bolt",
    }
    for n in range(64)
]
QUERIES = ["bolt", "works", "secret5", "size 7 bolt", "rope hose"]


@pytest.fixture(scope="module")
def shop(tmp_path_factory) -> Path:
    """A data folder with two fields beside the title."""
    rng = random.Random(0)
    clicks = [
        {"query": f"{p['brand']} {p['id']}", "product_id": p["id"]}
        for p in rng.choices(PRODUCTS, k=400)
    ]
    folder = tmp_path_factory.mktemp("fields") / "SHOP"
    prepare(folder, catalogue=pd.DataFrame(PRODUCTS),
            clicks=pd.DataFrame(clicks), text=("brand", "notes"),
            dev_percent=20, test_percent=20)  # fmt: skip
    return folder


def expected_scores(query: str) -> np.ndarray:
    """Computes BM25F by the formula, k1 1.2 and b .75."""
    weights = {"title": 1.0, "brand": 0.5}
    counts = [
        {
            word: sum(w * p[f].split().count(word) for f, w in weights.items())
            for word in f"{p['title']} {p['brand']}".split()
        }
        for p in PRODUCTS
    ]
    lengths = [sum(words.values()) for words in counts]
    mean = sum(lengths) / len(lengths)
    scores = np.zeros(len(PRODUCTS))
    for word in query.split():
        df = sum(word in words for words in counts)
        idf = math.log(1 + (len(PRODUCTS) - df + 0.5) / (df + 0.5))
        for row, words in enumerate(counts):
            count = words.get(word, 0)
            limit = 1.2 * (1 - 0.75 + 0.75 * lengths[row] / mean)
            scores[row] += idf * count / (count + limit)
    return scores


def test_bm25_counts_the_words_of_a_field_by_its_weight(shop):
    collection = Collection(shop, FIELDS)
    texts = tuple(collection.documents.values())
    assert texts[5] == f"{PRODUCTS[5]['brand']} {PRODUCTS[5]['title']}"
    system = BM25System(tokenizer=alphanumeric, fields=collection.field_texts)
    for query, (scores, _) in zip(
        QUERIES, system.scores(QUERIES, texts), strict=True
    ):
        np.testing.assert_allclose(scores, expected_scores(query), rtol=1e-6)
    (found, _), (unread, matching) = system.scores(["lamp", "secret5"], texts)
    in_title = ["lamp" in p["title"] for p in PRODUCTS]
    in_brand = ["lamp" in p["brand"] for p in PRODUCTS]
    both = np.logical_and(in_title, in_brand)
    assert found[in_title & ~both].min() > found[in_brand & ~both].min() > 0
    assert not unread.any() and not len(matching)
    default = Collection(shop)
    assert default.documents["p5"].endswith("works secret5 bolt")
    assert default.field_texts is None


def test_training_evaluation_and_exports_read_the_fields(shop, tmp_path):
    recipe = QUICK.replace(fields=FIELDS, epochs=1, batch_size=64)
    run, models = tmp_path / "RUN", tmp_path / "MODELS"
    with eager_steps():
        dssm.train(shop, recipe, output=run, dev=shop, verbose=0)
    lines = (run / "clicks.train.tsv").read_text().splitlines()
    titles = {f"{p['brand']} {p['title']}" for p in PRODUCTS}
    assert {line.split("\t")[1] for line in lines} <= titles and len(lines) > 99
    found = evaluate_run(run, str(shop), mode="retrieve", queries=0)
    collection = Collection(shop, FIELDS)
    system = BM25System(fields=collection.field_texts)
    task = dssm.evaluation.Task.from_collection(collection, "test", "retrieve")
    _, measured = task.measure(system)
    assert found["test"]["bm25"]["mrr@10"] == pytest.approx(
        dssm.evaluation.mean(measured, ["mrr@10"])["mrr@10"]
    )
    replay = Replay(ReplaySpec(str(shop), 0.5), 10, tmp_path, 0, fields=FIELDS)
    assert {title for _, title in replay.log} <= titles
    flags = {"run": run, "data": shop, "hybrid": True, "bm25_words": "words"}
    file = tmp_path / "shop.safetensors"
    succeed(export, **flags, output=models)
    succeed(export, **flags, portable=file, weights="float32")
    serve = loaded(models / "retriever/1").signatures["serving_default"]
    k = tf.constant([64] * len(QUERIES))
    served = serve(text=tf.constant(QUERIES), k=k)
    for ours, ids, scores in zip(
        LocalModel(file).search(QUERIES, 64),
        served["ids"].numpy(), served["scores"].numpy(), strict=True,
    ):  # fmt: skip
        found = {key.decode(): s for key, s in zip(ids, scores, strict=True)}
        assert {hit.id: hit.score for hit in ours} == pytest.approx(
            found, abs=1e-5
        )
    assert read_documents(shop, RunFolder(run).read_fields()).titles == [
        *collection.documents.values()
    ]


@pytest.mark.parametrize(("fields", "message"), [
    ("title", "fields is 'title': expected names and weights, such as title:1"),
    ("brand:1", "fields is 'brand:1': expected a weight above 0 for title"),
    ("title:1,brand:-1", "fields is 'title:1,brand:-1': expected names and w"),
])  # fmt: skip
def test_fields_that_are_refused(fields, message):
    with pytest.raises(InputError, match=message):
        dssm.Recipe(fields=fields)


def test_unknown_fields_and_teachers_are_refused(shop, tmp_path):
    with pytest.raises(InputError, match="found no field 'colour', expected o"
                       "ne of brand, notes, text, title"):  # fmt: skip
        dssm.train(shop, QUICK.replace(fields="title:1,colour:1"), verbose=0)
    with pytest.raises(InputError, match="x.tsv: found click files only, but"):
        dssm.train("x.tsv", QUICK.replace(fields=FIELDS), verbose=0)
    titles = shutil.copytree(shop, tmp_path / "TITLES")
    (titles / "clicks.train.tsv").write_text("bolt\thex bolt\n")
    with pytest.raises(InputError, match="train.tsv: found titles, but the "):
        dssm.train(titles, QUICK.replace(fields=FIELDS), verbose=0)
    with pytest.raises(InputError, match="fields and teacher are both set"):
        recipe = dssm.PRESETS["best_words"].replace(fields=FIELDS)
        dssm.train(shop, recipe, teacher="TEACH")
