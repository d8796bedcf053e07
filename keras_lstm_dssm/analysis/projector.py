"""TensorBoard's embedding projector: titles and vectors for it to show."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import replacing


def write_projector(
    logs: str | os.PathLike[str],
    titles: Sequence[str],
    vectors: np.ndarray,
    name: str = "titles",
) -> None:
    """Writes titles and vectors where `tensorboard --logdir=LOGS` finds them.

    Files: `projector_config.pbtxt` and, beside it, `projector/NAME.tsv` with
    `NAME.labels.tsv`.

    Args:
        logs: The folder of logs, a run's `logs/`.
        titles: The texts.
        vectors: Float `[titles, dimension]`, from `encode`.
        name: Of the tensor.

    Raises:
        InputError: There are not as many titles as vectors.

    Example:
    >>> write_projector(
    ...     RunFolder(run).logs, titles, model.document_encoder.encode(titles)
    ... )
    """
    from tensorboard.plugins import projector

    if len(titles) != len(vectors):
        raise InputError(
            f"{len(titles)} titles and {len(vectors)} vectors; give one each"
        )
    folder = Path(logs, "projector")
    folder.mkdir(parents=True, exist_ok=True)
    tensors, labels = folder / f"{name}.tsv", folder / f"{name}.labels.tsv"
    with replacing(tensors) as partial:
        np.savetxt(partial, vectors, fmt="%.5g", delimiter="\t")
    with replacing(labels) as partial:
        # A tab would begin a second column; an empty line would be skipped.
        lines = (" ".join(title.split()) or '""' for title in titles)
        partial.write_text(
            "".join(f"{line}\n" for line in lines), encoding="utf-8"
        )
    config = projector.ProjectorConfig()
    config.embeddings.add(
        tensor_name=name,
        tensor_path=str(tensors.relative_to(logs)),
        metadata_path=str(labels.relative_to(logs)),
    )
    projector.visualize_embeddings(os.fspath(logs), config)
