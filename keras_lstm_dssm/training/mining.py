"""Mines hard negatives: titles near a query, without a click for the query."""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.data.batches import GivenNegatives
from keras_lstm_dssm.data.click_log import ClickLog, Pair
from keras_lstm_dssm.evaluation.index import Index, IVFIndex, unit_vectors
from keras_lstm_dssm.files import write_json_gz
from keras_lstm_dssm.plain_files import read_json_gz
from keras_lstm_dssm.settings.recipes import Recipe
from keras_lstm_dssm.text.many_texts import NormalizedTextCache
from keras_lstm_dssm.text.word_hashing import normalize

MAX_COMPARISONS = 4 * 10**9  # largest number of cosines, see `mine_negatives`
_SAMPLED_TITLES = 50_000
_PAIRS_AT_ONCE = 2**16
_GZIP_LEVEL = 1  # the fastest compression


def mine_negatives(
    model: Any,
    clicks: Iterable[Pair] | ClickLog,
    top: int = 30,
    max_comparisons: int = MAX_COMPARISONS,
    seed: int = 0,
    clusters: int = 0,
    known: Iterable[Pair] = (),
    titles: Iterable[str] = (),
    progress: bool = False,
) -> dict[str, list[str]]:
    """Finds, for each query, the nearest titles that were not clicked for it.

    Some of the mined titles are relevant but were never clicked. A larger `top`
    lowers the share of relevant titles among the mined titles.

    Exact search computes a cosine for each query and title. If there are more
    than `max_comparisons` cosines, up to 50,000 titles are sampled, and as many
    queries as `max_comparisons` allows. Mine repeatedly, with different seeds,
    to reach all queries and titles.

    Args:
        model: A `TwoTower`.
        clicks: Pairs `(query, title)`; distinct texts are held in memory.
        top: Number of titles for each query. Default 30.
        max_comparisons: Upper bound on the number of cosines. The default
            takes about a minute on two cores.
        seed: Seed of the samples and the clusters. Default 0.
        clusters: Number of clusters of titles to search for each query, see
            `IVFIndex`. Clusters replace sampling, but miss some of the
            nearest titles. Default 0: exact search.
        known: Further clicks to exclude from the negatives. Known clicks are
            streamed, and may exceed memory.
        titles: Further titles to search. Default: the titles of `clicks` only.
        progress: Whether to show progress bars. Default `False`.

    Returns:
        The mined titles of each query, nearest first, for `GivenNegatives`.

    Example:
    >>> negatives = GivenNegatives(mine_negatives(model, log), k=2)
    """
    # Texts with equal normalised words count as one text, because encoders
    # cannot distinguish them. The keys of these dicts are normalised texts.
    title_of: dict[str, str] = {}
    query_of: dict[str, str] = {}
    clicked: dict[str, set[str]] = {}
    for (query, title), query_key, title_key in _with_keys(
        model, dict.fromkeys(clicks)
    ):
        title_of.setdefault(title_key, title)
        query_of.setdefault(query_key, query)
        clicked.setdefault(query_key, set()).add(title_key)
    titles = list(dict.fromkeys(titles))
    split = model.document_encoder.trigrams.split
    for title, title_key in zip(titles, normalize(titles, split), strict=True):
        title_of.setdefault(title_key, title)
    for _, query_key, title_key in _with_keys(model, known):
        if query_key in clicked and title_key in title_of:
            clicked[query_key].add(title_key)
    title_keys, query_keys = list(title_of), list(clicked)
    random = np.random.default_rng(seed)
    if not clusters and len(query_keys) * len(title_keys) > max_comparisons:
        size = min(_SAMPLED_TITLES, len(title_keys), max_comparisons)
        title_keys = _sample(title_keys, size, random)
        query_keys = _sample(query_keys, max_comparisons // size, random)
    row_of = {key: row for row, key in enumerate(title_keys)}
    exclude = [
        [row_of[title] for title in clicked[query] if title in row_of]
        for query in query_keys
    ]
    candidates = [title_of[key] for key in title_keys]
    queries = [query_of[key] for key in query_keys]
    query_vectors = model.query_encoder.encode(queries, progress=progress)
    title_vectors = model.document_encoder.encode(candidates, progress=progress)
    if clusters:
        nearest_rows = IVFIndex(unit_vectors(title_vectors), seed).nearest(
            unit_vectors(query_vectors, "query"),
            top, exclude, clusters, progress,
        )  # fmt: skip
    else:
        index = Index.from_vectors(title_vectors, candidates)
        nearest_rows, _ = index.nearest(
            query_vectors, top, queries, exclude, progress
        )
    return {
        query: [candidates[row] for row in rows if row >= 0]
        for query, rows in zip(queries, nearest_rows.tolist(), strict=True)
    }


def _with_keys(
    model: Any, pairs: Iterable[Pair]
) -> Iterator[tuple[Pair, str, str]]:
    """Yields each pair, its normalised query and its normalised title."""
    stream = iter(pairs)
    while block := list(itertools.islice(stream, _PAIRS_AT_ONCE)):
        queries, titles = zip(*block, strict=True)
        yield from zip(
            block,
            normalize(queries, model.query_encoder.trigrams.split),
            normalize(titles, model.document_encoder.trigrams.split),
            strict=True,
        )


def _sample(
    keys: list[str], size: int, random: np.random.Generator
) -> list[str]:
    """Draws up to `size` keys, and keeps their order."""
    size = min(size, len(keys))
    indices = np.sort(random.choice(len(keys), size, replace=False))
    return [keys[index] for index in indices.tolist()]


@dataclass(eq=False)
class HardNegatives:
    """Mines the negatives of a run every few epochs.

    Args:
        path: File of the mined titles for resumed runs, `.json.gz`.
        clicks: See `mine_negatives`.
        recipe: Its fields `hard_negatives`, `mine_every`, `mine_top` and
            `mine_clusters` are used.
        seed: Seed of mining and of drawing negatives. Default 0.
        from_start: Whether the model is already trained, so that negatives are
            mined before the first epoch, too. Default `False`.
        known, titles: See `mine_negatives`. `known` is read at each mining.

    Example:
    >>> clicks = dssm.data.open_log("parts")
    >>> recipe = dssm.Recipe(hard_negatives=1, mine_every=2)
    >>> mined = HardNegatives(Path("mined.json.gz"), clicks, recipe)
    >>> mined.next_mining(0), mined.next_mining(3)
    (2, 4)
    """

    path: Path
    clicks: ClickLog
    recipe: Recipe
    seed: int = 0
    from_start: bool = False
    known: Iterable[Pair] = ()
    titles: Iterable[str] = ()
    _normalized: NormalizedTextCache | None = field(default=None, init=False)

    def next_mining(self, epoch: int) -> int:
        """Returns the first epoch with mining after `epoch`, counted from 0."""
        return (epoch // self.recipe.mine_every + 1) * self.recipe.mine_every

    def of_epoch(
        self,
        epoch: int,
        model: Any,
        begins: bool,
        clicks: ClickLog | None = None,
        progress: bool = False,
    ) -> GivenNegatives | None:
        """Returns the negatives of an epoch, counted from 0.

        Returns `None` before the first mining, or if no title was mined. If
        mining is due, and the epoch `begins` (no step of the epoch is trained
        yet), titles are mined. Otherwise, the last mined titles are read.
        `clicks` replace the constructor's clicks.

        Raises:
            InputError: The file is missing, damaged or from another epoch.
        """
        mined_at = epoch - epoch % self.recipe.mine_every
        if not mined_at and not self.from_start:
            return None
        if begins and epoch == mined_at:
            titles = mine_negatives(
                model,
                clicks or self.clicks,
                self.recipe.mine_top,
                seed=self.seed + epoch,
                clusters=self.recipe.mine_clusters,
                known=self.known,
                titles=self.titles,
                progress=progress,
            )
            self._write(mined_at, titles)
        else:
            titles = self._read(mined_at)
        if not any(titles.values()):  # all titles found were clicked
            return None
        split = model.query_encoder.trigrams.split
        if self._normalized is None:
            self._normalized = NormalizedTextCache(split)
        return GivenNegatives(
            titles,
            self.recipe.hard_negatives,
            self.seed,
            split,
            self._normalized,
        )

    def _write(self, epoch: int, titles: dict[str, list[str]]) -> None:
        """Writes distinct titles, and each query's titles as indices."""
        title_rows: dict[str, int] = {}
        rows = {
            query: [
                title_rows.setdefault(title, len(title_rows))
                for title in nearest
            ]
            for query, nearest in titles.items()
        }
        content = {"epoch": epoch, "titles": list(title_rows), "rows": rows}
        write_json_gz(self.path, content, _GZIP_LEVEL)

    def _read(self, epoch: int) -> dict[str, list[str]]:
        def parse(mined: Any) -> dict[str, list[str]]:
            if mined["epoch"] != epoch:
                raise ValueError(f"mined before epoch {mined['epoch'] + 1}")
            titles = mined["titles"]
            if not all(isinstance(title, str) for title in titles):
                raise TypeError("found a title that is not a string")
            return {
                query: [titles[row] for row in rows]
                for query, rows in mined["rows"].items()
            }

        content = f"negatives mined before epoch {epoch + 1}"
        return read_json_gz(self.path, parse, content)
