"""SavedModels with the signatures of the real ones, made in a second."""

from pathlib import Path

import tensorflow as tf
import tensorflow_text as tf_text

from keras_lstm_dssm.export.publish.versions import publish

TITLES = ("steel angle", "shelf bracket", "bolt")


class Encoder(tf.Module):
    """Maps a text to the direction of [words + offset, bytes]."""

    def __init__(self, offset: float) -> None:
        super().__init__()
        self.offset = tf.Variable(offset)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def encode(self, text: tf.Tensor) -> dict[str, tf.Tensor]:
        # The two TF.Text ops need its libraries when the model is loaded.
        words = tf_text.WhitespaceTokenizer().tokenize(
            tf_text.case_fold_utf8(text)
        )
        counts = tf.cast(words.row_lengths(), tf.float32) + self.offset
        sizes = tf.cast(tf.strings.length(text), tf.float32)
        vectors = tf.stack([counts, sizes], axis=1)
        return {"embedding": vectors / tf.norm(vectors, axis=1, keepdims=True)}


class Retriever(tf.Module):
    """Ranks TITLES by the cosine of `Encoder(1)`."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = Encoder(1.0)
        self.vectors = tf.Variable(
            self.encoder.encode(tf.constant(TITLES))["embedding"]
        )

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "text"),
            tf.TensorSpec([None], tf.int32, "k"),
        ]
    )
    def search(self, text: tf.Tensor, k: tf.Tensor) -> dict[str, tf.Tensor]:
        queries = self.encoder.encode(text)["embedding"]
        width = tf.reduce_max(tf.concat([k, [0]], 0))
        surplus = tf.maximum(width - len(TITLES), 0)
        scores = tf.pad(
            tf.matmul(queries, self.vectors, transpose_b=True),
            [[0, 0], [0, surplus]],
            constant_values=-2.0,
        )
        ids = tf.pad(tf.constant(TITLES), [[0, surplus]], constant_values="")
        scores, columns = tf.math.top_k(scores, width)
        within_k = tf.range(width) < k[:, tf.newaxis]
        return {
            "ids": tf.where(within_k, tf.gather(ids, columns), ""),
            "scores": tf.where(within_k, scores, -2.0),
        }


class Scorer(tf.Module):
    """Scores a pair by 2 * (bytes of the query) - (bytes of the document)."""

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.string, "query"),
            tf.TensorSpec([None], tf.string, "document"),
        ]
    )
    def score(
        self, query: tf.Tensor, document: tf.Tensor
    ) -> dict[str, tf.Tensor]:
        score = 2 * tf.strings.length(query) - tf.strings.length(document)
        return {"score": tf.cast(score, tf.float32)}


class Numbers(tf.Module):
    """Returns its input in several dtypes; fails above 100."""

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def numbers(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        with tf.control_dependencies([tf.debugging.assert_less(x, 100.0)]):
            x = tf.identity(x)
        return {
            str(dtype.name): tf.cast(x, dtype)
            for dtype in (tf.float32, tf.float64, tf.int32, tf.int64, tf.int8)
        } | {"bool": x > 0, "string": tf.strings.as_string(tf.cast(x, "int32"))}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32, "x")])
    def double(self, x: tf.Tensor) -> dict[str, tf.Tensor]:
        return {"y": 2 * x}


def save_encoder(base: Path, offset: float) -> Path:
    encoder = Encoder(offset)
    return publish(
        base,
        lambda path: tf.saved_model.save(
            encoder, str(path), signatures=encoder.encode
        ),
    )


def save_models(models_dir: Path) -> Path:
    """Writes query_encoder (versions 1 and 2), retriever, scorer, numbers."""
    save_encoder(models_dir / "query_encoder", offset=1.0)
    save_encoder(models_dir / "query_encoder", offset=2.0)
    retriever, scorer, numbers = Retriever(), Scorer(), Numbers()
    for name, module, signatures in (
        ("retriever", retriever, retriever.search),
        ("scorer", scorer, scorer.score),
        (
            "numbers",
            numbers,
            {"serving_default": numbers.numbers, "double": numbers.double},
        ),
    ):
        publish(
            models_dir / name,
            lambda path, module=module, signatures=signatures: (
                tf.saved_model.save(module, str(path), signatures=signatures)
            ),
        )
    return models_dir
