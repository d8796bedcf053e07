"""Hard negatives: titles that a model takes for answers, and nobody clicked."""

import gzip
import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.data import ClickLog, GivenNegatives, Pair
from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing

MINE_EVERY, MINE_TOP = 2, 30
"""Epochs between two minings, and titles a query that are drawn from."""

_SCORES_AT_ONCE = 2**24  # 64 MB of float32


def mine_negatives(
    model: Any, clicks: Iterable[Pair] | ClickLog, top: int = MINE_TOP
) -> dict[str, list[str]]:
    """Finds, for each query, the nearest titles that were not clicked for it.

    The index is that of all clicked titles, searched exactly. Some of what is
    found does answer the query and was just never clicked; the more of `top`
    are drawn from, the less that hurts.

    Args:
        model: The `TwoTower`, as it stands.
        clicks: Pairs `(query, document)`; distinct texts are held in memory.
        top: Titles a query.

    Returns:
        Query -> its titles, nearest first, for `GivenNegatives`.

    Example:
    >>> given = GivenNegatives(mine_negatives(model, log), k=2)
    """
    place: dict[str, int] = {}
    clicked: dict[str, set[int]] = {}
    for query, title in clicks:
        clicked.setdefault(query, set()).add(
            place.setdefault(title, len(place))
        )
    titles, queries = list(place), list(clicked)
    vectors = model.document_encoder.encode(titles)
    found: dict[str, list[str]] = {}
    size = max(1, _SCORES_AT_ONCE // len(titles))
    for start in range(0, len(queries), size):
        some = queries[start : start + size]
        scores = model.query_encoder.encode(some) @ vectors.T
        for query, row in zip(some, scores, strict=True):
            row[list(clicked[query])] = -np.inf
            left = min(top, len(titles) - len(clicked[query]))
            near = np.argpartition(-row, max(left - 1, 0))[:left]
            found[query] = [
                titles[i] for i in sorted(near, key=lambda i: (-row[i], i))
            ]
    return found


class HardNegatives:
    """Mines a run's negatives anew every few epochs.

    What was mined last is kept in a file, so that a run which is resumed
    between two minings goes on with the same titles.

    Args:
        path: The file, `.json.gz`.
        clicks: What is mined for.
        k: Negatives a click.
        every: Epochs between two minings; the first ones have none.
        top: See `mine_negatives`.
        seed: See `GivenNegatives`.
    """

    def __init__(
        self,
        path: Path,
        clicks: ClickLog,
        k: int,
        every: int = MINE_EVERY,
        top: int = MINE_TOP,
        seed: int = 0,
    ) -> None:
        self.path = path
        self.clicks = clicks
        self.k = k
        self.every = every
        self.top = top
        self.seed = seed

    def next_mining(self, epoch: int) -> int:
        """Returns the first epoch, counted from 0, that mines after it."""
        return (epoch // self.every + 1) * self.every

    def of_epoch(
        self, epoch: int, model: Any, begins: bool
    ) -> GivenNegatives | None:
        """Returns the negatives of an epoch, mined now or before.

        Args:
            epoch: From 0.
            model: The `TwoTower`, as it stands.
            begins: Whether no update of the epoch is done.

        Raises:
            InputError: The file that a resumed run needs is missing, damaged
                or of another epoch.
        """
        mined_at = epoch - epoch % self.every
        if not mined_at:
            return None
        if begins and epoch == mined_at:
            titles = mine_negatives(model, self.clicks, self.top)
            self._write(mined_at, titles)
        else:
            titles = self._read(mined_at)
        if not any(titles.values()):  # each query has clicked all titles
            return None
        return GivenNegatives(titles, self.k, self.seed)

    def _write(self, epoch: int, titles: dict[str, list[str]]) -> None:
        with (
            replacing(self.path) as partial,
            gzip.open(partial, "wt", encoding="utf-8") as file,
        ):
            json.dump({"epoch": epoch, "titles": titles}, file)

    def _read(self, epoch: int) -> dict[str, list[str]]:
        try:
            with gzip.open(self.path, "rt", encoding="utf-8") as file:
                found = json.load(file)
            if found["epoch"] != epoch:
                raise ValueError(f"mined before epoch {found['epoch'] + 1}")
            titles: dict[str, list[str]] = found["titles"]
            return titles
        except (
            OSError, EOFError, zlib.error, ValueError, KeyError, TypeError
        ) as error:  # fmt: skip
            raise InputError(
                f"{self.path}: found no negatives mined before epoch"
                f" {epoch + 1} ({error}); restore the file, or train anew in"
                " another --output"
            ) from error
