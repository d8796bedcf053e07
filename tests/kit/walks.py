"""Lists the files whose functions work on a click, a title, a query, a flag.

`python -m tests.kit.walks` prints what CONTRIBUTING.md lists, and
`tests/test_walks.py` compares the two. Constructors, checks of settings and
lambdas are not counted: they are on no walk.
"""

import importlib
import json
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

ROOT = Path(__file__).parents[2]

_NO_STEP = {"<module>", "__init__", "__post_init__", "<lambda>", "<genexpr>"}

_ASIDE = {"errors.py", "private_api.py", "tests/kit/walks.py"}
"""Files that are called on the way: checks, and undocumented names."""

_HASHING = ("text/word_hashing.py", "lstm_dssm_client/words.py")
"""Files of the graph that hashes words, and of its rules: a process traces it
once, when the package is imported."""


@contextmanager
def walked() -> Iterator[list[str]]:
    """Fills a list with the files, as CONTRIBUTING.md writes them."""
    files: list[str] = []
    places: dict[str, str | None] = {}

    def place(name: str) -> str | None:
        path = Path(name).resolve()
        if not path.is_relative_to(ROOT) or "site-packages" in path.parts:
            return None
        if not path.is_file():  # "<frozen os>"
            return None
        short = path.relative_to(ROOT).as_posix()
        short = short.removeprefix("keras_lstm_dssm/")
        return None if short in _ASIDE else short

    def record(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event != "call" or code.co_name in _NO_STEP:
            return
        name = code.co_filename
        if name not in places:
            places[name] = place(name)
        if (short := places[name]) and short not in files:
            files.append(short)

    threading.setprofile(record)
    sys.setprofile(record)
    try:
        yield files
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]


def click(folder: Path) -> list[str]:
    """From the line of a file to the update of the weights."""
    import keras_lstm_dssm as dssm

    path = folder / "clicks.tsv"
    rows = [f"bolt {i}\thex bolt number {i}\n" for i in range(64)]
    path.write_text("".join(rows))
    module: Any = importlib.import_module("keras_lstm_dssm.training.train")
    fit, files = module.fit, []

    def fitted(*arguments: Any) -> Any:
        with walked() as found:
            result = fit(*arguments)
        files.extend(found)
        return result

    module.fit = fitted
    recipe = dssm.PRESETS["lstm_32"].replace(epochs=1, batch_size=32)
    try:
        dssm.train(str(path), recipe, verbose=0)
    finally:
        module.fit = fit
    return ["training/train.py", *files, *_HASHING]


def title(_: Path) -> list[str]:
    """From a title to its vector, of a model that has been trained."""
    import keras_lstm_dssm as dssm

    clicks, recipe = [("bolt", "hex bolt")] * 8, dssm.PRESETS["lstm_32"]
    encoder = dssm.train(clicks, recipe, verbose=0).document_encoder
    with walked() as files:
        encoder.encode(["hex bolt", "wood glue"])
    return [*files, *_HASHING]


def query(folder: Path) -> list[str]:
    """From `Client.search` to the server and back to the hits."""
    import keras_lstm_dssm as dssm
    from keras_lstm_dssm.export import export_retriever
    from keras_lstm_dssm.serving import Client, PredictionServer

    encoder = dssm.build_model("lstm_32").query_encoder
    base = folder / "models" / "retriever"
    export_retriever(encoder, encoder, ["d1"], ["hex bolt"], base)
    # A poll of the folder at the same time would be taken for a step.
    server_without_polls = PredictionServer(base.parent, poll_seconds=0)
    with walked() as files, server_without_polls as server:
        with Client(server.address) as client:
            client.search(["hex bolt"], k=1)
            files.clear()  # what has started the server and the connection
            client.search(["bolt"], k=1)
            return list(files)


def flag(folder: Path) -> list[str]:
    """From `--set momentum_middle=.9` to the recipe."""
    from keras_lstm_dssm.tools import train

    arguments = [
        "train", "--data=CLICKS", f"--output={folder / 'run'}",
        "--preset=lstm_32", "--set=momentum_middle=.9",
    ]  # fmt: skip
    with walked() as files:
        train.program.check(arguments)
        recipe = train.flagged_recipe()
    assert recipe.momentum_middle == 0.9
    return files


WALKS: dict[str, Callable[[Path], list[str]]] = {
    "click": click, "title": title, "query": query, "flag": flag,
}  # fmt: skip


def main() -> None:
    """Prints a line of JSON: walk -> files."""
    with tempfile.TemporaryDirectory() as folder:
        print(json.dumps({n: walk(Path(folder)) for n, walk in WALKS.items()}))


if __name__ == "__main__":
    main()
