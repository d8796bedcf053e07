"""Output of lstm-dssm-encode in several files, the parts."""

import os
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from absl import flags

from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.export.bulk.documents import document_files, is_parquet
from keras_lstm_dssm.export.bulk.encode import (
    Encode,
    PartJob,
    PartResult,
    Shard,
    encode_shard,
    encode_with_ray,
)
from keras_lstm_dssm.export.publish.models_config import saved_fingerprint
from keras_lstm_dssm.files import check_folder
from keras_lstm_dssm.serving.saved_models import SavedEncoder


def encode_by_flags(values: flags.FlagValues) -> dict[str, Any]:
    """Encodes parts, prints a line for each, and returns the totals.

    Raises:
        InputError: The input is wrong, or parts are of other titles or of
            another encoder.
    """
    shard = Shard.parse(values.shard)
    if values.ray_address and not values.workers:
        raise InputError("--ray_address is used with --workers only")
    if values.workers and values["shard"].present:
        raise InputError(
            "--shard and --workers are both set: expected one of them, since "
            "Ray deals the parts to its workers"
        )
    kind = values.format
    if values.workers and not values["format"].present:
        kind = "parquet"
    folder = Path(values.output)
    if folder.suffix == ".npy" and not folder.is_dir():
        raise InputError(
            f"{folder}: expected a folder for parts: leave out the suffix"
        )
    check_folder(folder)
    files = document_files(values.input)
    if kind == "parquet" or any(map(is_parquet, files)):
        import_optional("pyarrow.parquet", "parquet")  # before the work
    job = PartJob(
        folder, files, values.rows_per_file, kind,
        saved_fingerprint(values.saved_model),
    )  # fmt: skip
    if values.workers:
        load = partial(load_encoder, os.path.abspath(values.saved_model))
        results: Iterable[PartResult] = encode_with_ray(
            load, job, values.workers, values.ray_address
        )
    else:
        encode = load_encoder(values.saved_model)
        folder.mkdir(parents=True, exist_ok=True)
        results = encode_shard(encode, job, shard)
    return _reported(results)


def load_encoder(saved_model: str) -> Encode:
    """Loads an exported encoder, also in the processes of Ray."""
    return SavedEncoder(saved_model).encode


def _reported(results: Iterable[PartResult]) -> dict[str, Any]:
    start = time.monotonic()
    parts = complete = rows = encoded = 0
    for result in results:
        parts += 1
        rows += result.rows
        if result.was_complete:
            complete += 1
            what = "complete already"
        else:
            encoded += result.rows
            speed = result.rows / max(result.seconds, 1e-9)
            what = f"{speed:,.0f} titles/s"
        print(f"{result.name}: {result.rows:,} titles, {what}", flush=True)
    speed = encoded / max(time.monotonic() - start, 1e-9)
    print(
        f"{parts:,} parts, {complete:,} of them complete already: "
        f"{rows:,} titles, {speed:,.0f} titles/s"
    )
    return {
        "parts": parts,
        "complete_already": complete,
        "rows": rows,
        "titles_per_second": speed,
    }
