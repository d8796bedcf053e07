"""Options: the thresholds and sizes of a report."""

from typing import NamedTuple

from keras_lstm_dssm.analysis.keywords import CELLS, CHANGE, SHARE
from keras_lstm_dssm.analysis.topics import CELLS as TOPIC_CELLS


class Options(NamedTuple):
    """How words are counted and titles mapped.

    Attributes:
        cells: Most active cells looked at, see `keywords`.
        change: Least change that assigns a word, see `assigned`.
        share: Of the cells, for a keyword, see `keywords`.
        topic_cells: Most active cells of each query, see `topics`.
        map: `tsne` or `pca`, see `title_map`.
        map_titles: Titles on the map.
    """

    cells: int = CELLS
    change: float = CHANGE
    share: float = SHARE
    topic_cells: int = TOPIC_CELLS
    map: str = "tsne"
    map_titles: int = 2000
