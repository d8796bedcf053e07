"""Maps of titles and documents, as pictures or for TensorBoard's projector."""

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
from keras_lstm_dssm.evaluation.bm25 import space_separated
from keras_lstm_dssm.evaluation.index import unit_vectors
from keras_lstm_dssm.files import replacing, write_text
from keras_lstm_dssm.settings.fields import MAP_METHODS


class TextMap(NamedTuple):
    """The positions of texts on a plane, and the group of each text."""

    positions: np.ndarray  # `[texts, 2]`
    # int `[texts]`: index in `names`; -1 or -2 for texts without a group
    groups: np.ndarray
    names: list[str]  # the names of the groups
    others: tuple[str, str] = ("", "")  # legends of groups -1 and -2


def title_map(
    titles: Sequence[str], vectors: np.ndarray, method: str = "tsne"
) -> TextMap:
    """Lays titles out on a plane, and clusters the positions by HDBSCAN."""
    positions = plane_positions(vectors, method)
    cluster = import_optional("sklearn.cluster", "analysis")
    # Campello et al. 2013, "Density-Based Clustering Based on Hierarchical
    # Density Estimates".
    clustering = cluster.HDBSCAN(
        max(5, len(titles) // 80),
        min_samples=min(5, len(titles)),
        cluster_selection_method="leaf",  # gives many small clusters
        copy=True,
    )
    with _one_thread():
        clusters = clustering.fit_predict(positions)
    words: list[list[str]] = [[] for _ in range(clusters.max() + 1)]
    for title, group in zip(titles, clusters, strict=True):
        if group >= 0:
            words[group] += set(space_separated(title))
    names = [
        ", ".join(short(word) for word, _ in best)
        for best in distinctive_words(words, 2)
    ]
    return TextMap(positions, clusters, names)


MOST_CLASSES = 12
"""Maximum number of classes with a colour and marker; the rest are grey."""


def document_map(
    vectors: np.ndarray, labels: Sequence[str], method: str = "tsne"
) -> TextMap:
    """Lays documents out on a plane; the 12 largest classes are the groups."""
    counts = Counter(filter(None, labels))
    order = sorted(counts, key=lambda label: (-counts[label], label))
    names = order[:MOST_CLASSES]
    groups = {name: group for group, name in enumerate(names)} | {"": -2}
    return TextMap(
        plane_positions(unit_vectors(vectors, "document"), method, "documents"),
        np.array([groups.get(label, -1) for label in labels]),
        names,
        (f"{len(order) - len(names):,} smaller classes", "without a class"),
    )


def plane_positions(
    vectors: np.ndarray,
    method: str = "tsne",
    name: str = "titles",  # noun for the texts in messages
) -> np.ndarray:
    """Projects unit vectors `[n, dimension]` onto a plane, `[n, 2]`."""
    if method not in MAP_METHODS:
        raise InputError(
            f"unknown map {method!r}: expected one of {', '.join(MAP_METHODS)}"
        )
    if len(vectors) < 3:
        raise InputError(
            f"found {len(vectors)} {name}, expected 3 or more for a map: give "
            "data with more documents"
        )
    if not np.ptp(vectors, axis=0).any():
        # All vectors are equal: both methods would divide by zero.
        return np.zeros((len(vectors), 2), np.float32)
    if method == "pca":
        decomposition = import_optional("sklearn.decomposition", "analysis")
        layout = decomposition.PCA(2, random_state=0)
    else:
        manifold = import_optional("sklearn.manifold", "analysis")
        # van der Maaten and Hinton 2008, "Visualizing Data using t-SNE".
        layout = manifold.TSNE(
            perplexity=min(30, (len(vectors) - 1) / 3), random_state=0
        )
    with _one_thread():
        return layout.fit_transform(vectors)


def _one_thread() -> Any:
    # Several threads would busy-wait for each other on a busy machine.
    return import_optional("threadpoolctl", "analysis").threadpool_limits(1)


def draw_map(path: Path, layout: TextMap, legend: bool = False) -> None:
    """Draws a map. Groups are named on the map, or in a legend below it."""
    effects = import_optional("matplotlib.patheffects", "analysis")
    halo = effects.withStroke(linewidth=3, foreground="white")
    with drawing(path, figsize=(8, 8 if legend else 7)) as (axis,):

        def scatter(group: int, name: str, **look: Any) -> np.ndarray:
            positions = layout.positions[layout.groups == group]
            if len(positions):
                label = f"{short(name)} ({len(positions):,})"
                axis.scatter(*positions.T, label=label, **look)
            return positions

        for group, colour in ((-1, "#bbbbbb"), (-2, "#dddddd")):
            scatter(group, layout.others[-group - 1], s=6, color=colour)
        for group, name in enumerate(layout.names):
            # Groups of the same colour have different markers.
            turn = group // len(COLOURS)
            positions = scatter(
                group, name, s=20 if legend else 14,
                color=COLOURS[group % len(COLOURS)],
                marker=MARKERS[(group + turn) % len(MARKERS)],
                edgecolor="white", linewidth=0.3,
            )  # fmt: skip
            if not legend:
                axis.annotate(
                    name, np.median(positions, axis=0), ha="center",
                    va="center", fontsize=8, color="#111111",
                    path_effects=[halo],
                )  # fmt: skip
        axis.set_axis_off()  # the positions have no unit
        if legend:
            add_legend(axis, 3)


def write_projector(
    logs: str | os.PathLike[str], titles: Sequence[str], vectors: np.ndarray
) -> None:
    """Writes titles and vectors to `logs`, for TensorBoard's projector."""
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
    # TensorBoard starts a second column at a tab, and skips empty lines.
    lines = (" ".join(title.split()) or '""' for title in titles)
    write_text(labels, "".join(f"{line}\n" for line in lines))
    config = projector.ProjectorConfig()
    config.embeddings.add(
        tensor_name="titles",
        tensor_path=str(tensors.relative_to(logs)),
        metadata_path=str(labels.relative_to(logs)),
    )
    projector.visualize_embeddings(os.fspath(logs), config)
