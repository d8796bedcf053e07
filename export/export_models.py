"""All that a server needs, in one folder."""

import os
from pathlib import Path

import tensorflow as tf

from keras_lstm_dssm.export.documents import Documents, check_vectors
from keras_lstm_dssm.export.retriever import new_retriever
from keras_lstm_dssm.export.saved_model import EncoderModule, publish_module
from keras_lstm_dssm.export.server_files import (
    check_server_files,
    write_server_files,
)
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.models import TwoTower


def export_models(
    model: TwoTower,
    output: str | os.PathLike[str],
    documents: Documents | None = None,
    vectors: str = "float32",
    progress: bool = False,
) -> list[Path]:
    """Publishes both encoders, and a retriever when there are documents.

    Args:
        model: The trained model.
        output: Folder of the models; a new version is added to each that is
            there already. `models.config`, `batching.config` and a README
            for the server's operator stand beside them.
        documents: Ids and titles for the retriever.
        vectors: How the retriever holds its vectors, `float32` or `int8`.
        progress: Whether to show a progress bar.

    Returns:
        The folders of the new versions.

    Raises:
        InputError: `output` cannot be written to, or holds a `models.config`
            that cannot be read; there is no such kind of vectors; a weight is
            not finite.

    Example:
    >>> export_models(model, "models", Documents(titles, titles))
    [PosixPath('models/query_encoder/1'), ...]
    """
    check_vectors(vectors)
    check_folder(output)
    check_server_files(output)
    model.settle()
    # All are made before the first is published: what is wrong with one must
    # not leave the others without it.
    modules: dict[str, tf.Module] = {
        "query_encoder": EncoderModule(model.query_encoder),
        "document_encoder": EncoderModule(model.document_encoder),
    }
    if documents is not None:
        modules["retriever"] = new_retriever(
            model.query_encoder,
            model.document_encoder,
            documents.ids,
            documents.titles,
            vectors,
            progress,
        )
    folders = [
        publish_module(module, Path(output, name), None)
        for name, module in modules.items()
    ]
    write_server_files(output)
    return folders
