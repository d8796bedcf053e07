"""Opens the data given by `--data`: built-in data sets, folders, files."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, repeat
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.api_documents import build_api_documents
from keras_lstm_dssm.data.api_search import build_api_search
from keras_lstm_dssm.data.api_sentences import build_api_sentences
from keras_lstm_dssm.data.click_log import ClickLog, Pair
from keras_lstm_dssm.data.collection import (
    COUNTED_CLICKS,
    DATA_FILE,
    NEW_CLICKS,
    Collection,
    find_file,
)
from keras_lstm_dssm.data.documents import (
    DOCUMENTS_FILE,
    MAX_SENTENCES,
    DocumentFolder,
)
from keras_lstm_dssm.data.triples import drop_contradicted, judged_lists
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.training import (
    API,
    API_DOCUMENTS,
    API_SENTENCES,
    ReplaySpec,
    parts_of,
)

_BUILT_IN_TITLES = (API, API_SENTENCES)


def open_collection(spec: str, fields: str | None = None) -> Collection:
    """Opens a collection to evaluate on.

    Args:
        spec: "api", "api_sentences", or the path of a BEIR folder.
        fields: The fields of the documents to read, see `Collection`.

    Raises:
        InputError: `spec` names no collection.

    Example:
    >>> open_collection("parts").documents["d1"]
    'steel hex bolt'
    """
    if spec == API:
        spec = build_api_search(progress=True).folder
    elif spec == API_SENTENCES:
        spec = build_api_sentences(progress=True).folder
    refuse_documents(spec)
    if os.path.isdir(spec):
        return Collection(spec, fields)
    problem = "a file" if os.path.exists(spec) else "nothing there"
    raise InputError(
        f"{spec}: found {problem}, expected {API!r}, {API_SENTENCES!r}"
        " or a BEIR folder (corpus.jsonl, queries.jsonl, qrels/): check the"
        " path"
    )


def open_documents(
    spec: str, max_bad_lines: int = 0, max_sentences: int | None = MAX_SENTENCES
) -> DocumentFolder:
    """Opens documents to train or to evaluate on.

    Args:
        spec: "api_documents", or the path of a folder of documents.
        max_bad_lines: The number of bad lines that may be skipped. Default 0.
        max_sentences: The maximum number of sentences to read of a document.
            Default 250; `None` reads all sentences.

    Raises:
        InputError: `spec` names no documents.

    Example:
    >>> [document.title for document in open_documents("manuals").of("train")]
    ['wood glue', 'desk lamp', 'floor lamp']
    """
    folder = spec
    if spec == API_DOCUMENTS:
        folder = build_api_documents(progress=True).folder
    if os.path.isdir(folder):
        return DocumentFolder(folder, max_bad_lines, max_sentences)
    problem = "a file" if os.path.exists(spec) else "nothing there"
    raise InputError(
        f"{spec}: found {problem}, expected {API_DOCUMENTS!r} or a folder of"
        " documents (documents.jsonl): check the path"
    )


def open_log(
    spec: str,
    min_relevant: int = 1,
    write_to: str | os.PathLike[str] | None = None,
    max_bad_lines: int = 0,
    fields: str | None = None,
) -> ClickLog:
    """Opens the clicks to train on.

    Args:
        spec: "api", "api_sentences", a BEIR folder, click files (paths or
            globs), or several of these, separated by commas.
        min_relevant: The lowest score that counts as a click in a BEIR folder
            without a click file. Default 1.
        write_to: The click file to write for a folder that has no
            `clicks.train.tsv`, see `Collection.training_log`. For data set
            number n > 1 of `spec`, n is added to the file's name, before the
            suffix. Default `None`: such a folder is an `InputError`.
        max_bad_lines: The number of bad lines that may be skipped. Default 0.
        fields: The fields of the documents to read, see `Collection`.

    Raises:
        InputError: `spec` names no clicks.

    Example:
    >>> [query for query, _ in open_log("parts")]
    ['bolt', 'wood adhesive', 'light']
    """
    return DataSource(spec, fields).log(min_relevant, write_to, max_bad_lines)


def training_queries(config: Mapping[str, Any]) -> list[str]:
    """Reads the queries of the clicks on which a run was trained.

    `config` is the run's `config.json`. If a data set that `data` names cannot
    be read, all queries of `data` are left out. The same holds for `replay`.
    """
    replay = ReplaySpec.parse(config.get("replay"))
    old = replay.data if replay else ""
    replayed = {
        folder or part
        for part in parts_of(old)
        for folder, name in [_clicks_of(part)]
        if name == COUNTED_CLICKS
    }
    new = ""  # the data sets in `data` that are not in `replay`
    with suppress(InputError):
        new = ",".join(
            part
            for part in parts_of(config.get("data") or "")
            if (_clicks_of(part)[0] or part) not in replayed
        )
    queries: list[str] = []
    for spec in (new, old):
        with suppress(InputError):
            pairs = DataSource(spec).pairs(config.get("max_bad_lines", 0))
            queries += [query for query, _ in pairs]
    return queries


class DataSource:
    """Reads the data sets of a specification; opens each collection once.

    Args:
        spec: One or more data sets, separated by commas, see `open_log`.
        fields: The fields of the documents to read, see `Collection`.

    Example:
    >>> source = DataSource("parts")
    >>> source.titles(source.log())
    ['steel hex bolt', 'wood glue', 'desk lamp', 'hex nut']
    """

    def __init__(self, spec: str, fields: str | None = None) -> None:
        self.parts = parts_of(spec)
        self.fields = fields
        self.spec = os.fspath(spec)
        self._opened: dict[str, Collection] = {}

    def collection(self, part: str) -> Collection:
        """Returns the collection `part`, which the first call opens."""
        if part not in self._opened:
            self._opened[part] = open_collection(part, self.fields)
        return self._opened[part]

    @property
    def collections(self) -> list[Collection]:
        """The data sets that are not click files, opened as collections."""
        return [self.collection(p) for p in self.parts if is_collection(p)]

    def log(
        self,
        min_relevant: int = 1,
        write_to: str | os.PathLike[str] | None = None,
        max_bad_lines: int = 0,
    ) -> ClickLog:
        """Opens the clicks to train on, see `open_log`."""
        if self.fields and not any(_clicks_of(part)[0] for part in self.parts):
            raise InputError(
                f"{self.spec}: found click files only, but the recipe's"
                " `fields` can be read from a data folder only: name the"
                " folder, or leave `fields` out"
            )
        paths: list[str] = []
        for number, part in enumerate(self.parts, 1):
            refuse_documents(part)
            folder, name = _clicks_of(part)
            if folder is None:
                paths += ClickLog(part).paths
                continue
            target = write_to
            if write_to is not None and number > 1:
                path = Path(write_to)
                target = path.with_name(f"{path.stem}{number}{path.suffix}")
            collection = self.collection(folder)
            paths += collection.training_log(min_relevant, target, name).paths
        return ClickLog(paths, max_bad_lines)

    def pairs(
        self, max_bad_lines: int = 0, min_relevant: int = 1
    ) -> Iterator[Pair]:
        """Yields each training click; clicks in click files come last."""
        files = []
        for part in self.parts:
            folder, name = _clicks_of(part)
            if folder is None:
                files.append(part)
                continue
            clicks = self.collection(folder).training_clicks(min_relevant, name)
            for pair, _, count in clicks:
                yield from repeat(pair, count)
        if files:
            yield from ClickLog(files, max_bad_lines)

    def titles(self, pairs: Iterable[Pair]) -> list[str]:
        """Returns the distinct titles of all collections, then of `pairs`."""
        documents = (c.documents.values() for c in self.collections)
        clicked = (pair.document for pair in pairs)
        return list(dict.fromkeys(chain(*documents, clicked)))

    def judged_negatives(self, min_relevant: int = 1) -> dict[str, list[str]]:
        """Returns query -> titles judged not relevant in the split train.

        A title that is also judged relevant to the query is left out. Raises
        `InputError` if no title is left.
        """
        lists = [
            judged
            for collection in self.collections
            if "train" in collection.splits
            for judged in judged_lists(collection, "train", min_relevant)
        ]
        titles: dict[str, list[str]] = {}
        for judged in drop_contradicted(lists):
            titles.setdefault(judged.query, []).extend(judged.negatives)
        if not any(titles.values()):
            raise InputError(
                f"{self.spec}: found no title with a score below "
                f"{min_relevant}, expected a BEIR folder whose qrels/train.tsv"
                " has such scores: train without --judged_negatives"
            )
        return titles


def open_files(spec: str, max_bad_lines: int = 0) -> ClickLog:
    """Opens click files: paths or globs, separated by commas."""
    return ClickLog(parts_of(spec), max_bad_lines)


def _clicks_of(part: str) -> tuple[str | None, str]:
    """Returns the collection of a data set, and the name of the click file.

    `clicks.tsv` and `clicks.new.tsv` in a data folder belong to the folder. For
    other click files, the collection is `None`. For all data sets except
    `clicks.new.tsv` in a data folder, the name is `COUNTED_CLICKS`.
    """
    folder, name = os.path.split(part)
    if name in (COUNTED_CLICKS, NEW_CLICKS) and find_file(folder, DATA_FILE):
        return folder, name
    return (part if is_collection(part) else None), COUNTED_CLICKS


def is_collection(part: str | os.PathLike[str]) -> bool:
    """Returns whether `part` is a folder, or a built-in data set of titles."""
    return part in _BUILT_IN_TITLES or os.path.isdir(part)


def refuse_documents(spec: str) -> None:
    """Raises `InputError` if a specification names long documents."""
    if spec == API_DOCUMENTS or (
        find_file(spec, DOCUMENTS_FILE) and not find_file(spec, "corpus.jsonl")
    ):
        raise InputError(
            f"{spec}: found documents of many sentences, expected queries and"
            " titles: train a KeyVec on them (--preset=keyvec), or name click"
            " files or a BEIR folder"
        )
