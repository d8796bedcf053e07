"""Hybrid retrievers: log-odds of parts, probabilities, explanations."""

import json

import numpy as np
import pytest
import tensorflow as tf

from keras_lstm_dssm.evaluate.hybrid import HybridSystem
from keras_lstm_dssm.evaluation.bm25 import BM25System
from keras_lstm_dssm.evaluation.postings import term_tokenizer, title_postings
from keras_lstm_dssm.export import Documents, export_models, export_portable
from keras_lstm_dssm.export.bulk.documents import DocumentRows
from keras_lstm_dssm.export.graphs import hybrid
from keras_lstm_dssm.export.graphs.hybrid import (
    HybridModule,
    describe_published,
)
from keras_lstm_dssm.export.graphs.terms import (
    letter_grams,
    shares_as_json,
    unaccented,
)
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.text.word_hashing import as_strings
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from lstm_dssm_client import LocalModel
from lstm_dssm_client.bm25 import letter_grams as grams_of
from lstm_dssm_client.weighted_parts import WeightedParts
from tests.evaluation.test_postings import CORPORA
from tests.export.agreement import loaded, run_in_cpp
from tests.export.graphs import kinds

BM25_ALONE = HybridSettings(0, 0, 1, 0, 0, -2.0, k1=1.6, b=0.4)


def bm25_module(titles: list[str], kind: str) -> HybridModule:
    """Returns a retriever by BM25 alone; ids are numbers of titles."""
    settings = BM25_ALONE.replace(bm25_words=kind)
    ids = [str(row) for row in range(len(titles))]
    return HybridModule(
        None,
        DocumentRows(ids, None),
        settings,
        title_postings(titles, settings),
    )


def log_odds(probability: np.ndarray) -> np.ndarray:
    return np.log(probability / (1 - probability.astype(np.float64)))


def called(signature, **inputs: list) -> dict[str, np.ndarray]:
    types = {"text": tf.string, "tags": tf.string, "k": tf.int32}
    tensors = {n: tf.constant(v, types[n]) for n, v in inputs.items()}
    return {name: t.numpy() for name, t in signature(**tensors).items()}


@pytest.mark.parametrize(
    ("kind", "cells"), [*zip(CORPORA, (2**24, 1, 2**24), strict=True)]
)
def test_bm25_alone_ranks_as_bm25s(kind, cells, monkeypatch):
    """English, German and Chinese; a title without a term is not found."""
    monkeypatch.setattr(hybrid, "MAX_SCORES", cells)
    titles, queries = CORPORA[kind]
    module = bm25_module(titles, kind)
    found = called(module.serve, text=queries, k=[len(titles)] * len(queries))
    system = BM25System(1.6, 0.4, term_tokenizer(kind))
    for (scores, _), ids, ranked in zip(
        system.scores(queries, tuple(titles)), *found.values(), strict=True
    ):
        count = np.count_nonzero(scores)
        assert {*map(int, ids[:count])} == {*np.flatnonzero(scores)}
        assert (ids[count:] == b"").all() and (ranked[count:] == -2).all()
        order = scores[ids[:count].astype(int)]
        assert (np.diff(order) <= 1e-5).all()
        share = log_odds(ranked[:count]) + 2
        assert (share < 1).all()
        # One factor for all titles of a query.
        np.testing.assert_allclose(
            share, order * (share[:1] / order[:1]), atol=1e-4
        )
        assert (np.diff(ranked) <= 0).all()


def test_titles_without_words_are_served():
    module = bm25_module(["", "-"], "words")
    found = called(module.serve, text=["a"], k=[2])
    assert found["ids"].tolist() == [[b"", b""]]


def test_grams_of_the_graph_are_those_of_python():
    words = ["good", "a", "上海酒店", "t恤衫", "แก้ว", "#", "béquille", "mйн"]
    grams, word = letter_grams(unaccented(as_strings(words)))
    expected = [
        (gram, row) for row, each in enumerate(words) for gram in grams_of(each)
    ]
    assert [
        (gram.decode(), row)
        for gram, row in zip(grams.numpy(), word.numpy(), strict=True)
    ] == expected


def test_a_hybrid_has_one_score(exported, tmp_path):
    """In evaluation, in C++ and in `LocalModel`, by the same two classes."""
    model, _, cases = exported("hybrid")
    parts = HybridParts.of(model)
    run = HybridSystem(parts.systems(), kinds.HYBRID, kinds.SEARCHED).retrieve(
        dict(zip(kinds.SEARCHED, kinds.SEARCHED, strict=True)),
        dict(zip(kinds.IDS, kinds.TITLES, strict=True)),
        len(kinds.IDS),
    )
    ((in_cpp,),) = run_in_cpp({cases[0].version: [cases[0].request]})
    path = tmp_path / "hybrid.safetensors"
    export_portable(
        model, path, Documents(kinds.IDS, kinds.TITLES), "float32",
        hybrid=kinds.HYBRID, queries=kinds.SEARCHED,
    )  # fmt: skip
    local = LocalModel(path)
    for ranked, k, ids, scores, hits in zip(
        run.values(), kinds.KS, in_cpp["ids"], in_cpp["scores"],
        local.search(kinds.SEARCHED, kinds.MAX_K), strict=True,
    ):  # fmt: skip
        count = max(0, min(k, kinds.MAX_K))
        best = [*ranked.values()][: kinds.MAX_K]
        assert (ids[count:] == b"").all() and (scores[count:] == -2).all()
        for found, by_id in (
            (count, {i.decode(): s for i, s in zip(ids, scores, strict=True)}),
            (kinds.MAX_K, {hit.id: hit.score for hit in hits}),
        ):
            by_id.pop("", None)
            expected = [ranked[document_id] for document_id in by_id]
            values = log_odds(np.array([*by_id.values()]))
            np.testing.assert_allclose(values, expected, atol=1e-5)
            np.testing.assert_allclose(values, best[:found], atol=1e-5)

    query, _ = parts.encoders(kinds.HYBRID.weights)
    stored = local._documents.hybrid
    for weighted in (query.weighted, stored.encoder):
        assert isinstance(weighted, WeightedParts)
        assert [part.name for part in weighted.vectors] == ["towers", "words"]
        assert weighted.vector_weight == 8
        assert weighted.scales == [np.float32(x**0.5) for x in (0.625, 0.375)]


@pytest.fixture(scope="module")
def explained(exported):
    """The best titles of `SEARCHED`, their parts and words."""
    return called(
        loaded(exported("hybrid").cases[0].version).signatures["explained"],
        text=kinds.SEARCHED,
        k=[kinds.MAX_K] * len(kinds.SEARCHED),
        tags=[""] * len(kinds.SEARCHED),
    )


def test_parts_sum_to_the_score_and_are_those_of_the_systems(
    exported, explained
):
    expected = kinds.hybrid_scores(exported("hybrid").model, kinds.HYBRID)
    parts = explained["parts"]
    assert parts.shape == (len(kinds.SEARCHED), kinds.MAX_K, 6)
    np.testing.assert_allclose(
        parts.sum(axis=-1), log_odds(explained["scores"]), atol=1e-5
    )
    row = {
        title_id.encode(): number for number, title_id in enumerate(kinds.IDS)
    }
    rows = [[row[title_id] for title_id in ids] for ids in explained["ids"]]
    right = np.take_along_axis(expected, np.array(rows)[..., np.newaxis], 1)
    np.testing.assert_allclose(parts, right, atol=1e-5)
    # All titles have "number", no title has "seven", and no word of them has
    # a fitted vector.
    varies = np.ptp(parts[0], axis=0) > 1e-2
    assert varies.tolist() == [True, False, False, False, True, False]
    assert 0 < parts[0, 0, 2] < 0.1 * kinds.HYBRID.bm25


def test_tags_do_not_change_the_scale(exported):
    version = exported("hybrid").cases[0].version
    inputs = {"text": ["title 7"], "k": [kinds.MAX_K]}
    every, some, reasons, none = (
        called(loaded(version).signatures[name], **inputs, **tags)
        for name, tags in (
            ("serving_default", {}), ("filtered", {"tags": ["third"]}),
            ("explained", {"tags": ["third"]}),
            ("explained", {"tags": ["third,gone"]}),
        )
    )  # fmt: skip
    parts = kinds.hybrid_scores(
        exported("hybrid").model, kinds.HYBRID, ["title 7"]
    ).sum(-1)[0]
    tagged = [row for row, tags in enumerate(kinds.TAGS) if "third" in tags]
    assert 7 not in tagged and every["scores"][0][0] > some["scores"][0][0]
    count = np.count_nonzero(some["ids"])
    assert count == len(tagged)
    for name, values in some.items():
        np.testing.assert_array_equal(reasons[name], values)
    np.testing.assert_allclose(
        reasons["parts"][0].sum(-1)[:count],
        log_odds(some["scores"][0][:count]), atol=1e-5,
    )  # fmt: skip
    for empty in (reasons["words"][0][count:], *none["ids"], *none["words"]):
        assert len(empty) and {*empty} == {b""}
    np.testing.assert_allclose(
        log_odds(some["scores"][0][:count]),
        np.sort(parts[tagged])[::-1],
        atol=1e-5,
    )


def test_words_with_quotes_are_json():
    shares = tf.constant([[0.25, 0], [0.5, -0.125], [0.25, 1e-6]])
    found = shares_as_json(as_strings(['a"\\\x01', "b", "b"]), shares)
    assert [*map(json.loads, found.numpy())] == [
        {'a"\\': 0.25, "b": 0.75},
        {"b": -0.125},
    ]


def test_int8_costs_little_and_a_weight_may_be_0(exported, tmp_path):
    model = exported("hybrid").model
    settings = kinds.HYBRID.of_parts(["towers"])
    version = export_models(
        model,
        tmp_path,
        Documents(kinds.IDS, kinds.TITLES),
        "int8",
        hybrid=settings,
    )[-1]
    found = called(
        loaded(version).signatures["explained"],
        text=kinds.SEARCHED,
        k=[50] * 4,
        tags=[""] * 3 + ["any"],  # no title has tags
    )
    assert found["ids"].all(1).tolist() == [True] * 3 + [False]
    found = {name: values[:3] for name, values in found.items()}
    expected = kinds.hybrid_scores(model, settings).sum(-1)
    np.testing.assert_allclose(
        log_odds(found["scores"]), np.sort(expected)[:3, ::-1], atol=0.1
    )
    assert not found["parts"][..., 1:-1].any()
    assert {*found["words"].ravel()} == {
        b'{"bm25": {}, "numbers": {}, "words": {}}'
    }
    # Neither the sketch nor the words are stored.
    assert not any(
        w.dtype in (tf.uint8, tf.int64) for w in loaded(version).weights
    )


def test_the_folder_says_what_its_retriever_ranks_by(exported, tmp_path):
    bm25_module(["hex bolts", "bolt"], "stems").write_extra(tmp_path)
    about = json.loads((tmp_path / "assets.extra/hybrid.json").read_text())
    assert about["parts"] == ["bm25"]
    assert about["terms"] == 2
    # "bolting" is one of the forms.
    assert about["forms"] > 4
    assert describe_published(tmp_path) == (
        "hybrid: towers 0 (no such part), words 0 (no such part), bm25 1,"
        " numbers 0 (no such part), hubness 0 (no such part); base -2, weak"
        " below 0.08; terms are stems, k1 1.6, b 0.4;"
        f" {about['forms']} forms of 2 terms"
    )
    folder = exported("hybrid").cases[0].version
    with_words = json.loads((folder / "assets.extra/hybrid.json").read_text())
    assert with_words["parts"][:2] == ["towers", "words"]
    assert with_words["settings"]["bm25"] == kinds.HYBRID.bm25
