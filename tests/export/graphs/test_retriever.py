"""The retriever: exact, with its own k for each query, in both forms."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import Index
from keras_lstm_dssm.export import export_retriever
from keras_lstm_dssm.export.graphs import retriever
from keras_lstm_dssm.export.graphs.retriever import (
    DocumentTags,
    Float32Vectors,
    int8_codes,
    nearest,
)
from keras_lstm_dssm.text.strings import as_bytes
from tests.export.agreement import check_export, loaded
from tests.export.ops import serving_ops
from tests.serving.wire import predict_request

QUERIES = ["number seven", "title", "", "ünïcode"]
TITLES = [f"title number {i}" for i in range(50)]
# Longer and shorter than a small string holds (22 bytes), and other scripts.
IDS = [f"id-{i} " + "上海" * (i % 9) for i in range(50)]
MAX_K = 40
TAGS = [
    [tag for tag in ("even", "third", "上海") if i % len(tag) == 0][: i % 3]
    for i in range(50)
]
"""None, one or two tags; of the numbers 0, 3, ... none."""
WHOLE = st.integers(-2, 2)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_blocks_against_a_stable_sort(data):
    count = data.draw(st.integers(1, 20), "documents")
    batch = data.draw(st.integers(0, 3), "batch")
    width = data.draw(st.integers(0, count), "width")
    rows = st.lists(WHOLE, min_size=2, max_size=2)
    # Whole numbers: sums are exact and many are equal.
    vectors = np.float32(
        data.draw(st.lists(rows, min_size=count, max_size=count))
    )
    queries = np.float32(
        data.draw(st.lists(rows, min_size=batch, max_size=batch))
    ).reshape(batch, 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(retriever, "BLOCK", data.draw(st.integers(1, 8), "block"))
        scores, numbers = nearest(
            tf.constant(queries), Float32Vectors(vectors), tf.constant(width)
        )
    products = queries @ vectors.T
    expected = np.argsort(-products, axis=1, kind="stable")[:, :width]
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_array_equal(
        scores, np.take_along_axis(products, expected, axis=1)
    )


class Exported(NamedTuple):
    """A retriever on disk, and exact search over the same vectors."""

    index: Index
    encoder: Any
    folder: Path
    model: Any

    @classmethod
    def load(cls, index: Index, encoder: Any, folder: Path) -> "Exported":
        return cls(index, encoder, folder, loaded(folder))

    def search(
        self, queries: list[str], k: list[int], tags: list[str] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Runs a signature: ids and scores."""
        inputs = {
            "text": tf.constant(as_bytes(queries), tf.string, [len(queries)]),
            "k": tf.constant(k, tf.int32),
        }
        if tags is not None:
            inputs["tags"] = tf.constant(tags, tf.string, [len(tags)])
        name = "serving_default" if tags is None else "filtered"
        outputs = self.model.signatures[name](**inputs)
        return outputs["ids"].numpy(), outputs["scores"].numpy()


@pytest.fixture(scope="module")
def encoders() -> tuple[dssm.TextEncoder, dssm.TextEncoder]:
    return dssm.LSTMEncoder(8), dssm.LSTMEncoder(8)


@pytest.fixture(scope="module", params=["float32", "int8"])
def exported(
    request,
    encoders: tuple[dssm.TextEncoder, dssm.TextEncoder],
    tmp_path_factory,
) -> Exported:
    query, document = encoders
    vectors = document.encode(TITLES)
    if request.param == "int8":
        codes, scales = int8_codes(vectors)
        vectors = codes * scales[:, np.newaxis]
    folder = export_retriever(
        *(query, document, IDS, TITLES),
        tmp_path_factory.mktemp(request.param) / "retriever",
        vectors=request.param,
        max_k=MAX_K,
        tags=TAGS,
    )
    index = Index.from_vectors(vectors, IDS, query)
    return Exported.load(index, query, folder)


@pytest.mark.parametrize("k", [3, MAX_K, MAX_K + 1, 2**31 - 1])
def test_it_finds_what_exact_search_finds(exported, k):
    """A k above the largest counts as the largest."""
    width = min(k, MAX_K)
    ids, scores = exported.search(QUERIES, [k] * len(QUERIES))
    assert ids.shape == scores.shape == (len(QUERIES), width)
    expected = exported.index.search(QUERIES, len(IDS))
    for row, found, hits in zip(scores, ids, expected, strict=True):
        best = [hit.score for hit in hits[:width]]
        np.testing.assert_allclose(row, best, atol=1e-6)
        # Each id once, with the score of its own document.
        names = [name.decode() for name in found]
        assert len(set(names)) == width
        score = {hit.id: hit.score for hit in hits}
        np.testing.assert_allclose(row, [score[i] for i in names], atol=1e-6)


def test_each_row_has_its_own_k(exported):
    ids, scores = exported.search(["title"] * 4, [1, 3, 0, -5])
    assert ids.shape == (4, 3)
    assert ids[0, 0] == ids[1, 0]
    assert ids[0, 1:].tolist() == [b"", b""]
    assert ids[3].tolist() == [b""] * 3
    assert scores[0, 1:].tolist() == scores[2, :2].tolist() == [-2, -2]
    assert exported.search([], [])[0].shape == (0, 0)


@pytest.mark.parametrize("asked", ["even", "third", "上海, even", "absent"])
def test_a_filter_is_a_search_of_the_subset(exported, asked):
    """A title matches when it has any of the tags."""
    wanted = {tag.strip() for tag in asked.split(",")}
    subset = [row for row, tags in enumerate(TAGS) if wanted & {*tags}]
    assert bool(subset) == (asked != "absent")
    ids, scores = exported.search(QUERIES, [MAX_K] * 4, [asked] * 4)
    assert ids.shape == (4, MAX_K)
    rows = subset[:MAX_K]
    assert [np.count_nonzero(found) for found in ids] == [len(rows)] * 4
    assert (scores[:, len(rows) :] == -2).all()
    if subset:
        index = Index.from_vectors(
            exported.index.vectors[subset],
            [IDS[row] for row in subset],
            exported.encoder,
        )
        for found, row, hits in zip(
            ids, scores, index.search(QUERIES, MAX_K), strict=True
        ):
            names = [name.decode() for name in found[: len(rows)]]
            assert {*names} == {hit.id for hit in hits}
            score = {hit.id: hit.score for hit in hits}
            np.testing.assert_allclose(
                row[: len(rows)], [hit.score for hit in hits], atol=1e-6
            )
            np.testing.assert_allclose(
                row[: len(rows)], [score[i] for i in names], atol=1e-6
            )


def test_each_row_has_its_own_tags(exported):
    ids, scores = exported.search(
        ["title"] * 4, [50, 50, 2, 50], ["", "third", " third ,even", "x"]
    )
    everything, every_score = exported.search(["title"] * 4, [50] * 4)
    assert ids[0].tolist() == everything[0].tolist()
    assert scores[0].tolist() == every_score[0].tolist()
    third = {IDS[row].encode() for row in range(50) if "third" in TAGS[row]}
    assert {*ids[1]} == {*third, b""}
    assert np.count_nonzero(ids[2]) == 2
    assert {*ids[3]} == {b""}
    assert exported.search([], [], [])[0].shape == (0, 0)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_matches_against_sets(data):
    some = st.lists(st.sampled_from("abcd"), max_size=3, unique=True)
    tags = data.draw(st.lists(some, min_size=1, max_size=9).filter(any))
    asked = data.draw(st.lists(st.lists(st.sampled_from("abcx"), max_size=3)))
    mask = DocumentTags(tags).mask(
        tf.constant([",".join(of_one) for of_one in asked], tf.string)
    )
    start = data.draw(st.integers(0, len(tags)))
    found = mask(tf.constant(start), tf.constant(len(tags))).numpy()
    assert found.tolist() == [
        [not of_one or bool({*of_one} & {*known}) for known in tags[start:]]
        for of_one in asked
    ]


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ([["a"]], "found tags of 1 documents, expected those of 50: give an"),
        ([["a,b"]] * 50, "found the tag b'a,b', expected a tag that is not"),
        ([[" "]] * 50, "found the tag b' '"),
        ([[*map(str, range(33))]] * 50,
         "document 0: found 33 tags of one title, exp"),
        (["ab"] * 50, "expected a list of tags, got 'ab'"),
    ],
)  # fmt: skip
def test_wrong_tags(encoders, tmp_path, tags, message):
    with pytest.raises(InputError, match=message):
        export_retriever(*encoders, IDS, TITLES, tmp_path, tags=tags)
    assert not [*tmp_path.iterdir()]


def test_cpp_loader_gives_the_same(exported):
    k = np.int32([1, MAX_K, 0, 2**31 - 1])
    request = predict_request("retriever", text=as_bytes(QUERIES), k=k)
    tags = as_bytes(["even", "", "x,third", "上海"])
    filtered = predict_request(
        "retriever", text=as_bytes(QUERIES), k=k, tags=tags
    )
    filtered.model_spec.signature_name = "filtered"
    outputs, found = check_export(
        (exported.folder, request), (exported.folder, filtered)
    )
    assert {"TopKV2", "CaseFoldUTF8"} <= serving_ops(exported.folder)
    assert outputs["ids"].shape == (4, MAX_K)
    even = {IDS[row].encode() for row in range(50) if "even" in TAGS[row]}
    assert found["ids"][0, 0] in even
    assert found["ids"][1].tolist() == outputs["ids"][1].tolist()
    (hits,) = exported.index.search(QUERIES[1:2], MAX_K)
    np.testing.assert_allclose(
        outputs["scores"][1], [hit.score for hit in hits], atol=1e-6
    )


@pytest.mark.parametrize(
    ("vectors", "atol"), [("float32", 1e-6), ("int8", 0.02)]
)
def test_double_precision_is_served_as_float32(tmp_path, vectors, atol):
    query, document = (dssm.RNNEncoder(4, dtype="float64") for _ in range(2))
    folder = export_retriever(
        query, document, IDS, TITLES, tmp_path, vectors=vectors
    )
    index = Index(document, TITLES, IDS, query)
    _, scores = Exported.load(index, query, folder).search(QUERIES, [50] * 4)
    assert scores.dtype == np.float32
    expected = [
        [hit.score for hit in hits] for hits in index.search(QUERIES, 50)
    ]
    np.testing.assert_allclose(scores, expected, atol=atol)
