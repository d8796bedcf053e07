"""Titles on a plane, similar ones close together: picture and projector."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.word_statistics import distinctive
from keras_lstm_dssm.drawing import COLOURS, MARKERS, drawing, short
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.files import replacing

METHODS = ("tsne", "pca")


class TitleMap(NamedTuple):
    """Where titles lie, and which lie together.

    Attributes:
        places: float `[titles, 2]`.
        clusters: int `[titles]`; -1 for titles between the clusters.
        names: For each cluster, the words that it has more than the others.
    """

    places: np.ndarray
    clusters: np.ndarray
    names: list[str]


def title_map(
    titles: Sequence[str],
    vectors: np.ndarray,
    method: str = "tsne",
    least: int | None = None,
    seed: int = 0,
) -> TitleMap:
    """Lays titles out on a plane, by t-SNE or PCA, and finds the islands.

    Clusters are places that lie close together (HDBSCAN), so that what is
    named is what can be seen.

    Args:
        titles: The texts, for the clusters' names.
        vectors: Float `[titles, dimension]`, unit length, from `encode`.
        method: `tsne` shows who is near whom, and is not to be read by its
            distances; `pca` is linear.
        least: Titles of the smallest cluster; by default an 80th of all, 5
            at least.
        seed: Of the layout.

    Raises:
        InputError: Another method, fewer than three titles, or scikit-learn
            is not installed.

    Sources: van der Maaten and Hinton 2008, "Visualizing Data using t-SNE";
    Campello et al. 2013, "Density-Based Clustering Based on Hierarchical
    Density Estimates".
    """
    if method not in METHODS:
        raise InputError(
            f"unknown map {method!r}: choose one of {', '.join(METHODS)}"
        )
    if len(titles) < 3:
        raise InputError(f"a map needs 3 titles or more, not {len(titles)}")
    if method == "pca":
        decomposition = import_optional("sklearn.decomposition", "analysis")
        layout = decomposition.PCA(2, random_state=seed)
    else:
        manifold = import_optional("sklearn.manifold", "analysis")
        # Of unit vectors, Euclidean neighbours are those by cosine.
        layout = manifold.TSNE(
            perplexity=min(30, (len(titles) - 1) / 3), random_state=seed
        )
    cluster = import_optional("sklearn.cluster", "analysis")
    close = cluster.HDBSCAN(
        least or max(5, len(titles) // 80),
        min_samples=min(5, len(titles)),
        cluster_selection_method="leaf",  # many small ones, not one blob
        copy=True,
    )
    # One thread: several wait for each other in busy loops at every one of
    # a thousand steps, a minute in place of seconds beside other work.
    limits = import_optional("threadpoolctl", "analysis").threadpool_limits
    with limits(1):
        places = layout.fit_transform(vectors)
        labels = close.fit_predict(places)
    return TitleMap(places, labels, _names(titles, labels))


def draw_title_map(path: Path, found: TitleMap) -> None:
    """Draws the map; clusters have colours, shapes, and names in place."""
    effects = import_optional("matplotlib.patheffects", "analysis")
    halo = effects.withStroke(linewidth=3, foreground="white")
    with drawing(path, figsize=(8, 7)) as (axis,):
        between = found.places[found.clusters < 0]
        axis.scatter(*between.T, s=6, color="#bbbbbb")
        for cluster, name in enumerate(found.names):
            own = found.places[found.clusters == cluster]
            turn = cluster // len(COLOURS)  # the same colour, another shape
            axis.scatter(
                *own.T, s=14, color=COLOURS[cluster % len(COLOURS)],
                marker=MARKERS[(cluster + turn) % len(MARKERS)],
                edgecolor="white", linewidth=0.3,
            )  # fmt: skip
            axis.annotate(
                name, np.median(own, axis=0), ha="center", va="center",
                fontsize=8, color="#111111", path_effects=[halo],
            )  # fmt: skip
        axis.set_axis_off()  # the places have no unit


def _names(titles: Sequence[str], labels: np.ndarray) -> list[str]:
    own: list[list[str]] = [[] for _ in range(labels.max() + 1)]
    for title, label in zip(titles, labels, strict=True):
        if label >= 0:
            own[label] += set(title.casefold().split())
    best = distinctive(own, 2)
    return [", ".join(short(word) for word, _ in words) for words in best]


def write_projector(
    logs: str | os.PathLike[str],
    titles: Sequence[str],
    vectors: np.ndarray,
    name: str = "titles",
) -> None:
    """Writes titles and vectors where `tensorboard --logdir=LOGS` finds them.

    Files: `projector_config.pbtxt` and, beside it, `projector/NAME.tsv` with
    `NAME.labels.tsv`.

    Args:
        logs: The folder of logs, a run's `logs/`.
        titles: The texts.
        vectors: Float `[titles, dimension]`, from `encode`.
        name: Of the tensor.

    Raises:
        InputError: There are not as many titles as vectors.

    Example:
    >>> write_projector(
    ...     RunFolder(run).logs, titles, model.document_encoder.encode(titles)
    ... )
    """
    from tensorboard.plugins import projector

    if len(titles) != len(vectors):
        raise InputError(
            f"{len(titles)} titles and {len(vectors)} vectors; give one each"
        )
    folder = Path(logs, "projector")
    folder.mkdir(parents=True, exist_ok=True)
    tensors, labels = folder / f"{name}.tsv", folder / f"{name}.labels.tsv"
    with replacing(tensors) as partial:
        np.savetxt(partial, vectors, fmt="%.5g", delimiter="\t")
    with replacing(labels) as partial:
        # A tab would begin a second column; an empty line would be skipped.
        lines = (" ".join(title.split()) or '""' for title in titles)
        partial.write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )
    config = projector.ProjectorConfig()
    config.embeddings.add(
        tensor_name=name,
        tensor_path=str(tensors.relative_to(logs)),
        metadata_path=str(labels.relative_to(logs)),
    )
    projector.visualize_embeddings(os.fspath(logs), config)
