"""Reads a catalogue: cleans texts, and merges the rows of each product."""

import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from keras_lstm_dssm.data.prepare.columns import check_named, find_columns
from keras_lstm_dssm.data.prepare.tables import (
    Table,
    bad_rows,
    named,
    normal,
    quoted,
)
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.settings.prepare import PrepareSettings

_MOST_TAGS = 32  # maximum per product, as in retrievers
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z0-9]+);")
_MOST_ESCAPES = 3

SPACES = r"[\s\pZ\p{Cc}\x{FEFF}\x{200B}]+"
"""Regular expression (RE2) for white space and control characters."""


def decode_entities(text: str) -> str:
    """Decodes HTML entities, up to 3 times: `&amp;amp;` becomes `&`.

    >>> decode_entities("AT&amp;amp;T 12&quot; pen&notebook")
    'AT&T 12" pen&notebook'
    """
    for _ in range(_MOST_ESCAPES):
        decoded = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
        if decoded == text:
            break
        text = decoded
    return text


def define_functions(con: Any) -> None:
    """Defines SQL functions to read a catalogue."""
    con.create_function("decode_entities", decode_entities, ["TEXT"], "TEXT")
    con.execute(rf"""
        CREATE MACRO one_line(x) AS
          trim(regexp_replace(x, {quoted(SPACES)}, ' ', 'g'));
        CREATE MACRO decoded(x) AS
          CASE WHEN contains(x, '&') THEN decode_entities(x) ELSE x END;
        -- Spreadsheets write ' before a text that starts like a formula.
        CREATE MACRO clean(x) AS CASE
          WHEN NOT regexp_matches(x, '[^ -~]|[&<]|^[ '']| $|  ') THEN x
          ELSE one_line(regexp_replace(
            regexp_replace(decoded(x), '</?[a-zA-Z][^<>]*>', ' ', 'g'),
            '^''([-=+@])', '\1')) END;
        CREATE MACRO all_values(x) AS
          CASE WHEN x LIKE '[%]' AND json_valid(x)
            THEN from_json(CAST(x AS JSON), '["VARCHAR"]') ELSE [x] END;
        CREATE MACRO in_order(x) AS list_filter(
          x, lambda v, i: v <> '' AND list_position(x, v) = i);
        -- Exporters write the id 655 as 655.0 if a file has rows without id.
        CREATE MACRO id_of(x) AS nullif(CASE WHEN contains(x, '.0')
          THEN regexp_replace(trim(x), '^(\d+)\.0+$', '\1')
          ELSE trim(x) END, '')""")


def read_catalogue(
    con: Any, table: Table, source: str, settings: PrepareSettings
) -> dict[str, Any]:
    """Makes the table `product`; returns column names and counts of rows."""
    columns = find_columns(table, source, settings, ("id", "title"))
    check_named(table, source, "text", settings.text)
    check_named(table, source, "tags", settings.tags)
    fields = [*dict.fromkeys((*settings.text, *settings.tags))]
    values = "".join(
        f""", list_transform(all_values({table.column(name)}),
                lambda v: clean(v)) AS f{number}"""
        for number, name in enumerate(fields)
    )
    con.execute(f"""
        CREATE TABLE staged AS
        SELECT trim({table.column(columns["id"])}) AS written,
          id_of(written) AS id,
          clean({table.column(columns["title"])}) AS title{values}
        FROM {table.sql}""")
    bad = bad_rows(con, table)
    joined = "".join(
        f""", in_order(flatten(list(f{number} ORDER BY n)
                FILTER (f{number} IS NOT NULL))) AS f{number}"""
        for number in range(len(fields))
    )
    texts = {
        name: f"array_to_string(f{fields.index(name)}, ' ')"
        for name in settings.text
    }
    text = "''"
    if texts:
        text = f"trim(concat_ws(' ', {', '.join(texts.values())}))"
    pairs = [f"{named(normal(name))} := {sql}" for name, sql in texts.items()]
    by_name = f", struct_pack({', '.join(pairs)}) AS fields" if pairs else ""
    # In `id`, 655.0 has become 655. Logs are joined by `id`. The data folder
    # takes its ids from `key`. If any `id` is a decimal number, such as 1.10,
    # all keys are spelled as in the catalogue. Otherwise `key` equals `id`.
    con.execute(rf"""
        CREATE TABLE product AS
        SELECT n AS number, id, CASE WHEN (
              SELECT bool_or(regexp_full_match(id, '\d+\.\d+')) FROM staged)
            THEN written ELSE id END AS key, title, {text} AS text,
          {_tags(fields, settings.tags)} AS tags{by_name}
        FROM (
          SELECT id, min(n) AS n, arg_min(written, n) AS written,
            arg_min(title, n) FILTER (title <> '') AS title{joined}
          FROM (SELECT *, rowid AS n FROM staged)
          WHERE id IS NOT NULL GROUP BY id)
        WHERE title IS NOT NULL""")
    ((rows, without_id, ids, spaced),) = con.execute(r"""
        SELECT count(*), count(*) FILTER (id IS NULL), count(DISTINCT id),
          min(id) FILTER (regexp_matches(id, '\s')) FROM staged""").fetchall()
    ((products, most),) = con.execute(
        "SELECT count(*), max(len(tags)) FROM product"
    ).fetchall()
    con.execute("DROP TABLE staged")
    if 100 * bad.lines > settings.max_bad_percent * (rows + bad.lines):
        raise InputError(
            f"{source}: found {bad.lines:,} unreadable lines among"
            f" {rows + bad.lines:,}, such as {bad.example[:40]!r}, expected"
            f" {settings.max_bad_percent:g} % at most: check the file, or raise"
            " --max_bad_percent"
        )
    if spaced is not None:
        raise InputError(
            f"{source}: found the id {spaced!r:.60} with white space, expected"
            " ids without it: name another column by --id"
        )
    if not products:
        raise InputError(
            f"{source}: found no row with an id and a title, expected products:"
            f" check the columns {columns['id']!r} and {columns['title']!r}, or"
            " name others by --id and --title"
        )
    if most and most > _MOST_TAGS:
        raise InputError(
            f"{source}: found {most} tags of one product, expected"
            f" {_MOST_TAGS} or fewer: name fewer columns by --tags"
        )
    return {
        "columns": columns,
        "rows": rows,
        "no id": without_id,
        "no title": ids - products,
        "bad lines": bad.lines,
        "products": products,
    }


def _tags(fields: Sequence[str], names: Sequence[str]) -> str:
    lists = [
        f"list_transform(coalesce(f{fields.index(name)}, []), lambda v:"
        f" {quoted(name + ':')} || one_line(replace(v, ',', ' ')))"
        for name in names
    ]
    return f"CAST(list_concat({', '.join(lists) or '[]'}) AS VARCHAR[])"


def read_products(con: Any, folder: Path, settings: PrepareSettings) -> None:
    """Makes the table `stored` and the view `product` from a data folder."""
    fields = ", ".join(f"{named(normal(n))} VARCHAR" for n in settings.text)
    columns = {
        "_id": "VARCHAR",
        "title": "VARCHAR",
        "text": "VARCHAR",
        "tags": "VARCHAR[]",
        **({"fields": f"STRUCT({fields})"} if fields else {}),
    }
    con.execute(f"""
        CREATE TABLE stored AS
        SELECT row_number() OVER () - 1 AS number, id_of(_id) AS id,
          _id AS key, title, text,
          coalesce(tags, []) AS tags{", fields" * bool(fields)}
        FROM read_json({quoted(str(folder / "corpus.jsonl"))},
          columns={columns}, format='newline_delimited')""")
    con.execute("CREATE VIEW product AS FROM stored")


def titles_as_products(con: Any, select: str, has_ids: bool) -> int:
    """Makes the table `product`; returns the number of products.

    `select` is an SQL query that returns the columns `id` and `title`. Without
    `has_ids`, the column `key` of `product` is d1, d2, ...
    """
    key = "id" if has_ids else "concat('d', row_number() OVER (ORDER BY n))"
    con.execute("DROP VIEW IF EXISTS product")
    con.execute(f"""
        CREATE TABLE product AS
        SELECT row_number() OVER (ORDER BY n) - 1 AS number, id, {key} AS key,
          title, '' AS text, CAST([] AS VARCHAR[]) AS tags
        FROM (
          SELECT id, min(n) AS n, one_line(arg_min(title, n)) AS title
          FROM (SELECT *, row_number() OVER () AS n FROM ({select}))
          WHERE id IS NOT NULL GROUP BY id)
        WHERE title <> ''""")
    ((products,),) = con.execute("SELECT count(*) FROM product").fetchall()
    return int(products)
