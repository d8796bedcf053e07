"""What a report is made from: texts of a data set, thresholds and sizes."""

import os
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import numpy as np

from keras_lstm_dssm.analysis.keywords import CELLS, CHANGE, SHARE, TOPIC_CELLS
from keras_lstm_dssm.data import Pair, open_collection, open_log
from keras_lstm_dssm.data.source import API


class Corpus(NamedTuple):
    """Texts of a data set.

    Attributes:
        titles: Distinct, in their order.
        pairs: Queries, each with a relevant title: of the last split of a
            collection, of a log the first ones.
        contexts: Clicks, query and title in one; without a log the titles.
    """

    titles: list[str]
    pairs: list[Pair]
    contexts: list[str]


def open_corpus(
    spec: str, most: int = 60_000, pairs: int = 1000, seed: int = 0
) -> Corpus:
    """Reads "api", a BEIR folder or click files.

    Args:
        spec: See `open_log`.
        most: Titles and contexts kept, the first ones.
        pairs: Queries kept, drawn at random.
        seed: Of the draw.

    Raises:
        InputError: It is something else, or a line of it is wrong.
    """
    if spec == API or os.path.isdir(spec):
        collection = open_collection(spec)
        log: Iterable[Pair] = collection.clicks or ()
        titles: Iterable[str] = collection.documents.values()
        found = []
        for query, judged in collection.qrels(collection.splits[-1]).items():
            best = max(judged, key=lambda document: judged[document])
            if judged[best] > 0:
                found.append(
                    Pair(collection.queries[query], collection.documents[best])
                )
    else:
        log = open_log(spec)
        titles = log.documents()
        found = [Pair(q, d) for q, d in dict(islice(log, most)).items()]
    order = np.random.default_rng(seed).permutation(len(found))[:pairs]
    titles = list(islice(dict.fromkeys(titles), most))
    clicks = [f"{pair.query} {pair.document}" for pair in islice(log, most)]
    return Corpus(titles, [found[row] for row in order], clicks or titles)


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
