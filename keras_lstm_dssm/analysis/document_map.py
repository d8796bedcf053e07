"""A map of documents: their vectors on a plane, coloured by class."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.title_map import plane_positions
from keras_lstm_dssm.drawing import (
    COLOURS,
    MARKERS,
    add_legend,
    drawing,
    short,
)
from keras_lstm_dssm.evaluation.index import unit_vectors

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
