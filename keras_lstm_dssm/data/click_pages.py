"""Pages of results with their clicks: logs in the form of UBI, and parquet.

User Behavior Insights (UBI 1.3, https://github.com/o19s/ubi) is what plugins of
OpenSearch, Solr and Elasticsearch write: queries with the ids that were shown,
and events with an object and perhaps its position.
"""

import glob
import json
import os
import tempfile
import weakref
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from datetime import datetime, timezone
from typing import IO, Any, NamedTuple

from keras_lstm_dssm.data.click_log import BadLines, ClickLog, weighted_line
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.files import replacing
from keras_lstm_dssm.plain_files import damage_named
from keras_lstm_dssm.settings.data import UBI
from keras_lstm_dssm.text_files import (
    EmptyFile,
    cleaned,
    line_chunks,
    numbered_lines,
    text_lines,
    write_lines,
)

DEFAULT_ACTIONS = {"click": 1.0, "click_through": 1.0}
"""Weights of the actions that count as clicks, by their names."""

_BYTES_PER_PART = 1 << 24  # some 10^5 lines: what is in memory at once
_MOST_PARTS = 256  # files that are open at once
_VOTES = 10_000
_AGREE = 0.9  # of the votes for a base of ordinals
_MILLISECONDS = 1e11  # larger times are not in seconds
_LARGEST_TIME = 1e15
_LARGEST_WEIGHT = 1e9
_EXPECTED = "a query or an event of UBI, or a page"


class Page(NamedTuple):
    """Holds the results of one search, in order, and what was clicked.

    Example:
    >>> page = Page("bolts", ["hex bolt", "nut"], [1.0, 0.0], [1, 2])
    >>> any(page.weights)
    True
    """

    query: str
    titles: list[str]
    weights: list[float]  # of each title: 0 without a click
    positions: list[int]  # of each title, from 1; 0 if unknown
    time: float | None = None  # seconds since 1970
    client: str = ""  # who searched


def parse_actions(text: str | None) -> dict[str, float]:
    """Reads weights of actions, such as `"click:1,purchase:3"`."""
    if not text:
        return dict(DEFAULT_ACTIONS)
    pairs = [part.rpartition(":")[::2] for part in text.split(",")]
    try:
        actions = {name.strip(): float(weight) for name, weight in pairs}
    except ValueError:
        actions = {"": 0.0}
    if "" in actions or not all(0 < w <= 1e6 for w in actions.values()):
        raise InputError(
            f"actions is {text!r:.80}: expected names and weights above 0,"
            " such as click:1,purchase:3"
        )
    return actions


def read_titles(path: str | os.PathLike[str]) -> dict[str, str]:
    """Reads id -> title from a file of `lstm-dssm-export --documents`.

    Lines are an id, a tab and a title (further fields are not read), or a
    title, which is its own id.
    """
    titles = {}
    for line in text_lines(path):
        key, tab, rest = line.partition("\t")
        if key.strip():
            title = cleaned(rest.partition("\t")[0] if tab else key)
            titles[key.strip()] = title
    if not titles:
        raise InputError(
            f"{os.fspath(path)}: found no title, expected id TAB title a line"
        )
    return titles


def is_pages(part: str) -> bool:
    """Returns whether a part of a data specification names pages."""
    return part.startswith(UBI) or part.endswith(".parquet")


class ClickPages:
    """Streams the pages of a UBI folder, or of parquet files, in a fixed order.

    Queries and events of UBI are divided by a hash of the query's id into files
    in `$TMPDIR`, each of which fits into memory, and joined there. A repeated
    event of a page counts once, and a title as its action of largest weight.
    Where a query lacks the ids that were shown, the ordinals of the events say
    where they were, if their base, 0 or 1, is known: see `base`.

    Args:
        spec: `"ubi:FOLDER"`, a folder of `queries*` and `events*`, each
            `.ndjson`, `.ndjson.gz` or `.parquet`; or a path or glob of parquet
            files, a row a page: `query` string, `titles` strings, `clicks`
            numbers or booleans, perhaps `positions` from 1 and `weights`.
        documents: Id -> title. Default `None`: an id is a title.
        actions: The actions of UBI that are clicks, and their weights, such
            as `"click:1,purchase:3"`. Default `None`: `DEFAULT_ACTIONS`.
        max_bad_lines: The number of bad lines that may be left out.

    Raises:
        InputError: There are no such files; or, when pages are read, more bad
            lines than allowed: no JSON, a missing field, an unknown query or
            id.

    Example:
        >>> pages = ClickPages("ubi:logs")  # doctest: +SKIP
        >>> sum(any(page.weights) for page in pages)  # doctest: +SKIP
        1200
    """

    def __init__(
        self,
        spec: str,
        documents: Mapping[str, str] | None = None,
        actions: str | None = None,
        max_bad_lines: int = 0,
    ) -> None:
        self.spec = spec
        self.documents = documents
        self.actions = parse_actions(actions)
        self.max_bad_lines = max_bad_lines
        self.bad_lines: dict[str, int] = {}
        self._divided: list[IO[str]] | None = None
        self._found = Counter[str]()  # bad lines of `_divide`
        self._base: int | None = None
        if spec.startswith(UBI):
            folder = spec.removeprefix(UBI)
            self.queries = _log_files(folder, "queries")
            self.events = _log_files(folder, "events")
            self.paths = [*self.queries, *self.events]
        else:
            literal = [spec] if os.path.exists(spec) else []
            self.paths = literal or sorted(glob.glob(spec))
            if not self.paths:
                raise InputError(
                    f"{spec}: no file matches, expected parquet files of pages:"
                    " check the path"
                )

    def __iter__(self) -> Iterator[Page]:
        bad = self._new_bad()
        if self.spec.startswith(UBI):
            self._divide()
            bad.counts.update(self._found)
            yield from self._joined(bad)
        else:
            for path in self.paths:
                for number, row in enumerate(_parquet_rows(path), 1):
                    page = self._page_of_row(row)
                    if isinstance(page, Page):
                        yield page
                    else:
                        bad.add(path, number, page)
        self.bad_lines = dict(bad.counts)

    def _new_bad(self) -> BadLines:
        return BadLines(self.max_bad_lines, _EXPECTED)

    @property
    def base(self) -> int | None:
        """The number of the first ordinal, 0 or 1, of a UBI folder.

        It is found by comparing ordinals with the places of their ids among
        those that were shown; `None` if no nine in ten clicks agree, or no
        click has both: ordinals are not used then.
        """
        if self.spec.startswith(UBI):
            self._divide()
        return self._base

    def _title(self, key: Any) -> str | None:
        if not (own_title := _key(key)):
            return None
        if self.documents is None:
            return own_title
        return self.documents.get(str(key)) or None

    def _page_of_row(self, row: Mapping[str, Any]) -> Page | str:
        query, titles, clicks = (
            row.get(name) for name in ("query", "titles", "clicks")
        )
        if not isinstance(query, str) or not cleaned(query):
            return "an empty query"
        if not isinstance(titles, list) or not titles:
            return "no list of titles"
        positions = row.get("positions") or list(range(1, len(titles) + 1))
        weights = row.get("weights") or [1.0] * len(titles)
        columns: list[Any] = [clicks, weights, positions]
        if not all(isinstance(c, list) for c in columns) or any(
            len(column) != len(titles) for column in columns
        ):
            return "clicks, positions or weights of another number than titles"
        rows = []
        for key, *numbers in zip(titles, *columns, strict=True):
            click, weight, place = (number or 0 for number in numbers)
            title = self._title(key)
            if title is None:
                return "an id that --documents lacks, or an empty title"
            if not all(isinstance(n, int | float) for n in (click, weight)):
                return "a click or weight that is no number"
            if not 0 <= click * weight <= _LARGEST_WEIGHT:  # or NaN
                return "a click or weight below 0 or too large"
            if not isinstance(place, int | float) or not (
                place >= 1 and place % 1 == 0
            ):
                return "a position that is not 1 or more"
            rows.append((title, float(click * weight), int(place)))
        return _page_of(cleaned(query), rows)

    def _divide(self) -> None:
        """Divides the lines of UBI by their query, once, and finds `base`."""
        if self._divided is not None:
            return
        size = sum(
            os.path.getsize(path) * (8 if path.endswith("z") else 1)
            for path in self.paths
        )
        self.parts = min(_MOST_PARTS, 1 + size // _BYTES_PER_PART)
        bad = self._new_bad()
        # Without names, so that nothing stays, however the process ends.
        opened = ExitStack()
        weakref.finalize(self, opened.close)
        files: list[IO[str]] = [
            opened.enter_context(tempfile.TemporaryFile("w+", encoding="utf-8"))
            for _ in range(self.parts)
        ]
        for file_number, path in enumerate(self.paths):
            read = _query if path in self.queries else self._event
            for number, row in _rows(path):
                record = read(row) if isinstance(row, dict) else row
                if isinstance(record, str):
                    bad.add(path, number, record)
                elif record:
                    part = zlib.crc32(record[1].encode()) % self.parts
                    record += [file_number, number]
                    files[part].write(json.dumps(record, default=str) + "\n")
        self._divided, self._found = files, bad.counts
        votes = Counter[int]()
        for part in range(self.parts):
            for query, events in self._of_part(part):
                places = _places(query[3])
                votes.update(
                    event[4] - places[event[3]] + 1
                    for event in events
                    if event[4] is not None and event[3] in places
                )
            if votes.total() >= _VOTES:
                break
        base = max(votes, key=lambda base: votes[base], default=None)
        if base in (0, 1) and votes[base] >= _AGREE * votes.total():
            self._base = base

    def _event(self, row: Mapping[str, Any]) -> "list[Any] | str | None":
        weight = self.actions.get(str(row.get("action_name")))
        if weight is None:  # an impression, a page view
            return None
        query_id = cleaned(str(row.get("query_id") or ""))
        if not query_id:
            return "a click without query_id"
        attributes = row.get("event_attributes")
        attributes = attributes if isinstance(attributes, dict) else {}
        item = attributes.get("object")
        key = item.get("object_id") if isinstance(item, dict) else None
        if not (key := _key(key)):
            return "a click without object_id"
        position = attributes.get("position")
        ordinal = (
            position.get("ordinal") if isinstance(position, dict) else None
        )
        if not isinstance(ordinal, int) or isinstance(ordinal, bool):
            ordinal = None
        return ["e", query_id, weight, key, ordinal]

    def _of_part(self, part: int) -> Iterator[tuple[list[Any], list[Any]]]:
        """Yields the queries of a part, each with its events.

        Events without a query come with an empty text.
        """
        assert self._divided is not None
        queries: dict[str, list[Any]] = {}
        events: dict[str, list[Any]] = {}
        self._divided[part].seek(0)
        for line in self._divided[part]:
            record = json.loads(line)
            key = record[1]
            if record[0] == "e":
                events.setdefault(key, []).append(record)
            elif key not in queries or not queries[key][3]:
                queries[key] = record
        for key, record in queries.items():
            yield record, events.pop(key, [])
        for key, of_key in events.items():
            yield ["q", key, "", [], None, ""], of_key

    def _joined(self, bad: BadLines) -> Iterator[Page]:
        for part in range(self.parts):
            for query, events in self._of_part(part):
                if query[2]:
                    page = self._page(query, events, bad)
                    if page.titles:
                        yield page
                for *_, file, number in () if query[2] else events:
                    bad.add(self.paths[file], number, "an unknown query_id")

    def _page(self, query: list[Any], events: list[Any], bad: BadLines) -> Page:
        _, _, text, shown, time, client, *_ = query
        weights: dict[str, float] = {}
        places = _places(shown)
        for _, _, weight, key, ordinal, file, number in events:
            if self._title(key) is None:
                name = "an object_id that --documents lacks"
                bad.add(self.paths[file], number, name)
                continue
            weights[key] = max(weight, weights.get(key, 0))
            if key not in places:
                known = not shown and ordinal is not None
                places[key] = (
                    max(0, ordinal + 1 - self._base)
                    if known and self._base is not None
                    else 0
                )
        rows = [
            (title, weights.get(key, 0.0), place)
            for key, place in places.items()
            if (title := self._title(key))
        ]
        return _page_of(text, rows)._replace(time=time, client=client)


def _page_of(query: str, rows: list[tuple[str, float, int]]) -> Page:
    """Makes a page of results from (title, weight of its click, position).

    A title that was shown twice counts once, with the largest weight of a click
    and the first position.
    """
    places: dict[str, int] = {}
    weights: dict[str, float] = {}
    for title, weight, place in rows:
        places.setdefault(title, place)
        weights[title] = max(weight, weights.get(title, 0.0))
    return Page(query, [*places], [*weights.values()], [*places.values()])


def _query(row: Mapping[str, Any]) -> "list[Any] | str | None":
    query_id, text = row.get("query_id"), row.get("user_query")
    if isinstance(text, dict):  # some versions hold the text in an object
        text = text.get("query")
    if not query_id:
        return "a query without query_id"
    if not isinstance(text, str) or not (text := cleaned(text)):
        return "a query without user_query"
    shown = row.get("query_response_hit_ids")
    if shown is None:  # its name in 1.0
        shown = row.get("query_response_objects_ids")
    return [
        "q",
        cleaned(str(query_id)),
        text,
        [*map(_key, shown)] if isinstance(shown, list) else [],
        seconds_of(row.get("timestamp")),
        str(row.get("client_id") or ""),
    ]


def _places(shown: Iterable[str]) -> dict[str, int]:
    """Returns the position of each id among those that were shown, from 1.

    An id that was shown twice has its first position.
    """
    places: dict[str, int] = {}
    for place, key in enumerate(shown, 1):
        places.setdefault(key, place)
    return places


def _key(value: Any) -> str:
    """Returns the id of a document as text, `""` if the value is no id.

    No title has the id `""`.
    """
    is_key = isinstance(value, str | int) and not isinstance(value, bool)
    return cleaned(str(value)) if is_key else ""


def seconds_of(value: Any) -> float | None:
    """Reads a time: ISO 8601, or seconds or milliseconds since 1970."""
    if isinstance(value, datetime):
        value = value.isoformat()
    if isinstance(value, str) and value.isdecimal() and len(value) > 8:
        value = float(value)  # shorter ones are dates
    if isinstance(value, str):
        try:
            time = datetime.fromisoformat(value.replace("Z", "+00:00"))
        except ValueError:
            return None
        zone = time.tzinfo or timezone.utc
        return time.replace(tzinfo=zone).timestamp()
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    if not abs(value) <= _LARGEST_TIME:  # or NaN
        return None
    return value / 1000 if value > _MILLISECONDS else float(value)


def _log_files(folder: str, name: str) -> list[str]:
    endings = (".ndjson", ".ndjson.gz", ".parquet")
    files = sorted(
        path
        for path in glob.glob(os.path.join(glob.escape(folder), f"{name}*"))
        if path.endswith(endings)
    )
    if not files:
        raise InputError(
            f"{folder}: found no {name}*.ndjson, .ndjson.gz or .parquet,"
            " expected a folder of queries and events of UBI: check the path"
        )
    return files


def _rows(path: str) -> Iterator[tuple[int, dict[str, Any] | str]]:
    """Yields the number of each row, and the row or what is wrong with it."""
    if path.endswith(".parquet"):
        yield from enumerate(_parquet_rows(path), 1)
        return
    with suppress(EmptyFile):  # a log that has just begun
        for number, line in numbered_lines(line_chunks(path)):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                yield number, "no JSON"
                continue
            source = row.get("_source") if isinstance(row, dict) else None
            if isinstance(source, dict):  # of Elasticsearch, OpenSearch
                row = source
            yield number, row if isinstance(row, dict) else "no JSON object"


def _parquet_rows(path: str) -> Iterator[dict[str, Any]]:
    parquet = import_optional("pyarrow.parquet", "parquet")
    arrow = import_optional("pyarrow", "parquet")
    remedy = "expected a parquet file of pages, queries or events: restore it"
    with (
        damage_named(path, remedy, arrow.ArrowException),
        parquet.ParquetFile(path) as file,
    ):
        for batch in file.iter_batches(4096):
            yield from batch.to_pylist()


def write_clicks(
    pages: Iterable[Page], path: str | os.PathLike[str]
) -> ClickLog:
    """Writes the clicks of pages as a click file with weights, and opens it.

    Args:
        pages: The pages.
        path: The file to write, compressed if it ends in `.gz`.
    """
    lines = (
        weighted_line(page.query, title, weight)
        for page in pages
        for title, weight in zip(page.titles, page.weights, strict=True)
        if weight
    )
    with replacing(path) as partial:
        write_lines(partial, lines)
    return ClickLog(path)
