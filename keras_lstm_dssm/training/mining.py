"""Negatives that trained towers mine: titles near a query, without a click."""

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
"""Cosines that one mining computes at most; see `mine_negatives`."""

_SAMPLED_TITLES = 50_000

_PAIRS_AT_ONCE = 2**16

_LEVEL = 1
"""Level of compression, the fastest: the file is read only by a resumed run."""


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

    The titles are searched exactly, or with `clusters` faster. Some of those
    found are relevant but were never clicked; a larger `top` lowers their
    share among the negatives.

    The time is bounded: when queries times titles exceed `max_comparisons`,
    50,000 titles are sampled, and as many queries as the bound then allows.
    Another seed samples others, so that repeated mining reaches all of them.

    Args:
        model: The `TwoTower` with its present weights.
        clicks: Pairs `(query, document)`; distinct texts are held in memory.
        top: Number of titles for each query.
        max_comparisons: Upper bound on the number of cosines; the default
            takes about a minute on two cores.
        seed: Seed of the samples, and of the clusters.
        clusters: Number of clusters of titles that each query is compared
            with, see `IVFIndex`; nothing is sampled then, and some of
            the nearest titles are not found. Default 0: all titles.
        known: Further clicks, whose titles are no negatives of their queries;
            neither is mined. They are streamed: a log of them may be larger
            than memory.
        titles: Titles that are mined, too, though nobody has clicked them.
        progress: Whether to show progress bars. Default `False`.

    Returns:
        Query -> its titles, nearest first, for `GivenNegatives`.

    Example:
    >>> negatives = GivenNegatives(mine_negatives(model, log), k=2)
    """
    # Texts that an encoder cannot distinguish are one text.
    by_words: dict[str, str] = {}
    texts: dict[str, str] = {}
    clicked: dict[str, set[str]] = {}
    for (query, title), of_query, of_title in _with_words(
        model, dict.fromkeys(clicks)
    ):
        by_words.setdefault(of_title, title)
        texts.setdefault(of_query, query)
        clicked.setdefault(of_query, set()).add(of_title)
    unclicked = list(dict.fromkeys(titles))
    split = model.document_encoder.trigrams.split
    for title, of_title in zip(
        unclicked, normalize(unclicked, split), strict=True
    ):
        by_words.setdefault(of_title, title)
    for _, of_query, of_title in _with_words(model, known):
        if of_query in clicked and of_title in by_words:
            clicked[of_query].add(of_title)
    candidates, searched = list(by_words), list(clicked)
    random = np.random.default_rng(seed)
    if not clusters and len(searched) * len(candidates) > max_comparisons:
        size = min(_SAMPLED_TITLES, len(candidates), max_comparisons)
        candidates = _sample(candidates, size, random)
        searched = _sample(searched, max_comparisons // size, random)
    row = {words: number for number, words in enumerate(candidates)}
    exclude = [
        [row[words] for words in clicked[query] if words in row]
        for query in searched
    ]
    candidates = [by_words[words] for words in candidates]
    queries = [texts[words] for words in searched]
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
    """Yields pairs, each with the words that the encoders read of its texts."""
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
    """Mines the negatives of a run anew every few epochs.

    The titles of the last mining are kept in a file, so that a run which is
    resumed between two minings continues with the same titles.

    Args:
        path: The file, `.json.gz`.
        clicks: The clicks whose queries and titles are mined.
        recipe: Says how many negatives a click has (`hard_negatives`), and
            how they are mined: `mine_every`, `mine_top`, `mine_clusters`. The
            epochs before the first mining have none.
        seed: Seed of mining and of the negatives drawn. Default 0.
        from_start: Whether to mine before the first epoch, too, since the
            model is trained already. Default `False`.
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
        """Returns the negatives of an epoch, mined now or before.

        Args:
            epoch: The epoch, counted from 0.
            model: The `TwoTower` with its present weights.
            begins: Whether no training step of the epoch is done.
            clicks: The clicks of this epoch, if they differ from epoch to
                epoch.
            progress: Whether to show progress bars of mining.

        Raises:
            InputError: The file that a resumed run needs is missing, damaged
                or of another epoch.
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
        """Writes a list of all mined titles, and for each query rows of it."""
        number: dict[str, int] = {}
        rows = {
            query: [number.setdefault(title, len(number)) for title in nearest]
            for query, nearest in titles.items()
        }
        content = {"epoch": epoch, "titles": list(number), "rows": rows}
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
