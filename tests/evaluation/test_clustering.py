import itertools
from typing import Any

import numpy as np
import pytest

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.evaluation import ClusterTask, DenseSystem, mean
from keras_lstm_dssm.evaluation.clustering import (
    CLUSTER_MEASURES,
    cluster_measures,
    k_means,
)

metrics = pytest.importorskip("sklearn.metrics")
sparse = pytest.importorskip("scipy.sparse")


def pair_counts(classes: list[int], clusters: list[int]) -> tuple[int, ...]:
    """Returns the numbers of pairs TP, FP, FN, TN, by comparing all pairs."""
    kinds = [
        (clusters[a] == clusters[b], classes[a] == classes[b])
        for a, b in itertools.combinations(range(len(classes)), 2)
    ]
    every = itertools.product((True, False), repeat=2)
    return tuple(kinds.count(kind) for kind in every)


@pytest.mark.parametrize("seed", range(8))
def test_measures_equal_a_count_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    size, kinds = rng.integers(5, 40), rng.integers(2, 9)
    classes = rng.integers(kinds, size=size).tolist()
    clusters = rng.integers(1 + seed, size=size).tolist()
    found = cluster_measures([f"c{c}" for c in classes], clusters)
    assert tuple(found) == CLUSTER_MEASURES
    tp, fp, fn, tn = pair_counts(classes, clusters)
    precision = tp / (tp + fp) if tp + fp else 0
    recall = tp / (tp + fn) if tp + fn else 0
    both = precision + recall
    f1 = 2 * precision * recall / both if both else 0.0
    assert found["f1"] == pytest.approx(f1, abs=1e-12)
    # Hubert and Arabie: (index - expected) / (maximum - expected).
    expected = (tp + fp) * (tp + fn) / (tp + fp + fn + tn)
    most = (tp + fp + tp + fn) / 2
    ari = (tp - expected) / (most - expected)
    assert found["ari"] == pytest.approx(ari, abs=1e-12)
    assert found["v"] == metrics.v_measure_score(classes, clusters)
    assert found["ami"] == metrics.adjusted_mutual_info_score(classes, clusters)


def test_special_clusters():
    classes = list("aabb")
    assert cluster_measures(classes, [5, 5, 1, 1]) == pytest.approx(
        dict.fromkeys(CLUSTER_MEASURES, 1.0)
    )
    assert cluster_measures(classes, [0, 1, 2, 3])["f1"] == 0
    one = cluster_measures(classes, [0] * 4)
    assert one["f1"] == pytest.approx(2 / (1 + 6 / 2))  # P 1/3, R 1
    assert one["v"] == one["ari"] == one["ami"] == 0
    assert cluster_measures(list("abc"), [0, 0, 1])["f1"] == 0  # no class of 2


def test_k_means_is_that_of_scikit_learn():
    cluster = pytest.importorskip("sklearn.cluster")
    vectors = np.random.default_rng(0).normal(size=(50, 6))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    options: Any = {"init": "k-means++", "n_init": 10, "random_state": 3}
    expected = cluster.KMeans(7, **options).fit_predict(unit)
    for given in (vectors, sparse.csr_array(vectors)):
        assert np.array_equal(k_means(given, 7, seed=3), expected)


def test_k_means_of_few_different_vectors():
    """A dead encoder has one vector, and so one cluster; nothing warns."""
    assert k_means(np.ones((6, 2)), 3).tolist() == [0] * 6
    assert len(set(k_means(np.zeros((6, 2)), 6).tolist())) == 1


TEXTS = {f"d{i}": "tools" if i % 2 else "wear" for i in range(12)}


def by_length(texts: list[str]) -> np.ndarray:
    return np.array([[len(text) == 4, len(text) == 5] for text in texts], float)


def test_a_task_counts_what_it_leaves_out():
    classes = dict(TEXTS) | {"d0": "alone", "d1": None, "d2": ""}
    del classes["d3"]
    task = ClusterTask.from_classes(TEXTS, classes)
    assert list(task.documents) == ["d0", *(f"d{i}" for i in range(4, 12))]
    assert task.sizes == {
        "documents": 9, "classes": 3, "single_document_classes": 1,
        "without_class": 3,
    }  # fmt: skip
    assert task.describe() == (
        "9 documents in 3 classes (1 with only one document); left out: 3"
        " without a class"
    )
    whole = ClusterTask.from_classes(TEXTS, TEXTS)
    assert whole.describe() == "12 documents in 2 classes"


def test_a_task_measures_systems():
    task = ClusterTask.from_classes(TEXTS, TEXTS, seeds=3)
    run, values = task.measure(DenseSystem(by_length, by_length))
    assert run is None and list(values) == ["0", "1", "2"]
    assert mean(values, task.measures) == pytest.approx(
        dict.fromkeys(CLUSTER_MEASURES, 1.0)
    )
    dead = mean(task.measure(DenseSystem(constant, constant))[1])
    assert dead["ari"] == dead["ami"] == dead["v"] == 0


def constant(texts: list[str]) -> np.ndarray:
    return np.ones((len(texts), 2))


def test_random_clusters_show_the_floor_of_each_measure():
    """V is not corrected for chance; ARI and AMI are."""
    classes = {f"d{i}": f"c{i % 40}" for i in range(80)}
    task = ClusterTask.from_classes(dict.fromkeys(classes, ""), classes)
    values = task.random_queries()
    assert list(values) == ["0", "1", "2", "3", "4"]
    assert values["0"] == values["4"]
    found = task.random()
    assert found == pytest.approx(values["0"])
    assert found["v"] > 0.75
    assert found["ari"] == pytest.approx(0, abs=0.01)
    assert found["ami"] == pytest.approx(0, abs=0.02)
    # 40 of the 3160 pairs are of one class, about 79 are in one cluster, and
    # a fortieth of the 40 is both.
    assert found["f1"] == pytest.approx(2 / (40 + 79), abs=0.01)


@pytest.mark.parametrize(("use", "message"), [
    (lambda: cluster_measures(["a", "b"], [0]),
     "found the clusters of 1 documents and the classes of 2"),
    (lambda: cluster_measures([], []),
     "found the clusters of 0 documents and the classes of 0"),
    (lambda: k_means(np.ones((6, 2)), 0), "clusters is 0: expect"),
    (lambda: k_means(np.ones((6, 2)), 7), "clusters is 7: expect"),
    (lambda: k_means(np.array([[1.0], [np.nan]]), 2),
     "document 1 of 2, counted from 0"),
    (lambda: ClusterTask.from_classes(TEXTS, {"d0": "one", "d2": "one"}),
     "found 1 classes in 12 documents"),
    (lambda: ClusterTask.from_classes(TEXTS, TEXTS, seeds=0),
     "seeds is 0: expected a whole number of 1 or more"),
])  # fmt: skip
def test_wrong_input(use, message):
    with pytest.raises(InputError, match=message):
        use()
