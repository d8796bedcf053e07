"""TitleMap: titles on a plane, near where their vectors are near."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.distinctive import distinctive
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.optional import import_optional
from keras_lstm_dssm.table_iv.charts import COLOURS, drawing

METHODS = ("tsne", "pca")
_MARKERS = "osD^vP"


class TitleMap(NamedTuple):
    """Where titles lie, and which lie together.

    Attributes:
        places: float `[titles, 2]`.
        clusters: int `[titles]`.
        names: For each cluster, the words that it has more than the others.
    """

    places: np.ndarray
    clusters: np.ndarray
    names: list[str]


def title_map(
    titles: Sequence[str],
    vectors: np.ndarray,
    method: str = "tsne",
    clusters: int = len(COLOURS),
    seed: int = 0,
) -> TitleMap:
    """Lays titles out on a plane, by t-SNE or PCA, in k-means clusters.

    Clusters are those of the vectors, not of the places on the plane.

    Args:
        titles: The texts, for the clusters' names.
        vectors: Float `[titles, dimension]`, from `encode`.
        method: `tsne` shows who is near whom, and is not to be read by its
            distances; `pca` is linear.
        clusters: How many at most.
        seed: Of t-SNE and k-means.

    Raises:
        InputError: Another method, fewer than three titles, or scikit-learn
            is not installed.

    Source: van der Maaten and Hinton 2008, "Visualizing Data using t-SNE".
    """
    if method not in METHODS:
        raise InputError(
            f"unknown map {method!r}: choose one of {', '.join(METHODS)}"
        )
    if len(titles) < 3:
        raise InputError(f"a map needs 3 titles or more, not {len(titles)}")
    cluster = import_optional("sklearn.cluster", "analysis")
    if method == "pca":
        decomposition = import_optional("sklearn.decomposition", "analysis")
        layout = decomposition.PCA(2, random_state=seed)
    else:
        manifold = import_optional("sklearn.manifold", "analysis")
        layout = manifold.TSNE(
            perplexity=min(30, (len(titles) - 1) / 3), random_state=seed
        )
    distinct = len(np.unique(vectors, axis=0))
    means = cluster.KMeans(min(clusters, distinct), n_init=4, random_state=seed)
    # One thread: several wait for each other in busy loops at every one of
    # a thousand steps, a minute in place of seconds beside other work.
    limits = import_optional("threadpoolctl", "analysis").threadpool_limits
    with limits(1):
        labels = means.fit_predict(vectors)
        places = layout.fit_transform(vectors)
    return TitleMap(places, labels, _names(titles, labels))


def draw_title_map(path: Path, found: TitleMap) -> None:
    """Draws the map; each cluster has a colour and a shape of its own."""
    with drawing(path, figsize=(7, 6)) as (axis,):
        for cluster, name in enumerate(found.names):
            axis.scatter(
                *found.places[found.clusters == cluster].T, s=18, label=name,
                color=COLOURS[cluster % len(COLOURS)],
                marker=_MARKERS[cluster % len(_MARKERS)],
                edgecolor="white", linewidth=0.3,
            )  # fmt: skip
        axis.set_axis_off()  # the places have no unit
        axis.figure.legend(loc="outside lower center", ncols=2, fontsize=8)


def _names(titles: Sequence[str], labels: np.ndarray) -> list[str]:
    own: list[list[str]] = [[] for _ in range(labels.max() + 1)]
    for title, label in zip(titles, labels, strict=True):
        own[label] += set(title.casefold().split())
    best = distinctive(own, 3)
    return [", ".join(word for word, _ in words) for words in best]
