"""Thresholds and sizes of the report of two towers."""

from typing import NamedTuple

ACTIVE_CELLS = 10
"""Number of most active cells of a text for its keywords, as in the paper."""

LEAST_CHANGE = 0.25
"""Least change of a cell that assigns a word to it, see `assigned`."""

KEYWORD_SHARE = 0.4
"""A keyword is assigned to more than this share of the active cells."""

TOPIC_CELLS = 5
"""Number of most active cells of a query for the topics, as in the paper."""


class ReportSettings(NamedTuple):
    """Thresholds and sizes of a report.

    Attributes:
        cells: The number of most active cells of a text, see `keywords`.
        change: The threshold that assigns a word to a cell, see `assigned`.
        share: The share of the active cells for a keyword, see `keywords`.
        topic_cells: The number of most active cells of a query, see
            `topics`.
        map: `"tsne"` or `"pca"`, see `title_map`.
        map_titles: The number of titles, or of documents, on the map.
    """

    cells: int = ACTIVE_CELLS
    change: float = LEAST_CHANGE
    share: float = KEYWORD_SHARE
    topic_cells: int = TOPIC_CELLS
    map: str = "tsne"
    map_titles: int = 2000
