"""A hybrid in one file: hits, scores and reasons are those of the graph."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import Documents, export_portable
from keras_lstm_dssm.export.export_models import hybrid_graphs
from keras_lstm_dssm.settings import fields
from keras_lstm_dssm.settings.hybrid import HybridSettings
from lstm_dssm_client import ExplainedHit, LocalModel, ServingError, bm25
from lstm_dssm_client.signatures import HYBRID_PARTS
from tests.encoders.small import small_encoder

TITLES = [
    "steel hex bolts", "wood glue", "Garden hose", "steel hex bolt, zinc",
    "上海 酒店 hex", "bolt bolt bolt x 3/8", "", "the hoses", "wood glue",
]  # fmt: skip
IDS = [f"d{row}" for row in range(len(TITLES))]
TAGS = [["steel", "in stock"], ["in stock"], [], ["steel"], [], [], [], [], []]
DOCUMENTS = Documents(IDS, TITLES, (), TAGS)
QUERIES = ["hex bolts", "glue the Hexes Hoses", "", "上海", "zzz", "bolt bolt"]
KNOWN = ["some Hexes"]  # a form that no title has

CASES = {
    "all": ("combined_words", {"towers": 3.0, "hubness": 1.0}, "float32"),
    "towers": (
        "combined_words",
        {"words": 0, "bm25": 0, "numbers": 0},
        "int8",
    ),
    "letters": ("word_sum", {"bm25_words": "trigrams"}, "int8"),
    "bm25": (None, {"bm25_words": "stems"}, "float32"),
}


def towers(name: str | None) -> dssm.TwoTower | None:
    return name and dssm.TwoTower(small_encoder(name), small_encoder(name))


@pytest.mark.parametrize("case", CASES)
def test_hits_and_reasons_are_those_of_the_graph(case, tmp_path):
    name, options, vectors = CASES[case]
    model, settings = towers(name), HybridSettings(**options)
    graphs = hybrid_graphs(
        model, DOCUMENTS, vectors, 9, False, None, settings, KNOWN
    )
    module: Any = graphs["retriever"]()
    path = tmp_path / "shop.safetensors"
    export_portable(
        model, path, DOCUMENTS, "float32", vectors,
        hybrid=settings, queries=KNOWN,
    )  # fmt: skip
    local = LocalModel(path)
    rows = len(QUERIES)
    texts, k = np.array(QUERIES, object), np.full(rows, 5, np.int32)

    # Not the signatures, whose traces take longer than all the rest.
    outputs = module._search(tf.constant(texts), tf.constant(k), explained=True)
    graph = {name: tensor.numpy() for name, tensor in outputs.items()}
    found = local.explain(QUERIES, k=5)
    assert local.search(QUERIES, k=5) == [
        [(hit.id, hit.score, hit.title) for hit in hits] for hits in found
    ]
    for row, hits in enumerate(found):
        check_hits(hits, graph["ids"][row], graph["scores"][row])
        for hit, parts, words in zip(
            hits, graph["parts"][row], graph["words"][row], strict=False
        ):
            np.testing.assert_allclose([*hit.parts.values()], parts, atol=1e-5)
            log_odds = np.log(hit.score / (1 - hit.score))
            assert sum(hit.parts.values()) == pytest.approx(log_odds, abs=1e-4)
            for part, shares in json.loads(words).items():
                assert hit.words[part] == pytest.approx(shares, abs=1.1e-4)
                # The vector of a text without a known word is none's.
                if shares:
                    total = sum(shares.values())
                    assert total == pytest.approx(hit.parts[part], abs=3e-4)
        assert [hit.weak for hit in hits] == [*map(bool, graph["weak"][row])][
            : len(hits)
        ]

    for tags in (["steel"], ["in stock", "steel"]):
        joined = np.full(rows, ",".join(tags), object)
        outputs = module._search(*map(tf.constant, (texts, k, joined)))
        hits_of_texts = local.search(QUERIES, k=5, tags=tags)
        assert hits_of_texts == [
            [(hit.id, hit.score, hit.title) for hit in hits]
            for hits in local.explain(QUERIES, k=5, tags=tags)
        ]
        for hits, *row in zip(
            hits_of_texts, outputs["ids"], outputs["scores"], strict=True
        ):
            check_hits(hits, *(tensor.numpy() for tensor in row))
    with pytest.raises(InputError, match="'stel', which no document has"):
        local.explain(["hex"], tags=["stel"])
    if model:
        for encoder in ("query_encoder", "document_encoder"):
            expected = graphs[encoder]().encode(tf.constant(QUERIES)).numpy()
            vectors_of = local.encode(QUERIES, encoder)
            np.testing.assert_allclose(vectors_of, expected, atol=1e-6)
    else:
        with pytest.raises(ServingError, match="of retriever"):
            local.encode(QUERIES)


def check_hits(hits: Any, ids: np.ndarray, scores: np.ndarray) -> None:
    assert [hit.id.encode() for hit in hits] == [*filter(None, ids)]
    np.testing.assert_allclose(
        [hit.score for hit in hits], scores[: len(hits)], atol=1e-6
    )


def test_terms_alone_find_titles_that_match(tmp_path):
    """By hand: a term in each of 2 of 4 titles of equal lengths, once."""
    path = tmp_path / "shop.safetensors"
    titles = ["hex bolt", "hex nut", "wood glue", "wood screw"]
    settings = HybridSettings(0, 0, 1, 0, 0, -1.0, k1=0.0)
    stored = export_portable(
        None, path, Documents(titles, titles), hybrid=settings
    )
    assert stored == settings.replace(bm25_words="stems")
    local = LocalModel(path)
    first, second = local.explain(["Hexes bolts of the", "woods"], k=9)
    assert [hit.id for hit in first] == titles[:2]
    idf = {"bolts": np.log(1 + 3.5 / 1.5), "Hexes": np.log(1 + 2.5 / 2.5)}
    hexes = idf["Hexes"] / sum(idf.values())
    score = 1 / (1 + np.exp(1 - hexes))
    assert [hit.score for hit in first] == pytest.approx([0.5, score])
    parts = dict.fromkeys(HYBRID_PARTS, 0.0)
    assert first[1] == ExplainedHit(
        "hex nut",
        first[1].score,
        parts | {"bm25": pytest.approx(hexes), "base": -1.0},
        {
            "bm25": {"hexes": pytest.approx(hexes, abs=6e-5)},
            "numbers": {},
            "words": {},
        },
        "hex nut",
    )
    assert [(hit.id, hit.score) for hit in second] == [
        ("wood glue", 0.5), ("wood screw", 0.5),
    ]  # fmt: skip
    assert local.search(["hose"]) == [[]]
    assert local.status("retriever").keys() == {local.version}


def test_only_weights_that_are_read_are_stored(tmp_path):
    """No sketch, and of the words part nothing where its weight is 0."""
    sizes = {}
    model = towers("combined_words")
    for name, options in {
        "all": {}, "towers": {"words": 0}, "words": {"towers": 0},
    }.items():  # fmt: skip
        path: Path = tmp_path / f"{name}.safetensors"
        export_portable(
            model, path, DOCUMENTS, hybrid=HybridSettings(**options)
        )
        sizes[name] = path.stat().st_size
        assert not any("signs" in key for key in stored_names(path))
    # The table of the LSTM alone is 607,836 bytes, in each of two encoders.
    assert sizes["words"] < 100_000 < 1_000_000 < sizes["towers"] < sizes["all"]


def stored_names(path: Path) -> list[str]:
    header = path.read_bytes()
    return [*json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])]


def test_what_is_refused(tmp_path):
    path = tmp_path / "shop.safetensors"
    with pytest.raises(InputError, match="a hybrid retriever ranks titles"):
        export_portable(None, path, hybrid=HybridSettings())
    with pytest.raises(InputError, match="numbers in the hybrid are 0"):
        export_portable(
            None, path, DOCUMENTS, hybrid=HybridSettings(1, 0, 0, 0)
        )
    assert not path.exists()
    export_portable(towers("word_sum"), path, DOCUMENTS)
    with pytest.raises(InputError, match="no signature explained") as error:
        LocalModel(path).explain(["bolt"])
    assert "\n" not in str(error.value) and str(path) in str(error.value)


def test_names_are_those_of_the_settings():
    assert HYBRID_PARTS == (*fields.HYBRID_PARTS, "base")
    assert bm25.TERM_PARTS == fields.HYBRID_PARTS[2:4]
    assert tuple(bm25.FORMS) == fields.BM25_TERMS
