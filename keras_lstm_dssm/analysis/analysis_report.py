"""The report: one HTML page with pictures, tables and what to look for."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.analysis.activations import is_recurrent
from keras_lstm_dssm.analysis.analysis_page import Section, page
from keras_lstm_dssm.analysis.claims import Claim
from keras_lstm_dssm.analysis.corpus_sections import (
    claim_section,
    cost_section,
    map_section,
    nearest_section,
    topic_section,
)
from keras_lstm_dssm.analysis.pair_sections import pair_sections
from keras_lstm_dssm.analysis.report_input import Options
from keras_lstm_dssm.files import replacing

_BAG = (
    " An encoder that takes all words at once has no activations, keywords "
    "and topics by word; these want an LSTM, a bidirectional LSTM or an RNN."
)


class Material(NamedTuple):
    """What a report is made of.

    Attributes:
        model: A `TwoTower`.
        query: A query.
        document: A title to set beside it.
        queries: For the topics of the cells.
        titles: Distinct ones, to find and to map; at least three.
        history: Figures of the epochs, from `RunFolder.read_history`.
        claims: From `measure_claims`.
    """

    model: Any
    query: str
    document: str
    queries: Sequence[str]
    titles: Sequence[str]
    history: Sequence[dict[str, float]] = ()
    claims: Sequence[Claim] = ()


def write_report(
    path: str | os.PathLike[str],
    material: Material,
    options: Options | None = None,
    pictures: str | os.PathLike[str] | None = None,
) -> None:
    """Writes the report, a page that needs no other file and no network.

    Section V-A of Palangi et al. 2016. For encoders without a recurrence it
    has the parts that need none, and says so.

    Args:
        path: The HTML file.
        material: What it is made of.
        options: Thresholds and sizes.
        pictures: Folder in which the pictures stay, as PNG files.

    Raises:
        InputError: matplotlib or scikit-learn is not installed, or there
            are fewer than three titles.

    Example:
    >>> write_report(
    ...     "report.html",
    ...     Material(model, "hotels in shanghai", "shanghai hotels",
    ...              queries, titles),
    ... )
    """
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(pictures or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        sections = list(_sections(material, options or Options(), folder))
    towers = material.model.query_encoder, material.model.document_encoder
    kinds = dict.fromkeys(type(tower).__name__ for tower in towers)
    text = page(
        f"What {' and '.join(kinds)} keep{'s' * (len(kinds) == 1)} of a text",
        f"Query: {material.query!r}. Title: {material.document!r}."
        + _BAG * (not is_recurrent(*towers)),
        sections,
    )
    with replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")


def _sections(
    material: Material, options: Options, folder: Path
) -> Iterator[Section]:
    model, titles = material.model, material.titles
    texts = material.query, material.document
    yield from pair_sections(model, texts, options, folder)
    if is_recurrent(model.query_encoder, model.document_encoder):
        yield topic_section(model, material.queries, options)
    yield nearest_section(model, *texts, titles)
    yield map_section(model, titles, options, folder)
    if material.history:
        yield cost_section(material.history, folder)
    if material.claims:
        yield claim_section(material.claims)
