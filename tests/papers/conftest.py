"""A finished table of each paper: few systems, small models, no report yet."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.models import ModelRecipe, Recipe, ScorerRecipe
from keras_lstm_dssm.papers import PAPERS
from keras_lstm_dssm.papers.run_systems import Row, run_system
from keras_lstm_dssm.papers.table_data import open_data
from keras_lstm_dssm.settings.programs import TableSettings
from tests.conftest import TOPICS
from tests.training.small_documents import QUICK_KEYVEC, write_small_documents


def with_recipe(row: Row, recipe: ModelRecipe, **changes: Any) -> Row:
    """Returns a neural row that is trained by another recipe."""
    system: Any = row.system
    changed = dataclasses.replace(system, recipe=recipe, **changes)
    return row._replace(system=changed)


SMALL = Recipe("DSSMEncoder", {"units": [8, 4]})
SCORER = ScorerRecipe(
    "RecurrentCosine", {"units": 2}, word_dimension=4, skip_gram=False
)
KEYVEC = QUICK_KEYVEC.replace(skip_gram=False)


def small_rows(
    paper: str, names: str, **neural: tuple[ModelRecipe, dict]
) -> Any:
    of_paper = PAPERS[paper].rows
    return {name: of_paper[name] for name in names.split()} | {
        name: with_recipe(of_paper[name], recipe, **changes)
        for name, (recipe, changes) in neural.items()
    }


ROWS: dict[str, dict[str, Row]] = {
    "table_iv": small_rows("table_iv", "random bm25", dssm=(SMALL, {})),
    "mv_lstm": small_rows(
        "mv_lstm", "random document_order bm25", lstm_rnn_50=(SCORER, {})
    ),
    "keyvec": small_rows(
        "keyvec", "random bm25 lsa word2vec", keyvec_untrained=(KEYVEC, {}),
        keyvec=(KEYVEC, {"salience": "lead"}),
    ),
}  # fmt: skip
CHOICES = {"word2vec": {"min_count": 1}}
"""The hyperparameters of a system that are not searched on dev."""


class Table(NamedTuple):
    """A table whose systems have run; who writes takes a `copy`."""

    paper: str
    folder: Path
    settings: TableSettings
    seeds: int

    @property
    def rows(self) -> dict[str, Row]:
        return ROWS[self.paper]

    def file(self, system: str, name: str = "result.json", seed=0) -> Path:
        return self.folder / f"systems/{system}/seed_{seed}/{name}"


def write_lists(folder: Path) -> None:
    """Writes six queries a split, with six titles each, the right one first."""
    documents = {name: title for name, (_, title) in TOPICS.items()}
    queries = {f"test-{name}": query for name, (query, _) in TOPICS.items()}
    queries |= {f"train-{name}": f"the {name}" for name in TOPICS}
    queries |= {f"dev-{name}": f"a {name}" for name in TOPICS}
    qrels = {
        split: {
            # Not by a set, whose order is another one in each process.
            f"{split}-{name}": {name: 1} | {n: 0 for n in TOPICS if n != name}
            for name in TOPICS
        }
        for split in ("train", "dev", "test")
    }
    write_collection(folder, documents, queries, qrels, [])
    (folder / "clicks.train.tsv.gz").unlink()  # there are judgements only


@pytest.fixture(scope="session")
def finished_table(collection_folder, made_once) -> Callable[[str], Table]:
    """Returns the table of a paper, whose systems this run has trained once."""

    def table(paper: str, folder: Path) -> Table:
        settings, seeds = {
            "table_iv": (TableSettings(
                str(collection_folder), epochs=3, batch_size=16, depth=100,
                learning_rates=(0.1,), gammas=(10.0,), dev_evaluations=2,
                misspelled=(0.5, 1.0),
            ), 2),
            "mv_lstm": (TableSettings(
                str(folder / "tools"), epochs=2, batch_size=16,
                learning_rates=(0.01, 0.3), gammas=(), search=0.5,
                dev_evaluations=2, misspelled=(1.0,), lists=True, select="mrr",
            ), 1),
            "keyvec": (TableSettings(
                str(folder / "shop"), epochs=2, batch_size=8,
                learning_rates=(0.01,), gammas=(), dev_evaluations=2,
                documents=True,
            ), 1),
        }[paper]  # fmt: skip
        return Table(paper, folder / "out", settings, seeds)

    def make(paper: str, folder: Path) -> None:
        if paper == "mv_lstm":
            write_lists(folder / "tools")
        if paper == "keyvec":
            pytest.importorskip("gensim")
            folder.mkdir()
            write_small_documents(folder / "shop")
        _, output, settings, seeds = table(paper, folder)
        settings.record(output, open_data(settings, output).sizes)
        for name, row in ROWS[paper].items():
            chosen = CHOICES.get(name)
            run_system(output, name, row, settings, seeds, chosen)

    return lambda paper: table(
        paper, made_once(f"table_of_{paper}", lambda new: make(paper, new))
    )


@pytest.fixture(scope="session")
def table_iv(finished_table) -> Table:
    return finished_table("table_iv")


@pytest.fixture(scope="session")
def mv_lstm(finished_table) -> Table:
    return finished_table("mv_lstm")


@pytest.fixture(scope="session")
def keyvec(finished_table) -> Table:
    return finished_table("keyvec")


@pytest.fixture(params=ROWS)
def table(request, finished_table) -> Table:
    """Each of the tables."""
    return finished_table(request.param)


@pytest.fixture(scope="session")
def settings(table_iv) -> TableSettings:
    return table_iv.settings
