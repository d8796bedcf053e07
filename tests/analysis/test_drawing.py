"""What stands in the pictures: the arrays, ranges and labels drawn."""

import numpy as np
import pytest
from matplotlib import image

from keras_lstm_dssm.analysis import active_cells, growth
from keras_lstm_dssm.analysis import drawing as module
from keras_lstm_dssm.analysis.drawing import (
    COLOURS,
    Curve,
    curve_chart,
    draw_activations,
    draw_active,
    draw_aligned,
    drawing,
)
from keras_lstm_dssm.encoders.activations import activations
from keras_lstm_dssm.models import TwoTower
from tests.encoders import small
from tests.encoders.small import small_encoder


def test_the_size_is_as_asked_and_nothing_lies_beside(tmp_path):
    path = tmp_path / "picture.png"
    with drawing(path, 2, widths=[3, 1], figsize=(4, 2)) as axes:
        axes[0].plot([1, 2])
        axes[1].set_title("$5 and $_$")  # no formula
    assert image.imread(path).shape[:2] == (300, 600)
    assert list(tmp_path.iterdir()) == [path]
    assert axes[0].get_shared_y_axes().joined(*axes)
    left, right = (axis.get_position().width for axis in axes)
    assert left == pytest.approx(3 * right)


def test_a_failure_leaves_the_old_picture(tmp_path):
    path = tmp_path / "picture.png"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), drawing(path):
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_curves(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr(
        module, "add_legend", lambda axis, columns: seen.append(axis)
    )
    curves = {
        "plain": Curve([1, 10, 100], [4, 2, 1]),
        "spread": Curve([1, 10, 100], [3, 2, 1], [0.5, 0.25, 0.5]),
    }
    curve_chart(
        tmp_path / "c.png", curves, "epoch", "cost", xscale="log", yscale="log"
    )
    (axis,) = seen
    plain, spread = axis.containers
    assert [plain.get_label(), spread.get_label()] == list(curves)
    np.testing.assert_array_equal(plain.lines[0].get_ydata(), [4, 2, 1])
    assert plain.lines[2] == ()  # no bars
    bars = spread.lines[2][0].get_segments()
    np.testing.assert_allclose(bars[0], [[1, 2.5], [1, 3.5]])
    colours = [one.lines[0].get_color() for one in (plain, spread)]
    assert colours == list(COLOURS[:2])
    labels = [label.get_text() for label in axis.get_xticklabels()]
    assert labels == ["1", "10", "100"]
    assert axis.get_xlabel() == "epoch"
    assert axis.yaxis.get_major_formatter()(0.2) == "0.2"
    # Between two powers of ten there are ticks, too.
    narrow = {"narrow": Curve([1, 2], [0.33, 0.28])}
    curve_chart(tmp_path / "c.png", narrow, "epoch", "cost", yscale="log")
    low, high = seen[1].get_ylim()
    assert sum(low <= tick <= high for tick in seen[1].get_yticks()) > 2


SHORT, LONG = "hotels in shanghai", "shanghai hotels accommodation and more"


def shown(axis) -> np.ndarray:
    return np.asarray(axis.images[0].get_array())


def labels(axis) -> list[str]:
    return [label.get_text() for label in axis.get_xticklabels()]


def cells(axis) -> list[str]:
    return [label.get_text() for label in axis.get_yticklabels()]


@pytest.mark.parametrize(
    ("name", "parts"), [("lstm_full_forget", "ifcoy"), ("rnn", "y")]
)
def test_activations_have_one_range_and_zeros_past_the_text(
    tmp_path, drawn, name, parts
):
    encoder = small_encoder(name)
    one, other = activations(encoder, SHORT), activations(encoder, LONG)
    draw_activations(tmp_path / "short.png", one, [one, other])
    draw_activations(tmp_path / "long.png", other, [one, other])
    both = [*one.arrays.values(), *other.arrays.values()]
    limit = max(np.abs(array).max() for array in both)
    assert len(drawn) == 2 * len(parts)
    for axis, part in zip(drawn, parts, strict=False):
        assert axis.get_title().endswith(f" {part}(t)")
        array = getattr(one, part)
        np.testing.assert_array_equal(shown(axis)[:, :3], array.T)
        np.testing.assert_array_equal(shown(axis)[:, 3:], 0)
        assert shown(axis).shape == (array.shape[1], 5)
        assert labels(axis) == SHORT.split()
    for axis in drawn:
        np.testing.assert_allclose(axis.images[0].get_clim(), (-limit, limit))
    assert labels(drawn[-1]) == LONG.split()


def test_colours_go_by_the_root_and_zero_is_in_the_middle(tmp_path, drawn):
    draw_activations(
        tmp_path / "a.png", activations(small_encoder("rnn"), LONG)
    )
    norm = drawn[0].images[0].norm
    shares = np.array([-1, -0.25, 0, 0.25, 1])
    np.testing.assert_allclose(
        norm(norm.vmax * shares), [0, 0.25, 0.5, 0.75, 1], atol=1e-12
    )
    np.testing.assert_allclose(
        norm.inverse(norm(norm.vmax * shares)), norm.vmax * shares, atol=1e-7
    )


def test_active_cells_are_numbered_as_in_the_sentence_vector(tmp_path, drawn):
    found = activations(small_encoder("bilstm"), SHORT)
    for place, one in enumerate(found.directions):
        draw_active(tmp_path / "active.png", one)
        best = [active.cell for active in active_cells(one)]
        np.testing.assert_array_equal(shown(drawn[-1]), one.y[:, best].T)
        assert cells(drawn[-1]) == [str(2 * place + cell) for cell in best]
        number = found.recurrent_vector[int(cells(drawn[-1])[0])]
        assert number == one.final_y[best[0]]
    draw_activations(tmp_path / "all.png", found.directions[1])
    places = drawn[2].get_yticks()
    assert cells(drawn[2]) == [f"{place + 2:.0f}" for place in places]
    assert {0, 1} <= set(places) <= {-1, 0, 1, 2}


def test_aligned_cells_are_those_that_add_most_to_the_cosine(tmp_path, drawn):
    encoder = small_encoder("bilstm")
    model = TwoTower(encoder, encoder)
    read = [
        activations(model.query_encoder, SHORT),
        activations(model.document_encoder, LONG),
    ]
    found = growth(model, SHORT, LONG)
    draw_aligned(tmp_path / "aligned.png", found, read, cells=3)
    units = [
        one.recurrent_vector / np.linalg.norm(one.recurrent_vector)
        for one in read
    ]
    order = np.argsort(-units[0] * units[1])[:3]
    assert cells(drawn[0]) == [*map(str, order), "cosine"]
    for axis, one, unit in zip(drawn, read, units, strict=True):
        assert labels(axis) == list(one.words)
        # The forward network ends at the last word, the other at the first.
        ends = [shown(axis)[row, -1 if cell < 2 else 0]
                for row, cell in enumerate(order)]  # fmt: skip
        np.testing.assert_allclose(ends, unit[order], rtol=1e-5)
    texts = [[text.get_text() for text in axis.texts] for axis in drawn]
    for shown_texts, cosines in zip(
        texts, (found.query_cosines, found.document_cosines), strict=True
    ):
        assert shown_texts == [f"{cosine:.2f}" for cosine in cosines]
    assert [len(axis.lines) for axis in drawn] == [1, 1]


def test_each_part_of_a_combined_vector_has_a_line(
    tmp_path, drawn, monkeypatch
):
    # The same weights whichever tests run before: with others, no sketch is
    # short, and the length norm is 0 everywhere.
    monkeypatch.setattr(small, "RANDOM", np.random.default_rng(1))
    encoder = small_encoder("combined")
    growing = growth(TwoTower(encoder, encoder), SHORT, LONG)
    read = [activations(encoder, text) for text in (SHORT, LONG)]
    draw_aligned(tmp_path / "aligned.png", growing, read, cells=2)
    for axis, cosines, parts in zip(
        drawn,
        (growing.query_cosines, growing.document_cosines),
        (growing.query_parts, growing.document_parts),
        strict=True,
    ):
        names = [line.get_label() for line in axis.lines]
        assert names == ["cosine", *growing.parts]
        # All lines have one scale: differences in height are proportional.
        heights = np.array([line.get_ydata() for line in axis.lines])
        values = np.vstack([cosines, parts.T])
        slope = (heights[1, 0] - heights[0, 0]) / (values[1, 0] - values[0, 0])
        assert slope < 0
        np.testing.assert_allclose(
            heights - heights[0, 0], slope * (values - values[0, 0]), atol=1e-4
        )


def test_long_words_are_cut_and_leave_room(tmp_path, drawn):
    found = activations(small_encoder("rnn"), "a " + "w" * 99)
    draw_active(tmp_path / "active.png", found)
    assert labels(drawn[0]) == ["a", "w" * 23 + "…"]
    assert drawn[0].get_position().height > 0.2
