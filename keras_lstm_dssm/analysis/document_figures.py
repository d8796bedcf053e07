"""Computes the figures of a KeyVec's report; writes them as JSON and CSV."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.analysis.document_map import DocumentMap, document_map
from keras_lstm_dssm.analysis.explained_documents import (
    ExplainedDocument,
    explain_documents,
)
from keras_lstm_dssm.analysis.report_input import ReportDocuments
from keras_lstm_dssm.files import write_csv
from keras_lstm_dssm.models import KeyVec
from keras_lstm_dssm.training.salience import Agreement, agreement


@dataclass(frozen=True)
class DocumentFigures:
    """Holds the figures that the report of a `KeyVec` shows.

    Attributes:
        explained: Some documents with their key sentences and words.
        by_model: How well p_i ranks the key sentences S* before the others,
            over all documents with a summary; `None` if there are none.
        by_position: How well the order of the sentences in the document does;
            `None` if there are no documents with a summary.
        ids: The id of each document of the map.
        map: The map of the documents.
    """

    explained: list[ExplainedDocument]
    by_model: Agreement | None
    by_position: Agreement | None
    ids: list[str]
    map: DocumentMap

    def as_json(self) -> dict[str, Any]:
        """Return all figures as dictionaries, lists, strings and numbers."""
        return {
            "key_sentences": {
                name: values and values._asdict()
                for name, values in (
                    ("model", self.by_model),
                    ("position", self.by_position),
                )
            },
            "documents": [asdict(document) for document in self.explained],
            "map": list(self._map_rows()),
        }

    def write_csv(self, folder: str | os.PathLike[str]) -> None:
        """Write the figures as CSV files.

        The files are `sentences.csv`, `predicted_words.csv`,
        `key_words.csv`, `nearest.csv` and `map.csv`, with a header each.
        In all but the last one, the column `document` has the id of the
        document that a row is about.

        Args:
            folder: The folder, which is created if there is none.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        for name in ("sentences", "predicted", "key_words", "nearest"):
            file = "predicted_words" if name == "predicted" else name
            rows = [
                {"document": document.id, **asdict(record)}
                for document in self.explained
                for record in getattr(document, name)
            ]
            write_csv(path / f"{file}.csv", rows)
        write_csv(path / "map.csv", list(self._map_rows()))

    def _map_rows(self) -> Iterator[Mapping[str, Any]]:
        for key, label, (x, y) in zip(
            self.ids, self.map.labels, self.map.positions.tolist(), strict=True
        ):
            yield {"id": key, "class": label, "x": x, "y": y}


def document_figures(
    model: KeyVec,
    given: ReportDocuments,
    examples: int = 3,
    map_method: str = "tsne",
    map_documents: int = 2000,
) -> DocumentFigures:
    """Compute the figures of the report.

    The documents to explain, and those of the map, are drawn at random with
    a fixed seed, the former among those with a summary if there are any.

    Args:
        model: A trained `KeyVec`.
        given: The documents, from `read_report_documents`.
        examples: Number of documents to explain. Default 3.
        map_method: See `document_map`.
        map_documents: Largest number of documents on the map. Default 2,000.

    Raises:
        InputError: There are fewer than three documents.
    """
    documents = given.documents
    random = np.random.default_rng(0)
    order = random.permutation(len(documents)).tolist()
    with_summary = [row for row in order if documents[row].summary]
    on_map = sorted(order[:map_documents])
    vectors = model.encode([one.sentences for one in documents])
    layout = document_map(
        vectors[on_map], [documents[row].label for row in on_map], map_method
    )
    by_model = by_position = None
    if with_summary:
        compared = [documents[row] for row in sorted(with_summary)]
        p = model.probabilities([one.sentences for one in compared])
        marks = [given.targets.of(one).marks() for one in compared]
        by_model = agreement(marks, p)
        by_position = agreement(marks, [-np.arange(len(m)) for m in marks])
    explained = explain_documents(
        model,
        documents,
        given.targets,
        (with_summary or order)[:examples],
        vectors=vectors,
    )
    ids = [documents[row].id for row in on_map]
    return DocumentFigures(explained, by_model, by_position, ids, layout)
