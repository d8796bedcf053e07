"""SavedGraph, SavedSignature: a SavedModel in memory, run on arrays."""

import functools
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import tensorflow as tf
import tensorflow_text  # noqa: F401  (registers the ops that encoders use)
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.signatures import signature_defs
from keras_lstm_dssm.private_api import session_callable

GraphFunction = Callable[..., list[np.ndarray]]
"""From the arrays of the inputs to those of the outputs, by ascending name."""

# Operations run one after the other in the thread that asks. A graph of 700
# small ones takes half as long as with threads that hand them to each other;
# a matrix product is still divided among all cores.
_CONFIG = tf.compat.v1.ConfigProto(inter_op_parallelism_threads=-1)


class SavedGraph:
    """Holds the graph and the variables of a SavedModel; threads may share it.

    It runs in a session, as in TensorFlow Serving: for one short text that
    takes half as long as calling the function that `tf.saved_model.load`
    returns, which runs the graph as one eager operation. Both give the same
    numbers.

    Args:
        folder: A version's folder.

    Attributes:
        definitions: The signatures, name -> definition, including internal
            ones of TensorFlow.

    Raises:
        InputError: TensorFlow cannot load the folder.

    Example:
    >>> graph = SavedGraph("models/query_encoder/1")
    >>> encode = graph.function(graph.definitions["serving_default"])
    >>> encode(np.array([b"bolt"], object))[0].shape
    (1, 96)
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.definitions = signature_defs(folder)
        self._session = tf.compat.v1.Session(graph=tf.Graph(), config=_CONFIG)
        try:
            _load(self._session, Path(folder))
        except (OSError, ValueError, RuntimeError, tf.errors.OpError) as error:
            raise InputError(
                f"{folder}: TensorFlow cannot load it: {error}"
            ) from error

    def function(self, definition: SignatureDef) -> GraphFunction:
        """Prepares a signature; takes as long as a hundred short runs.

        Args:
            definition: A value of `definitions` with outputs that are tensors.

        Returns:
            A function of one array for each input, by ascending name, that
            returns all outputs, by ascending name. Strings are object arrays
            of bytes. Threads may share it. If the graph rejects the values it
            raises a `tf.errors.OpError`, whose message is that of a session.
        """
        run = session_callable(
            self._session,
            [info.name for _, info in sorted(definition.inputs.items())],
            [info.name for _, info in sorted(definition.outputs.items())],
        )
        return lambda *inputs: [_array(values) for values in run(*inputs)]


class SavedSignature:
    """Runs a signature of a SavedModel on arrays by name.

    Args:
        model: The SavedModel.
        name: The signature's name, a key of `model.definitions`.

    Attributes:
        inputs: The names of the inputs, ascending.
    """

    def __init__(self, model: SavedGraph, name: str) -> None:
        self._model = model
        self._definition = model.definitions[name]
        self.inputs = sorted(self._definition.inputs)
        self._outputs = sorted(self._definition.outputs)

    @functools.cached_property
    def _run(self) -> GraphFunction:
        return self._model.function(self._definition)

    def __call__(
        self, **inputs: Sequence[bytes] | np.ndarray
    ) -> dict[str, np.ndarray]:
        """Returns all outputs by name; lists of texts become arrays."""
        arrays = (
            value if isinstance(value, np.ndarray) else np.array(value, object)
            for value in (inputs[name] for name in self.inputs)
        )
        return dict(zip(self._outputs, self._run(*arrays), strict=True))


def _load(session: tf.compat.v1.Session, folder: Path) -> None:
    with session.graph.as_default(), _without_deprecation():
        try:
            tf.compat.v1.saved_model.load(
                session, [tf.saved_model.SERVING], str(folder)
            )
        except ValueError as error:
            index = folder / "variables" / "variables.index"
            if index.exists():
                raise
            raise FileNotFoundError(f"{index}: not found") from error


def _array(values: np.ndarray | np.generic | bytes) -> np.ndarray:
    # A session returns scalars without an array around them.
    if isinstance(values, np.ndarray):
        return values
    return np.array(values, object if isinstance(values, bytes) else None)


@contextmanager
def _without_deprecation() -> Iterator[None]:
    """Hides that TensorFlow prefers its newer loader."""
    logger = tf.get_logger()

    def keeps(record: logging.LogRecord) -> bool:
        return "is deprecated" not in record.getMessage()

    logger.addFilter(keeps)
    try:
        yield
    finally:
        logger.removeFilter(keeps)
