"""What the grades and the words of titles give to a reranker of pairs.

A bound to hold two towers against: it sees query and title together, and is
trained on the grades themselves. Gradient-boosted trees on how the words of
both overlap; prints NDCG of the split's judged titles, in percent.

Example:
    python -m keras_lstm_dssm.benchmarks.grade_reranker --data=FOLDER
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags

from keras_lstm_dssm.baselines.tokenizers import TOKENIZERS
from keras_lstm_dssm.data import open_collection
from keras_lstm_dssm.errors import import_optional
from keras_lstm_dssm.evaluation import Task
from keras_lstm_dssm.evaluation.ranking import Ranker, Run
from keras_lstm_dssm.tools.program import new_flags, program

FLAGS = new_flags()
flags.DEFINE_string(
    "data", None, "api, or a folder in BEIR's form.", flag_values=FLAGS
)
flags.DEFINE_string("split", "dev", "Which queries.", flag_values=FLAGS)
flags.DEFINE_integer("seed", 0, "Of the trees.", flag_values=FLAGS)

_K1, _B = 0.9, 0.9  # of BM25, best on homedepot's dev


class WordOverlap:
    """How the words of a query and of a title overlap, in 16 numbers.

    Args:
        titles: Distinct titles, in which words are counted.
    """

    def __init__(self, titles: Sequence[str]) -> None:
        self.split = TOKENIZERS["stemmed"]
        self.whole = TOKENIZERS["alphanumeric"]
        words = [self.split(title) for title in titles]
        self.mean = max(float(np.mean([len(w) for w in words])), 1e-9)
        count: dict[str, int] = {}
        for title in words:
            for word in set(title):
                count[word] = count.get(word, 0) + 1
        n = len(titles)
        self._idf = {
            word: float(np.log1p((n - df + 0.5) / (df + 0.5)))
            for word, df in count.items()
        }
        self._most = float(np.log1p(2 * n + 1))  # of a word in no title

    def __call__(self, query: str, title: str) -> list[float]:
        """Returns the numbers of one pair."""
        asked, found = self.split(query), self.split(title)
        idf = [self._idf.get(word, self._most) for word in asked]
        hit = [word in found for word in asked]
        pairs = list(zip(idf, hit, strict=True))
        places = [found.index(w) for w in asked if w in found]
        long = len(found) / self.mean
        bm25 = sum(
            weight * tf / (tf + _K1 * (1 - _B + _B * long))
            for word, weight in zip(asked, idf, strict=True)
            if (tf := found.count(word))
        )
        spelt, read = self.whole(query), self.whole(title)
        numbers = [word for word in spelt if word.isdigit()]
        ours, theirs = _trigrams(spelt), _trigrams(read)
        alike = [_alike(word, read) for word in spelt]
        return [
            bm25,
            sum(w for w, h in pairs if h) / max(sum(idf), 1e-9),
            sum(hit) / max(len(hit), 1),
            len(asked),
            len(found),
            max((w for w, h in pairs if not h), default=0.0),
            min((w for w, h in pairs if h), default=0.0),
            len(ours & theirs) / max(len(ours), 1),
            len(ours & theirs) / max(len(theirs), 1),
            sum(alike) / max(len(alike), 1),
            min(alike, default=0.0),
            sum(w in read for w in numbers),
            len(numbers),
            min(places, default=-1),
            max(places, default=-1),
            hit[-1] if hit else -1,
        ]


class GradeReranker:
    """Ranks judged titles by a grade that trees predict.

    Args:
        overlap: What the trees see of a pair.
        pairs: (query, title, grade) to train on.
        seed: Of the trees.
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

    def rerank(
        self,
        queries: Mapping[str, str],
        candidates: Mapping[str, Sequence[str]],
        documents: Mapping[str, str],
    ) -> Run:
        """Orders candidates; see `System.rerank`."""
        run = {}
        for key, found in candidates.items():
            rows = [self.overlap(queries[key], documents[d]) for d in found]
            run[key] = Ranker(found).rank(key, self.trees.predict(rows))
        return run

    def retrieve(self, *_: Any) -> Run:
        """Is not meant to: it would have to see every pair."""
        raise TypeError("GradeReranker only reranks")


def _trigrams(words: Iterable[str]) -> set[str]:
    marked = [f"#{word}#" for word in words]
    return {w[i : i + 3] for w in marked for i in range(len(w) - 2)}


def _alike(word: str, words: Sequence[str]) -> float:
    """The trigrams that it shares with the most similar word."""
    own = _trigrams([word])
    others = [_trigrams([other]) for other in words]
    return max((len(own & o) / len(own | o) for o in others), default=0.0)


def main(_: list[str]) -> dict[str, float]:
    """Returns the measures, from 0 to 1."""
    collection = open_collection(FLAGS.data)
    queries, titles = collection.queries, collection.documents
    overlap = WordOverlap(list(dict.fromkeys(titles.values())))
    pairs = (
        (queries[query], titles[document], grade)
        for query, grades in collection.qrels("train").items()
        for document, grade in grades.items()
    )
    system = GradeReranker(overlap, pairs, FLAGS.seed)
    task = Task.of(collection, FLAGS.split, "rerank")
    found = task.evaluate(task.run(system))
    print(", ".join(f"{k} {100 * v:.1f}" for k, v in found.items()))
    return found


run = program(main, FLAGS, __doc__, required=["data"])

if __name__ == "__main__":
    sys.exit(run())
