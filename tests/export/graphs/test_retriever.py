"""Retrievers: exact search, each row's own k and tags."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export import export_retriever
from keras_lstm_dssm.export.graphs import retriever
from keras_lstm_dssm.export.graphs.saved_module import EncodingModule
from lstm_dssm_client.signatures import as_bytes
from tests.export.agreement import loaded
from tests.export.graphs.kinds import (
    IDS,
    MAX_K,
    SEARCHED,
    TAGS,
    TITLES,
    Exported,
)

WHOLE = st.integers(-2, 2)


def graph_of(vectors: np.ndarray, kind: str) -> retriever.DocumentVectors:
    return retriever.VECTORS[kind](retriever.StoredVectors(vectors, kind))


def test_codes_of_known_numbers():
    codes, scales = retriever.int8_codes(np.float32([[0.6, -0.8], [0, 1]]))
    assert codes.dtype == np.int8 and scales.dtype == np.float32
    # 127 * 0.6 / 0.8 = 95.25
    assert codes.tolist() == [[95, -127], [0, 127]]
    np.testing.assert_allclose(scales, [1 / 25154**0.5, 1 / 127], rtol=1e-6)


def test_a_zero_vector_stays_zero_as_int8():
    codes, scales = retriever.int8_codes(np.float32([[0, 0], [0, 1]]))
    assert codes.tolist() == [[0, 0], [0, 127]]
    assert scales[0] == 1 and scales.dtype == np.float32
    stored = graph_of(np.zeros([1, 2], np.float32), "int8")
    assert stored.cosines(tf.constant([[0.6, 0.8]]), 0, 1).numpy() == [[0]]


def test_a_title_with_a_zero_vector_is_named(caplog):
    class Known(EncodingModule):
        def encode(self, text: tf.Tensor) -> tf.Tensor:
            raise NotImplementedError

        def _encode_distinct(
            self, texts: list[str], progress: bool
        ) -> np.ndarray:
            return np.float32([[text != "qqq", 0] for text in texts])

    module = object.__new__(Known)
    vectors = module.encode_all(["nut", "qqq", "nut"])
    assert vectors.tolist() == [[1, 0], [0, 0], [1, 0]]
    (record,) = caplog.records
    assert record.getMessage() == (
        "1 of 2 distinct texts have zero vectors, such as 'qqq': the "
        "encoder knows none of their words, and their cosines are 0"
    )


def test_a_number_takes_four_bytes_or_one():
    vectors = np.eye(10, 96, dtype=np.float32)
    for kind, size in (("float32", 10 * 96 * 4), ("int8", 10 * (96 + 4))):
        stored = graph_of(vectors, kind).variables
        assert sum(each.numpy().nbytes for each in stored) == size


def test_int8_scores_are_cosines_of_rounded_vectors():
    rng = np.random.default_rng(4)
    vectors = rng.normal(size=(3000, 96)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    queries = tf.constant(vectors[:5])
    codes, scales = retriever.int8_codes(vectors)
    rounded = codes * scales[:, np.newaxis].astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(rounded, axis=1), 1, atol=1e-6)
    got = graph_of(vectors, "int8").cosines(queries, 7, 3000)
    np.testing.assert_allclose(got, vectors[:5] @ rounded[7:].T, atol=1e-6)
    # Each number is off by half of a step at most, here a few thousandths.
    exact = graph_of(vectors, "float32").cosines(queries, 7, 3000)
    assert 1e-4 < np.abs(got - exact).max() < 5e-3


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
        rows = np.arange(len(vectors), dtype=np.int32)
        different = retriever.EqualVectors(rows, rows, rows)
        patch.setattr(retriever.EqualVectors, "find", lambda _: different)
        stored = graph_of(vectors, "float32")
        scores, numbers = retriever.best_rows(
            functools.partial(stored.cosines, tf.constant(queries)),
            tf.constant(queries),
            stored.edges,
            tf.constant(width),
        )
    products = queries @ vectors.T
    expected = np.argsort(-products, axis=1, kind="stable")[:, :width]
    np.testing.assert_array_equal(numbers, expected)
    np.testing.assert_array_equal(
        scores, np.take_along_axis(products, expected, axis=1)
    )


def test_equal_vectors_are_adjacent_in_the_order_of_the_first():
    a, b, c = np.eye(3, dtype=np.float32)
    equal = retriever.EqualVectors.find(np.stack([a, b, a, c, b, a]))
    assert equal.order.tolist() == [0, 2, 5, 1, 4, 3]
    assert equal.vector_of.tolist() == [0, 0, 0, 1, 1, 2]
    assert equal.first.tolist() == [0, 1, 3]


def test_blocks_hold_all_documents_of_a_vector(monkeypatch):
    """A block has all documents of its vectors, or documents of one vector."""
    monkeypatch.setattr(retriever, "BLOCK", 4)
    vector_of = np.repeat(np.arange(6), [1, 2, 3, 9, 2, 1])
    edges = retriever.block_edges(vector_of)
    assert edges.tolist() == [0, 3, 6, 10, 14, 15, 18]


@pytest.mark.parametrize("kind", retriever.VECTORS)
@pytest.mark.parametrize("block", [64, 5])
def test_equal_vectors_have_equal_scores(kind, block, monkeypatch):
    """Other documents change nothing; equal vectors may fill several blocks."""
    monkeypatch.setattr(retriever, "BLOCK", block)
    rng = np.random.default_rng(2)
    vectors = rng.normal(size=(31, 37)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    shared = rng.integers(0, 31, 60)
    shared[::4] = 7
    vectors = vectors[shared]
    equal = retriever.EqualVectors.find(vectors)
    stored = graph_of(vectors, kind)
    queries = rng.normal(size=(9, 37)).astype(np.float32)
    for rows in (slice(0, 9), slice(0, 1)):
        scores, positions = retriever.best_rows(
            functools.partial(stored.cosines, tf.constant(queries[rows])),
            tf.constant(queries[rows]),
            stored.edges,
            tf.constant(60),
        )
        documents = equal.order[positions]
        products = queries[rows] @ vectors.T
        np.testing.assert_allclose(
            scores, np.take_along_axis(products, documents, 1), atol=0.03
        )
        for found, of_query in zip(documents, scores.numpy(), strict=True):
            assert sorted(found) == [*range(60)]
            for vector in set(shared):
                same = shared[found] == vector
                assert len(set(of_query[same])) == 1
                assert (np.diff(found[same]) > 0).all()


@pytest.fixture(params=["retriever", "retriever_int8"])
def both(request, exported) -> Exported:
    """A retriever of each form of vectors, tested with exact search."""
    return exported(request.param)


def search(
    exported: Exported, queries: list[str], k: list[int], tags: object = None
) -> tuple[np.ndarray, np.ndarray]:
    """Runs a signature: ids and scores."""
    inputs = {
        "text": tf.constant(as_bytes(queries), tf.string, [len(queries)]),
        "k": tf.constant(k, tf.int32),
    }
    if tags is not None:
        inputs["tags"] = tf.constant(tags, tf.string, [len(queries)])
    name = "serving_default" if tags is None else "filtered"
    outputs = loaded(exported.folder).signatures[name](**inputs)
    return outputs["ids"].numpy(), outputs["scores"].numpy()


def check_hits(
    index: dssm.Index, ids: np.ndarray, scores: np.ndarray, count: int
) -> None:
    """Each id once, with its own score; the best first, and no better ones."""
    for found, row, hits in zip(
        ids, scores, index.search(SEARCHED, len(IDS)), strict=True
    ):
        names = [name.decode() for name in found[:count]]
        assert len({*names}) == count
        score = {hit.id: hit.score for hit in hits}
        for expected in ([hit.score for hit in hits[:count]],
                         [score[name] for name in names]):  # fmt: skip
            np.testing.assert_allclose(row[:count], expected, atol=1e-6)


@pytest.mark.parametrize("k", [3, MAX_K, MAX_K + 1, 2**31 - 1])
def test_it_finds_what_exact_search_finds(both, k):
    """A k above the largest counts as the largest."""
    ids, scores = search(both, SEARCHED, [k] * len(SEARCHED))
    assert ids.shape == scores.shape == (len(SEARCHED), min(k, MAX_K))
    check_hits(both.model[0], ids, scores, min(k, MAX_K))


@pytest.mark.parametrize("asked", ["even", "third", "third, even", "absent"])
def test_a_filter_is_a_search_of_the_subset(both, exported, asked):
    """A title matches when it has all of the plain tags."""
    wanted = {tag.strip() for tag in asked.split(",")}
    subset = [row for row, tags in enumerate(TAGS) if wanted <= {*tags}]
    assert bool(subset) == (asked != "absent")
    ids, scores = search(both, SEARCHED, [MAX_K] * 4, [asked] * 4)
    assert ids.shape == (4, MAX_K)
    count = min(len(subset), MAX_K)
    assert [np.count_nonzero(found) for found in ids] == [count] * 4
    assert (scores[:, count:] == -2).all()
    if subset:
        index, encoder = both.model
        names = [IDS[row] for row in subset]
        vectors = index.vectors[subset]
        index = dssm.Index.from_vectors(vectors, names, encoder)
        check_hits(index, ids, scores, count)


def test_each_row_has_its_own_tags(both):
    ids, scores = search(
        both, ["title"] * 4, [50, 50, 2, 50], ["", "third", " third ,even", "x"]
    )
    everything, every_score = search(both, ["title"] * 4, [50] * 4)
    assert ids[0].tolist() == everything[0].tolist()
    assert scores[0].tolist() == every_score[0].tolist()
    third = {IDS[row].encode() for row in range(50) if "third" in TAGS[row]}
    assert {*ids[1]} == {*third, b""}
    assert np.count_nonzero(ids[2]) == 1
    assert {*ids[3]} == {b""}


def test_all_tags_are_listed_with_counts_for_each_row(both):
    known = loaded(both.folder).signatures["known_tags"]
    outputs = known(text=tf.constant(["", "a"]))
    number = collections.Counter(tag for tags in TAGS for tag in tags)
    expected = {tag.encode(): count for tag, count in sorted(number.items())}
    tags, counts = outputs["tags"].numpy(), outputs["counts"].numpy()
    for row in range(2):
        found = dict(zip(tags[row], counts[row], strict=True))
        assert [*found.items()] == [*expected.items()]


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_matches_against_sets(data):
    """Names must all hold; of the values of a name any; unknown tags never."""
    values = ["n:1", "n:2", "n:", "n", "m:1", "m:2", "b", "m:no"]
    some = st.lists(st.sampled_from(values[:-1]), max_size=4, unique=True)
    tags = data.draw(st.lists(some, min_size=1, max_size=9).filter(any))
    asked = data.draw(st.lists(st.lists(st.sampled_from(values), max_size=4)))
    every = {tag for known in tags for tag in known}

    def matches(wanted: list[str], known: list[str]) -> bool:
        parted = [tag.partition(":")[:2] for tag in wanted]
        return {*wanted} <= every and all(
            any(
                tag in known
                for tag, other in zip(wanted, parted, strict=True)
                if other == name
            )
            for name in parted
        )

    mask = retriever.DocumentTags(tags).mask(
        tf.constant([",".join(of_one) for of_one in asked], tf.string)
    )
    start = data.draw(st.integers(0, len(tags)))
    found = mask(tf.constant(start), tf.constant(len(tags))).numpy()
    assert found.tolist() == [
        [matches(wanted, known) for known in tags[start:]] for wanted in asked
    ]


def test_tags_match_in_all_forms_of_unicode():
    """A file of macOS has accents apart, a keyboard has them composed."""
    apart, composed = "caf\u0065\u0301", "caf\u00e9"
    mask = retriever.DocumentTags([[apart], [composed, "x"], ["cafe"]]).mask(
        tf.constant([apart, composed, f"x, {apart}", "cafe", b"\xff", ", "])
    )
    assert mask(tf.constant(0), tf.constant(3)).numpy().tolist() == [
        *[[True, True, False]] * 2, [False, True, False],
        [False, False, True], [False] * 3, [True] * 3,
    ]  # fmt: skip


@pytest.mark.parametrize(("tags", "message"), [
    ([["a"]], "found tags of 1 documents, expected tags of 50: give an"),
    ([["a,b"]] * 50, "found the tag b'a,b', expected a tag that is not"),
    ([[" "]] * 50, "found the tag b' '"),
    ([[*map(str, range(33))]] * 50,
     "document 0: found 33 tags of one title, exp"),
    (["ab"] * 50, "expected a list of tags, got 'ab'"),
])  # fmt: skip
def test_wrong_tags(tmp_path, tags, message):
    encoders = dssm.RNNEncoder(2), dssm.RNNEncoder(2)
    with pytest.raises(InputError, match=message):
        export_retriever(*encoders, IDS, TITLES, tmp_path, tags=tags)
    assert not [*tmp_path.iterdir()]
