"""Maps of titles and of documents: their vectors laid out on a plane.

A map is a picture, or files for TensorBoard's projector.
"""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.drawing import (
    COLOURS,
    MARKERS,
    add_legend,
    drawing,
    short,
)
from keras_lstm_dssm.analysis.words import distinctive_words
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.evaluation.index import unit_vectors
from keras_lstm_dssm.files import replacing, write_text
from keras_lstm_dssm.settings.choices import MAP_METHODS


class TitleMap(NamedTuple):
    """The position of each title on a plane, and the clusters.

    Attributes:
        positions: float `[titles, 2]`.
        clusters: int `[titles]`, the cluster of each title; -1 for none.
        names: A name for each cluster: the words that distinguish it from
            the others.
    """

    positions: np.ndarray
    clusters: np.ndarray
    names: list[str]


def title_map(
    titles: Sequence[str], vectors: np.ndarray, method: str = "tsne"
) -> TitleMap:
    """Lay titles out on a plane and cluster their positions.

    HDBSCAN clusters the positions on the plane and not the vectors, so that
    the clusters are those that a reader of the picture sees. A cluster has
    1/80 of all titles or more, and at least 5.

    Args:
        titles: The texts, for the names of the clusters.
        vectors: Float `[titles, dimension]`, unit vectors from `encode`.
        method: `"tsne"`, the default, shows which titles are neighbours,
            while its distances mean little; `"pca"` is linear.

    Raises:
        InputError: The method is unknown, there are fewer than three titles,
            or scikit-learn is not installed.

    Sources: van der Maaten and Hinton 2008, "Visualizing Data using t-SNE";
    Campello et al. 2013, "Density-Based Clustering Based on Hierarchical
    Density Estimates".
    """
    positions = plane_positions(vectors, method)
    cluster = import_optional("sklearn.cluster", "analysis")
    clustering = cluster.HDBSCAN(
        max(5, len(titles) // 80),
        min_samples=min(5, len(titles)),
        cluster_selection_method="leaf",  # many small clusters
        copy=True,
    )
    with _one_thread():
        clusters = clustering.fit_predict(positions)
    return TitleMap(positions, clusters, _cluster_names(titles, clusters))


def plane_positions(
    vectors: np.ndarray, method: str = "tsne", name: str = "titles"
) -> np.ndarray:
    """Project vectors on a plane.

    Args:
        vectors: Float `[n, dimension]`, unit vectors.
        method: See `title_map`.
        name: What error messages call the vectors. Default "titles".

    Returns:
        float `[n, 2]`.

    Raises:
        InputError: The method is unknown, there are fewer than three vectors,
            or scikit-learn is not installed.
    """
    if method not in MAP_METHODS:
        raise InputError(
            f"unknown map {method!r}: expected one of {', '.join(MAP_METHODS)}"
        )
    if len(vectors) < 3:
        raise InputError(
            f"found {len(vectors)} {name}, a map needs 3 or more: name data "
            "with more documents"
        )
    if not np.ptp(vectors, axis=0).any():
        # Both methods divide by a variance, and t-SNE crashes on NaN.
        return np.zeros((len(vectors), 2), np.float32)
    if method == "pca":
        decomposition = import_optional("sklearn.decomposition", "analysis")
        layout = decomposition.PCA(2, random_state=0)
    else:
        manifold = import_optional("sklearn.manifold", "analysis")
        # The Euclidean neighbours of unit vectors are those by cosine.
        layout = manifold.TSNE(
            perplexity=min(30, (len(vectors) - 1) / 3), random_state=0
        )
    with _one_thread():
        return layout.fit_transform(vectors)


def _one_thread() -> Any:
    # Several threads would busy-wait for each other at each of a thousand
    # steps: on a busy machine, a minute instead of seconds.
    return import_optional("threadpoolctl", "analysis").threadpool_limits(1)


def draw_title_map(path: Path, layout: TitleMap) -> None:
    """Draw a map on which each cluster has a colour, a marker and its name.

    Args:
        path: The PNG file to write.
        layout: The positions and clusters, from `title_map`.
    """
    effects = import_optional("matplotlib.patheffects", "analysis")
    halo = effects.withStroke(linewidth=3, foreground="white")
    with drawing(path, figsize=(8, 7)) as (axis,):
        unclustered = layout.positions[layout.clusters < 0]
        axis.scatter(*unclustered.T, s=6, color="#bbbbbb")
        for cluster, name in enumerate(layout.names):
            positions = layout.positions[layout.clusters == cluster]
            # A colour that is used again gets another marker.
            turn = cluster // len(COLOURS)
            axis.scatter(
                *positions.T, s=14, color=COLOURS[cluster % len(COLOURS)],
                marker=MARKERS[(cluster + turn) % len(MARKERS)],
                edgecolor="white", linewidth=0.3,
            )  # fmt: skip
            axis.annotate(
                name, np.median(positions, axis=0), ha="center", va="center",
                fontsize=8, color="#111111", path_effects=[halo],
            )  # fmt: skip
        axis.set_axis_off()  # the positions have no unit


def _cluster_names(titles: Sequence[str], clusters: np.ndarray) -> list[str]:
    words: list[list[str]] = [[] for _ in range(clusters.max() + 1)]
    for title, cluster in zip(titles, clusters, strict=True):
        if cluster >= 0:
            words[cluster] += set(title.casefold().split())
    return [
        ", ".join(short(word) for word, _ in best)
        for best in distinctive_words(words, 2)
    ]


def write_projector(
    logs: str | os.PathLike[str], titles: Sequence[str], vectors: np.ndarray
) -> None:
    """Write titles and vectors for TensorBoard's embedding projector.

    `tensorboard --logdir=LOGS` shows them. The files are
    `projector_config.pbtxt`, `projector/titles.tsv` and
    `projector/titles.labels.tsv`.

    Args:
        logs: The folder of logs, such as `logs/` of a run.
        titles: The texts, one for each vector.
        vectors: Float `[titles, dimension]`, from `encode`.

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
            f"found {len(titles)} titles and {len(vectors)} vectors, expected "
            "one vector for each title"
        )
    folder = Path(logs, "projector")
    folder.mkdir(parents=True, exist_ok=True)
    tensors, labels = folder / "titles.tsv", folder / "titles.labels.tsv"
    with replacing(tensors) as partial:
        np.savetxt(partial, vectors, fmt="%.5g", delimiter="\t")
    # TensorBoard reads a tab as a second column, and skips empty lines.
    lines = (" ".join(title.split()) or '""' for title in titles)
    write_text(labels, "".join(f"{line}\n" for line in lines))
    config = projector.ProjectorConfig()
    config.embeddings.add(
        tensor_name="titles",
        tensor_path=str(tensors.relative_to(logs)),
        metadata_path=str(labels.relative_to(logs)),
    )
    projector.visualize_embeddings(os.fspath(logs), config)


MOST_CLASSES = 12
"""Largest number of classes with their own colour and marker; readers could
not distinguish more."""


class DocumentMap(NamedTuple):
    """Holds the position of each document on a plane, and its class.

    Attributes:
        positions: float `[documents, 2]`.
        labels: The class of each document; "" for none.
        largest: The classes with the most documents, the largest first, of
            equal ones in alphabetical order; at most 12.
    """

    positions: np.ndarray
    labels: list[str]
    largest: list[str]


def document_map(
    vectors: np.ndarray, labels: Sequence[str], method: str = "tsne"
) -> DocumentMap:
    """Project documents on a plane by the cosines of their vectors.

    Args:
        vectors: Float `[documents, dimension]`, from `KeyVec.encode`.
        labels: The class of each document; "" for none.
        method: `"tsne"` (default) or `"pca"`, see `title_map`.

    Raises:
        InputError: The method is unknown, there are fewer than three
            documents, or scikit-learn is not installed.
    """
    counts = Counter(filter(None, labels))
    order = sorted(counts, key=lambda label: (-counts[label], label))
    return DocumentMap(
        plane_positions(unit_vectors(vectors, "document"), method, "documents"),
        list(labels),
        order[:MOST_CLASSES],
    )


def draw_document_map(path: Path, layout: DocumentMap) -> None:
    """Draw a map on which the largest classes have a colour and a marker.

    Args:
        path: The PNG file to write.
        layout: The positions and classes, from `document_map`.
    """
    labels = np.array(layout.labels, object)
    is_large = np.isin(labels, layout.largest)
    others = len(set(filter(None, layout.labels))) - len(layout.largest)
    with drawing(path, figsize=(8, 8)) as (axis,):
        for name, chosen, colour in (
            (f"{others:,} smaller classes", ~is_large & (labels != ""),
             "#bbbbbb"),
            ("without a class", labels == "", "#dddddd"),
        ):  # fmt: skip
            if chosen.any():
                axis.scatter(
                    *layout.positions[chosen].T, s=6, color=colour,
                    label=f"{name} ({chosen.sum():,})",
                )  # fmt: skip
        for number, label in enumerate(layout.largest):
            chosen = labels == label
            # A colour that is used again gets another marker.
            turn = number // len(COLOURS)
            axis.scatter(
                *layout.positions[chosen].T, s=20,
                color=COLOURS[number % len(COLOURS)],
                marker=MARKERS[(number + turn) % len(MARKERS)],
                edgecolor="white", linewidth=0.3,
                label=f"{short(label)} ({chosen.sum():,})",
            )  # fmt: skip
        axis.set_axis_off()  # the positions have no unit
        add_legend(axis, 3)
