"""The strongest cells of an interaction matrix, their words and pictures."""

from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.analysis import (
    compare_words,
    scorer_report,
    strongest_words,
)
from keras_lstm_dssm.analysis.scorer_report import (
    best_positions,
    compare_scorers,
)
from keras_lstm_dssm.data.triples import JudgedList
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.layers import TrigramVectors, VocabularyVectors
from keras_lstm_dssm.matchers import MVLSTM, RecurrentCosine
from keras_lstm_dssm.models import PairScorer

QUERY, DOCUMENT = "Memory stick, error!", "an ERROR of the memory"
VOCABULARY = ["an", "error", "memory", "stick", "the"]


def scorer(interaction: str, **options: Any) -> PairScorer:
    """Makes an MV-LSTM with random weights, also in its last layer."""
    words = VocabularyVectors(VOCABULARY, 4, max_words=4)
    options = {"units": 3, "slices": 2, "k": 3, "hidden": 6, **options}
    matcher = MVLSTM(4, interaction=interaction, **options)
    random = np.random.default_rng(0)
    for layer in (words, matcher):
        weights = [random.normal(size=w.shape) for w in layer.get_weights()]
        # Positive biases, so that few relus are 0 everywhere.
        layer.set_weights([abs(w) if w.ndim == 1 else w for w in weights])
    return PairScorer(words, matcher)


@pytest.mark.parametrize("interaction", ["cosine", "tensor"])
def test_cells_equal_numpy(float64, interaction):
    """Sorts the cells in NumPy; the MLP's active units give contributions."""
    model = scorer(interaction)
    slices = 1 if interaction == "cosine" else 2
    matrix = compare_words(model, QUERY, DOCUMENT)
    query, document = ("memory", "stick", "error"), ("an", "error", "of", "the")
    assert (matrix.query_words, matrix.document_words) == (query, document)
    assert matrix.unknown == ("of",)
    assert matrix.cells.shape == (3, 4, slices)
    assert len(matrix.strongest) == 3 * slices
    assert len(np.unique(matrix.cells.round(9))) > 5

    kernel, bias, last, last_bias = model.matcher.mlp.get_weights()
    pooled = np.sort(matrix.cells.reshape(12, slices), axis=0)[:-4:-1]
    hidden = pooled.T.ravel() @ kernel + bias
    slopes = kernel @ (last[:, 0] * (hidden > 0))
    score = np.maximum(hidden, 0) @ last[:, 0] + last_bias[0]
    np.testing.assert_allclose(matrix.score, score, rtol=1e-9)
    assert model.score(QUERY, [DOCUMENT])[0] == pytest.approx(score, rel=1e-9)
    values = [cell.value for cell in matrix.strongest]
    np.testing.assert_allclose(values, pooled.T.ravel(), rtol=1e-9)
    contributions = [cell.contribution for cell in matrix.strongest]
    np.testing.assert_allclose(contributions, values * slopes, rtol=1e-7)
    assert np.ptp(contributions) > 1e-3
    rest = score - np.dot(values, slopes)
    assert matrix.rest == pytest.approx(rest, abs=1e-9) != 0
    for number, cell in enumerate(matrix.strongest):
        assert cell.slice == number // 3
        row, column = cell.query_position, cell.document_position
        assert cell[:2] == (query[row], document[column])
        assert cell.value == matrix.cells[row, column, cell.slice]
    assert strongest_words(model, QUERY, DOCUMENT) == matrix.strongest


def test_equal_words_match_best():
    """In equal texts, each word has the largest cosine with itself."""
    model = scorer("cosine", include_word=True)
    cells = strongest_words(model, "memory stick error", "memory stick error")
    words = {cell[:2] for cell in cells}
    assert words == {(word, word) for word in ("memory", "stick", "error")}
    np.testing.assert_allclose([cell.value for cell in cells], 1, rtol=1e-5)


def test_fewer_cells_than_k_and_dynamic_pooling():
    assert [c[:2] for c in strongest_words(scorer("dot"), "stick", "the")] == [
        ("stick", "the")
    ]
    model = scorer("dot", pooling="dynamic", grid=(2, 2))
    matrix = compare_words(model, QUERY, DOCUMENT)
    assert len(matrix.strongest) == 3
    assert matrix.score == pytest.approx(model.score(QUERY, [DOCUMENT])[0])


def test_matchers_without_a_matrix_are_refused():
    model = PairScorer(TrigramVectors(4), RecurrentCosine(4, 2))
    with pytest.raises(InputError, match="RecurrentCosine has no interaction"):
        strongest_words(model, QUERY, DOCUMENT)


def test_picture(tmp_path, drawn):
    """Draws slices below one another, and frames the strongest cells."""
    model = scorer("tensor")
    matrices = [compare_words(model, QUERY, d) for d in (DOCUMENT, "memory $x")]
    scorer_report.draw_matrices(
        tmp_path / "m.png", matrices, ["right", "wrong"]
    )
    assert (tmp_path / "m.png").stat().st_size > 5_000
    assert [axis.get_title() for axis in drawn] == ["right", "wrong"]
    labels = [label.get_text() for label in drawn[0].get_yticklabels()]
    query = ["memory", "stick", "error"]
    assert labels == ["slice 1", *query, "slice 2", *query]
    for axis, matrix in zip(drawn, matrices, strict=True):
        shown = np.asarray(axis.images[0].get_array().filled(np.nan))
        assert np.isnan(shown[[0, 4]]).all()
        for number in range(2):
            np.testing.assert_array_equal(
                shown[1 + 4 * number : 4 + 4 * number],
                matrix.cells[:, :, number],
            )
        corners = [patch.get_xy() for patch in axis.patches]
        expected = [
            (c.document_position - 0.5, 4 * c.slice + c.query_position + 0.5)
            for c in matrix.strongest
        ]
        assert corners == expected
        ranks = [text.get_text() for text in axis.texts]
        assert ranks == ["1", "2", "3"] * 2
    largest = max(np.abs(matrix.cells).max() for matrix in matrices)
    assert {axis.images[0].get_clim() for axis in drawn} == {
        (-largest, largest)
    }


def random_lists(count: int) -> list[JudgedList]:
    """Draws random queries, each with one or two right answers of four."""
    random, lists = np.random.default_rng(0), []
    for row in range(count):
        texts: dict[str, None] = {}
        while len(texts) < 5:
            words = random.permutation(VOCABULARY)[: random.integers(1, 5)]
            texts[" ".join(words)] = None
        query, *documents = texts
        right = 1 + row % 2
        lists.append(JudgedList(query, documents[:right], documents[right:]))
    return lists


def test_best_positions_are_those_of_each_matrix():
    model, lists = scorer("tensor"), random_lists(20)
    found = best_positions(model.words, model.matcher, lists)
    expected = []
    for one in lists:
        for right in one.positives:
            cells = compare_words(model, one.query, right).cells.max(axis=2)
            best = np.unravel_index(cells.argmax(), cells.shape)
            ends = np.array(cells.shape) - 1
            inside = (np.array(best) > 0) & (best < ends)
            chance = np.maximum(ends - 1, 0).prod() / cells.size
            last = (best == ends).all()
            expected.append([*inside, inside.all(), chance, last])
    assert found.pairs == len(expected) == 30
    assert found[1:] == pytest.approx(np.mean(expected, axis=0))
    assert min(found) > 0


def test_two_scorers_are_compared_list_by_list():
    """The other model's scores are those of the first with the sign changed."""
    model, other, lists = scorer("cosine"), scorer("cosine"), random_lists(60)
    kernel, bias, *last = other.matcher.mlp.get_weights()
    other.matcher.mlp.set_weights([kernel, bias, *(-w for w in last)])
    found, examples = compare_scorers(
        model, other, [*lists, lists[0]._replace(negatives=[])]
    )
    expected, alone = {}, []
    for one in lists:
        right, wrong = (
            model.score(one.query, of) for of in (one.positives, one.negatives)
        )
        answers = right.max() > wrong.max(), right.min() < wrong.min()
        expected[answers] = expected.get(answers, 0) + 1
        if answers == (True, False):
            preferred = one.negatives[int(wrong.argmin())]
            alone.append(one._replace(negatives=[preferred]))
    assert found[:5] == (60, *(
        expected.get(key, 0)
        for key in ((True, True), (True, False), (False, True), (False, False))
    ))  # fmt: skip
    assert examples == alone and 0 < len(alone) < 60
    assert 0 < found.p <= 1
    with pytest.raises(InputError, match="no query with a right and a wrong"):
        compare_scorers(model, other, [lists[0]._replace(negatives=[])])
