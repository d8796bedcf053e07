"""What weights of positions and skipped titles are worth: a simulated study.

Pages are simulated from the grades that people gave (a BEIR folder with qrels
of train, dev and test, such as homedepot). A page has eight titles: those with
a grade, and further ones that BM25 finds. The ranking that is logged is their
grades with noise, drawn once for a query, and again for a page, so that titles
move. Users click by a position-based model with known shares, or from
top to bottom (a cascade, a wrong model). Two towers learn from the clicks, and
are measured on the true grades of test; so are rankers, which read the overlap
of words alone and draw nothing, so that one training of each is enough.

    python docs/results/clicks/simulate.py --data=FOLDER --output=study.json

prints a line for each training; with --output they are a file of JSON lines.
"""

import argparse
import json
import os
import tempfile
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
from scipy.optimize import minimize

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import Collection
from keras_lstm_dssm.data.click_pages import ClickPages, Page, write_clicks
from keras_lstm_dssm.data.position_bias import position_bias
from keras_lstm_dssm.evaluation import Task, evaluate_systems, system_of
from keras_lstm_dssm.evaluation.bm25 import bm25_neighbours

SIZE = 8
SHARES = 1 / np.arange(1, SIZE + 1)
LOGS = {  # users, and the standard deviation of the noise of a page
    "positions": ("positions", 4.0),
    "cascade": ("cascade", 4.0),
    "no swaps": ("positions", 0.0),
}
WAYS: dict[str, dict[str, Any]] = {
    "unweighted": {},
    "weighted": {"position_bias": True},
    "true shares": {"position_bias": "true"},
    "skipped": {"skipped_negatives": 1},
    "both": {"position_bias": True, "skipped_negatives": 1},
    "ranker": {"ranker": True},  # of mined titles
    "ranker of pages": {"ranker": True, "position_bias": True},
}


def candidates(
    data: Collection, split: str, limit: int | None
) -> list[tuple[str, list, list]]:
    """Returns each query with eight titles and their grades."""
    qrels = dict(list(data.qrels(split).items())[:limit])
    queries = [data.queries[key] for key in qrels]
    titles = list(dict.fromkeys(data.documents.values()))
    found = []
    for query, grades, near in zip(
        queries, qrels.values(), bm25_neighbours(queries, titles, 50),
        strict=True,
    ):  # fmt: skip
        graded = {data.documents[key]: n for key, n in grades.items()}
        order = [titles[row] for row in near]
        order = [t for t in order if t in graded] + [
            t for t in graded if t not in order
        ] + [t for t in order if t not in graded]  # fmt: skip
        shown = order[:SIZE]
        found.append((query, shown, [graded.get(t, 0) for t in shown]))
    return found


def simulate(
    lists: list, users: str, noise: float, each: int, seed: int
) -> list[Page]:
    """Simulates so many pages of each query."""
    random = np.random.default_rng(seed)
    pages = []
    for query, titles, grades in lists:
        relevance = 0.1 + 0.9 * (2.0 ** np.array(grades) - 1) / 15
        # The logging ranking: not that of the grades, but related to it.
        scores = np.array(grades) + random.normal(0, 2.0, len(titles))
        for _ in range(each):
            moved = scores + random.normal(0, noise, len(titles))
            order = np.argsort(-moved, kind="stable")
            chance = relevance[order]
            if users == "positions":
                clicks = (
                    random.random(len(order)) < SHARES[: len(order)] * chance
                )
            else:
                clicks = random.random(len(order)) < chance
                leaves = clicks & (random.random(len(order)) < 0.8)
                leaves |= random.random(len(order)) < 0.1
                gone = np.cumsum(leaves) - leaves > 0
                clicks &= ~gone
            pages.append(
                Page(
                    query,
                    [titles[row] for row in order],
                    clicks.astype(float).tolist(),
                    list(range(1, len(order) + 1)),
                )
            )
    return pages


def likelihood(
    model: Any, fitted_on: list[Page], pages: list[Page], *shares: np.ndarray
) -> list[float]:
    """Mean log likelihood of clicks by p_k sigmoid(a cos + b), for each p."""

    def columns(pages: list[Page]) -> tuple[np.ndarray, ...]:
        texts = [
            list(dict.fromkeys(texts))
            for texts in (
                (page.query for page in pages),
                (title for page in pages for title in page.titles),
            )
        ]
        rows = [{t: n for n, t in enumerate(each)} for each in texts]
        queries = model.query_encoder.encode(texts[0])
        titles = model.document_encoder.encode(texts[1])
        both = [
            (rows[0][page.query], rows[1][title], place - 1, click)
            for page in pages
            for title, place, click in zip(
                page.titles, page.positions, page.weights, strict=True
            )
        ]
        query, title, place, click = (
            np.array(c) for c in zip(*both, strict=True)
        )
        cosines = (queries[query] * titles[title]).sum(axis=1)
        return cosines, place.astype(int), click

    def cost(
        weights: np.ndarray, data: tuple[np.ndarray, ...], p: np.ndarray
    ) -> float:
        cosines, place, click = data
        rate = p[place] / (1 + np.exp(-weights[0] * cosines - weights[1]))
        rate = np.clip(rate, 1e-6, 1 - 1e-6)
        return -float(np.mean(np.where(click, np.log(rate), np.log1p(-rate))))

    fit, measured = columns(fitted_on), columns(pages)
    best = [minimize(cost, [5, -2], (fit, p), "Nelder-Mead").x for p in shares]
    return [-cost(w, measured, p) for w, p in zip(best, shares, strict=True)]


def main() -> None:
    """Trains on each log in each way, with each seed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--output", default=os.devnull)
    parser.add_argument("--preset", default="best")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--pages", type=int, default=14, help="of each query")
    parser.add_argument("--queries", type=int, help="of each split; all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--logs", default=",".join(LOGS))
    parser.add_argument("--ways", default=",".join(WAYS))
    flags = parser.parse_args()
    data = Collection(flags.data)
    lists = {
        split: candidates(data, split, flags.queries)
        for split in ("train", "dev", "test")
    }
    task = Task.from_collection(data, "test", "rerank")
    for log in flags.logs.split(","):
        users, noise = LOGS[log]
        pages = {
            split: simulate(each, users, noise, flags.pages, seed)
            for seed, (split, each) in enumerate(lists.items())
        }
        bias = position_bias(pages["train"])
        print(f"{log}: {bias.describe()}", flush=True)
        shares = np.array([bias.shares.get(k + 1, 1.0) for k in range(SIZE)])
        for way in flags.ways.split(","):
            is_ranker = "ranker" in way
            if WAYS[way].get("position_bias") is True and bias.reason:
                if not is_ranker:
                    continue  # the weights would be 1
            for seed in range(1 if is_ranker else flags.seeds):
                with tempfile.TemporaryDirectory() as folder:
                    model = train(folder, pages["train"], way, seed, flags)
                known = {
                    "true shares": SHARES, "weighted": shares, "both": shares
                }.get(way, np.ones(SIZE))  # fmt: skip
                # By the way's own shares, and by 1 / k for all.
                own, equal = (None, None) if is_ranker else likelihood(
                    model, pages["dev"], pages["test"], known, SHARES
                )  # fmt: skip
                systems = {"model": system_of(model)}
                measured = evaluate_systems(task, systems)["model"]
                result = {
                    "log": log,
                    "way": way,
                    "seed": seed,
                    "shares": bias.shares or bias.reason,
                    "ndcg@10": measured["ndcg@10"],
                    "ndcg@3": measured["ndcg@3"],
                    "log_likelihood": own,
                    "log_likelihood_equal_shares": equal,
                }
                print(json.dumps(result), flush=True)
                with open(flags.output, "a") as file:
                    file.write(json.dumps(result) + "\n")


def train(
    folder: str, pages: list[Page], way: str, seed: int, flags: Any
) -> Any:
    """Trains on pages through the file that a user would have."""
    path = f"{folder}/pages.parquet"
    rows = {
        "query": [page.query for page in pages],
        "titles": [page.titles for page in pages],
        "clicks": [page.weights for page in pages],
    }
    pyarrow.parquet.write_table(pyarrow.table(rows), path)
    options = dict(WAYS[way])
    if options.pop("ranker", False):
        return dssm.train(path, "ranker", seed=seed, verbose=0, **options)
    recipe = dssm.PRESETS[flags.preset].replace(
        epochs=flags.epochs,
        skipped_negatives=options.pop("skipped_negatives", 0),
    )
    if options.get("position_bias") == "true":
        options = {}
        true = dict(enumerate(np.maximum(SHARES, 0.1).tolist(), 1))
        path = write_clicks(
            ClickPages(path), f"{folder}/clicks.tsv", true
        ).paths[0]
    return dssm.train(path, recipe, seed=seed, verbose=0, **options)


if __name__ == "__main__":
    main()
