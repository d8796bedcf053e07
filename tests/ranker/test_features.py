"""Features of a ranker: in the graph, in plain Python, and of models."""

import numpy as np
import pytest
import tensorflow as tf

import keras_lstm_dssm as dssm
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.ranker.overlap_features import (
    NAMES,
    OverlapFeatures,
    on_grid,
    split_both_ways,
    stems,
)
from keras_lstm_dssm.ranker.ranker import graph_scores, source_of
from tests.ranker.plain_overlap import PlainOverlap
from tests.ranker.small_ranker import small_scorer
from tests.reference import stem

TITLES = ["steel hex bolt 3", "wood glue", "steel lamp", "steel lamp"]


def features(
    overlap: OverlapFeatures, queries: list, titles: list
) -> list[dict[str, float]]:
    rows = overlap(
        tf.constant(queries, tf.string), tf.constant(titles, tf.string)
    )
    assert rows.dtype == tf.float32 and rows.shape == (len(queries), 22)
    return [dict(zip(NAMES, row, strict=True)) for row in rows.numpy().tolist()]


def test_a_pair_by_hand():
    overlap = OverlapFeatures.from_titles(TITLES)
    (found,) = features(overlap, ["Hex bolts 3in"], ["steel hex bolt 3"])
    idf = np.log1p(2.5 / 1.5)  # each of hex, bolt, 3 is in one of 3 titles
    inch = np.log1p(3.5 / 0.5)
    norm = 1.2 * (0.25 + 0.75 * 4 / (8 / 3))
    expected = {
        "bm25": 3 * idf / (1 + norm),
        "idf_share": 3 * idf / (3 * idf + inch),
        "stem_share": 3 / 4,
        "word_share": 1 / 3,  # bolts and 3in are not in the title
        "prefix_share": 3 / 4,
        # #he hex ex# | #bo bol olt lts ts# | #3i 3in in#
        "trigram_share": 6 / 11,
        # #st ste tee eel el# | #he hex ex# | #bo bol olt lt# | #3#
        "title_trigram_share": 6 / 13,
        "title_stem_share": 3 / 4,
        "query_length": 4,
        "title_length": 4,
        "rarest_missing": inch,
        "commonest_shared": idf,
        "spelling": (1 + 3 / 5 + 0) / 3,
        "worst_spelling": 0,
        "longest_run": 3,
        "neighbours": 2 / 3,
        "numbers_shared": 1,
        "numbers": 1,
        "first_position": 1,
        "last_position": 3,
        "first_shared": 1,
        "last_shared": 0,
    }
    assert list(expected) == list(NAMES)
    assert found == pytest.approx(expected, abs=2.0**-13)


WORDS = [
    *("hex", "bolt", "bolts", "steel", "glue", "wood", "glues", "12", "3"),
    *("2x4", "4x4", "10ft", "boxes", "box", "batteries", "battery", "lighting"),
    *("light", "hanging", "glass", "glasses", "上海", "酒店", "écru", "Ωmega"),
    *("½in", "a", "x", "angle-bracket", "#", "&", "ΣΑΣ", "m²", "٣٤"),
    *("e\u0301s", "nul\x00bolt", "painted", "red", "ties"),
    *("eies", "us", "s", "\u00ad"),
]  # fmt: skip


def random_texts(seed: int, count: int) -> list[str]:
    random = np.random.default_rng(seed)
    return [
        " ".join(random.choice(WORDS, random.integers(0, 9)))
        for _ in range(count)
    ]


def check(queries: list[str], titles: list[str]) -> None:
    overlap, plain = OverlapFeatures.from_titles(titles), PlainOverlap(titles)
    for row, query, title in zip(
        features(overlap, queries, titles), queries, titles, strict=True
    ):
        expected = plain(query, title)
        # The grid, and sums in float32 beside its borders.
        assert row == pytest.approx(expected, abs=2.0**-13 + 1e-5), (
            query,
            title,
        )


def test_random_pairs_equal_plain_python():
    check(random_texts(0, 400), random_texts(1, 400))


def test_long_and_odd_texts_equal_plain_python():
    long = " ".join(WORDS * 3)
    odd = ["", long, "2x4" * 60, "bolt " * 200, "é" * 3000, "a" * 5000]
    queries = [query for query in odd for _ in odd]
    check(queries, odd * len(odd))


def test_stems_equal_plain_python():
    words = [word for word in WORDS if word.isalnum()]
    words += ["boss", "bus", "churches", "houses", "seeds", "king", "bedding"]
    found = stems(tf.constant(words)).numpy().tolist()
    assert [word.decode() for word in found] == [stem(word) for word in words]
    assert found[-4:] == [b"house", b"seed", b"king", b"bedd"]


def test_a_batch_does_not_change_a_row():
    """A pair has the same features alone, in a batch and in a graph."""
    queries, titles = random_texts(2, 60), random_texts(3, 60)
    overlap = OverlapFeatures.from_titles(titles)
    graph = tf.function(
        overlap, input_signature=[tf.TensorSpec([None], tf.string)] * 2
    )
    rows = graph(tf.constant(queries), tf.constant(titles)).numpy()
    for row in range(0, 60, 7):
        alone = graph(
            tf.constant(queries[row : row + 1]),
            tf.constant(titles[row : row + 1]),
        )
        np.testing.assert_array_equal(alone[0], rows[row])
    nothing = tf.constant([], tf.string)
    assert graph(nothing, nothing).shape == (0, 22)
    empty = features(overlap, [b"", b"\xff"], [b"\xfe", b""])
    assert all(np.isfinite(list(row.values())).all() for row in empty)


def test_statistics_can_be_stored():
    overlap = OverlapFeatures.from_titles(TITLES)
    config = overlap.get_config()
    assert config == {
        "words": ["3", "bolt", "glue", "hex", "lamp", "steel", "wood"],
        "counts": [1, 1, 1, 1, 1, 2, 1], "titles": 3, "mean_length": 8 / 3,
    }  # fmt: skip
    again = OverlapFeatures(**config)
    pair = ["steel bolt"], ["hex bolt"]
    assert features(again, *pair) == features(overlap, *pair)


def test_what_is_refused():
    with pytest.raises(InputError, match="no word in 2 titles"):
        OverlapFeatures.from_titles(["", "&"])
    with pytest.raises(InputError, match="1 words and 2 counts"):
        OverlapFeatures(["a"], [1, 2], 3, 1.0)


def test_split_and_grid():
    words, parts = split_both_ways(tf.constant(["2X4 10ft-Stud", "&"]))
    assert words.to_list() == [[b"2x4", b"10ft", b"stud"], []]
    assert parts.to_list() == [[b"2", b"x", b"4", b"10", b"ft", b"stud"], []]
    values = on_grid([1 / 3, -2.00001])
    np.testing.assert_array_equal(values, [1365 / 4096, -2])


QUERIES = [b"hex bolt", b"glue", b"hex bolt", b""]
OTHERS = [b"steel hex bolt", b"wood glue", b"wood glue", b"desk lamp"]


# Towers whose weights differ, as after a training.
TOWERS = dssm.Recipe("DSSMEncoder", {"units": [8]}, towers="separate")


@pytest.mark.parametrize("kind", ["towers", "scorer"])
def test_a_graph_gives_the_same_scores(kind):
    model = TOWERS.build(1) if kind == "towers" else small_scorer()
    source = source_of(model, kind)
    scores = graph_scores(source, tf.constant(QUERIES), tf.constant(OTHERS))
    expected = source.score_pairs(QUERIES, OTHERS)
    np.testing.assert_allclose(scores, expected, atol=1e-6)
    assert np.ptp(expected) > 1e-3
    assert source.score_pairs([], []).shape == (0,)


@pytest.mark.parametrize("untrained", [dssm.PRESETS["best"].build(), "bm25"])
def test_other_models_are_no_source(untrained):
    name = type(untrained).__name__
    with pytest.raises(InputError, match=f"RUN: found a {name}, expected tra"):
        source_of(untrained, "RUN")
