import numpy as np
import pytest
from matplotlib import image

from keras_lstm_dssm.analysis import drawing as module
from keras_lstm_dssm.analysis.drawing import (
    COLOURS,
    Curve,
    curve_chart,
    drawing,
)


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
