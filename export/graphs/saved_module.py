"""Base classes of exported models; variables and signatures of SavedModels."""

import functools
import logging
import os
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf.meta_graph_pb2 import SignatureDef
from tensorflow.core.protobuf.saved_model_pb2 import SavedModel
from tensorflow_serving.apis.get_model_metadata_pb2 import SignatureDefMap

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.graphs.request_limits import with_equal_rows
from keras_lstm_dssm.files import write_json
from keras_lstm_dssm.fingerprints import files_hash, weights_hash
from keras_lstm_dssm.layers.letter_trigrams import (
    TrigramEmbedding,
    trigram_embeddings,
)
from keras_lstm_dssm.model_folders import served_version
from keras_lstm_dssm.plain_files import check_plain_file, read_json
from keras_lstm_dssm.tables import graph_rows
from lstm_dssm_client.errors import DAMAGE
from lstm_dssm_client.grpc_client import signatures
from lstm_dssm_client.signatures import (
    EXPLAINED,
    FILTERED,
    KEYS,
    KNOWN_TAGS,
    Signature,
    distinct_values,
)

_LOG = logging.getLogger(__name__)

FINGERPRINT_FILE = Path("assets.extra", "encoder.json")
"""Path of an encoder's fingerprint in the folder of a version. Encoders with
equal fingerprints compute equal vectors."""

IDS_FILE = Path("assets.extra", "ids.npy")
"""Path of a file in the folder of a version. The file has hashes of the ids of
a retriever's documents."""

SIGNATURE = tf.saved_model.DEFAULT_SERVING_SIGNATURE_DEF_KEY
"""Name of the signature for the method `serve` of an exported model."""


def signature(**dtypes: tf.DType) -> Callable[[Callable[..., Any]], Any]:
    """Declares a function as a signature with inputs of shape `[batch]`."""

    def decorate(function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        def checked(*arguments: Any) -> Any:
            owner = arguments[: -len(dtypes)]
            # TF Serving does not check shapes. Without this check, a scalar
            # would crash the server in some kernels of TF.Text.
            inputs = [
                tf.ensure_shape(tensor, [None])
                for tensor in arguments[-len(dtypes) :]
            ]
            if len(inputs) > 1:
                inputs = with_equal_rows(inputs)
            return function(*owner, *inputs)

        return tf.function(
            checked,
            input_signature=[
                tf.TensorSpec([None], dtype, name)
                for name, dtype in dtypes.items()
            ],
            autograph=False,
        )

    return decorate


class ServedModule(tf.Module):
    """Base class of exported modules; `serve` is the default signature."""

    serve: Any
    portable: Callable[[Path], None] | None = None
    """Function that writes a file for `LocalModel` into a version's folder."""

    def write_extra(self, version: Path) -> None:
        """Writes files into `assets.extra` of a version's folder."""


class ServedWeights:
    """The variables of exported models.

    A row of a trigram table has changed if the row differs from its initial
    values. If less than half of the rows have changed, only the changed rows
    are stored. Graphs compute the initial values of the unchanged rows.
    """

    def __init__(self, *models: Any) -> None:
        # A module must keep this list as an attribute: TF Serving restores only
        # variables that the attributes of the module hold.
        self.variables: list[tf.Variable] = []
        for weight in [w for model in models for w in model.weights]:
            # A model with NaN weights may return finite, but useless outputs.
            if not np.isfinite(weight.numpy()).all():
                raise InputError(
                    f"{weight.path}: found numbers that are not finite; the "
                    "training failed: export an earlier checkpoint"
                )
        self._tables: list[_ChangedRows] = []
        for model in dict.fromkeys(models):
            # All layers of a model read the same trigrams, so often the same
            # rows of several tables change. These tables share an index of the
            # changed rows.
            by_rows: dict[bytes, list[TrigramEmbedding]] = {}
            for layer in trigram_embeddings(model):
                rows = layer.changed_rows()
                if 2 * len(rows) < layer.size:
                    by_rows.setdefault(rows.tobytes(), []).append(layer)
            self._tables += [
                _ChangedRows(np.frombuffer(rows, np.int64), layers)
                for rows, layers in by_rows.items()
            ]
        for table in self._tables:
            self.variables += table.variables
        replaced = {
            id(layer.table) for table in self._tables for layer in table.layers
        }
        self.variables += [
            weight.value
            for model in models
            for weight in model.weights
            if id(weight) not in replaced
        ]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Graphs that are traced in the `with` block read `self.variables`."""
        if tf.executing_eagerly():
            # Here no table is attached: an encoder keeps the graph of its first
            # eager call, which must read weights that training may change.
            yield
            return
        for table in self._tables:
            table.attach()
        try:
            yield
        finally:
            for table in self._tables:
                table.detach()


class _ChangedRows:
    """In a graph, reads changed rows of tables, and computes unchanged rows."""

    def __init__(
        self, rows: np.ndarray, layers: Sequence[TrigramEmbedding]
    ) -> None:
        self.layers = layers
        indices = np.zeros(layers[0].size, np.int32)
        indices[rows] = np.arange(1, len(rows) + 1)
        # Item r: index of row r in each of `_values`, 0 for an unchanged row.
        self._indices = tf.Variable(indices, trainable=False)
        self._values = [
            tf.Variable(
                np.pad(layer.table.numpy()[rows], [[1, 0], [0, 0]]),
                trainable=False,
            )
            for layer in layers
        ]
        self.variables = [self._indices, *self._values]
        self._rows: dict[Any, list[tf.Tensor]] = {}

    def attach(self) -> None:
        for number, layer in enumerate(self.layers):
            layer.read_rows = partial(self._read, number)

    def detach(self) -> None:
        self._rows.clear()
        for layer in self.layers:
            layer.read_rows = None

    def _read(self, number: int, rows: tf.Tensor) -> tf.Tensor:
        """Returns rows of table `number`; `rows` has the indices of the rows.

        In each graph, the first call with a tensor `rows` reads these rows of
        all tables. Later calls with this tensor return the rows already read.
        """
        # The graph is in the key: a graph cannot use tensors of another graph.
        key = (rows.ref(), tf.compat.v1.get_default_graph())
        if key not in self._rows:
            self._rows[key] = self._read_tables(rows)
        return self._rows[key][number]

    def _read_tables(self, rows: tf.Tensor) -> list[tf.Tensor]:
        indices = tf.gather(self._indices, rows)
        values = [tf.gather(table, indices) for table in self._values]

        def with_unchanged() -> list[tf.Tensor]:
            unchanged = tf.where(tf.equal(indices, 0))
            start_rows = graph_rows(
                tf.gather(rows, unchanged[:, 0]),
                [layer.initializer for layer in self.layers],
                [layer.units for layer in self.layers],
            )
            return [
                tf.tensor_scatter_nd_update(
                    stored, unchanged, tf.cast(start, stored.dtype)
                )
                for stored, start in zip(values, start_rows, strict=True)
            ]

        any_unchanged = tf.equal(tf.reduce_min(indices), 0)
        all_rows: list[tf.Tensor] = tf.cond(
            any_unchanged, with_unchanged, lambda: values
        )
        return all_rows


class EncodingModule(ServedModule):
    """Base class of exported encoders, with the graph of `encode`."""

    reads_sentences = False
    """Whether a document may be a list of sentences."""

    def __init__(self, encoder: Any, resources: Sequence[Any] = ()) -> None:
        super().__init__()
        # `ServedWeights` refers to Keras layers. It is no tf.Module, so that
        # the layers are not saved.
        self._served = ServedWeights(*getattr(encoder, "encoders", [encoder]))
        self.weights = self._served.variables
        # Vocabulary tables: a server cannot load a graph without these tables.
        self.resources = list(resources)
        extra = getattr(encoder, "extra_state", ())
        self.fingerprint = weights_hash([*encoder.weights, *extra])

    @abstractmethod
    def encode(self, text: tf.Tensor) -> tf.Tensor:
        """Encodes strings `[batch]` into unit vectors, float32 `[batch, d]`."""

    def encode_all(
        self, texts: Sequence[Any], progress: bool = False
    ) -> np.ndarray:
        """Encodes any number of texts into unit vectors, float32 `[n, d]`."""
        # Encodes equal texts once, so that all bits of their vectors are equal.
        first, inverse = distinct_values(
            [tuple(t) if isinstance(t, list) else t for t in texts]
        )
        vectors = self._encode_distinct([texts[i] for i in first], progress)
        if len(zero := np.flatnonzero(~vectors.any(axis=1))):
            _LOG.warning(
                "%d of %d distinct texts have zero vectors, such as %r: the "
                "encoder knows none of their words, and their cosines are 0",
                len(zero), len(first), texts[first[zero[0]]],
            )  # fmt: skip
        return vectors if len(first) == len(inverse) else vectors[inverse]

    @abstractmethod
    def _encode_distinct(
        self, texts: Sequence[Any], progress: bool
    ) -> np.ndarray:
        """Encodes distinct texts, for `encode_all`."""

    def write_extra(self, version: Path) -> None:
        """Writes the encoder's fingerprint, which `lstm-dssm-encode` reads."""
        path = version / FINGERPRINT_FILE
        path.parent.mkdir(exist_ok=True)
        write_json(path, {"sha256": self.fingerprint})

    @signature(text=tf.string)
    def serve(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        """Signature `serving_default`: unit vectors of texts, `[batch, d]`."""
        return {"embedding": self.encode(text)}


def save_module(module: ServedModule, folder: Path) -> None:
    """Writes the SavedModel of a module: its graph and its variables."""
    optional = (FILTERED, KNOWN_TAGS, KEYS, EXPLAINED)
    tf.saved_model.save(
        module,
        str(folder),
        signatures={SIGNATURE: module.serve}
        | {
            name: getattr(module, name)
            for name in optional
            if hasattr(module, name)
        },
        # A server computes no gradients.
        options=tf.saved_model.SaveOptions(experimental_custom_gradients=False),
    )


def signature_defs(folder: str | os.PathLike[str]) -> dict[str, SignatureDef]:
    """Reads a SavedModel's signatures, also signatures that TensorFlow adds."""
    path = Path(folder, "saved_model.pb")
    check_plain_file(path)
    try:
        model = SavedModel.FromString(path.read_bytes())
        (graph,) = (
            graph
            for graph in model.meta_graphs
            if "serve" in graph.meta_info_def.tags
        )
    except (DecodeError, *DAMAGE) as error:
        raise InputError(
            f"{path}: not a SavedModel for serving; publish the model again "
            "with lstm-dssm-export"
        ) from error
    return dict(graph.signature_def)


def predict_signatures(folder: str | os.PathLike[str]) -> dict[str, Signature]:
    """Reads the signatures that Predict can call: name -> signature."""
    definitions = SignatureDefMap(signature_def=signature_defs(folder))
    return signatures(definitions.SerializeToString())


def saved_fingerprint(path: str | os.PathLike[str]) -> str:
    """Returns an encoder's stored fingerprint, or a hash of the SavedModel."""
    folder = served_version(path) or Path(path)
    if (folder / FINGERPRINT_FILE).exists():
        return str(read_json(folder / FINGERPRINT_FILE).get("sha256"))
    graph = folder / "saved_model.pb"
    if not graph.exists():
        raise InputError(
            f"{path}: no SavedModel here; give a model's folder that "
            "lstm-dssm-export wrote, such as MODELS/document_encoder"
        )
    return files_hash([graph, *sorted(folder.glob("variables/*"))])


Graphs = dict[str, Callable[[], ServedModule]]
"""Name of a served model -> function that makes the exported module. The
function of a retriever encodes all documents."""
