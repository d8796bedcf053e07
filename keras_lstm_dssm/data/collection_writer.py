"""Writes BEIR folders, and folders of documents split into sentences."""

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.beir import CLICKS, Collection
from keras_lstm_dssm.data.click_lines import Pair, click_line
from keras_lstm_dssm.data.document_folder import DOCUMENTS_FILE, DocumentFolder
from keras_lstm_dssm.data.document_lines import Document
from keras_lstm_dssm.files import flush_to_disk

_Qrels = Mapping[str, Mapping[str, int]]
"""Query id -> document id -> score."""


def write_collection(
    folder: str | os.PathLike[str],
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    qrels_by_split: Mapping[str, _Qrels],
    clicks: Iterable[Pair],
) -> Collection:
    """Writes a BEIR folder under a temporary name, and renames it.

    The bytes depend on the arguments only: the gzip headers hold no time and
    no name. A folder that is already there is not replaced.

    Args:
        folder: The folder to create.
        documents: Document id -> title.
        queries: Query id -> text.
        qrels_by_split: Split -> query id -> document id -> score.
        clicks: The training pairs, each as often as it was clicked.

    Raises:
        OSError: The folder cannot be written; the partial one is removed.

    Example:
    >>> folder = write_collection(
    ...     "shop",
    ...     documents={"d1": "hex bolt", "d2": "nut"},
    ...     queries={"q1": "bolts"},
    ...     qrels_by_split={"test": {"q1": {"d1": 1}}},
    ...     clicks=[Pair("bolt", "hex bolt")],
    ... )
    >>> folder.splits, folder.documents["d2"]
    (('test',), 'nut')
    """
    with _new_folder(folder) as partial:
        _write_rows(
            partial / "corpus.jsonl.gz",
            (
                {"_id": key, "title": title, "text": ""}
                for key, title in documents.items()
            ),
        )
        _write_queries(partial, queries, qrels_by_split)
        _write_gz(partial / f"{CLICKS}.gz", map(click_line, clicks))
    return Collection(folder)


def write_documents(
    folder: str | os.PathLike[str],
    documents: Iterable[Document],
    queries: Mapping[str, str],
    qrels_by_split: Mapping[str, _Qrels],
) -> DocumentFolder:
    """Writes a folder that `DocumentFolder` can read.

    It is written under a temporary name and then renamed, so that there is
    never an incomplete folder.

    Args:
        folder: The folder to create.
        documents: The documents, of all splits.
        queries: Query id -> text; there may be none.
        qrels_by_split: Split -> query id -> document id -> score.

    Raises:
        OSError: The folder cannot be written; the partial one is removed.

    Example:
    >>> guide = Document("m1", "Glue", ["Warm the glue.", "Wait."], [])
    >>> folder = write_documents("guides", [guide], {"q1": "glue"}, {})
    >>> next(iter(folder)).sentences
    ['Warm the glue.', 'Wait.']
    """
    with _new_folder(folder) as partial:
        _write_rows(
            partial / f"{DOCUMENTS_FILE}.gz",
            (
                {
                    "_id": document.id,
                    "title": document.title,
                    "sentences": document.sentences,
                    "summary": document.summary,
                    "class": document.label,
                    "split": document.split,
                }
                for document in documents
            ),
        )
        if queries:
            _write_queries(partial, queries, qrels_by_split)
    return DocumentFolder(folder)


@contextmanager
def _new_folder(folder: str | os.PathLike[str]) -> Iterator[Path]:
    """Yields a temporary folder, and renames it to `folder` at the end."""
    folder = Path(os.path.abspath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent, suffix=".partial"))
    try:
        yield partial
        partial.chmod(0o755)
        for path in (*partial.rglob("*"), partial):
            flush_to_disk(path)
        if not folder.is_dir():  # another process may have been faster
            partial.rename(folder)
            flush_to_disk(folder.parent)
    except OSError as error:
        # A full disk is reported without a name.
        if error.errno and error.filename is None:
            error.filename = str(folder)
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _write_queries(
    folder: Path,
    queries: Mapping[str, str],
    qrels_by_split: Mapping[str, _Qrels],
) -> None:
    _write_rows(
        folder / "queries.jsonl.gz",
        ({"_id": key, "text": text} for key, text in queries.items()),
    )
    (folder / "qrels").mkdir()
    for split, qrels in qrels_by_split.items():
        path = folder / "qrels" / f"{split}.tsv"
        with path.open("w", encoding="utf-8") as file:
            file.write("query-id\tcorpus-id\tscore\n")
            for query, scores in qrels.items():
                for document, score in scores.items():
                    file.write(f"{query}\t{document}\t{score}\n")


def _write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    _write_gz(path, (json.dumps(row) + "\n" for row in rows))


def _write_gz(path: Path, lines: Iterable[str]) -> None:
    with (
        open(path, "wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as file,
    ):
        file.writelines(line.encode() for line in lines)
