"""SavedModels that are written once, and copied by later exports of a test run.

An export traces a graph, saves it, loads it and runs its warm-up requests,
which takes seconds. Tests of what is around the graph, such as versions,
configurations, cards and programs, may take a copy of what the same code has
written for the same model in this run.
"""

import hashlib
import inspect
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import keras
import pytest
import tensorflow as tf

from keras_lstm_dssm.encoders import TextEncoder
from keras_lstm_dssm.export.graphs import retriever
from keras_lstm_dssm.export.graphs.encoder import EncoderModule
from keras_lstm_dssm.export.graphs.keyvec import KeyVecModule
from keras_lstm_dssm.export.graphs.retriever import RetrieverModule
from keras_lstm_dssm.export.graphs.saved_module import ServedModule
from keras_lstm_dssm.export.graphs.scorer import ScorerModule
from keras_lstm_dssm.export.publish import versions
from keras_lstm_dssm.export.publish.warmup import WARMUP_FILE, WARMUP_SIZES


@contextmanager
def remembered_graphs(folder: Path) -> Iterator[None]:
    """Lets exports copy the SavedModels of `folder`, where they have written.

    The graphs of encoders, of KeyVecs, of retrievers over them and of pair
    scorers are remembered, each with its warm-up requests; others are written
    as usual.

    Args:
        folder: A folder that all processes of a run may share.
    """
    save_module, write_warmup = versions.save_module, versions.write_warmup

    def save(module: ServedModule, version: Path) -> None:
        determining = graph_key(module)
        if determining is None:
            save_module(module, version)
        else:
            copied_or_written(
                folder / determining,
                version,
                lambda new: save_module(module, new),
            )

    def warm_up(
        version: Path, name: str, sizes: Sequence[int] = WARMUP_SIZES
    ) -> Path:
        words = json.dumps([name, [*sizes]])
        written = hashlib.sha256(words.encode() + files_digest(version))

        def write(new: Path) -> None:
            new.mkdir()
            shutil.copy(write_warmup(version, name, sizes), new)

        path = version / WARMUP_FILE
        copied_or_written(folder / written.hexdigest(), path.parent, write)
        return path

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(versions, "save_module", save)
        patch.setattr(versions, "write_warmup", warm_up)
        yield


def copied_or_written(
    golden: Path, target: Path, write: Callable[[Path], object]
) -> None:
    """Copies a golden folder into another, after it was made if it was not.

    Args:
        golden: The folder; what is in it is never changed.
        target: The folder to write in, which may exist.
        write: Writes the folder of a path, which does not exist.
    """
    if not golden.exists():
        golden.parent.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=golden.parent) as base:
            write(Path(base, "new"))
            try:
                os.rename(Path(base, "new"), golden)
            except OSError:  # another process was faster
                assert golden.exists()
    shutil.copytree(golden, target, dirs_exist_ok=True)


def graph_key(module: ServedModule) -> str | None:
    """Returns a hash of all that determines a SavedModel, or None.

    Two modules with the same hash have the same code, the same configuration
    and the same values of all variables, those of documents included.
    """
    model = model_of(module)
    if model is None:
        return None
    described = json.dumps(
        [
            type(module).__qualname__,
            keras.saving.serialize_keras_object(model),
            # What is a constant of a graph, and in no variable.
            {
                name: value
                for name, value in vars(module).items()
                if isinstance(value, int | float | str)
            },
            type(getattr(module, "vectors", None)).__qualname__,
            hasattr(module, "filtered"),
            retriever.BLOCK,
        ],
        sort_keys=True,
        default=str,
    )
    digest = hashlib.sha256(described.encode())
    for variable in module.variables:
        digest.update(tf.io.serialize_tensor(variable).numpy())
    return digest.hexdigest()


def model_of(module: Any) -> Any:
    """Returns the Keras model of a module whose graph can be remembered."""
    if isinstance(module, RetrieverModule):
        return model_of(module._encode.__self__)
    if isinstance(module, EncoderModule):
        encoder = getattr(module._unit_vectors, "__self__", None)
        return encoder if isinstance(encoder, TextEncoder) else None
    if isinstance(module, KeyVecModule):
        return getattr(module._encode_documents, "__self__", None)
    if isinstance(module, ScorerModule):
        return inspect.getclosurevars(module._score).nonlocals["model"]
    return None


def files_digest(folder: Path) -> bytes:
    """Returns a hash of the names and contents of all files."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(folder)).encode() + b"\0")
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()
