"""All that a server needs, in one folder."""

import os
from pathlib import Path

from keras_lstm_dssm.export.documents import Documents
from keras_lstm_dssm.export.retriever import export_retriever
from keras_lstm_dssm.export.saved_model import export_encoder
from keras_lstm_dssm.export.server_files import write_server_files
from keras_lstm_dssm.models import TwoTower


def export_models(
    model: TwoTower,
    output: str | os.PathLike[str],
    documents: Documents | None = None,
) -> list[Path]:
    """Publishes both encoders, and a retriever when there are documents.

    Args:
        model: The trained model.
        output: Folder of the models; a new version is added to each that is
            there already. `models.config`, `batching.config` and a README
            for the server's operator stand beside them.
        documents: Ids and titles for the retriever.

    Returns:
        The folders of the new versions.

    Example:
    >>> export_models(model, "models", Documents(titles, titles))
    [PosixPath('models/query_encoder/1'), ...]
    """
    model.settle()
    output = Path(output)
    folders = [
        export_encoder(model.query_encoder, output / "query_encoder"),
        export_encoder(model.document_encoder, output / "document_encoder"),
    ]
    if documents is not None:
        folders.append(
            export_retriever(
                model.query_encoder,
                model.document_encoder,
                documents.ids,
                documents.titles,
                output / "retriever",
            )
        )
    write_server_files(output)
    return folders
