"""Functions that the tests of all programs share, and runs of each kind."""

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import keras
import pytest

import keras_lstm_dssm as dssm
from keras_lstm_dssm.data import write_collection
from keras_lstm_dssm.run_folder import RunFolder
from keras_lstm_dssm.tools import encode, export
from tests.conftest import TOPICS
from tests.kit.eager import eager_steps
from tests.training.small_documents import QUICK_KEYVEC, write_small_documents

Refused = Callable[[int, str], str]
TITLES = (
    "t1\tsteel hex bolt zinc 3 in\nt2\tinterior wood glue 8 oz\n"
    "t3\t50 ft rubber garden hose\n"
)


@pytest.fixture(autouse=True, scope="module")
def remembered(remembered_runs, remembered_graphs) -> None:
    """Loads a run once, and writes a graph once: programs change neither."""


@pytest.fixture
def refused(capsys) -> Refused:
    """Checks that a program ended with exit code 1 and one line that says why.

    It returns what the program printed before.
    """

    def check(code: int, message: str) -> str:
        printed, error = capsys.readouterr()
        assert code == 1
        assert message in error
        assert error.startswith("error: ") and error.count("\n") == 1, error
        return printed

    return check


def succeed(module: ModuleType, *words: object, **flags: object) -> None:
    """Runs a program with words and flags that are right."""
    settings = module.program.settings.flags
    given = [
        f"--{'set=' * (name in settings)}{name}={value}"
        for name, value in flags.items()
    ]
    assert module.program.run(["program", *given, *map(str, words)]) == 0


def results_of(module: ModuleType, file: Path, **flags: object) -> Any:
    """Runs a program; returns what it writes as JSON."""
    succeed(module, json=file, **flags)
    return json.loads(file.read_text())


def saved_run(path: Path, model: keras.Model) -> Path:
    """Writes a run folder with a model that was not trained."""
    run = RunFolder(path)
    run.create({}, model)
    run.save(model, run.model)
    return path


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


@pytest.fixture
def clicks(tmp_path) -> Path:
    """Writes a log with one click on each title."""
    path = tmp_path / "clicks.tsv"
    path.write_text("".join(f"{q}\t{t}\n" for q, t in TOPICS.values()))
    return path


@pytest.fixture(scope="session")
def other_run(made_once) -> Path:
    """A run of two towers that were not trained."""

    def make(new: Path) -> None:
        saved_run(new, dssm.build_model("lstm_32", 5))

    return made_once("other_run", make)


@pytest.fixture(scope="session")
def scorer_run(made_once) -> Path:
    """A run of a pair scorer with an interaction matrix, beside its clicks."""
    recipe = dssm.ScorerRecipe(
        "MVLSTM", {"interaction": "cosine", "units": 2, "hidden": 3},
        "vocabulary", word_dimension=3, epochs=1, mined_negatives=2,
        skip_gram=False,
    )  # fmt: skip

    def make(new: Path) -> None:
        new.mkdir()
        lines = (f"{query}\t{title}\n" for query, title in TOPICS.values())
        (new / "clicks.tsv").write_text("".join(lines))
        with eager_steps():
            dssm.train(
                new / "clicks.tsv", recipe, output=new / "run", verbose=0
            )

    return made_once("scorer", make) / "run"


@pytest.fixture(scope="session")
def keyvec_run(made_once) -> Path:
    """A run of a KeyVec whose key sentences `trigrams` chooses, and `data`."""
    recipe = QUICK_KEYVEC.replace(epochs=1, skip_gram=False)

    def make(new: Path) -> None:
        new.mkdir()
        write_small_documents(new / "data")
        with eager_steps():
            dssm.train(
                new / "data", recipe, output=new / "run", verbose=0,
                salience="trigrams",
            )  # fmt: skip

    return made_once("keyvec", make) / "run"


@pytest.fixture(scope="session")
def titles(made_once) -> Path:
    """A file of three titles."""
    return made_once("titles.txt", lambda new: new.write_text(TITLES))


@pytest.fixture(scope="session")
def models(trained_run, titles, made_once) -> Path:
    """The encoders of the trained run, and a retriever of the titles."""

    def make(new: Path) -> None:
        succeed(export, run=trained_run, documents=titles, output=new)

    return made_once("exported", make)


@pytest.fixture(scope="session")
def half(models, titles, made_once) -> Path:
    """A folder for two parts of vectors, of which the first is there."""

    def make(new: Path) -> None:
        succeed(
            encode, saved_model=models / "document_encoder", input=titles,
            output=new, rows_per_file=2, shard="0/2",
        )  # fmt: skip

    return made_once("half", make)
