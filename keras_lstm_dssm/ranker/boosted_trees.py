"""BoostedTrees: the trees of a LightGBM model, as tensors."""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from keras_lstm_dssm.errors import InputError

# LightGBM reads numbers up to this size as zero.
_ZERO = np.float32(1e-35)

# Bits of `decision_type` in LightGBM's model file.
_CATEGORICAL, _DEFAULT_LEFT = 1, 2
_MISSING_SHIFT, _ZERO_MISSING, _NAN_MISSING = 2, 1, 2


class _Nodes(NamedTuple):
    """The nodes of trees, inner nodes and leaves; one number for each node."""

    feature: np.ndarray  # the column that is compared; 0 for leaves
    threshold: np.ndarray  # values up to it go left
    missing: np.ndarray  # what counts as missing: 0 nothing, 1 zero, 2 NaN
    default_left: np.ndarray  # whether missing values go left
    left: np.ndarray  # row of the left child; a leaf is its own child
    right: np.ndarray
    value: np.ndarray  # what a leaf adds to the score


class BoostedTrees(tf.Module):
    """Scores rows of features by the trees of a LightGBM model.

    All rows walk down all trees at the same time, one level a step, by gathers;
    a leaf is its own child, so that all trees take as many steps as the deepest
    one. The graph has TensorFlow's own ops only. Scores match those of
    `Booster.predict(features, raw_score=True)`: LightGBM compares in float64,
    and a float32 number is at most a float64 threshold exactly if it is at most
    the largest float32 number up to the threshold, which is stored here. Leaves
    are added in float64. Source: Ke et al. 2017, "LightGBM: A Highly Efficient
    Gradient Boosting Decision Tree"; for missing values
    `Tree::NumericalDecision` of LightGBM.
    """

    def __init__(self, model: str) -> None:
        super().__init__()
        try:
            header, *blocks = model.split("\n\nend of trees")[0].split(
                "\nTree="
            )
            settings = _fields(header)
            self.features = int(settings["max_feature_idx"]) + 1
            _check_supported(settings, header)
            nodes = [_nodes(_fields(block), self.features) for block in blocks]
            if "end of trees" not in model:
                raise ValueError("the end is missing")
        except (KeyError, ValueError, IndexError) as error:
            raise InputError(
                f"the trees cannot be read ({type(error).__name__}: {error}): "
                "expected a model of LightGBM with numerical features, as "
                "text; train the ranker again"
            ) from None
        self.text = model
        self.trees = len(nodes)
        sizes = [len(tree.value) for tree in nodes]
        starts = np.cumsum([0, *sizes])[:-1].astype(np.int32)
        self._steps = max((_depth(tree) for tree in nodes), default=0)
        self._roots = tf.constant(starts, tf.int32)
        columns = zip(*nodes, strict=True) if nodes else [()] * 7
        joined = _Nodes(*(np.concatenate([[], *c]) for c in columns))
        offsets = np.repeat(starts, sizes)

        def variable(values: np.ndarray, dtype: tf.DType) -> tf.Variable:
            return tf.Variable(
                values.astype(dtype.as_numpy_dtype), trainable=False
            )

        self._feature = variable(joined.feature, tf.int32)
        self._threshold = variable(joined.threshold, tf.float32)
        self._missing = variable(joined.missing, tf.int32)
        self._default_left = variable(joined.default_left, tf.bool)
        self._left = variable(joined.left + offsets, tf.int32)
        self._right = variable(joined.right + offsets, tf.int32)
        self._value = variable(joined.value, tf.float64)
        inner = joined.left != np.arange(len(offsets)) - offsets
        self._splits = np.bincount(
            joined.feature[inner].astype(int), minlength=self.features
        )

    def splits(self) -> list[int]:
        """Returns how many nodes compare each feature."""
        return self._splits.tolist()

    def __call__(self, features: tf.Tensor) -> tf.Tensor:
        """Computes the scores of rows, float64; features may be NaN."""
        features = tf.convert_to_tensor(features, tf.float32)
        rows = tf.shape(features)[0]
        node = tf.tile(self._roots[tf.newaxis], [rows, 1])

        def step(number: tf.Tensor, node: tf.Tensor) -> tuple:
            values = tf.gather(
                features, tf.gather(self._feature, node), batch_dims=1
            )
            is_nan = tf.math.is_nan(values)
            is_zero = is_nan | (tf.abs(values) <= _ZERO)
            numbers = tf.where(is_zero, 0.0, values)
            missing = tf.gather(self._missing, node)
            is_missing = (tf.equal(missing, _NAN_MISSING) & is_nan) | (
                tf.equal(missing, _ZERO_MISSING) & (tf.abs(numbers) <= _ZERO)
            )
            goes_left = tf.where(
                is_missing,
                tf.gather(self._default_left, node),
                numbers <= tf.gather(self._threshold, node),
            )
            child = tf.where(
                goes_left,
                tf.gather(self._left, node),
                tf.gather(self._right, node),
            )
            return number + 1, child

        _, leaf = tf.while_loop(
            lambda number, _: number < self._steps, step, [0, node]
        )
        return tf.reduce_sum(tf.gather(self._value, leaf), axis=1)


def floor_float32(numbers: np.ndarray) -> np.ndarray:
    """Rounds float64 numbers down to float32.

    Any float32 x is at most a number exactly if it is at most the result.
    """
    with np.errstate(over="ignore"):
        nearest = numbers.astype(np.float32)
    below = np.nextafter(nearest, np.float32(-np.inf))
    return np.where(nearest.astype(np.float64) > numbers, below, nearest)


def _fields(block: str) -> dict[str, str]:
    """Reads the lines NAME=VALUES of a block."""
    lines = (line.partition("=") for line in block.splitlines())
    return {name: values for name, equals, values in lines if equals}


def _check_supported(settings: dict[str, str], header: str) -> None:
    if settings["num_tree_per_iteration"] != "1":
        raise ValueError("several trees for each iteration")
    if "average_output" in header.splitlines():
        raise ValueError("a random forest, whose trees are averaged")


def _nodes(fields: dict[str, str], features: int) -> _Nodes:
    """Reads one tree.

    LightGBM numbers inner nodes from 0 on, the root first and parents before
    their children. A negative child c is the leaf -1 - c.
    """

    def numbers(name: str, count: int, dtype: type) -> np.ndarray:
        values: np.ndarray = np.array(fields.get(name, "").split(), dtype)
        if len(values) != count:
            raise ValueError(f"{name} has {len(values)} numbers, not {count}")
        return values

    leaves = int(fields["num_leaves"])
    inner = leaves - 1
    if leaves < 1 or fields.get("is_linear", "0") != "0":
        raise ValueError("a tree without leaves, or with linear models")
    decisions = numbers("decision_type", inner, int)
    if (decisions & _CATEGORICAL).any():
        raise ValueError("a categorical feature")
    feature = numbers("split_feature", inner, int)
    children = [
        np.where(child < 0, inner - 1 - child, child)
        for child in (
            numbers("left_child", inner, int),
            numbers("right_child", inner, int),
        )
    ]
    own = np.arange(inner)
    for child in children:
        if ((child <= own) | (child >= inner + leaves)).any():
            raise ValueError("a child that is no node below its parent")
    if ((feature < 0) | (feature >= features)).any():
        raise ValueError("an unknown feature")
    threshold = numbers("threshold", inner, float)
    value = numbers("leaf_value", leaves, float)
    if np.isnan(threshold).any() or not np.isfinite(value).all():
        raise ValueError("a number that is not finite")
    leaf = np.arange(inner, inner + leaves)
    zeros = np.zeros(leaves, int)
    return _Nodes(
        np.concatenate([feature, zeros]),
        np.concatenate([floor_float32(threshold), zeros]),
        np.concatenate([decisions >> _MISSING_SHIFT, zeros]),
        np.concatenate([(decisions & _DEFAULT_LEFT) > 0, zeros > 0]),
        np.concatenate([children[0], leaf]),
        np.concatenate([children[1], leaf]),
        np.concatenate([np.zeros(inner), value]),
    )


def _depth(tree: _Nodes) -> int:
    """Returns the number of steps from the root to the deepest leaf."""
    depths = np.zeros(len(tree.value), int)
    for node, children in enumerate(zip(tree.left, tree.right, strict=True)):
        for child in children:
            if child != node:  # parents come before their children
                depths[child] = depths[node] + 1
    return int(depths.max())
