"""Writes a collection in the form that `beir.Collection` reads."""

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping

from keras_lstm_dssm.data.beir import Collection
from keras_lstm_dssm.data.click_log import Pair, click_line
from keras_lstm_dssm.files import sync

_HEADER = "query-id\tcorpus-id\tscore\n"


def write_collection(
    folder: str | os.PathLike[str],
    documents: Mapping[str, str],
    queries: Mapping[str, str],
    qrels_by_split: Mapping[str, Mapping[str, Mapping[str, int]]],
    clicks: Iterable[Pair],
) -> Collection:
    """Writes a BEIR folder, beside its place, and renames it.

    The bytes are a function of the arguments: no time, no name in the
    gzip headers. A folder that is already there is kept.

    Args:
        folder: Where to.
        documents: Document id -> title.
        queries: Query id -> text.
        qrels_by_split: Split -> query id -> document id -> score.
        clicks: The training pairs, with repetitions.

    Raises:
        OSError: It cannot be written; nothing is left of it.
    """
    folder = os.path.abspath(folder)
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    partial = tempfile.mkdtemp(dir=os.path.dirname(folder), suffix=".partial")
    try:
        _write_gz(
            os.path.join(partial, "corpus.jsonl.gz"),
            (
                json.dumps({"_id": key, "title": title, "text": ""}) + "\n"
                for key, title in documents.items()
            ),
        )
        _write_gz(
            os.path.join(partial, "queries.jsonl.gz"),
            (
                json.dumps({"_id": key, "text": text}) + "\n"
                for key, text in queries.items()
            ),
        )
        _write_gz(
            os.path.join(partial, "clicks.train.tsv.gz"),
            map(click_line, clicks),
        )
        os.mkdir(os.path.join(partial, "qrels"))
        for split, qrels in qrels_by_split.items():
            path = os.path.join(partial, "qrels", f"{split}.tsv")
            with open(path, "w", encoding="utf-8") as file:
                file.write(_HEADER)
                for query, scores in qrels.items():
                    for document, score in scores.items():
                        file.write(f"{query}\t{document}\t{score}\n")
        os.chmod(partial, 0o755)
        for place, _, names in os.walk(partial):
            for path in (*(os.path.join(place, n) for n in names), place):
                sync(path)
        if not os.path.isdir(folder):  # another process may have been faster
            os.rename(partial, folder)
            sync(os.path.dirname(folder))
    except OSError as error:
        # A full disk is reported without a name.
        if error.errno and error.filename is None:
            error.filename = folder
        raise
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return Collection(folder)


def _write_gz(path: str, lines: Iterable[str]) -> None:
    with (
        open(path, "wb") as raw,
        gzip.GzipFile("", "wb", 6, raw, mtime=0) as file,
    ):
        file.writelines(line.encode() for line in lines)
