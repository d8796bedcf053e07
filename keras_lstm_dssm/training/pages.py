"""Pages of results that a training names: their clicks, written into its run.

A click file of the run takes the place of the pages in its data, so that a run
that is resumed, its workers and all programs read clicks as from any file.
"""

import os
from collections.abc import Iterable
from typing import Any

from keras_lstm_dssm.data.click_log import describe_bad
from keras_lstm_dssm.data.click_pages import (
    ClickPages,
    Page,
    is_pages,
    read_titles,
    write_clicks,
)
from keras_lstm_dssm.data.position_bias import position_bias
from keras_lstm_dssm.data.sources import parts_of
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import write_json_gz
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.training import TrainingConfig
from keras_lstm_dssm.text.word_hashing import normalize

SKIPPED_FILE = "skipped.json.gz"
"""Query -> titles that users have skipped, see `skipped_titles`."""

_MOST_SKIPPED = 50  # titles of a query that are kept


def skipped_titles(pages: Iterable[Page]) -> dict[str, list[str]]:
    """Returns query -> titles that were shown above a click, without one.

    The user has most likely seen them. A title that was clicked for the query
    on any page is left out. Queries with the same normalised words are one.

    Source: Joachims 2002, "Optimizing Search Engines using Clickthrough Data".

    Example:
    >>> page = Page("bolts", ["nut", "hex bolt"], [0.0, 1.0], [1, 2])
    >>> skipped_titles([page])
    {'bolts': ['nut']}
    """
    skipped: dict[str, dict[str, None]] = {}
    clicked: dict[str, set[str]] = {}
    for page in pages:
        rows = list(zip(page.titles, page.weights, page.positions, strict=True))
        last = max((place for _, weight, place in rows if weight), default=0)
        (words,) = normalize([page.query], "alphanumeric")
        of_query = skipped.setdefault(words, {})
        for title, weight, place in rows:
            if weight:
                clicked.setdefault(words, set()).add(title)
            elif 0 < place < last and len(of_query) < 2 * _MOST_SKIPPED:
                of_query.setdefault(title)
    found = {
        words: [t for t in titles if t not in clicked.get(words, ())]
        for words, titles in skipped.items()
    }
    return {w: titles[:_MOST_SKIPPED] for w, titles in found.items() if titles}


def open_pages(config: TrainingConfig) -> dict[int, ClickPages]:
    """Opens the pages of results among the data of a training.

    `data` may name several logs, separated by commas. Returns the place of each
    one that holds pages, from 0, and its pages; none if all are click files.

    Raises:
        InputError: An option of pages is set, and the data are none; or see
            `ClickPages`.
    """
    data = config.data
    parts = parts_of(os.fspath(data)) if isinstance(data, str) else []
    numbers = [n for n, part in enumerate(parts) if is_pages(part)]
    for name in ("documents", "actions", "position_bias", "skipped_negatives"):
        of_recipe = getattr(config.recipe, name, None)
        if not numbers and getattr(config, name, of_recipe):
            raise InputError(
                f"{name} needs pages of results: expected ubi:FOLDER or"
                " parquet pages as data, or leave it out"
            )
    if not numbers:
        return {}
    documents = read_titles(config.documents) if config.documents else None
    limit = config.max_bad_lines
    return {
        n: ClickPages(parts[n], documents, config.actions, limit)
        for n in numbers
    }


def describe_pages(pages: ClickPages) -> None:
    """Prints the first ordinal of a log that was read, and its bad lines."""
    if pages.base is not None:
        print(f"{pages.spec}: ordinals begin with {pages.base}")
    if pages.bad_lines:
        print(f"{pages.spec}: left out: {describe_bad(pages.bad_lines)}")


def with_written_pages(
    config: TrainingConfig, run: RunFolder, verbose: Any = 0
) -> TrainingConfig:
    """Writes the clicks of pages as click files into a run's folder.

    Returns the settings of the training with these files as data, in place of
    the pages. For what is raised see `open_pages`.
    """
    found = open_pages(config)
    if not found:
        return config
    parts = parts_of(config.data)
    wants_skipped = getattr(config.recipe, "skipped_negatives", 0)
    skipped: dict[str, list[str]] = {}
    for row, pages in found.items():
        shares = None
        if config.position_bias:
            bias = position_bias(pages)
            shares = bias.weights()
            if verbose:
                print(bias.describe())
        path = run.path / f"clicks.pages{row + 1}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_clicks(pages, path, shares)
        if wants_skipped:
            for query, titles in skipped_titles(pages).items():
                skipped.setdefault(query, []).extend(titles)
        parts[row] = str(path.absolute())
        if verbose:
            describe_pages(pages)
    if wants_skipped:
        write_json_gz(run.path / SKIPPED_FILE, skipped)
    return config.replace(data=",".join(parts))
