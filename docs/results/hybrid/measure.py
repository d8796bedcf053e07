"""Measures what a table of rankings does not show of hybrids.

    python measure.py [MODE] RUN:DATA:TEACH:MIN_RELEVANT ...

For each run whose weights `lstm-dssm-evaluate --hybrid` has fitted: test
queries with a digit; how well probabilities agree with the test judgements; how
many good first hits, and how many queries of nonsense.txt, are above the cut
of a weak match; and the first three titles of twenty test queries. Of
nonsense.txt the odd lines are read, with last the even ones. With parts:
the ranking by default weights, and by weights that are fitted without a part.
With near: the ranking with a sixth part, clicks of similar training queries.
With pages: pages on which no title may be for more than a share of the training
queries that it was not clicked for.
"""

import random
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.data.click_log import Pair
from keras_lstm_dssm.data.sources import DataSource, training_queries
from keras_lstm_dssm.data.teacher_folder import TeacherVectors
from keras_lstm_dssm.evaluate.hybrid import (
    HybridSystem,
    _candidates,
    _fit_parts,
    _named,
    bm25_system,
    tuned_bm25,
)
from keras_lstm_dssm.evaluation import Task, mean
from keras_lstm_dssm.evaluation.index import unit_vectors
from keras_lstm_dssm.evaluation.systems import Scores
from keras_lstm_dssm.evaluation.weight_fit import fit_weights, reliability
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.settings.fields import HYBRID_PARTS
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.training.hybrid_parts import HybridParts
from lstm_dssm_client.hybrid import probability

MEASURE, SEARCHES, HITS, NEAREST = "mrr@10", 20, 10, 50


def show(name: str, system: HybridSystem, *tasks: Task) -> None:
    """Prints MRR@10 and recall@100 of a system."""
    measures = [MEASURE, "recall@100"]
    values = [mean(task.measure(system)[1], measures) for task in tasks]
    pairs = [" / ".join(f"{100 * v[m]:.1f}" for m in measures) for v in values]
    print(f"  {name} dev, test {', '.join(pairs)}")


def parts_of(hybrid: HybridSystem, dev: Task, test: Task, clicks: int) -> None:
    """Prints dev and test by default weights, and without each part."""
    own = hybrid.settings
    show("all parts", hybrid, dev, test)
    default = HybridSettings(bm25_words=own.bm25_words)
    titles = len(dev.documents)
    hybrid.settings = default.without_dev(HYBRID_PARTS, titles, clicks)
    show("default weights", hybrid, dev, test)
    hybrid.settings = own
    lists = [judged for _, judged in _candidates(hybrid, dev)]
    for part in HYBRID_PARTS:
        names = [name for name in HYBRID_PARTS if name != part]
        hybrid.settings = own.replace(**_named(_fit_parts(lists, names)))
        show(f"without {part}", hybrid, dev, test)
    hybrid.settings = own


class NearClicks(HybridSystem):
    """A hybrid with a sixth part: clicks of the nearest training queries.

    The part is log(1 + sum of cos^4 P(title | query)) over the `NEAREST`
    training queries; P is a query's share of clicks, cos the towers' cosine.
    """

    weights: np.ndarray
    clicks: dict[str, Counter[str]]

    def parts(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[np.ndarray]:
        """Yields six rows for each query."""
        encode = self.vectors["towers"].encode_query
        row = {title: number for number, title in enumerate(titles)}
        near = unit_vectors(encode([*self.clicks]))
        own = unit_vectors(encode([*queries]))
        by_query = [*self.clicks.values()]
        for vector, parts in zip(
            own, super().parts(queries, titles), strict=True
        ):
            cosines = near @ vector
            clicks = np.zeros([1, len(titles)], np.float32)
            for number in np.argsort(-cosines)[:NEAREST]:
                counts = by_query[number]
                share = max(cosines[number], 0) ** 4 / counts.total()
                for title, count in counts.items():
                    clicks[0, row[title]] += share * count
            yield np.concatenate([parts, np.log1p(clicks)])

    def scores(
        self, queries: Sequence[str], titles: tuple[str, ...]
    ) -> Iterator[Scores]:
        """Yields scores by the weights of six parts."""
        for parts in self.parts(queries, titles):
            yield self.weights.astype(np.float32) @ parts, None


def with_near_clicks(
    hybrid: HybridSystem, dev: Task, test: Task, log: Iterable[Pair]
) -> None:
    """Prints dev and test with the sixth part."""
    near = NearClicks(hybrid.vectors, hybrid.settings, hybrid.queries)
    near.clicks = defaultdict(Counter)
    for query, title in log:
        near.clicks[query][title] += 1
    near.weights = fit_weights([judged for _, judged in _candidates(near, dev)])
    print(f"  weights {near.weights.round(2)}")
    show("near clicks", near, dev, test)


def limited_pages(hybrid: HybridSystem, test: Task, log: list[Pair]) -> None:
    """Prints MRR@10 and the share of the most frequent title by limits.

    Above a limit a title gets a least score, the quantile of its scores for
    training queries without a click on it.
    """
    titles = tuple(test.documents.values())
    row = {title: number for number, title in enumerate(titles)}
    queries = {pair.query.lower(): number for number, pair in enumerate(log)}
    drawn = random.Random(0).sample(sorted(queries), min(3000, len(queries)))
    number = {query: place for place, query in enumerate(drawn)}
    other = np.ones([len(drawn), len(titles)], bool)
    for query, title in log:
        if query.lower() in number and title in row:
            other[number[query.lower()], row[title]] = False
    scores, of_test = (
        np.array([s for s, _ in hybrid.scores(texts, titles)])
        for texts in (drawn, [*test.queries.values()])
    )
    relevant = np.array(
        [
            [
                test.qrels[q].get(d, 0) >= test.min_relevant
                for d in test.documents
            ]
            for q in test.queries
        ]
    )

    def on_pages(scores: np.ndarray) -> np.ndarray:
        best = np.argsort(-scores, axis=1, kind="stable")[:, :HITS]
        shown = np.zeros(scores.shape, bool)
        np.put_along_axis(shown, best, True, axis=1)
        return shown & (scores > -np.inf)

    for limit in (1.0, 0.15, 0.12, 0.1):
        least = np.full(len(titles), -np.inf)
        while True:
            shown = on_pages(np.where(scores < least, -np.inf, scores)) & other
            frequent = shown.sum(axis=0) > limit * other.sum(axis=0)
            frequent &= least == -np.inf
            if not frequent.any():
                break
            for title in np.flatnonzero(frequent):
                own = scores[other[:, title], title]
                least[title] = np.quantile(own, 1 - limit)
        kept = np.where(of_test < least, -np.inf, of_test)
        shown = on_pages(kept) & ~relevant
        share = (shown.sum(axis=0) / (~relevant).sum(axis=0)).max()
        above = np.where(relevant, kept, -np.inf).max(axis=1, keepdims=True)
        rank = 1 + (kept > above).sum(axis=1)
        mrr = np.where((rank <= HITS) & (above[:, 0] > -np.inf), 1 / rank, 0)
        print(
            f"  {limit:.2f}: share {share:.3f}, mrr@10 {100 * mrr.mean():.1f}"
        )


def measure(run: str, data: str, teacher: str, least: str, mode: str) -> None:
    """Prints the figures of one run."""
    settings = RunFolder(run).read_hybrid()
    vectors = TeacherVectors.open(teacher)
    parts = HybridParts.of(dssm.load_run(run), vectors).systems()
    collection = open_collection(data)
    dev, test = (
        Task.from_collection(collection, split, "retrieve", int(least))
        for split in ("dev", "test")
    )
    queries = training_queries(RunFolder(run).read_config())
    hybrid = HybridSystem(parts, settings, queries)
    if mode == "parts":
        print(f"\n{Path(data).name}")
        return parts_of(hybrid, dev, test, len(hybrid.queries))
    if mode == "near":
        source = DataSource(RunFolder(run).read_config()["data"])
        print(f"\n{Path(data).name}")
        return with_near_clicks(hybrid, dev, test, source.pairs(0))
    if mode == "pages":
        return limited_pages(hybrid, test, [*collection.training_log()])
    last = mode == "last"
    found, by_query = test.measure(hybrid)
    systems = {**parts, "bm25": tuned_bm25(settings, dev, MEASURE)}
    systems["bm25"] = bm25_system(systems["bm25"])
    numbers = {
        q for q, text in test.queries.items() if any(map(str.isdigit, text))
    }
    line = {"hybrid": by_query} | {
        name: test.measure(system)[1] for name, system in systems.items()
    }
    print(f"\n{Path(data).name}: {len(numbers)} test queries with a digit")
    for name, values in line.items():
        some = {q: values[q] for q in numbers}
        print(f"  {name} {100 * mean(some, [MEASURE])[MEASURE]:.1f}")

    scores, relevant = [], []
    for query_id, ranked in found.items():
        best = dict(islice(ranked.items(), HITS))
        scores.append([*best.values()])
        relevant.append(
            [test.qrels[query_id].get(d, 0) >= int(least) for d in best]
        )
    odds, good = np.array(scores), np.array(relevant)
    checked = reliability(probability(odds).ravel(), good.ravel())
    print(f"calibration error of ten hits {checked.error:.3f}:")
    for predicted, share, count in checked.bins:
        print(f"  {predicted:.2f} {share:.2f} {count}")
    above = probability(odds[:, 0]) >= settings.weak
    print(f"weak below {settings.weak:.3f}; first hits above it:")
    print(f"  good ones {above[good[:, 0]].mean():.3f}")
    print(f"  the others {above[~good[:, 0]].mean():.3f}")
    lines = Path(__file__).with_name("nonsense.txt").read_text("utf-8")
    nonsense = lines.splitlines()[int(last) :: 2]
    titles = tuple(test.documents.values())
    largest = np.array([s.max() for s, _ in hybrid.scores(nonsense, titles)])
    share = (probability(largest) >= settings.weak).mean()
    print(f"  nonsense {share:.3f}")

    if not last:
        for query_id in random.Random(7).sample([*test.queries], SEARCHES):
            hits = [*found[query_id]][:3]
            shown = "; ".join(
                f"{'**' * (test.qrels[query_id].get(d, 0) >= int(least))}"
                f"{test.documents[d][:60]}"
                for d in hits
            )
            print(f"| {test.queries[query_id]} | {shown} |")


if __name__ == "__main__":
    runs = [argument for argument in sys.argv[1:] if ":" in argument]
    mode = next((a for a in sys.argv[1:] if ":" not in a), "")
    for each in runs:
        measure(*each.split(":"), mode)
