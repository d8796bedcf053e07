"""Stores a training run as a `RunFolder`, and loads models safely."""

import fcntl
import io
import math
import os
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h5py
import keras

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import lock_folder, open_lock, replacing, write_json
from keras_lstm_dssm.layers.letter_trigrams import copy_weights
from keras_lstm_dssm.models.builders import find_recipe
from keras_lstm_dssm.models.two_tower import TwoTower
from keras_lstm_dssm.plain_files import (
    check_plain_file,
    check_unpacked_size,
    check_version,
    damage_named,
    read_csv,
    read_json,
)
from keras_lstm_dssm.settings.hybrid import HybridSettings
from keras_lstm_dssm.settings.kinds import KINDS, kind_of
from keras_lstm_dssm.settings.training import TrainingConfig
from lstm_dssm_client.errors import DAMAGE

_SMALL = 1 << 20  # a weight with more numbers needs an array in the file

# A model's weights may take 1 GiB or 50 times the size of the file, whichever
# is larger. Weights can take more memory than the file, because the file stores
# only the changed rows of trigram tables.
_MOST_BYTES, _RATIO = 1 << 30, 50

_LOADING = threading.RLock()


def load_safely(path: str | os.PathLike[str]) -> Any:
    """Loads a model in Keras's safe mode: nothing in the file runs as code."""
    with _memory_checked(path):
        return keras.saving.load_model(path, safe_mode=True)


@contextmanager
def _memory_checked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raises `InputError` if the block loads a model too large for its file."""
    # The configuration in a small untrusted file could describe a layer of many
    # gigabytes. Therefore each large weight must have an array in the file.
    row_shapes = {shape[1:] for shape in _shapes(path)}
    max_bytes = max(_MOST_BYTES, _RATIO * os.path.getsize(path))
    allocated = 0
    thread = threading.get_ident()

    def checked_add_weight(
        layer: keras.layers.Layer, shape: Any = None, *args: Any, **options: Any
    ) -> Any:
        nonlocal allocated
        if threading.get_ident() != thread:  # another thread's model
            return add_weight(layer, shape, *args, **options)
        sizes = (shape,) if isinstance(shape, int) else tuple(shape or ())
        size = math.prod(sizes)
        allocated += 4 * size
        # The number of rows is not compared, because the file may have only
        # some of the rows of a table.
        if allocated > max_bytes or (
            size > _SMALL and sizes[1:] not in row_shapes
        ):
            raise InputError(
                f"found a {type(layer).__name__} with a weight of shape"
                f" {list(sizes)}, and no arrays of this size in the file"
            )
        return add_weight(layer, shape, *args, **options)

    # Layers allocate weights only by `add_weight`. Without the lock, a thread
    # could read another thread's `checked_add_weight` as the original method,
    # and leave `checked_add_weight` in Keras.
    with _LOADING:
        add_weight = keras.layers.Layer.add_weight
        keras.layers.Layer.add_weight = checked_add_weight
        try:
            yield
        finally:
            keras.layers.Layer.add_weight = add_weight


def _shapes(path: str | os.PathLike[str]) -> set[tuple[int, ...]]:
    """Returns the shapes of the arrays in a `.keras` file."""
    shapes: set[tuple[int, ...]] = set()

    def add(_: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            shapes.add(item.shape)

    with zipfile.ZipFile(path) as archive:
        content = io.BytesIO(archive.read("model.weights.h5"))
    with h5py.File(content, "r") as file:
        file.visititems(add)
    return shapes


__all__ = ["load_run"]

_TRAINING_FILES = (
    "config.json", "last.keras", "model.keras", "history.csv",
    "clicks.tsv", "clicks.train.tsv", "title_pairs.tsv",
    "hard_negatives.json.gz", "mined_lists.json.gz",
    "document_targets.json.gz", "teacher.json", "epoch_replay.tsv",
    "replay.train.tsv", "given_texts.json",
)  # fmt: skip
"""Files that only a training writes."""

_TYPES: dict[str, type] = {
    **dict.fromkeys(("data", "dev", "select", "teacher"), str),
    **dict.fromkeys(("recipe", "init"), dict),
    **dict.fromkeys(
        ("pairs", "bad_lines", "max_bad_lines", "seed", "workers"), int
    ),
}
"""Entries of `config.json` -> their types."""


class RunFolder:
    """Stores the model and the results of a training run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.config = self.path / "config.json"
        # The model with the optimizer, from which a training is resumed.
        self.checkpoint = self.path / "checkpoints" / "last.keras"
        self.model = self.path / "model.keras"  # without the optimizer
        self.history = self.path / "history.csv"
        self.metrics = self.path / "metrics.json"
        self.hybrid = self.path / "hybrid.json"
        self.logs = self.path / "logs"  # for TensorBoard

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keeps other processes from training in the folder."""
        existed = self.path.exists()
        with lock_folder(self.path, "training"):
            for partial in (
                *self.path.glob(".partial-*"),
                *self.checkpoint.parent.glob(".partial-*"),
            ):
                # Other partial files stay, such as a partial metrics.json:
                # another program may be writing the file.
                if any(partial.name.endswith(name) for name in _TRAINING_FILES):
                    partial.unlink()
            try:
                yield
            finally:
                if not existed and not self.config.exists():
                    self._remove_unfinished()

    def _remove_unfinished(self) -> None:
        """Removes the files of a training that failed at its start."""
        for path in (
            self.checkpoint,
            *self.path.glob("clicks*.tsv"),
            *(self.path / name for name in (*_TRAINING_FILES, ".lock")),
        ):
            path.unlink(missing_ok=True)
        with suppress(OSError):  # raised if the folder has other files
            self.checkpoint.parent.rmdir()
        with suppress(OSError):
            self.path.rmdir()

    def check_new(self) -> None:
        """Checks that there is no run in the folder."""
        if self.config.exists():
            raise InputError(
                f"{self.path}: there is a run here already; go on with it by "
                "--resume, or name another folder"
            )

    def create(self, config: dict[str, Any], model: keras.Model) -> None:
        """Creates the folder with the run's settings and first checkpoint."""
        self.check_new()
        self.checkpoint.parent.mkdir(parents=True, exist_ok=True)
        self.save(model, self.checkpoint)
        # This file is written last, because it makes the run resumable.
        write_json(self.config, config)

    def read_config(self) -> dict[str, Any]:
        """Returns the content of `config.json`."""
        if not self.config.exists():
            raise InputError(
                f"{self.path}: no run here (no config.json); train one with "
                f"lstm-dssm-train --output={self.path}"
            )
        config = read_json(self.config, self.path)
        check_version(self.config, config, "train again")
        for name, kind in _TYPES.items():
            if type(value := config.get(name)) not in (kind, type(None)):
                raise InputError(
                    f"{self.config}: found {name} {value!r:.60}, expected the"
                    " settings of a run: restore the file, or train anew"
                )
        return config

    def read_fields(self) -> str | None:
        """Returns the `fields` of the recipe; `None` without a recipe."""
        if not self.config.exists():
            return None
        fields: str | None = self.read_config().get("recipe", {}).get("fields")
        return fields

    def save_model(self, model: Any) -> None:
        """Saves `model.keras`, without the optimizer."""
        copy = type(model).from_config(model.get_config())
        copy_weights(model, copy)
        self.save(copy, self.model)

    def save(self, model: keras.Model, path: Path) -> None:
        """Saves a model as a file of the run."""
        check_plain_file(path, self.path)  # `replacing` would follow a link
        with replacing(path) as partial:
            model.save(partial)

    def load_model(self, kind: str = "") -> Any:
        """Loads the trained model; checks its kind unless `kind` is empty."""
        self.check_trained()
        model = self._load(self.model)
        if kind and (model_kind := kind_of(model)).name != kind:
            expected = KINDS[kind]
            raise InputError(
                f"{self.path}: found a {model_kind.noun}, expected the run of"
                f" a {expected.noun}: train one with lstm-dssm-train "
                f"--preset={next(iter(expected.presets))}"
            )
        return model

    def check_trained(self) -> None:
        """Checks that there is a trained model."""
        if not self.model.exists():
            resume = " --resume" if self.config.exists() else ""
            raise InputError(
                f"{self.path}: no model here (no model.keras); train one with "
                f"lstm-dssm-train --output={self.path}{resume}"
            )

    def load_checkpoint(self) -> Any:
        """Loads the last checkpoint: the model with its optimizer."""
        if not self.checkpoint.exists():
            raise InputError(
                f"{self.path}: nothing to resume (no {self.checkpoint.name}); "
                "train without --resume"
            )
        return self._load(self.checkpoint)

    def add_metrics(self, name: str, values: dict[str, Any]) -> None:
        """Sets an entry of `metrics.json`, such as `"test"`."""
        # Several programs may evaluate one run at the same time.
        with open_lock(self.path / ".metrics.lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            write_json(self.metrics, {**self.read_metrics(), name: values})

    def read_metrics(self) -> dict[str, Any]:
        """Returns the content of `metrics.json`, `{}` without the file."""
        check_plain_file(self.metrics, self.path)
        if not self.metrics.exists():
            return {}
        return read_json(self.metrics, self.path)

    def read_hybrid(self) -> HybridSettings | None:
        """Reads `hybrid.json`, the weights chosen on dev; `None` if missing."""
        check_plain_file(self.hybrid)
        if not self.hybrid.exists():
            return None
        remedy = (
            "choose the weights again, with lstm-dssm-evaluate --mode=retrieve"
            " --hybrid"
        )
        with damage_named(self.hybrid, remedy):
            values = read_json(self.hybrid)
            expected = HybridSettings().to_dict().keys()
            if missing := sorted(expected - values.keys()):
                raise InputError(f"found no {', '.join(missing)}")
            return HybridSettings.from_dict(values)

    def write_hybrid(self, settings: dict[str, Any]) -> Path:
        """Writes `hybrid.json`; returns its path."""
        check_plain_file(self.hybrid)  # `write_json` would follow a link
        write_json(self.hybrid, settings)
        return self.hybrid

    def read_history(self) -> list[dict[str, float]]:
        """Returns the metrics of each epoch, `[]` without `history.csv`."""
        check_plain_file(self.history, self.path)
        if not self.history.exists():
            return []
        with damage_named(
            self.history,
            "expected the metrics of epochs: restore the file, or remove it",
        ):
            return [
                {
                    "epoch": int(row.pop("epoch")),
                    "updates": int(row.pop("updates")),
                    # Epochs without an evaluation have empty cells.
                    **{name: float(text) for name, text in row.items() if text},
                }
                for row in read_csv(self.history, self.path)
            ]

    def _load(self, path: Path) -> Any:
        if self.config.exists():
            self.read_config()  # checks the version
        check_plain_file(path, self.path)
        check_unpacked_size(path)
        try:
            model = load_safely(path)
            kind_of(model)
            return model
        except DAMAGE as error:
            raise InputError(
                f"{path}: not a model this version can read ({error}); train "
                "again or use the version that wrote it"
            ) from error


def load_run(path: str | os.PathLike[str]) -> Any:
    """Loads the trained model of a run folder.

    Returns:
        A `TwoTower`, a `PairScorer` or a `KeyVec`.

    Raises:
        InputError: The folder has no model, or the model cannot be read.

    Example:
    >>> model = dssm.load_run("build/run")
    """
    return RunFolder(path).load_model()


def open_towers(
    towers: TwoTower | str | os.PathLike[str], option: str
) -> TwoTower:
    """Returns trained towers; `towers` may be a run folder to load."""
    if isinstance(towers, str | os.PathLike):
        return RunFolder(towers).load_model("towers")
    if towers.needs_adapt:
        raise InputError(
            f"{option} is a TwoTower that has not been adapted: expected a "
            "trained one"
        )
    return towers


def check_resumable(folder: str | os.PathLike[str]) -> None:
    """Raises `InputError` for a run without epochs (preset `word_sum`)."""
    run = RunFolder(folder)
    recipe = run.read_config().get("recipe", {}) if run.config.exists() else {}
    if recipe.get("epochs") == 0:
        raise InputError(
            f"{folder}: found a word_sum, which is trained in one go: there is"
            " nothing to resume"
        )


def config_of_run(
    run: RunFolder, stored: Mapping[str, Any], **options: Any
) -> TrainingConfig:
    """Returns the settings with which a run is resumed.

    `stored` is the content of `config.json`. `options` are further settings,
    which are not stored in `config.json`.
    """
    with damage_named(
        run.config,
        "expected the settings of a run; restore the file, or train anew in"
        " another --output",
    ):
        config = TrainingConfig.from_dict(stored, **options)
        find_recipe(config.recipe)
        for name in ("pairs", "bad_lines", "digests"):
            stored[name]  # raises `KeyError` if it is missing
    return config
