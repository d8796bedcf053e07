"""A small set of graded titles, and a ranker that is trained on it."""

from pathlib import Path

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.settings.recipes import RankerRecipe
from tests.conftest import TOPICS

COLOURS = ("red", "blue", "green", "black")


def write_graded(folder: Path) -> Path:
    """Writes queries for a thing of a colour; its titles have grades 0 to 3."""
    documents = {
        f"{colour}-{name}": f"{colour} {title}"
        for name, (_, title) in TOPICS.items()
        for colour in COLOURS
    }
    things, queries = list(TOPICS), {}
    qrels: dict[str, dict[str, dict[str, int]]] = {
        "train": {}, "dev": {}, "test": {},
    }  # fmt: skip
    for number, name in enumerate(things):
        other = things[number - 1]
        for shade, colour in enumerate(COLOURS):
            query = f"{name}-{colour}"
            queries[query] = f"{TOPICS[name][0]} {colour}"
            next_colour = COLOURS[shade - 1]
            split = ("dev", "test", "train", "train")[(number + shade) % 4]
            qrels[split][query] = {
                f"{colour}-{name}": 3, f"{next_colour}-{name}": 2,
                f"{colour}-{other}": 1, f"{next_colour}-{other}": 0,
            }  # fmt: skip
    write_collection(folder, documents, queries, qrels, [])
    return folder


def small_trees() -> RankerRecipe:
    """Returns the options of trees that are trained on a few dozen rows."""
    return RankerRecipe(
        rounds=40, rounds_without_dev=20, leaves=(4, 3), learning_rate=0.2,
        min_rows=3, every=5, patience=4, shares=(0.5, 1.0),
    )  # fmt: skip


def small_scorer() -> dssm.PairScorer:
    """Makes an untrained pair scorer with the words of the titles."""
    words = sorted(
        {w for _, title in TOPICS.values() for w in title.split()} | {*COLOURS}
    )
    recipe = dssm.ScorerRecipe(
        "RecurrentCosine", {"units": 2}, word_dimension=4
    )
    return recipe.build(1, [word for word in words if word.isalnum()])
