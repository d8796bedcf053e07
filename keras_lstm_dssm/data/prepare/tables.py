r"""Opens CSV, TSV, JSON and parquet files and DataFrames as DuckDB relations.

All values are read as text: `007` stays `007`. DuckDB 2.0.1 misreads UTF-16 and
Windows-1252 without an error, and may take the first row for a header. This
module therefore detects encodings and headers.
"""

import codecs
import csv
import glob
import io
import itertools
import json
import os
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.fingerprints import file_hash
from keras_lstm_dssm.plain_files import reading

FILE = '"*file"'
"""Column that says which file a row is from, as an index into `Table.files`."""

_HEAD = 1 << 16
_CHUNK = 1 << 22
_LONGEST_LINE = 1 << 24
_BUFFER = 1 << 25  # DuckDB's default is 16 times `_LONGEST_LINE`
_REJECTED_BYTES = 10_000  # DuckDB cuts a longer rejected row to this length
_FEW = 50  # this many records at the start of a file are inspected
_DELIMITERS = "\t,;|"
_NO_DELIMITER = "'\x01'"  # SQL literal; very few lines have this character
_ENDINGS = re.compile(r"\.(csv|tsv|txt|json|ndjson|jsonl|parquet)(\.gz)?$")
_OBJECT = re.compile(r"(\w+\t)?\{")  # start of a line with a JSON object
# Bulk files of Elasticsearch have an action line before each row.
_ACTION_LINE = r'^\s*\{\s*"(index|create)"\s*:\s*\{[^{}]*\}\s*\}\s*$'


class BadRows(NamedTuple):
    """The number of lines that could not be read, and an example."""

    lines: int
    example: str


class File(NamedTuple):
    """A file, or the UTF-8 copy of a file, and the form of the content."""

    path: str
    # "parquet"; "json": JSON objects; "array": one JSON array of all rows;
    # "text": lines of delimited fields; or "empty".
    form: str
    first: tuple[list[str], ...] = ()  # first records of a text file
    delimiter: str = ""
    source: str = ""  # path of the original file


class Table(NamedTuple):
    """A relation of DuckDB, and its columns."""

    sql: str  # to put after FROM; the relation has the column `FILE`
    columns: dict[str, str]  # name -> SQL expression for the column's text
    sample: list[dict[str, str]]  # the first rows: name -> text
    files: tuple[str, ...] = ()  # paths of files with rows
    has_header: bool = True  # whether the first line names the columns
    is_plain: bool = False  # TSV of two or three columns, without a header
    form: str = "parquet"  # see `File`; "parquet" for a DataFrame, too
    lines: str = ""  # JSON only: like `sql`, but with the bad lines

    def column(self, name: str) -> str | None:
        """Returns SQL for a column, or `None` if the column is missing.

        `a.b` is the field `b` of the values in column `a`.
        """
        by_name = {normal(key): sql for key, sql in self.columns.items()}
        if sql := self.columns.get(name) or by_name.get(normal(name)):
            return sql
        outer, dot, inner = name.partition(".")
        if dot and (sql := self.column(outer)):
            path = "".join(f'."{key}"' for key in inner.split("."))
            return f"json_extract_string({sql}, {quoted('$' + path)})"
        return None


def normal(name: str) -> str:
    """Normalises a column's name: "Query (ID)" becomes "query_id"."""
    return re.sub(r"[\W_]+", "_", name.casefold()).strip("_")


def quoted(text: str) -> str:
    """Returns a text as a string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def named(name: str) -> str:
    """Returns the name of a column as a quoted identifier of SQL."""
    return '"' + name.replace('"', '""') + '"'


def find_files(source: str | os.PathLike[str]) -> list[str]:
    """Returns the files of comma-separated paths, globs and folders."""
    text = os.fspath(source)
    patterns = [text] if os.path.exists(text) else text.split(",")
    files: list[str] = []
    for pattern in filter(None, map(str.strip, patterns)):
        is_file = os.path.isfile(pattern)
        paths = [pattern] if is_file else sorted(glob.glob(pattern))
        for path in paths:
            if os.path.isdir(path):
                names = map(str, sorted(Path(path).rglob("*")))
                files += [name for name in names if _ENDINGS.search(name)]
            else:
                files.append(path)
        if not paths:
            raise InputError(f"{pattern}: no such file: check the path")
    if not files:
        raise InputError(
            f"{text}: found no file of CSV, TSV, JSON or parquet (or .gz),"
            " expected one or more: check the path"
        )
    return list(dict.fromkeys(files))


def source_record(path: str) -> dict[str, Any]:
    """Describes a file for `data.json`: path, size and hash."""
    return {
        "path": os.path.abspath(path),
        "bytes": os.path.getsize(path),
        "sha256": file_hash(path),
    }


def open_table(
    con: Any, source: Any, known: Collection[str], folder: Path
) -> Table:
    """Opens files of one form, a DataFrame, or a relation of DuckDB.

    If the first line of a text file has a column name in `known`, the line is
    a header. Files that are not in UTF-8 are copied to `folder`, in UTF-8.
    """
    if not isinstance(source, str | os.PathLike):
        name = f"frame_{next(_NUMBERS)}"
        if hasattr(source, "fetch_arrow_reader"):  # a DuckDB relation
            source = import_optional("pyarrow", "parquet").table(source)
        con.register(name, source)
        return _typed_table(con, name)
    paths = find_files(source)
    opened = open_files(paths, folder)
    forms = {file.form for file in opened}
    if len(forms) > 1:
        raise InputError(
            f"{os.fspath(source)}: found files of the forms"
            f" {', '.join(sorted(forms))}, expected one form: convert some of"
            " the files"
        )
    if forms == {"parquet"}:
        names = ", ".join(quoted(file.path) for file in opened)
        relation = f"read_parquet([{names}], union_by_name=true)"
        table = _typed_table(con, relation, "file_index")
    elif forms == {"text"}:
        table = _text_table(opened, known)
    else:
        selects = [
            f"SELECT *, {number} AS {FILE} FROM ({json_rows(file)})"
            for number, file in enumerate(opened)
        ]
        table = _json_table(con, f"({' UNION ALL '.join(selects)})")
    return table._replace(
        files=tuple(file.source for file in opened), form=opened[0].form
    )


_NUMBERS = itertools.count()  # for distinct names of DataFrames and copies


def open_files(paths: Sequence[str], folder: Path) -> list[File]:
    """Finds the forms of files; leaves out empty files."""
    files = [open_file(path, folder)._replace(source=path) for path in paths]
    if all(file.form == "empty" for file in files):
        raise InputError(f"{paths[0]}: found an empty file, expected rows")
    return [file for file in files if file.form != "empty"]


def open_file(path: str, folder: Path) -> File:
    """Finds the form of a file.

    If the file is not in UTF-8, or its lines end in carriage returns only, it
    is copied to `folder`, as UTF-8 with line feeds.
    """
    head = _head(path)
    if head.startswith(b"PAR1"):
        return File(path, "parquet")
    if not head.strip():
        return File(path, "empty")
    encoding = _find_encoding(path, head)
    only_returns = b"\r" in head and b"\n" not in head
    if encoding != "utf-8" or only_returns:
        if encoding == "cp1252" and only_returns:
            encoding = "mac_roman"
        copy = folder / f"utf8-{next(_NUMBERS)}{_ending(path)}"
        _recode(path, copy, encoding)
        path, head = str(copy), _head(copy)
    start = head.decode("utf-8-sig", "ignore").lstrip()
    if start.startswith("["):
        return File(path, "array")
    lines = start.splitlines(keepends=True)
    are_objects = [bool(_OBJECT.match(line)) for line in lines[:_FEW]]
    if are_objects[0] or 2 * sum(are_objects) > len(are_objects):
        return File(path, "json")
    lines = lines[:-1] if len(head) == _HEAD else lines
    delimiter, first = _records(lines)
    return File(path, "text", tuple(first), delimiter)


def _head(path: str | os.PathLike[str]) -> bytes:
    with reading(path) as file:
        return file.read(_HEAD)


def _ending(path: str) -> str:
    match = _ENDINGS.search(path.removesuffix(".gz"))
    return match[0] if match else ".txt"


def _find_encoding(path: str, head: bytes) -> str:
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if nuls := head.count(b"\0"):
        if nuls < len(head) // 4:
            raise InputError(
                f"{path}: found a NUL, as in binary files, expected text or"
                " parquet"
            )
        return f"utf-16-{'be' if head[0] == 0 else 'le'}"
    decoder = codecs.getincrementaldecoder("utf-8")()
    with reading(path) as file:
        while chunk := file.read(_CHUNK):
            if chunk.isascii() and not decoder.getstate()[0]:
                continue  # `isascii` is ten times as fast as decoding
            try:
                decoder.decode(chunk)
            except UnicodeDecodeError:
                return "cp1252"
    return "utf-8"


def _recode(path: str, copy: Path, encoding: str) -> None:
    """Copies a text as UTF-8 with line feeds."""
    with reading(path) as file, copy.open("w", encoding="utf-8") as target:
        # By default `TextIOWrapper` reads any line end as a line feed.
        source = io.TextIOWrapper(file, encoding, "replace")
        while text := source.read(_CHUNK):
            target.write(text)


def _records(lines: Sequence[str]) -> tuple[str, list[list[str]]]:
    """Finds the delimiter of fields; returns the delimiter and the rows.

    The best delimiter splits the largest share of rows into equally many
    fields. If two shares are equal, the delimiter with more fields is better.
    """
    records: dict[str, list[list[str]]] = {}
    scores: dict[str, tuple[float, int]] = {}
    for delimiter in _DELIMITERS:
        reader = csv.reader(lines, delimiter=delimiter)
        rows = [row for row in itertools.islice(reader, _FEW) if row]
        widths = [len(row) for row in rows]
        width = max(set(widths), key=widths.count, default=1)
        share = widths.count(width) / max(len(widths), 1)
        scores[delimiter] = (share if width > 1 else 0.0, width)
        records[delimiter] = rows
    best = max(_DELIMITERS, key=lambda delimiter: scores[delimiter])
    return best, records[best]


def _text_table(files: list[File], known: Collection[str]) -> Table:
    usual_names = {normal(name) for name in known}
    selects, sample, headers = [], [], []
    for number, file in enumerate(files):
        first = [value.lstrip("\ufeff").strip() for value in file.first[0]]
        has_header = bool(usual_names & set(map(normal, first)))
        header = [f"{n}" for n in range(1, len(first) + 1)]
        if has_header:  # numbers replace missing and repeated names
            header = [
                n if not name or name in first[:i] else name
                for i, (n, name) in enumerate(zip(header, first, strict=True))
            ]
        headers.append((tuple(header), has_header))
        sample += [
            dict(zip(header, row, strict=True))
            for row in file.first[has_header:]
            if len(row) == len(header)
        ]
        selects.append(_select_delimited(file, number, header, has_header))
    if len({has_header for _, has_header in headers}) > 1:
        raise InputError(
            f"{files[0].path}: some of these files have a header, and some do"
            " not, expected all or none: add or remove headers"
        )
    first_names, has_header = headers[0]
    columns = dict.fromkeys(itertools.chain(*(names for names, _ in headers)))
    return Table(
        f"({' UNION ALL BY NAME '.join(selects)})",
        {name: named(name) for name in columns},
        sample[:_FEW],
        has_header=has_header,
        is_plain=not has_header
        and len(first_names) in (2, 3)
        and all(file.delimiter == "\t" for file in files),
    )


def _select_delimited(
    file: File, number: int, header: list[str], has_header: bool
) -> str:
    # Fields of TSV rarely contain tabs, but often contain unpaired quotes.
    # Therefore DuckDB reads the quotes of TSV as text, and `_unquoted` removes
    # paired quotes.
    is_tsv = file.delimiter == "\t" and not any(
        "\n" in value for row in file.first for value in row
    )
    quote = quoted("" if is_tsv else '"')
    values = ", ".join(
        f"{_unquoted(named(name)) if is_tsv else named(name)} AS {named(name)}"
        for name in header
    )
    columns = ", ".join(f"{quoted(name)}: 'VARCHAR'" for name in header)
    return f"""
        SELECT {values}, {number} AS {FILE}
        FROM read_csv({quoted(file.path)}, auto_detect=false,
          delim={quoted(file.delimiter)}, quote={quote}, escape={quote},
          header={str(has_header).lower()}, columns={{{columns}}},
          max_line_size={_LONGEST_LINE}, buffer_size={_BUFFER},
          store_rejects=true)"""


def _unquoted(name: str) -> str:
    """Returns SQL that removes the quotes a spreadsheet put around a field."""
    inner = f"substr({name}, 2, length({name}) - 2)"
    return f"""
        CASE WHEN {name} LIKE '"%"' AND length({name}) > 1
            AND replace({inner}, '""', '') NOT LIKE '%"%'
          THEN replace({inner}, '""', '"') ELSE {name} END"""


def json_rows(file: File) -> str:
    """Returns SQL that reads a file as columns `row` (JSON) and `line` (text).

    `row` is NULL for a bad line. `line` is NULL if DuckDB does not read the
    file line by line.
    """
    path = quoted(file.path)
    if file.form == "parquet":
        return f"""
            SELECT CAST(to_json(t) AS JSON) AS row, NULL AS line
            FROM read_parquet({path}) t"""
    if _is_lines(file):
        objects = rf"""
            SELECT TRY_CAST(line AS JSON) AS row, line FROM (
              SELECT CASE WHEN line LIKE '{{%' THEN line
                ELSE substr(line, strpos(line, chr(9)) + 1) END AS line
              FROM read_csv({path}, auto_detect=false, delim={_NO_DELIMITER},
                quote='', escape='', header=false,
                columns={{'line': 'VARCHAR'}}, max_line_size={_LONGEST_LINE})
              WHERE NOT regexp_matches(line, {quoted(_ACTION_LINE)}))"""
    else:
        form = "array" if file.form == "array" else "unstructured"
        objects = f"""
            SELECT json AS row, NULL AS line FROM read_json_objects({path},
              format='{form}', maximum_object_size={1 << 28})"""
    # A file can be an object with only one value: the list of all rows.
    only = "json_extract(row, '$.' || json_keys(row)[1])"
    # Dumps of Elasticsearch have rows in `_source`, feeds of Vespa in `fields`.
    return f"""
        SELECT CASE
            WHEN json_exists(row, '$._source') THEN json_merge_patch(
              json_object('_id', row -> '$._id'), row -> '$._source')
            WHEN json_exists(row, '$.put') AND json_exists(row, '$.fields')
            THEN json_merge_patch(json_object('id', list_last(string_split(
              row ->> '$.put', '::'))), row -> '$.fields')
            ELSE row END AS row, line
        FROM (SELECT unnest(CASE
            WHEN json_type(row) = 'OBJECT' AND len(json_keys(row)) = 1
              AND json_type({only}) = 'ARRAY' THEN CAST({only} AS JSON[])
            ELSE [row] END) AS row, line FROM ({objects}))"""


def _is_lines(file: File) -> bool:
    if file.form != "json":
        return False
    with reading(file.path) as opened:
        lines = [opened.readline(_LONGEST_LINE) for _ in range(_FEW)]
    are_json = [_is_json(line) for line in lines if line.strip()]
    return 2 * sum(are_json) >= len(are_json)


def _is_json(line: bytes) -> bool:
    """Returns whether a line is a JSON object, perhaps after other text."""
    text = line.decode("utf-8-sig", "ignore")
    try:
        return isinstance(json.loads(text[max(0, text.find("{")) :]), dict)
    except ValueError:
        return False


def _json_table(con: Any, sql: str) -> Table:
    rows = con.execute(
        f"SELECT row FROM {sql} WHERE json_type(row) = 'OBJECT' LIMIT 10000"
    ).fetchall()
    sample = [json.loads(row) for (row,) in rows]
    keys = dict.fromkeys(itertools.chain(*sample))
    columns = {
        key: f"json_extract_string(row, {quoted(f'$.{named(key)}')})"
        for key in keys
    }
    texts = [
        {key: "" if value is None else str(value) for key, value in r.items()}
        for r in sample[:_FEW]
    ]
    rows_sql = f"(FROM {sql} WHERE row IS NOT NULL)"
    return Table(rows_sql, columns, texts, lines=sql)


def _typed_table(con: Any, relation: str, file: str = "NULL") -> Table:
    """Reads columns of any type as text; nested columns become JSON text."""
    described = con.execute(f"DESCRIBE FROM {relation}").fetchall()
    types = {name: type_ for name, type_, *_ in described}
    values = ", ".join(
        f"{_as_text(named(name), type_)} AS {named(name)}"
        for name, type_ in types.items()
    )
    sql = f"(SELECT {values}, {file} AS {FILE} FROM {relation})"
    rows = con.execute(f"FROM {sql} LIMIT {_FEW}").fetchall()
    sample = [
        {k: v or "" for k, v in zip(types, row[:-1], strict=True)}
        for row in rows
    ]
    return Table(sql, {name: named(name) for name in types}, sample)


def _as_text(name: str, type_: str) -> str:
    if type_ in ("DOUBLE", "FLOAT"):
        return f"""
            CASE WHEN {name} = trunc({name}) AND abs({name}) < 1e18
              THEN CAST(CAST({name} AS BIGINT) AS VARCHAR)
              ELSE CAST({name} AS VARCHAR) END"""
    if type_.startswith("DECIMAL"):
        return rf"regexp_replace(CAST({name} AS VARCHAR), '\.0+$', '')"
    if "[" in type_ or type_.startswith(("STRUCT", "MAP", "UNION")):
        return f"CAST(to_json({name}) AS VARCHAR)"
    return f"CAST({name} AS VARCHAR)"


def bad_rows(con: Any, table: Table) -> BadRows:
    """Counts unreadable lines; raises `InputError` for an unclosed quote."""
    if table.form == "json":
        ((count, example),) = con.execute(
            f"SELECT count(*), min(line) FROM {table.lines} WHERE row IS NULL"
            " AND trim(line) <> ''"
        ).fetchall()
        return BadRows(count, example or "")
    if table.form != "text":
        return BadRows(0, "")
    rejects = con.execute(
        "SELECT DISTINCT file_path, line, csv_line FROM reject_errors JOIN"
        " reject_scans USING (scan_id, file_id) ORDER BY ALL"
    ).fetchall()
    con.execute("DELETE FROM reject_errors")
    for path, number, text in rejects:
        if len(text) >= _REJECTED_BYTES:
            raise InputError(
                f"{path}:{number}: found a quote that does not close,"
                f" {text[:40]!r}, expected quotes in pairs: mend the line"
            )
    lines = [line for _, _, text in rejects for line in text.split("\n")]
    lines = [line for line in lines if line.strip()]
    return BadRows(len(lines), lines[0] if lines else "")
