"""Writes test collections as BEIR folders."""

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from keras_lstm_dssm.data.beir import CLICKS, Collection
from keras_lstm_dssm.data.click_lines import Pair, click_line
from keras_lstm_dssm.files import flush_to_disk


def write_collection(
    folder: str | os.PathLike[str],
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    qrels_by_split: Mapping[str, Mapping[str, Mapping[str, int]]],
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
    """
    folder = Path(os.path.abspath(folder))
    folder.parent.mkdir(parents=True, exist_ok=True)
    partial = Path(tempfile.mkdtemp(dir=folder.parent, suffix=".partial"))
    corpus = (
        {"_id": key, "title": title, "text": ""}
        for key, title in documents.items()
    )
    texts = ({"_id": key, "text": text} for key, text in queries.items())
    try:
        for name, rows in (("corpus", corpus), ("queries", texts)):
            lines = (json.dumps(row) + "\n" for row in rows)
            _write_gz(partial / f"{name}.jsonl.gz", lines)
        _write_gz(partial / f"{CLICKS}.gz", map(click_line, clicks))
        (partial / "qrels").mkdir()
        for split, qrels in qrels_by_split.items():
            path = partial / "qrels" / f"{split}.tsv"
            with path.open("w", encoding="utf-8") as file:
                file.write("query-id\tcorpus-id\tscore\n")
                for query, scores in qrels.items():
                    for document, score in scores.items():
                        file.write(f"{query}\t{document}\t{score}\n")
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
    return Collection(folder)


def _write_gz(path: Path, lines: Iterable[str]) -> None:
    with (
        open(path, "wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as file,
    ):
        file.writelines(line.encode() for line in lines)
