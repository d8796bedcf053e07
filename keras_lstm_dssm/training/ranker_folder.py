"""The files of a ranker in its run folder."""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.files import (
    check_plain_file,
    open_gzip,
    read_json,
    replacing,
    write_json,
    write_text,
)
from keras_lstm_dssm.ranker import (
    BoostedTrees,
    OverlapFeatures,
    PairFeatures,
    Ranker,
)
from keras_lstm_dssm.ranker.feature_sources import (
    FeatureSource,
    OutsideCosine,
    source_of,
)
from keras_lstm_dssm.teacher import open_outside_encoder
from keras_lstm_dssm.teacher.teacher_vectors import TeacherFolder

TREES = "trees.txt"
"""The trees in LightGBM's text format, which only rankers have."""

_OVERLAP = "overlap.json.gz"


def is_ranker(folder: str | os.PathLike[str]) -> bool:
    """Returns whether a run folder holds a ranker."""
    return all(Path(folder, name).exists() for name in ("config.json", TREES))


def check_resumable(folder: str | os.PathLike[str]) -> None:
    """Checks that a run folder holds no ranker.

    Raises:
        InputError: It does; a ranker is never partly trained.
    """
    if is_ranker(folder):
        raise InputError(
            f"{folder}: found a ranker, which is trained in one go: there is"
            " nothing to resume"
        )


def open_sources(
    runs: Sequence[str],
    encoder: str | None,
    digests: Sequence[str] = (),
    encoder_digest: str | None = None,
) -> dict[str, FeatureSource]:
    """Opens the systems whose scores are features.

    Args:
        runs: Folders of runs of two towers or of pair scorers.
        encoder: Name of an outside encoder, see `open_outside_encoder`.
        digests: What `digest_of` returned for each run when the ranker was
            trained.
        encoder_digest: What `digest_of_encoder` returned for the encoder when
            the ranker was trained. Default `None`: nothing is compared.

    Returns:
        The names of the features -> systems, in order.

    Raises:
        InputError: A run is missing, of another kind, named twice, or has
            been trained anew since; or the encoder is the folder of a teacher
            that is missing or has other vectors since.
    """
    from keras_lstm_dssm.training.run_folder import RunFolder

    if len(set(runs)) < len(runs):
        raise InputError(
            f"features {', '.join(runs)}: found a run twice, expected each once"
        )
    for run, digest in zip(runs, digests, strict=False):
        found = digest_of(run) if RunFolder(run).model.exists() else None
        if found not in (None, digest):
            raise InputError(
                f"{run}: found another model than the one the ranker was"
                " trained with: restore it, or train the ranker again"
            )
    sources: dict[str, FeatureSource] = {}
    for run in runs:
        if is_ranker(run):
            raise InputError(
                f"{run}: found a ranker, expected trained features: the run"
                " of two towers or of a pair scorer"
            )
        sources[run] = source_of(RunFolder(run).load_model(), run)
    if encoder:
        sources[encoder] = _open_encoder(encoder, encoder_digest)
    return sources


def _open_encoder(encoder: str, digest: str | None) -> OutsideCosine:
    """Opens an outside encoder as a feature of a ranker.

    Args:
        encoder: Its name, or the folder of a teacher.
        digest: The digest of the folder when the ranker was trained; the
            folder must have it still. `None`: nothing is compared.
    """
    if digest and not TeacherFolder(encoder).settings.exists():
        raise InputError(
            f"{encoder}: found no vectors here, expected the folder of"
            " lstm-dssm-teach that the ranker was trained with: restore it,"
            " or train the ranker again"
        )
    cosine = OutsideCosine(open_outside_encoder(encoder))
    if digest and digest_of_encoder(encoder) != digest:
        raise InputError(
            f"{encoder}: found other vectors than those the ranker was"
            " trained with: restore them, or train the ranker again"
        )
    return cosine


def digest_of_encoder(encoder: str) -> str | None:
    """Returns the digest of a teacher's folder, `None` for other encoders."""
    files = TeacherFolder(encoder)
    return files.digest() if files.settings.exists() else None


def digest_of(run: str | os.PathLike[str]) -> str:
    """Returns the SHA-256 of a run's model file."""
    digest = hashlib.sha256()
    with open(Path(run, "model.keras"), "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def write_ranker(folder: Path, ranker: Ranker, config: dict[str, Any]) -> None:
    """Writes a ranker and the settings of its training.

    Args:
        folder: The run folder.
        ranker: The ranker.
        config: Content of `config.json`; `config["ranker"]` gets the weights
            of features.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (
        replacing(folder / _OVERLAP) as partial,
        # Without a time, so that equal trainings give equal files.
        open(partial, "wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file,
    ):
        overlap = ranker.features.overlap.get_config()
        file.write(json.dumps(overlap, ensure_ascii=False).encode())
    settings = {**config["ranker"], "weights": ranker.weights.tolist()}
    write_text(folder / TREES, ranker.trees.text)
    # Written last: a folder with this file has a run.
    write_json(folder / "config.json", {**config, "ranker": settings})


def load_ranker(folder: str | os.PathLike[str]) -> Ranker:
    """Loads a ranker with the models that its features are computed by.

    Raises:
        InputError: A file is damaged, or see `open_sources`.
    """
    folder = Path(folder)
    for name in ("config.json", _OVERLAP, TREES):
        check_plain_file(folder / name, folder)
    config = read_json(folder / "config.json")
    try:
        settings = config["ranker"]
        runs, digests = settings["features"], settings["digests"]
        encoder = settings["encoder"]
        encoder_digest = settings.get("encoder_digest")  # not in older files
        weights = np.array(settings["weights"], np.float32)
        with open_gzip(folder / _OVERLAP) as file:
            overlap = OverlapFeatures(**json.load(file))
        trees = BoostedTrees((folder / TREES).read_text(encoding="utf-8"))
    except (
        OSError, EOFError, zlib.error, ValueError, KeyError, TypeError,
    ) as error:  # fmt: skip
        raise InputError(
            f"{folder}: not a ranker this version can read ({error}); restore"
            " the files, or train it again"
        ) from error
    sources = open_sources(runs, encoder, digests, encoder_digest)
    return Ranker(PairFeatures(overlap, sources), trees, weights)
