"""One word for data: "api", a BEIR folder, or click files."""

import os

from keras_lstm_dssm.data.api_search import build_api_search
from keras_lstm_dssm.data.beir import Collection
from keras_lstm_dssm.data.click_log import ClickLog
from keras_lstm_dssm.errors import InputError

API = "api"


def open_collection(spec: str) -> Collection:
    """Opens what can be evaluated on.

    Args:
        spec: "api" (built when it is not there yet) or a BEIR folder.

    Raises:
        InputError: it is something else.
    """
    if spec == API:
        return build_api_search(progress=True)
    if os.path.isdir(spec):
        return Collection(spec)
    found = "a file" if os.path.exists(spec) else "nothing there"
    raise InputError(
        f"{spec}: found {found}, expected {API!r} or a BEIR folder"
        " (corpus.jsonl, queries.jsonl, qrels/): check the path"
    )


def open_log(
    spec: str,
    min_relevant: int = 1,
    write_to: str | os.PathLike[str] | None = None,
    max_bad_lines: int = 0,
) -> ClickLog:
    """Opens what can be trained on.

    Args:
        spec: "api", a BEIR folder, or click files: paths or globs, separated
            by commas.
        min_relevant: See `Collection.training_log`.
        write_to: See `Collection.training_log`.
        max_bad_lines: See `ClickLog`.

    Raises:
        InputError: it is something else.
    """
    if spec == API or os.path.isdir(spec):
        log = open_collection(spec).training_log(min_relevant, write_to)
        return ClickLog(log.paths, max_bad_lines)
    return open_files(spec, max_bad_lines)


def open_files(spec: str, max_bad_lines: int = 0) -> ClickLog:
    """Opens click files: paths or globs, separated by commas.

    Args:
        spec: The paths.
        max_bad_lines: See `ClickLog`.

    Raises:
        InputError: there is no path, or nothing where it leads.
    """
    paths = (path.strip() for path in spec.split(","))
    return ClickLog(filter(None, paths), max_bad_lines)
