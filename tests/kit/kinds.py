"""Every kind of training, small: of two steps an epoch, and three epochs."""

import gzip
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import write_collection, write_pairs
from keras_lstm_dssm.distillation.teacher_vectors import teach
from keras_lstm_dssm.settings.recipes import ModelRecipe
from keras_lstm_dssm.training.document_targets import TARGETS_FILE
from keras_lstm_dssm.training.scorer_training import FILE_NAME
from tests.conftest import TOPICS
from tests.kit.eager import eager_steps
from tests.training.small_documents import QUICK_KEYVEC, write_small_documents
from tests.training.small_trainings import BEST, QUICK

STEPS = 2
"""Training steps in an epoch."""

PARENT = BEST.replace(epochs=3, logq=True, mine_every=2, batch_size=13)
SCORER = dssm.ScorerRecipe(
    "RecurrentCosine", {"units": 2}, word_dimension=4, epochs=3, batch_size=15
)
KEYVEC = QUICK_KEYVEC.replace(batch_size=5)


class Kind(NamedTuple):
    """A kind of training.

    Attributes:
        preset: The preset whose place the recipe takes for the program; empty
            if only Python has such a training.
        recipe: The recipe.
        options: Options of `dssm.train`, by name, as paths in the folder that
            `write_data` writes.
        described: How the program describes the data.
        measure: What chooses the best epoch, a column of `history.csv`; empty
            if nothing does. With it, patience ends a training of nine epochs
            after the third, when the second is the best.
        change: Changes the data in the working directory.
        changed: The message when a run is resumed after it.
        kept: Files of the run without which, or damaged, it is not resumed ->
            the message.
        made_again: Files of the run that are made again if they are lost.
        gone: The folder of a model or of vectors that only the start reads.
    """

    preset: str
    recipe: ModelRecipe
    options: dict[str, Any]
    described: str
    measure: str
    change: Callable[[], object]
    changed: str
    kept: dict[str, str] = {}
    made_again: tuple[str, ...] = ()
    gone: str = ""

    def train(self, **options: Any) -> Any:
        """Trains in Python."""
        given = {"recipe": self.recipe, "verbose": 0, "seed": 3}
        return dssm.train(**{**given, **self.options, **options})

    def flags(self, patch: pytest.MonkeyPatch) -> list[str]:
        """Makes the recipe that of the preset; returns the program's flags."""
        kinds = dssm.PRESETS, dssm.SCORER_PRESETS, dssm.KEYVEC_PRESETS
        presets: Any = next(one for one in kinds if self.preset in one)
        patch.setitem(presets, self.preset, self.recipe)
        flags = {"preset": self.preset, "seed": 3, **self.options}
        return [f"--{name}={value}" for name, value in flags.items()]


def add_click(path: str) -> None:
    """Adds a line to a click file."""
    with open(path, "a") as file:
        file.write("rope\tnylon rope\n")


def judge_one_less() -> None:
    """Leaves out the first grade, of a title that is not relevant."""
    path = Path("judged/qrels/train.tsv")
    header, first, second, *rest = path.read_text().splitlines(True)
    path.write_text("".join([header, first, *rest]))


def drop_document() -> None:
    """Leaves out the first document."""
    path = Path("documents/documents.jsonl.gz")
    lines = gzip.decompress(path.read_bytes()).splitlines(True)
    path.write_bytes(gzip.compress(b"".join(lines[1:])))


def turn_vectors() -> None:
    """Gives the teacher other vectors."""
    block = Path("TEACH/vectors/000000.npy")
    np.save(block, -np.load(block))


MINED = {"hard_negatives.json.gz": "expected negatives mined before.*train an"}
NO_TARGETS = {TARGETS_FILE: "expected targets of documents"}
JUDGED = {"dev": "judged", "patience": 1}

KINDS = {
    "two towers": Kind(
        "dssm",
        QUICK.replace(batch_size=12, epochs=9),
        {"data": "clicks.tsv", "validation": "new.tsv", **JUDGED},
        "24 pairs;",
        "dev_mrr@10",
        lambda: add_click("clicks.tsv"),
        "found 25 pairs and 0 bad lines, expected the 24 and 0 that the run",
    ),
    # Mined before the third epoch.
    "mined negatives, title pairs and logQ": Kind(
        "lstm_32",
        QUICK.replace(
            negatives="in_batch", logq=True, hard_negatives=2, title_pairs=1,
            batch_size=15, learning_rate=0.3, epochs=9,
        ),
        {"data": "clicks.tsv", **JUDGED, "select": "ndcg@3"},
        "30 pairs, 6 of them made of titles;",
        "dev_ndcg@3",
        lambda: add_click("clicks.tsv"),
        "found 31 pairs and 0 bad lines, expected the 30",
        MINED,
        ("title_pairs.tsv",),
    ),
    "words fitted to a teacher": Kind(
        "",
        dssm.PRESETS["best_words"]
        .replace(title_pairs=2, hard_negatives=1, batch_size=18, epochs=3)
        .with_encoder(cells=2, bag=2, sketch=15),
        {"data": "clicks.tsv", "teacher": "TEACH"},
        "36 pairs, 12 of them made of titles;",
        "",
        turn_vectors,
        "found other vectors than those that the run",
        MINED,
        ("title_pairs.tsv",),
    ),
    # Mined before the first epoch: the parent is trained already.
    "continued with replay": Kind(
        "best",
        PARENT,
        {"data": "new.tsv", "init": "PARENT", "replay": "clicks.tsv:0.5"},
        "26 pairs, 8 of them old clicks, 2 of them made of titles;",
        "",
        lambda: add_click("new.tsv"),
        "found 27 pairs and 0 bad lines, expected the 26",
        MINED,
        ("title_pairs.tsv",),
        gone="PARENT",
    ),
    "a scorer of judged lists": Kind(
        "lstm_rnn_50",
        SCORER.replace(epochs=9),
        {"data": "judged", **JUDGED, "select": "p@1"},
        "30 triples of 6 queries",
        "dev_p@1",
        judge_one_less,
        "found 29 triples and 0 bad lines, expected the 30",
    ),
    "a scorer of clicks that towers mine for": Kind(
        "mv_lstm_cosine",
        SCORER.replace(
            mined_negatives=2, skip_gram=False, batch_size=24, epochs=9
        ),
        {"data": "clicks.tsv", "negatives_from": "PARENT", **JUDGED},
        "48 triples of 6 queries",
        "dev_mrr@10",
        lambda: add_click("clicks.tsv"),
        "found 25 clicks, expected the 24",
        {FILE_NAME: "expected mined negatives"},
        gone="PARENT",
    ),
    "a KeyVec": Kind(
        "keyvec",
        KEYVEC.replace(epochs=9),
        {"data": "documents", "patience": 1},
        "10 documents; salient: ",
        "val_loss",
        drop_document,
        "found 9 documents and 0 bad lines, expected the 10 and 0",
        NO_TARGETS,
    ),
    # The validation loss is measured, but chooses no epoch.
    "a KeyVec of excerpts, without patience": Kind(
        "keyvec_mean",
        KEYVEC.replace(
            patience=0, words="trigrams", dropout=0.5, excerpt=3, decay=True
        ),
        {"data": "documents", "salience": "PARENT"},
        "10 documents; salient: ",
        "",
        drop_document,
        "found 9 documents and 0 bad lines, expected the 10 and 0",
        NO_TARGETS,
        gone="PARENT",
    ),
}  # fmt: skip


def crossed(texts: list[str]) -> np.ndarray:
    """An encoder for which the bolt is near the lamp, and so on.

    No click and no letter says so.
    """
    near = {"bolt": 0, "lamp": 0, "glue": 1, "hose": 1, "drill": 2, "paint": 2}
    vectors = np.zeros([len(texts), 9])
    for row, text in enumerate(texts):
        (name,) = (name for name in TOPICS if name in text)
        vectors[row, near[name]] = 2
        vectors[row, 3 + list(TOPICS).index(name)] = 1
    return vectors


NEW = [("brass lamp", "brass table lamp"), ("tin can", "tin can 1 gal")] * 8
"""Clicks whose words are not those of the others."""


def write_data(folder: Path) -> None:
    """Writes what the kinds learn from.

    They are clicks, old and new; six training queries and six of dev, each
    with six judged titles; documents; the vectors of a teacher, and a run.
    """
    folder.mkdir()
    write_pairs([*TOPICS.values()] * 4, folder / "clicks.tsv")
    write_pairs(NEW, folder / "new.tsv")
    documents = {name: title for name, (_, title) in TOPICS.items()}
    queries = {f"dev-{name}": query for name, (query, _) in TOPICS.items()}
    queries |= {f"train-{name}": f"the {name}" for name in TOPICS}
    qrels = {
        split: {
            f"{split}-{name}": {other: int(other == name) for other in TOPICS}
            for name in TOPICS
        }
        for split in ("train", "dev")
    }
    write_collection(folder / "judged", documents, queries, qrels, [])
    write_small_documents(folder / "documents")
    (folder / "encoder_of_topics.py").write_text(
        f"import numpy as np\nTOPICS = {list(TOPICS)}\n"
        + inspect.getsource(crossed)
    )
    with eager_steps(), pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        teach("clicks.tsv", "encoder_of_topics:crossed", "TEACH")
        recipe = PARENT.replace(epochs=1)
        dssm.train("clicks.tsv", recipe, output="PARENT", verbose=0)


TEXTS = ["a wool hat. A nail.", "hex bolt", "", "\u4e0a\u6d77", "\ud800"]


def outputs(model: Any) -> list[list[float]]:
    """Returns what a model says of some texts."""
    if isinstance(model, dssm.PairScorer):
        return [model.score(TEXTS[0], TEXTS).tolist()]
    if isinstance(model, dssm.KeyVec):
        key_words = model.key_words(TEXTS[0], 1)[0]
        return [*model.encode(TEXTS).tolist(), [key_words[1]]]
    towers = model.query_encoder, model.document_encoder
    return [row for tower in towers for row in tower.encode(TEXTS).tolist()]
