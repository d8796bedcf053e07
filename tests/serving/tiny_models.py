"""SavedModels with the signatures of the real ones, made in a second."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tensorflow as tf
import tensorflow_text as tf_text

from keras_lstm_dssm.export.publish.versions import publish

TITLES = ("steel angle", "shelf bracket", "bolt")
TAGS = ("kind:angle", "kind:bracket", "kind:bolt")
"""The tag of each title in the hybrid retriever."""


def signature(function: Callable[..., Any], **inputs: str) -> tf.Tensor:
    """Makes a graph of a function; its inputs are `[batch]` of dtypes."""
    specs = [tf.TensorSpec([None], dtype, n) for n, dtype in inputs.items()]
    return tf.function(function, input_signature=specs)


def save_functions(folder: Path, owned: Any = None, **signatures: Any) -> Path:
    """Writes a SavedModel that has signatures, and owns their variables."""
    module = tf.Module()
    module.owned, module.functions = owned, list(signatures.values())
    tf.saved_model.save(module, str(folder), signatures)
    return folder


def save_function(
    folder: Path, function: Any, owned: Any = None, **inputs: str
) -> Path:
    """Writes a SavedModel that serves one function; see `signature`."""
    serve = signature(function, **inputs)
    return save_functions(folder, owned, serving_default=serve)


def encode(text: tf.Tensor, offset: Any = 1.0) -> dict[str, tf.Tensor]:
    """Maps a text to the direction of [words + offset, bytes]."""
    # The two TF.Text ops need its libraries when the model is loaded.
    words = tf_text.WhitespaceTokenizer().tokenize(tf_text.case_fold_utf8(text))
    counts = tf.cast(words.row_lengths(), tf.float32) + offset
    sizes = tf.cast(tf.strings.length(text), tf.float32)
    vectors = tf.stack([counts, sizes], axis=1)
    return {"embedding": vectors / tf.norm(vectors, axis=1, keepdims=True)}


def search(
    text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor | None = None
) -> dict[str, tf.Tensor]:
    """Ranks TITLES by the cosine of `encode`; `tags` are one tag, or ""."""
    width = tf.reduce_max(tf.concat([k, [0]], 0))
    surplus = tf.maximum(width - len(TITLES), 0)
    vectors = [
        encode(rows)["embedding"] for rows in (text, tf.constant(TITLES))
    ]
    scores = tf.matmul(*vectors, transpose_b=True)
    if tags is not None:
        tags = tags[:, tf.newaxis]
        scores = tf.where((tags == "") | (tags == TAGS), scores, -2.0)
    scores = tf.pad(scores, [[0, 0], [0, surplus]], constant_values=-2.0)
    ids = tf.pad(tf.constant(TITLES), [[0, surplus]], constant_values="")
    scores, columns = tf.math.top_k(scores, width)
    within_k = (tf.range(width) < k[:, tf.newaxis]) & (scores > -2)
    return {
        "ids": tf.where(within_k, tf.gather(ids, columns), ""),
        "scores": tf.where(within_k, scores, -2.0),
    }


REASONS = '{"bm25": {"bolt": 0.25}, "words": {}}'


def explained(
    text: tf.Tensor, k: tf.Tensor, tags: tf.Tensor
) -> dict[str, tf.Tensor]:
    """Explains `search`: towers and BM25 add the same, for the word "bolt"."""
    found = search(text, k, tags)
    half = found["scores"] / 2
    zero = tf.zeros_like(half)
    return found | {
        "parts": tf.stack([half, zero, half, zero, zero, zero], axis=-1),
        "words": tf.where(found["ids"] == "", "", REASONS),
        "weak": tf.cast(half < 0, tf.int32),
    }


def known_tags(text: tf.Tensor) -> dict[str, tf.Tensor]:
    """Lists TAGS, each of one title."""
    rows = tf.size(text)
    return {
        "tags": tf.repeat([TAGS], rows, 0),
        "counts": tf.ones([rows, len(TAGS)], tf.int32),
    }


def score(query: tf.Tensor, document: tf.Tensor) -> dict[str, tf.Tensor]:
    """Scores a pair by 2 * (bytes of the query) - (bytes of the document)."""
    difference = 2 * tf.strings.length(query) - tf.strings.length(document)
    return {"score": tf.cast(difference, tf.float32)}


def numbers(x: tf.Tensor) -> dict[str, tf.Tensor]:
    """Returns its input in several dtypes; fails above 100."""
    with tf.control_dependencies([tf.debugging.assert_less(x, 100.0)]):
        x = tf.identity(x)
    return {
        str(dtype.name): tf.cast(x, dtype)
        for dtype in (tf.float32, tf.float64, tf.int32, tf.int64, tf.int8)
    } | {"bool": x > 0, "string": tf.strings.as_string(tf.cast(x, "int32"))}


@cache
def encoder_files(offset: float) -> dict[Path, bytes]:
    """Returns the files of a SavedModel, which a process makes once."""
    variable = tf.Variable(offset)
    serve = lambda text: encode(text, variable)  # noqa: E731
    with TemporaryDirectory() as base:
        folder = save_function(Path(base), serve, variable, text="string")
        return {
            path.relative_to(folder): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file()
        }


def save_encoder(base: Path, offset: float) -> Path:
    """Publishes a version of an encoder; see `encode`."""

    def save(folder: Path) -> None:
        for name, content in encoder_files(offset).items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(content)

    return publish(base, save)


def save_models(models_dir: Path) -> Path:
    """Writes query_encoder (twice), retriever, scorer, numbers, hybrid."""
    save_encoder(models_dir / "query_encoder", offset=1.0)
    save_encoder(models_dir / "query_encoder", offset=2.0)
    for name, function, inputs in (
        ("retriever", search, {"text": "string", "k": "int32"}),
        ("scorer", score, {"query": "string", "document": "string"}),
    ):
        save = partial(save_function, function=function, **inputs)
        publish(models_dir / name, save)
    both = {
        "serving_default": signature(numbers, x="float32"),
        "double": signature(lambda x: {"y": 2 * x}, x="float32"),
    }
    publish(models_dir / "numbers", lambda path: save_functions(path, **both))
    hybrid = {
        "serving_default": signature(search, text="string", k="int32"),
        "explained": signature(
            explained, text="string", k="int32", tags="string"
        ),
        "known_tags": signature(known_tags, text="string"),
    }
    publish(models_dir / "hybrid", lambda path: save_functions(path, **hybrid))
    return models_dir
