"""A catalogue and a log become a data folder: `prepare`."""

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from keras_lstm_dssm.data.collection import Collection
from keras_lstm_dssm.data.prepare import catalogue as catalogues
from keras_lstm_dssm.data.prepare import folder as folders
from keras_lstm_dssm.data.prepare import log as logs
from keras_lstm_dssm.data.prepare.queries import read_queries, split_of
from keras_lstm_dssm.data.prepare.tables import (
    BadRows,
    Table,
    bad_rows,
    normal,
    open_table,
    source_record,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import hidden_folder, new_folder, write_json
from keras_lstm_dssm.settings.prepare import PrepareSettings
from keras_lstm_dssm.version import __version__

DATA_FILE = "data.json"
"""Sources, columns, rules and counts of a data folder."""

_MEMORY = "1GB"  # of DuckDB, beside TensorFlow's
_LEAST_JOINED = 0.5
_SHOWN = 5


def prepare(
    output: str | os.PathLike[str] | None = None,
    settings: PrepareSettings | None = None,
    report: Callable[[str], Any] | None = None,
    **options: Any,
) -> "Prepared":
    """Makes a data folder of a catalogue and a log.

    The folder is in BEIR's layout, with `data.json`, and is read by `train`,
    `evaluate` and `export`: docs/data.md describes it.

    Args:
        output: The folder to create. `None` only reports what would be read.
        settings: Sources, columns and rules. By default made of `options`.
        report: What each line of the report is passed to. Default: nothing.
        **options: Fields of `PrepareSettings`: `catalogue`, `clicks`, ...,
            paths or DataFrames of pandas, polars or Arrow.

    Returns:
        What was found, and the collection in `output`.

    Raises:
        InputError: A file or a column is missing, more rows are bad than
            `max_bad_percent` allows, under half of the clicks are on products
            of the catalogue, or a split has no query. Nothing is written then.

    Example:
        >>> prepared = dssm.prepare("SHOP", catalogue="catalogue.csv",
        ...                         clicks="clicks.csv")  # doctest: +SKIP
        >>> prepared.collection.documents["p1"]  # doctest: +SKIP
        'Hex bolt 1/2"'
    """
    settings = settings or PrepareSettings(**options)
    with ExitStack() as stack:
        if output is None:
            name = stack.enter_context(tempfile.TemporaryDirectory())
            work = Path(name)
        else:
            path = Path(os.path.abspath(output))
            if os.path.lexists(path):
                raise InputError(
                    f"{output}: is already there, expected a new folder: name"
                    " another, remove it, or add to it by --append"
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            work = stack.enter_context(
                hidden_folder(path.parent, f".work-{path.name[-50:]}-")
            )
        making = _Making(work, settings, report or (lambda line: None))
        stack.callback(making.con.close)
        making.read()
        if output is None:
            return Prepared(making.counts)
        with new_folder(output) as partial:
            making.write(partial)
    return Prepared(making.counts, Collection(output))


class Prepared(NamedTuple):
    """Holds the result of `prepare`.

    Attributes:
        counts: Counts of rows, products, clicks and queries, as in
            `data.json`.
        collection: The data folder; `None` if none was written.
    """

    counts: dict[str, Any]
    collection: Collection | None = None


class _Making:
    """Reads the sources of one data folder into DuckDB, and writes it."""

    def __init__(
        self,
        work: Path,
        settings: PrepareSettings,
        report: Callable[[str], Any],
    ) -> None:
        import duckdb

        self.settings, self.report, self.work = settings, report, work
        self.con = duckdb.connect(str(work / "work.duckdb"))
        for option in (
            f"memory_limit = '{_MEMORY}'",
            "TimeZone = 'UTC'",
            # The log stays on the left side, whose order a join keeps.
            "disabled_optimizers = 'join_order,build_side_probe_side'",
        ):
            self.con.execute(f"SET {option}")
        catalogues.define_functions(self.con)
        logs.define_functions(self.con)
        self.sources: list[dict[str, Any]] = []
        self.columns: dict[str, dict[str, str]] = {}
        self.counts: dict[str, Any] = {}
        self.test_after: float | None = None
        if settings.test_after is not None:
            self.test_after = logs.seconds_of(self.con, settings.test_after)

    def read(self) -> None:
        """Reads catalogue and log, and reports and checks what they have."""
        settings = self.settings
        if settings.catalogue is not None:
            self._read_catalogue()
        bad = self._read_clicks()
        read_queries(self.con)
        folders.define_clicks(
            self.con,
            split_of(settings, self.test_after),
            settings.double_click_seconds,
        )
        self._report_rows(bad)
        folders.make_grades(self.con)
        splits = folders.count_splits(self.con)
        self.counts |= splits
        self.report(
            f"train: {splits['train_clicks']:,} clicks; dev:"
            f" {splits['dev_queries']:,} queries; test:"
            f" {splits['test_queries']:,} queries"
        )
        folders.check_splits(splits, settings, _name(settings.clicks))

    def write(self, folder: Path) -> None:
        """Writes the data folder."""
        fields = [normal(name) for name in self.settings.text]
        folders.write_folder(self.con, folder, self.settings, fields)
        folders.write_log(self.con, folder, 1)
        write_json(
            folder / DATA_FILE,
            {
                "version": __version__,
                "sources": self.sources,
                "columns": self.columns,
                "rules": self.settings.rules(),
                "counts": self.counts,
            },
        )

    def _open(self, source: Any) -> Table:
        names = [name for names in catalogues_and_logs() for name in names]
        for value in self.settings.rules().values():
            names += (
                [value] if isinstance(value, str) else
                [*value] if isinstance(value, tuple) else []
            )  # fmt: skip
        table = open_table(self.con, source, names, self.work)
        self.sources += map(source_record, table.files)
        return table

    def _read_catalogue(self) -> None:
        source = self.settings.catalogue
        name = _name(source)
        found = catalogues.read_catalogue(
            self.con, self._open(source), name, self.settings
        )
        columns = found.pop("columns")
        self._report_columns(name, columns)
        for kind in ("text", "tags"):
            if names := getattr(self.settings, kind):
                self.report(f"  {kind}: {', '.join(names)}")
        self.counts["catalogue"] = found
        self.report(
            f"{found['products']:,} products of {found['rows']:,} rows"
            + "".join(
                f"; {kind}: {found[kind]:,}"
                for kind in ("no id", "bad lines")
                if found[kind]
            )
        )

    def _report_columns(self, name: str, columns: dict[str, str]) -> None:
        self.columns[name] = columns
        pairs = ", ".join(f"{role} = {c}" for role, c in columns.items())
        self.report(f"{name}: {pairs}")

    def _read_clicks(self) -> BadRows:
        """Reads the log into the table `entry`; returns its bad lines."""
        settings = self.settings
        table = self._open(settings.clicks)
        name = _name(settings.clicks)
        has_catalogue = settings.catalogue is not None
        clicks = logs.ClickTable(self.con, table, name, settings, has_catalogue)
        if self.test_after is not None and "time" not in clicks.columns:
            raise InputError(
                f"{name}: found no column of the time, which --test_after"
                " needs: name it by --time, or split by query"
            )
        self._report_columns(name, clicks.columns)
        if not has_catalogue:
            found = catalogues.titles_as_products(
                self.con, clicks.titles, has_ids=False
            )
            self.report(f"{found['products']:,} clicked titles")
            self.counts["catalogue"] = found
        self.con.execute(
            "CREATE TABLE entry AS SELECT l.*, 1 AS part, p.number AS product"
            f" FROM ({clicks.rows}) l LEFT JOIN product p ON p.id = l.id"
            + (" WHERE weight IS NOT NULL" if clicks.has_actions else "")
        )
        if not table.lines:
            return self._bad_json(table)
        ((rows,),) = self.con.execute(
            f"SELECT count(*) FROM {table.sql}"
            if clicks.has_actions
            else "SELECT count(*) FROM entry"
        ).fetchall()
        return bad_rows(self.con, table, rows)

    def _bad_json(self, table: Table) -> BadRows:
        if "line" not in table.sql:
            return BadRows(0, "")
        ((count, example),) = self.con.execute(
            f"SELECT count(*), min(line) FROM {table.sql} WHERE row IS NULL"
            " AND trim(line) <> ''"
        ).fetchall()
        return BadRows(count, example or "")

    def _report_rows(self, bad: BadRows) -> None:
        """Reports joined rows and counts by kind; checks their shares."""
        for query, key, title in self.con.execute(
            "SELECT c.text, p.key, p.title FROM click c JOIN product p ON"
            " c.product = p.number WHERE kind = 'clicks' AND weight > 0"
            f" ORDER BY n LIMIT {_SHOWN}"
        ).fetchall():
            self.report(f"  {query[:40]} -> {key[:30]}: {title[:60]}")
        kinds = folders.count_kinds(self.con)
        kinds["bad lines"] = bad.lines, repr(bad.example[:60])
        self.counts["log"] = {kind: n for kind, (n, _) in kinds.items()}
        total = sum(n for n, _ in kinds.values())
        self.report(f"clicks: {kinds['clicks'][0]:,} of {total:,} rows")
        for kind, (count, example) in kinds.items():
            if count and kind != "clicks":
                self.report(f"  {kind}: {count:,}, such as {example}")
        self._check_shares(kinds, total)

    def _check_shares(
        self, kinds: dict[str, tuple[int, str]], total: int
    ) -> None:
        name = _name(self.settings.clicks)
        if not total:
            raise InputError(f"{name}: found no click, expected one or more")
        bad = sum(kinds[k][0] for k in ("no id", "empty query", "bad lines"))
        limit = self.settings.max_bad_percent
        if 100 * bad > limit * total:
            worst = max(("no id", "empty query", "bad lines"), key=lambda k:
                        kinds[k][0])  # fmt: skip
            raise InputError(
                f"{name}: found {100 * bad / total:.1f} % bad rows, most of"
                f" them {worst!r} such as {kinds[worst][1]}, expected"
                f" {limit:g} % at most: check the columns and the file, or"
                " raise --max_bad_percent"
            )
        joined = kinds["clicks"][0] + kinds["double click"][0]
        unknown = kinds["unknown id"]
        if joined < _LEAST_JOINED * (joined + unknown[0]):
            raise InputError(
                f"{name}: found {joined:,} clicks on products of"
                f" {_name(self.settings.catalogue)} and {unknown[0]:,} on"
                f" others, such as {unknown[1]}, expected half or more: name"
                " the column of the id by --id and --clicked"
            )


def catalogues_and_logs() -> list[tuple[str, ...]]:
    """Returns the names by which headers are recognised."""
    from keras_lstm_dssm.data.prepare.columns import COMMON

    return list(COMMON.values())


def _name(source: Any) -> str:
    """Returns what messages call a source."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    return f"the {type(source).__name__}"
