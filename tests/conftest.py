"""Fixtures that all tests share."""

import pathlib
import signal
from collections.abc import Iterator

import keras
import pytest

from keras_lstm_dssm.data import Pair, write_collection
from keras_lstm_dssm.tools import train
from tests.memory import release_graphs
from tests.precision import precision

SHARED_DATA = pathlib.Path(__file__).parents[2] / "shared" / "data"


def pytest_configure() -> None:
    """Lets tests press Ctrl-C where a shell has started us with `&`, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Each test starts from one seed, whatever ran before it."""
    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True, scope="module")
def graphs_released() -> Iterator[None]:
    """Keeps a process that runs all tests small."""
    yield
    release_graphs()


@pytest.fixture
def float64() -> Iterator[None]:
    """Runs a proof in double precision, Keras's own variables included."""
    with precision("float64"):
        yield


@pytest.fixture
def shared_data() -> pathlib.Path:
    """The folder of real data sets; the test is skipped without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the real data sets are not on this machine")
    return SHARED_DATA


TOPICS = {
    "bolt": ("hex bolt", "steel hex bolt zinc 3 in"),
    "glue": ("wood glue", "interior wood glue 8 oz"),
    "drill": ("cordless drill", "18 volt cordless drill kit"),
    "lamp": ("desk lamp", "led desk lamp with dimmer"),
    "hose": ("garden hose", "50 ft rubber garden hose"),
    "paint": ("white paint", "interior white paint 1 gal"),
}
"""Queries and titles of our own making, easily told apart."""


@pytest.fixture(scope="session")
def collection_folder(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A small collection in BEIR's form, with clicks."""
    folder = tmp_path_factory.mktemp("data") / "hardware"
    documents = {name: title for name, (_, title) in TOPICS.items()}
    queries = {f"q-{name}": query for name, (query, _) in TOPICS.items()}
    judged = {
        f"q-{name}": {other: 2 * (other == name) for other in TOPICS}
        for name in TOPICS
    }
    clicks = [Pair(*pair) for pair in TOPICS.values()] * 20
    write_collection(
        folder, documents, queries, {"test": judged, "dev": judged}, clicks
    )
    return folder


@pytest.fixture(scope="session")
def trained_run(
    collection_folder: pathlib.Path, tmp_path_factory: pytest.TempPathFactory
) -> pathlib.Path:
    """A run folder, trained by the program itself."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    code = train.run(
        [
            "lstm-dssm-train",
            f"--data={collection_folder}",
            "--preset=lstm_32",
            "--epochs=3",
            "--batch_size=16",
            f"--output={folder}",
        ]
    )
    assert code == 0
    return folder


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """A folder of models to serve; tests must not write into it."""
    from tests.serving.tiny_models import save_models  # imports TF.Text

    return save_models(tmp_path_factory.mktemp("tiny_models"))
