"""What a report of a trained model is about, with its thresholds and sizes."""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from keras_lstm_dssm.settings.choices import MAP_METHODS
from keras_lstm_dssm.settings.fields import Settings, setting

ACTIVE_CELLS = 10
"""Number of most active cells of a text for its keywords, as in the paper."""

LEAST_CHANGE = 0.25
"""Least change of a cell that assigns a word to it, see `assigned`."""

KEYWORD_SHARE = 0.4
"""A keyword is assigned to more than this share of the active cells."""

TOPIC_CELLS = 5
"""Number of most active cells of a query for the topics, as in the paper."""

PAPER_QUERY = "hotels in shanghai"
PAPER_DOCUMENT = (
    "shanghai hotels accommodation hotel in shanghai discount and reservation"
)


@dataclasses.dataclass(frozen=True)
class ReportSettings(Settings):
    """What a report is about, with its thresholds and sizes.

    Attributes:
        query: A query, by default the paper's. A pair scorer's report has it
            only if it or `document` is given.
        document: The title of a document to compare with the query, by
            default the paper's.
        data: Data with titles and queries: `api`, a BEIR folder or click
            files; for a KeyVec `api_documents` or a folder of documents. By
            default the data that the run was trained on.
        max_bad_lines: Largest number of bad lines of the data to skip. By
            default 0 or, for the run's own data, as in training.
        queries: Queries for the topics of the cells, by default those of the
            data.
        cells: The number of most active cells of a text, for its keywords.
        change: A word is assigned to a cell whose output changes at the word
            by this share of its final output, or more, see `assigned`.
        share: A keyword is assigned to more than this share of the active
            cells, see `keywords`.
        topic_cells: The number of most active cells of a query, for the
            topics.
        map: Method that lays out the map of titles or documents.
        map_titles: The number of titles, or of documents, on the map.
        examples: The number of queries of a pair scorer, each with two
            answers, or of documents of a KeyVec.
        salience: What chooses the key sentences that those of a KeyVec are
            compared with, `bm25`, `trigrams`, `lead` or a run folder; by
            default as in training.
        against: Run folder of another pair scorer, to compare this one with on
            the same judged answers; the queries shown are then those that this
            one alone answers right.
        claims: Whether to measure the paper's claims on the data.
        csv: A folder for the metrics of a KeyVec, as CSV files.
        pictures: A folder in which the pictures are kept as PNG files; by
            default they are in the page only.
        projector: Whether to write the vectors of titles or documents into
            the run's `logs`, for TensorBoard's projector.

    Example:
    >>> ReportSettings(document="shanghai hotels").pair
    ('hotels in shanghai', 'shanghai hotels')
    """

    noun: ClassVar[str] = "report"

    query: str | None = None
    document: str | None = None
    data: str | None = None
    max_bad_lines: int | None = setting(None, least=0)
    queries: Sequence[str] = setting((), flag=False)
    cells: int = ACTIVE_CELLS
    change: float = setting(LEAST_CHANGE, least=0)
    share: float = setting(KEYWORD_SHARE, least=0, most=1)
    topic_cells: int = TOPIC_CELLS
    map: str = setting("tsne", choices=MAP_METHODS)
    map_titles: int = setting(2000, least=3)
    examples: int = 3
    salience: str | None = None
    against: str | None = None
    claims: bool = False
    csv: str | None = None
    pictures: str | None = None
    projector: bool = False

    @property
    def pair(self) -> tuple[str, str]:
        """The query and the title, or the paper's in their place."""
        return (
            PAPER_QUERY if self.query is None else self.query,
            PAPER_DOCUMENT if self.document is None else self.document,
        )
