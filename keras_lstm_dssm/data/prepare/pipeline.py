"""`prepare`: makes a data folder from a catalogue, a log or both."""

import os
import tempfile
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.data.collection import DATA_FILE, NEW_CLICKS, Collection
from keras_lstm_dssm.data.prepare import catalogue as catalogues
from keras_lstm_dssm.data.prepare import folder as folders
from keras_lstm_dssm.data.prepare import grades, judgements, tables, ubi
from keras_lstm_dssm.data.prepare import log as logs
from keras_lstm_dssm.data.prepare.columns import COMMON
from keras_lstm_dssm.data.prepare.queries import read_queries, split_of
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import (
    flush_to_disk,
    hidden_folder,
    lock_folder,
    new_folder,
    write_json,
)
from keras_lstm_dssm.plain_files import check_version, damage_named, read_json
from keras_lstm_dssm.settings.prepare import PrepareSettings
from keras_lstm_dssm.version import __version__

CATALOGUE, IDS, TITLES = "catalogue", "ids", "titles"
"""Where products come from: a catalogue, ids of a log, or clicked titles."""

_REMEDY = "expected CSV, TSV, JSON or parquet: check the file"
_MEMORY = "1GB"  # memory limit of DuckDB
_LEAST_JOINED = 0.5  # this share of the clicks must be on known products
_SAME_CLICKS = 0.9  # two logs with this share of equal clicks are an error
_SHOWN = 5  # number of clicks that the report shows
_ROW_BITS = 40  # bits for a row's number in its log
_NO_ROWS = """
    SELECT '' AS q, '' AS id, CAST(1 AS DOUBLE) AS weight, 1 AS clicks,
      CAST(1 AS DOUBLE) AS time, CAST(1 AS UBIGINT) AS client,
      CAST(1 AS BIGINT) AS page, 1 AS position, 1 AS file,
      CAST(1 AS BIGINT) AS n, 1 AS part WHERE false"""


def prepare(
    output: str | os.PathLike[str] | None = None,
    settings: PrepareSettings | None = None,
    report: Callable[[str], Any] | None = None,
    **options: Any,
) -> "Prepared":
    """Makes a data folder from a catalogue, a log or both.

    The folder has BEIR's layout and `data.json`, see docs/data.md.

    Args:
        output: The folder to create. If `None`, sources are read, checked and
            reported, but nothing is written.
        settings: Sources, columns and rules. Default `None`: from `options`.
        report: Called with each line of the report. Default `None`: no report.
        **options: Fields of `PrepareSettings`. Sources, such as `catalogue`
            and `clicks`, are paths, DataFrames of pandas, polars or Arrow, or
            relations of DuckDB.

    Returns:
        Counts, and the collection in `output`.

    Raises:
        InputError: A file or a column is missing, more rows are bad than
            `max_bad_percent` allows, fewer than half of the clicks are on
            products of the catalogue, a split has no query, or `output` exists
            and `append` is not set.

    Example:
        >>> prepared = dssm.prepare("SHOP", catalogue="catalogue.csv",
        ...                         clicks="clicks.csv")  # doctest: +SKIP
        >>> prepared.collection.documents["p1"]  # doctest: +SKIP
        'Hex bolt 1/2"'
    """
    settings = settings or PrepareSettings(**options)
    report = report or (lambda line: None)
    if output is None:
        with (
            tempfile.TemporaryDirectory() as work_name,
            closing(_Builder(Path(work_name), settings, report)) as builder,
        ):
            builder.read()
        return Prepared(builder.counts)
    path = Path(os.path.abspath(output))
    if settings.append:
        read_data(path)
    elif os.path.lexists(path):
        raise InputError(
            f"{output}: is already there, expected a new folder: name another,"
            " remove it, or add to it by --append"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    data = None
    with ExitStack() as stack:
        if settings.append:
            stack.enter_context(lock_folder(path, "adding clicks"))
            data = read_data(path)
            settings = settings.with_stored(data["rules"])
        work = stack.enter_context(
            hidden_folder(path.parent, f".work-{path.name[-50:]}-")
        )
        builder = stack.enter_context(
            closing(_Builder(work, settings, report, path, data))
        )
        builder.read()
        if data is None:
            with new_folder(path) as partial:
                builder.write(partial)
        else:
            (work / "folder").mkdir()
            builder.write(work / "folder")
            _move_files(work / "folder", path)
    return Prepared(builder.counts, Collection(output))


def load_data(folder: str | os.PathLike[str]) -> Collection:
    """Opens a data folder that `prepare` has made.

    Raises:
        InputError: `folder` is not a data folder, or was made by an earlier
            development version.

    Example:
        >>> shop = dssm.load_data("SHOP")  # doctest: +SKIP
        >>> shop.documents["p1"], shop.tags["p1"]  # doctest: +SKIP
        ('Hex bolt 1/2"', ['in_stock:true'])
    """
    read_data(folder)
    return Collection(folder)


def read_data(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads `data.json` of a data folder."""
    path = Path(folder) / DATA_FILE
    remedy = "expected a data folder: make it again with lstm-dssm-prepare"
    with damage_named(path, remedy):
        data: dict[str, Any] = read_json(path, folder)
        check_version(path, data, remedy)
    return data


def _move_files(source: Path, target: Path) -> None:
    """Replaces the files of a data folder, `data.json` last."""
    # `--append` refuses logs that `data.json` lists. `data.json` comes last, so
    # the same `--append` can be run again if the program is interrupted.
    files = [path for path in source.rglob("*") if path.is_file()]
    for path in sorted(files, key=lambda path: path.name == DATA_FILE):
        flush_to_disk(path)
        name = path.relative_to(source)
        (target / name).parent.mkdir(exist_ok=True)
        path.replace(target / name)
    flush_to_disk(target)


class Prepared(NamedTuple):
    """The result of `prepare`.

    Attributes:
        counts: The counts of rows, products, clicks and queries in `data.json`.
        collection: The data folder; `None` if nothing was written.
    """

    counts: dict[str, Any]
    collection: Collection | None = None


class _Builder:
    """Reads the sources of a data folder into DuckDB, and writes the folder."""

    def __init__(
        self,
        work: Path,
        settings: PrepareSettings,
        report: Callable[[str], Any],
        output: Path | None = None,
        data: dict[str, Any] | None = None,
    ) -> None:
        import duckdb

        self.settings, self.report, self.work = settings, report, work
        # `output`: the data folder; `None` if nothing is written. `data`:
        # content of `data.json` before an `--append`; {} for a new folder.
        self.output, self.data = output, data or {}
        self.con = duckdb.connect()
        self.con.execute(
            f"SET memory_limit = '{_MEMORY}'; SET TimeZone = 'UTC';"
            f" SET temp_directory = {tables.quoted(str(work))}"
        )
        for module in (catalogues, logs, ubi):
            module.define_functions(self.con)
        self.sources: list[dict[str, Any]] = self.data.get("sources", [])
        self.old_logs: int = self.data.get("logs", 0)
        self.new_logs = 0
        (work / folders.LOGS).mkdir()
        self.columns: dict[str, dict[str, str]] = {}
        self.counts: dict[str, Any] = {}
        self.is_judged = False
        self.products: str = self.data.get("products", CATALOGUE)
        self.test_after: float | None = None
        if settings.test_after is not None:
            self.test_after = logs.seconds_of(self.con, settings.test_after)

    def close(self) -> None:
        self.con.close()

    def read(self) -> None:
        """Reads, checks and reports the catalogue, logs and judgements."""
        import duckdb

        if self.settings.catalogue is not None:
            name = _name(self.settings.catalogue)
            with damage_named(name, _REMEDY, duckdb.Error):
                self._read_catalogue()
            self.products = CATALOGUE
        with damage_named(self.name, _REMEDY, duckdb.Error):
            opened = self._open_logs()
            if self.settings.catalogue is None:
                self._read_products(opened)
        name = _name(self.settings.judgements)
        with damage_named(name, _REMEDY, duckdb.Error):
            self._read_judgements()
        with damage_named(self.name, _REMEDY, duckdb.Error):
            self._divide(opened)

    def _divide(self, opened: list[logs.Log]) -> None:
        """Reads the rows of logs, splits the queries, and grades products."""
        bad = self._read_rows(opened)
        read_queries(self.con, self.settings.seed)
        grades.define_clicks(
            self.con,
            split_of(self.settings, self.test_after, self.is_judged),
            self.settings.double_click_seconds,
            self.test_after is not None,
        )
        train_clicks = self._report_rows(bad, opened)
        grades.make_grades(self.con)
        if self.test_after is not None:
            grades.divide_test(self.con)
        if self.is_judged:
            judgements.use_judgements(self.con)
        self._report_splits(
            {"train_clicks": train_clicks, **grades.count_queries(self.con)}
        )

    @property
    def name(self) -> str:
        """The log's name, else the folder's or the catalogue's, in messages."""
        settings = self.settings
        sources = settings.clicks, settings.ubi, self.output, settings.catalogue
        return _name(next(s for s in sources if s is not None))

    @property
    def has_log(self) -> bool:
        return self.old_logs + self.new_logs > 0

    def write(self, folder: Path) -> None:
        """Writes all files of the folder, except the logs of earlier runs."""
        folders.write_folder(self.con, folder, self.settings)
        (self.work / folders.LOGS).rename(folder / folders.LOGS)
        if self.is_judged:
            folders.write_judged(self.con, folder)
        if self.data:
            path = folder / NEW_CLICKS
            folders.write_clicks(self.con, path, self.old_logs)
        data = {
            "version": __version__,
            "sources": self.sources,
            "logs": self.old_logs + self.new_logs,
            "products": self.products,
            "columns": {**self.data.get("columns", {}), **self.columns},
            "rules": self.settings.rules(),
            "counts": self.counts,
        }
        write_json(folder / DATA_FILE, data)

    def _open(self, source: Any, is_log: bool = True) -> tables.Table:
        """Opens a source; a first line with a known column name is a header."""
        names = [name for names in COMMON.values() for name in names]
        for value in self.settings.rules().values():
            if isinstance(value, str | tuple):
                names += [value] if isinstance(value, str) else value
        table = tables.open_table(self.con, source, names, self.work)
        self._add_sources(table.files, is_log)
        return table

    def _add_sources(self, paths: Iterable[str], is_log: bool) -> None:
        earlier = {source["sha256"] for source in self.data.get("sources", [])}
        for path in paths:
            record = tables.source_record(path)
            if is_log and record["sha256"] in earlier:
                raise InputError(
                    f"{path}: found a file that the data folder already has,"
                    " expected new files with --append: leave it out"
                )
            self.sources.append(record)

    def _read_catalogue(self) -> None:
        source = self.settings.catalogue
        name = _name(source)
        counts = catalogues.read_catalogue(
            self.con, self._open(source, is_log=False), name, self.settings
        )
        self._report_columns(name, counts.pop("columns"))
        for kind in ("text", "tags"):
            if names := getattr(self.settings, kind):
                self.report(f"  {kind}: {', '.join(names)}")
        self.counts["catalogue"] = counts
        line = f"{counts['products']:,} products of {counts['rows']:,} rows"
        for kind in ("no id", "no title", "bad lines"):
            if counts[kind]:
                line += f"; {kind}: {counts[kind]:,}"
        self.report(line)

    def _report_columns(self, name: str, columns: dict[str, str]) -> None:
        self.columns[name] = columns
        pairs = ", ".join(f"{role} = {c}" for role, c in columns.items())
        self.report(f"{name}: {pairs}")

    def _open_logs(self) -> list[logs.Log]:
        settings, opened = self.settings, []
        if settings.clicks is not None:
            table, name = self._open(settings.clicks), _name(settings.clicks)
            has_catalogue = (
                settings.catalogue is not None
                or self.data.get("products") == CATALOGUE
            )
            opened.append(
                logs.open_clicks(self.con, table, name, settings, has_catalogue)
            )
        if settings.ubi is not None:
            paths = tables.find_files(settings.ubi)
            self._add_sources(paths, is_log=True)
            files = tables.open_files(paths, self.work)
            opened.append(
                ubi.read_ubi(self.con, files, _name(settings.ubi), settings)
            )
        for log in opened:
            if self.test_after is not None and not log.has_time:
                raise InputError(
                    f"{log.name}: found no column of the time, which"
                    " --test_after needs: name it by --time, or split by query"
                )
            self._report_columns(log.name, log.columns)
            for note in log.notes:
                self.report(note)
        return opened

    def _read_products(self, opened: list[logs.Log]) -> None:
        titles = [log.titles for log in opened]
        if self.output is not None and self.data:
            catalogues.read_products(self.con, self.output, self.settings)
            if self.products == CATALOGUE:
                return
            key = "id" if self.products == IDS else "title"
            titles.insert(0, f"SELECT {key} AS id, title FROM stored")
        elif opened:
            has_ids = all(log.has_ids for log in opened)
            self.products = IDS if has_ids else TITLES
        products = catalogues.titles_as_products(
            self.con, " UNION ALL ".join(titles), self.products == IDS
        )
        self.report(f"{products:,} clicked titles")
        self.counts["catalogue"] = {"products": products}

    def _read_judgements(self) -> None:
        source, name = self.settings.judgements, ""
        if source is not None:
            name = _name(source)
            is_frame = not isinstance(source, str | os.PathLike)
            sources = [source] if is_frame else tables.find_files(source)
            columns = judgements.read_judgements(
                self.con, list(map(self._open, sources)), name, self.settings
            )
            self._report_columns(name, columns)
        elif self.output is not None:
            stored = self.output / folders.LOGS / judgements.STORED
            if not stored.exists():
                return
            judgements.read_stored(self.con, stored)
        else:
            return
        if self.test_after is not None:
            raise InputError(
                f"{name}: found judgements and --test_after, expected only one"
                " of them, since each defines the split test: leave one out"
            )
        self.is_judged = True

    def _read_rows(self, opened: list[logs.Log]) -> tables.BadRows:
        """Makes the view `entry` of the rows of all logs; counts bad lines."""
        con = self.con
        stored = folders.stored_logs(self.output, self.old_logs)
        folder = self.work / folders.LOGS
        # `n` is computed from `file_row_number`. Only rows of a parquet file
        # have this number, so each log's rows are written to a parquet file.
        for part, log in enumerate(opened, self.old_logs + 1):
            stored.append(folders.write_rows(con, folder, part, log.rows))
        self.new_logs = len(opened)
        selects = [_NO_ROWS]
        for part, path in enumerate(stored, 1):
            file = f"{tables.quoted(str(path))}, file_row_number=true"
            selects.append(f"""
                SELECT *, (CAST({part} AS BIGINT) << {_ROW_BITS})
                  + file_row_number AS n, {part} AS part
                FROM read_parquet({file})""")
        if self.is_judged:
            # Judged queries become rows, so `read_queries` gives them numbers.
            selects.append(
                "SELECT q, id, 0 AS weight, 1 AS clicks, rowid AS n, 0 AS part"
                " FROM judged"
            )
        con.execute(
            f"CREATE VIEW entry AS {' UNION ALL BY NAME '.join(selects)}"
        )
        if len(opened) == 2:
            self._check_distinct(opened)
        by_log = [
            tables.bad_rows(con, log.table) if log.table else log.bad
            for log in opened
        ]
        return tables.BadRows(
            sum(bad.lines for bad in by_log),
            next((bad.example for bad in by_log if bad.lines), ""),
        )

    def _check_distinct(self, opened: list[logs.Log]) -> None:
        has_times = all(log.has_time for log in opened)
        # Rows of UBI usually have the time of the search, not of the click.
        # Times are rounded down to hours, so these two times are often equal.
        hour = "floor(time / 3600)" if has_times else "NULL"
        first, second = (
            f"coalesce(sum(clicks) FILTER (part = {self.old_logs + n}), 0)"
            for n in (1, 2)
        )
        # With times, the number of equal clicks is compared with the size of
        # the smaller log. Without times, clicks are often equal by chance, so
        # the number is compared with the size of the larger log.
        least_or_greatest = "least" if has_times else "greatest"
        ((equal, log_size),) = self.con.execute(f"""
            SELECT sum(least(a, b)), {least_or_greatest}(sum(a), sum(b)) FROM (
              SELECT {first} AS a, {second} AS b FROM entry
              WHERE weight > 0 AND id IS NOT NULL AND part > {self.old_logs}
              GROUP BY lower(trim(q)), id, {hour})""").fetchall()
        if equal and equal >= _SAME_CLICKS * log_size:
            names = " and ".join(log.name for log in opened)
            raise InputError(
                f"{names}: found {int(equal):,} clicks in both logs, expected"
                " each click once: leave one of --clicks and --ubi out"
            )

    def _report_splits(self, splits: dict[str, int]) -> None:
        if self.output is not None and self.data:
            self._report_changes(self.output / "corpus.jsonl", splits)
        self.counts |= splits
        sizes = [
            f"{split}: {splits[name]:,} {noun}"
            for name in splits
            for split, _, noun in [name.rpartition("_")]
        ]
        self.report("; ".join(sizes))
        settings = self.settings
        is_expected = {
            "train_clicks": self.has_log,
            "dev_queries": self.has_log and settings.dev_percent > 0,
            "test_queries": self.is_judged
            or self.has_log
            and (settings.test_percent > 0 or settings.test_after is not None),
        }
        for name, expected in is_expected.items():
            if expected and not splits[name]:
                raise InputError(
                    f"{self.name}: found no query for the split"
                    f" {name.partition('_')[0]}, expected one or more: give"
                    " more clicks, or other percentages or times"
                )

    def _report_changes(self, products: Path, splits: dict[str, int]) -> None:
        ((new, removed),) = self.con.execute(f"""
            SELECT count(*) FILTER (_id IS NULL), count(*) FILTER (key IS NULL)
            FROM product FULL JOIN read_json({tables.quoted(str(products))},
              columns={{'_id': 'VARCHAR'}}, format='newline_delimited')
              ON key = _id""").fetchall()
        before = self.data["counts"]
        sizes = [
            f"{name.replace('_', ' ')} {before.get(name, 0):,} -> {count:,}"
            for name, count in splits.items()
        ]
        self.report(
            f"changes: {new:,} new products, {removed:,} removed;"
            f" {', '.join(sizes)}"
        )

    def _report_rows(self, bad: tables.BadRows, opened: list[logs.Log]) -> int:
        """Reports and checks rows; returns the number of training clicks."""
        clicks = grades.first_clicks(self.con, self.old_logs, _SHOWN)
        for query, key, title in clicks:
            self.report(f"  {query[:40]} -> {key[:30]}: {title[:60]}")
        kinds, train_clicks = grades.count_kinds(self.con, self.old_logs)
        kinds["bad lines"] = bad.lines, repr(bad.example[:60])
        for log in opened:
            if kinds["wrong time"][0] and log.unread_times:
                times = self.con.execute(f"{log.unread_times} LIMIT 1")
                for (time,) in times.fetchall():
                    kinds["wrong time"] = kinds["wrong time"][0], repr(time)
        self.counts["log"] = {kind: n for kind, (n, _) in kinds.items()}
        total = sum(n for n, _ in kinds.values())
        self.report(
            f"clicks: {kinds['clicks'][0]:,} of {total:,} rows"
            if self.has_log
            else "no log: --append --clicks=LOG adds the first"
        )
        for kind, (count, example) in kinds.items():
            if count and kind != "clicks":
                self.report(f"  {kind}: {count:,}, such as {example}")
        for part, log in enumerate(opened, self.old_logs + 1):
            joined = grades.joined_files(self.con, part)
            files = log.table.files if log.table else ()
            for number, path in enumerate(files):
                if len(files) > 1 and number not in joined:
                    self.report(f"  no row is joined with a product: {path}")
        if opened:
            self._check_shares(kinds, total)
        return train_clicks

    def _check_shares(
        self, kinds: dict[str, tuple[int, str]], total: int
    ) -> None:
        name = self.name
        if not total:
            raise InputError(f"{name}: found no click, expected one or more")
        bad_kinds = (*grades.BAD_KINDS, "bad lines")
        bad = sum(kinds[kind][0] for kind in bad_kinds)
        limit = self.settings.max_bad_percent
        if 100 * bad > limit * total:
            worst = max(bad_kinds, key=lambda kind: kinds[kind][0])
            remedy = "check the columns and the file"
            if worst == "wrong time":
                time_format = self.settings.time_format
                remedy = "give the format of the times by --time_format"
                if time_format:
                    remedy = f"correct --time_format={time_format}"
            raise InputError(
                f"{name}: found {100 * bad / total:.1f} % bad rows, most of"
                f" them {worst!r} such as {kinds[worst][1]}, expected"
                f" {limit:g} % at most: {remedy}, or raise --max_bad_percent"
            )
        joined = kinds["clicks"][0] + kinds["double click"][0]
        unknown = kinds["unknown id"]
        if joined < _LEAST_JOINED * (joined + unknown[0]):
            raise InputError(
                f"{name}: found {joined:,} clicks on products of the catalogue"
                f" and {unknown[0]:,} on unknown ids, such as {unknown[1]},"
                " expected half or more on products: name the columns of ids by"
                f" --id and --clicked{self._zeros_hint()}"
            )

    def _zeros_hint(self) -> str:
        """Returns a hint if some ids differ only in leading zeros, or ""."""
        pair = self.con.execute(
            "SELECT e.id, p.id FROM entry e JOIN product p"
            " ON ltrim(e.id, '0') = ltrim(p.id, '0') AND e.id <> p.id LIMIT 1"
        ).fetchone()
        if pair is None:
            return ""
        return (
            f"; {pair[0]!r} in the log and {pair[1]!r} in the catalogue differ"
            " only in leading zeros: export the ids as text"
        )


def _name(source: Any) -> str:
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    return f"the {type(source).__name__}"
