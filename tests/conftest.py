"""Fixtures that all tests share.

Those that use TensorFlow import it: who distributes the tests does not."""

import fcntl
import gc
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

# The processes of a run share the cores: threads of OpenMP and OpenBLAS
# that wait for one another would take many times as long.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# As the package and its programs do, so that no test depends on what was
# imported or run before it.
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "1")
os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
# Otherwise TensorFlow keeps what it has once allocated for tensors.
os.environ.setdefault("TF_ONEDNN_USE_SYSTEM_ALLOCATOR", "1")

import pytest

if TYPE_CHECKING:
    from keras_lstm_dssm.serving import Client, HttpClient, PredictionServer
    from tests.kit.loaded import Loaded
    from tests.kit.warm import Take, WarmModels

from tests.fresh_process import FreshProcesses, connect, fork_server
from tests.kit.cost import Costs

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


def pytest_configure(config: pytest.Config) -> None:
    """Measures tests; lets them press Ctrl-C also where we run with `&`."""
    config.pluginmanager.register(Costs())
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection() -> None:
    """Searches for no garbage among what is being imported."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Leaves all that was imported out of the searches, of 0.2 seconds each."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def seeded() -> None:
    """Each test starts from one seed, whatever ran before it."""
    import keras

    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True, scope="module")
def graphs_released() -> Iterator[None]:
    """Keeps a process that runs all tests small."""
    from tests.memory import release_graphs_if_large

    yield
    release_graphs_if_large()


@pytest.fixture
def float64() -> Iterator[None]:
    """Runs a proof in double precision, Keras's own variables included."""
    from tests.precision import precision

    with precision("float64"):
        yield


@pytest.fixture
def shared_data() -> Path:
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
def made_once(
    tmp_path_factory,
) -> Callable[[str, Callable[[Path], object]], Path]:
    """Makes a folder, once for all processes of a run of the tests."""
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent

    def make_once(name: str, make: Callable[[Path], object]) -> Path:
        folder, done = shared / name, shared / f"{name}.done"
        with open(shared / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not done.exists():
                make(folder)
                done.touch()
        return folder

    return make_once


@pytest.fixture(scope="session")
def collection_folder(made_once) -> Path:
    """A small collection in BEIR's form, with clicks."""
    from keras_lstm_dssm.data import Pair, write_collection

    documents = {name: title for name, (_, title) in TOPICS.items()}
    queries = {f"q-{name}": query for name, (query, _) in TOPICS.items()}
    judged = {
        f"q-{name}": {other: 2 * (other == name) for other in TOPICS}
        for name in TOPICS
    }
    arguments = (
        *(documents, queries, {"test": judged, "dev": judged}),
        [Pair(*pair) for pair in TOPICS.values()] * 20,
    )
    return made_once("hardware", lambda new: write_collection(new, *arguments))


@pytest.fixture(scope="session")
def trained_run(collection_folder, made_once) -> Path:
    """A run folder, trained by the program itself; tests only read it."""
    from keras_lstm_dssm.tools import train

    def run(folder: Path) -> None:
        flags = [f"--data={collection_folder}", "--preset=lstm_32",
                 "--epochs=3", "--batch_size=16"]  # fmt: skip
        assert train.program.run(["train", *flags, f"--output={folder}"]) == 0

    return made_once("run", run)


@pytest.fixture(scope="module")
def remembered_graphs(made_once) -> Iterator[None]:
    """Lets exports copy SavedModels of this run; see `tests/kit/golden.py`."""
    from tests.kit import golden

    with golden.remembered_graphs(made_once("graphs", Path.mkdir)):
        yield


@pytest.fixture(scope="session")
def loaded_models() -> "Loaded":
    """The models of runs that this process has loaded."""
    return {}


@pytest.fixture(scope="module")
def remembered_runs(loaded_models) -> Iterator[None]:
    """Loads the model of a run once, for tests that only read it."""
    from tests.kit import loaded

    with loaded.remembered_runs(loaded_models):
        yield


@pytest.fixture(scope="session")
def warm_models() -> "WarmModels":
    """The models that tests of this process share."""
    from tests.kit.warm import WarmModels

    return WarmModels()


@pytest.fixture
def warm(warm_models) -> Iterator["Take"]:
    """Lends compiled models, which other tests may have traced."""
    with warm_models.lent() as take:
        yield take


@pytest.fixture
def eager() -> Iterator[None]:
    """Runs training steps without graphs; see `tests/kit/eager.py`."""
    from tests.kit.eager import eager_steps

    with eager_steps():
        yield


@pytest.fixture
def kinds_data(made_once, tmp_path, monkeypatch) -> Path:
    """A folder of data for every kind of training; it is the working folder."""
    from tests.kit.kinds import write_data

    folder = shutil.copytree(made_once("kinds", write_data), tmp_path / "data")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session")
def fresh_process(made_once, tmp_path_factory) -> Iterator[FreshProcesses]:
    """Runs code in a new process; all processes of a run share the server."""
    with ExitStack() as started:
        folder = made_once(
            "fork_server", lambda new: started.enter_context(fork_server(new))
        )
        requests = tmp_path_factory.mktemp("fresh_process")
        # While somebody is connected the server stays.
        with connect(folder / "socket"):
            yield FreshProcesses(folder / "socket", requests)


@pytest.fixture(scope="session")
def tiny_models(made_once) -> Path:
    """A folder of models to serve; tests must not write into it."""
    from tests.serving.tiny_models import save_models

    return made_once("tiny_models", save_models)


@pytest.fixture(scope="session")
def certificates(made_once) -> Path:
    """A folder of certificates; the tests are skipped without openssl."""
    from tests.serving.certificates import make_certificates

    if shutil.which("openssl") is None:
        pytest.skip("openssl is not on this machine")
    return made_once("certificates", make_certificates)


@pytest.fixture(scope="session")
def click_log(tmp_path_factory) -> Path:
    """Where `server` writes the clicks of its page."""
    return tmp_path_factory.mktemp("clicks") / "clicks.tsv"


@pytest.fixture(scope="session")
def server(tiny_models, click_log) -> Iterator["PredictionServer"]:
    """Serves the two newest versions of `tiny_models` over gRPC and HTTP."""
    from keras_lstm_dssm.serving import Bounds, PredictionServer

    with PredictionServer(
        tiny_models,
        port=0,
        http_port=0,
        versions=2,
        bounds=Bounds(max_k=1_000_000),
        click_log=click_log,
    ) as running:
        yield running


@pytest.fixture(scope="session")
def clients(server) -> Iterator[tuple["Client", "HttpClient"]]:
    """A client of `server` over gRPC, and one over HTTP."""
    from keras_lstm_dssm.serving import Client, HttpClient

    with (
        Client(server.address, timeout=20) as client,
        HttpClient(server.http_address, timeout=20) as http_client,
    ):
        yield client, http_client


@pytest.fixture
def client(clients) -> "Client":
    """A client of `server` over gRPC."""
    return clients[0]
