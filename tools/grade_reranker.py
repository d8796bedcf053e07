"""Measures how well word overlap alone reranks judged titles.

This is the work of the program grade_reranker. Its help and its flags are in
`tools/flags/grade_reranker.py`, which is imported first and without TensorFlow.
"""

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.errors import import_optional
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.evaluation.bm25 import TOKENIZERS
from keras_lstm_dssm.evaluation.runs import ListScores, Run, System
from keras_lstm_dssm.tools.flags.grade_reranker import COMMAND_LINE, FLAGS

_K1, _B = 0.9, 0.9  # BM25 parameters that are best on dev of homedepot


class WordOverlap:
    """Computes 16 features of how the words of query and title overlap.

    Args:
        titles: Distinct titles, from which document frequencies are counted.
    """

    def __init__(self, titles: Sequence[str]) -> None:
        self.split = TOKENIZERS["stemmed"]
        self.whole = TOKENIZERS["alphanumeric"]
        words = [self.split(title) for title in titles]
        self.mean = max(float(np.mean([len(w) for w in words])), 1e-9)
        count = Counter(word for title in words for word in set(title))
        n = len(titles)
        self._idf = {
            word: float(np.log1p((n - df + 0.5) / (df + 0.5)))
            for word, df in count.items()
        }
        self._unseen_idf = float(np.log1p(2 * n + 1))

    def __call__(self, query: str, title: str) -> list[float]:
        """Return the features of a pair, in the order of the comments below."""
        query_stems, title_stems = self.split(query), self.split(title)
        idf = [self._idf.get(stem, self._unseen_idf) for stem in query_stems]
        matched = [stem in title_stems for stem in query_stems]
        matched_idf = [w for w, m in zip(idf, matched, strict=True) if m]
        missing_idf = [w for w, m in zip(idf, matched, strict=True) if not m]
        positions = [
            title_stems.index(s) for s in query_stems if s in title_stems
        ]
        length = len(title_stems) / self.mean
        bm25 = sum(
            weight * tf / (tf + _K1 * (1 - _B + _B * length))
            for stem, weight in zip(query_stems, idf, strict=True)
            if (tf := title_stems.count(stem))
        )
        query_words, title_words = self.whole(query), self.whole(title)
        numbers = [word for word in query_words if word.isdigit()]
        query_trigrams = _trigrams(query_words)
        title_trigrams = _trigrams(title_words)
        shared = len(query_trigrams & title_trigrams)
        similarities = [_similarity(word, title_words) for word in query_words]
        return [
            bm25,
            # The query's stems that the title has: share of IDF, share.
            sum(matched_idf) / max(sum(idf), 1e-9),
            sum(matched) / max(len(matched), 1),
            # Lengths.
            len(query_stems),
            len(title_stems),
            # The rarest missing stem and the most frequent matched one.
            max(missing_idf, default=0.0),
            min(matched_idf, default=0.0),
            # Letter trigrams: share of the query's, of the title's.
            shared / max(len(query_trigrams), 1),
            shared / max(len(title_trigrams), 1),
            # Similarity of spelling, by word of the query: mean, minimum.
            sum(similarities) / max(len(similarities), 1),
            min(similarities, default=0.0),
            # Numbers: matched, all.
            sum(number in title_words for number in numbers),
            len(numbers),
            # Positions in the title: first, last; the query's last stem.
            min(positions, default=-1),
            max(positions, default=-1),
            matched[-1] if matched else -1,
        ]


class GradeReranker(System):
    """Ranks judged documents by the grade that trees predict.

    Args:
        overlap: Computes the features of a pair.
        pairs: Triples (query, title, grade) to train on.
        seed: Seed of the trees.
    """

    def __init__(
        self,
        overlap: WordOverlap,
        pairs: Iterable[tuple[str, str, int]],
        seed: int = 0,
    ) -> None:
        ensemble = import_optional("sklearn.ensemble", "baselines")
        self.overlap = overlap
        rows, grades = [], []
        for query, title, grade in pairs:
            rows.append(overlap(query, title))
            grades.append(grade)
        self.trees = ensemble.HistGradientBoostingRegressor(
            max_iter=300, learning_rate=0.05, max_leaf_nodes=15,
            l2_regularization=1.0, random_state=seed,
        ).fit(rows, grades)  # fmt: skip

    def list_scores(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> ListScores:
        """Scores candidates; see `System.list_scores`."""
        lists = {}
        for key, ids in candidates.items():
            rows = [self.overlap(queries[key], documents[d]) for d in ids]
            scores = self.trees.predict(rows).tolist()
            lists[key] = dict(zip(ids, scores, strict=True))
        return lists

    def retrieve(self, *_: Any) -> Run:
        """Raise `TypeError`, since this needs the features of every pair."""
        raise TypeError("GradeReranker only reranks")


def _trigrams(words: Iterable[str]) -> set[str]:
    marked = [f"#{word}#" for word in words]
    return {w[i : i + 3] for w in marked for i in range(len(w) - 2)}


def _similarity(word: str, others: Sequence[str]) -> float:
    """Return the largest Jaccard similarity of trigrams with other words."""
    trigrams = _trigrams([word])
    sets = [_trigrams([other]) for other in others]
    return max(
        (len(trigrams & each) / len(trigrams | each) for each in sets),
        default=0.0,
    )


def main(_: list[str]) -> dict[str, float]:
    """Return the measures, from 0 to 1."""
    collection = open_collection(FLAGS.data)
    queries, titles = collection.queries, collection.documents
    overlap = WordOverlap(list(dict.fromkeys(titles.values())))
    pairs = (
        (queries[query], titles[document], grade)
        for query, grades in collection.qrels("train").items()
        for document, grade in grades.items()
    )
    system = GradeReranker(overlap, pairs, FLAGS.seed)
    task = Task.from_collection(collection, FLAGS.split, "rerank")
    measures = task.evaluate(task.run(system))
    print(", ".join(f"{k} {100 * v:.1f}" for k, v in measures.items()))
    return measures


run = COMMAND_LINE.program(main)

if __name__ == "__main__":
    sys.exit(run())
