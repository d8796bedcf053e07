"""Negatives mined by trained towers: titles near a query, without a click."""

import itertools
from collections.abc import Iterable, Iterator
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

MAX_COMPARISONS = 4 * 10**9
"""Largest number of cosines that one mining computes; see `mine_negatives`."""

_SAMPLED_TITLES = 50_000

_PAIRS_AT_ONCE = 2**16

_LEVEL = 1
"""Level of compression, the fastest: only a resumed run reads the file."""


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

    The search is exact, or faster with `clusters`. Some of the mined titles are
    relevant but were never clicked; a larger `top` lowers their share among the
    negatives.

    If queries times titles exceed `max_comparisons`, 50,000 titles are sampled,
    and as many queries as the bound then allows. Another seed gives another
    sample, so that repeated mining reaches all queries and titles.

    Args:
        model: The `TwoTower` with its present weights.
        clicks: Pairs `(query, document)`; distinct texts are held in memory.
        top: Number of titles for each query.
        max_comparisons: Upper bound on the number of cosines; the default
            takes about a minute on two cores.
        seed: Seed of the samples and the clusters.
        clusters: Number of clusters of titles that each query is compared
            with, see `IVFIndex`: nothing is sampled then, but some of the
            nearest titles are missed. Default 0: all titles.
        known: Further clicks, whose titles are excluded from the negatives of
            their queries. They are streamed, and may exceed memory.
        titles: Unclicked titles, which may be mined, too.
        progress: Whether to show progress bars. Default `False`.

    Returns:
        Query -> its titles, nearest first, for `GivenNegatives`.

    Example:
    >>> negatives = GivenNegatives(mine_negatives(model, log), k=2)
    """
    # Texts that an encoder cannot distinguish are one text.
    title_of_words: dict[str, str] = {}
    texts: dict[str, str] = {}
    clicked: dict[str, set[str]] = {}
    for (query, title), query_words, title_words in _with_words(
        model, dict.fromkeys(clicks)
    ):
        title_of_words.setdefault(title_words, title)
        texts.setdefault(query_words, query)
        clicked.setdefault(query_words, set()).add(title_words)
    unclicked = list(dict.fromkeys(titles))
    split = model.document_encoder.trigrams.split
    for title, title_words in zip(
        unclicked, normalize(unclicked, split), strict=True
    ):
        title_of_words.setdefault(title_words, title)
    for _, query_words, title_words in _with_words(model, known):
        if query_words in clicked and title_words in title_of_words:
            clicked[query_words].add(title_words)
    candidates, searched_queries = list(title_of_words), list(clicked)
    random = np.random.default_rng(seed)
    if (
        not clusters
        and len(searched_queries) * len(candidates) > max_comparisons
    ):
        size = min(_SAMPLED_TITLES, len(candidates), max_comparisons)
        candidates = _sample(candidates, size, random)
        searched_queries = _sample(
            searched_queries, max_comparisons // size, random
        )
    row = {words: index for index, words in enumerate(candidates)}
    exclude = [
        [row[words] for words in clicked[query] if words in row]
        for query in searched_queries
    ]
    candidates = [title_of_words[words] for words in candidates]
    queries = [texts[words] for words in searched_queries]
    query_vectors, title_vectors = (
        encoder.encode(texts, progress=progress)
        for encoder, texts in (
            (model.query_encoder, queries),
            (model.document_encoder, candidates),
        )
    )
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


def _with_words(
    model: Any, pairs: Iterable[Pair]
) -> Iterator[tuple[Pair, str, str]]:
    """Yields pairs with the words that the encoders read of query and title."""
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
    texts: list[str], size: int, random: np.random.Generator
) -> list[str]:
    size = min(size, len(texts))
    rows = np.sort(random.choice(len(texts), size, replace=False))
    return [texts[row] for row in rows.tolist()]


class HardNegatives:
    """Mines the negatives of a run every few epochs.

    The mined titles are written to a file, so that a resumed run continues with
    the same titles.

    Args:
        path: The file, `.json.gz`.
        clicks: The clicks whose queries and titles are mined.
        recipe: Has the number of negatives of a click (`hard_negatives`), and
            `mine_every`, `mine_top`, `mine_clusters`. Epochs before the first
            mining have no mined negatives.
        seed: Seed of mining and of drawing negatives. Default 0.
        from_start: Whether to mine before the first epoch, too, because the
            model has been trained before. Default `False`.
        known: See `mine_negatives`; read again at each mining.
        titles: See `mine_negatives`.

    Example:
    >>> clicks = dssm.data.open_log("parts")
    >>> recipe = dssm.Recipe(hard_negatives=1, mine_every=2)
    >>> mined = HardNegatives(Path("mined.json.gz"), clicks, recipe)
    >>> mined.next_mining(0), mined.next_mining(3)
    (2, 4)
    """

    def __init__(
        self,
        path: Path,
        clicks: ClickLog,
        recipe: Recipe,
        seed: int = 0,
        from_start: bool = False,
        known: Iterable[Pair] = (),
        titles: Iterable[str] = (),
    ) -> None:
        self.path = path
        self.clicks = clicks
        self.recipe = recipe
        self.seed = seed
        self.from_start = from_start
        self.known = known
        self.titles = titles
        self._normalized: NormalizedTextCache | None = None

    def next_mining(self, epoch: int) -> int:
        """Returns the next epoch, counted from 0, that starts with mining."""
        return (epoch // self.recipe.mine_every + 1) * self.recipe.mine_every

    def of_epoch(
        self,
        epoch: int,
        model: Any,
        begins: bool,
        clicks: ClickLog | None = None,
        progress: bool = False,
    ) -> GivenNegatives | None:
        """Returns the negatives of an epoch, mined now or earlier.

        Args:
            epoch: The epoch, counted from 0.
            model: The `TwoTower` with its present weights.
            begins: Whether no training step of the epoch is done.
            clicks: The clicks of this epoch, if each epoch has other clicks.
            progress: Whether to show progress bars of mining.

        Raises:
            InputError: The file that a resumed run needs is missing, damaged
                or from another epoch.
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
        if not any(titles.values()):  # each query has clicked all titles
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
        """Writes all mined titles, and for each query their indices."""
        title_rows: dict[str, int] = {}
        rows = {
            query: [
                title_rows.setdefault(title, len(title_rows))
                for title in nearest
            ]
            for query, nearest in titles.items()
        }
        content = {"epoch": epoch, "titles": list(title_rows), "rows": rows}
        write_json_gz(self.path, content, _LEVEL)

    def _read(self, epoch: int) -> dict[str, list[str]]:
        def parse(mined: Any) -> dict[str, list[str]]:
            if mined["epoch"] != epoch:
                raise ValueError(f"mined before epoch {mined['epoch'] + 1}")
            titles = mined["titles"]
            if not all(isinstance(title, str) for title in titles):
                raise TypeError("found a title that is no text")
            return {
                query: [titles[row] for row in rows]
                for query, rows in mined["rows"].items()
            }

        content = f"negatives mined before epoch {epoch + 1}"
        return read_json_gz(self.path, parse, content)
