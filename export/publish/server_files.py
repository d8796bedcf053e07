"""Writes `models.config`, `batching.config` and README.md for a server."""

import math
import os
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow_serving.config.model_server_config_pb2 import ModelServerConfig

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.graphs.request_limits import (
    MAX_EXPLAINED,
    MAX_HITS,
    MAX_REPLY_BYTES,
)
from keras_lstm_dssm.export.graphs.saved_module import (
    IDS_FILE,
    SIGNATURE,
    ServedModule,
    predict_signatures,
)
from keras_lstm_dssm.export.publish.versions import (
    publish_together,
    saved_model_writer,
)
from keras_lstm_dssm.export.publish.warmup import (
    BATCH_SIZES,
    BATCHING_CONFIG,
    BATCHING_TEXT,
    WARMUP_SIZES,
    warmup_sizes,
)
from keras_lstm_dssm.files import write_text
from keras_lstm_dssm.fingerprints import id_hashes
from keras_lstm_dssm.model_folders import (
    MODELS_CONFIG,
    find_models,
    model_folders,
    read_models_config,
    served_version,
    version_folders,
)
from keras_lstm_dssm.pages import Cell, Table, render
from keras_lstm_dssm.plain_files import read_array
from lstm_dssm_client.signatures import EXPLAINED_K, FILTERED, KEYS, TensorInfo

# Servers from 2.12 to 2.19 load the models. But these servers have older
# Unicode tables, and can normalise a text to other words than server 2.20 does.
IMAGE = "tensorflow/serving:2.20.0"

ROOT = "/models"  # in the container; TF Serving needs an absolute path

_STRING_BYTES = 24  # memory of a string in a tensor, without its characters

# Memory of a loaded graph divided by the size of the graph's file: a server has
# copies of nodes and string tables in messages, sessions and kernels.
_GRAPH_FACTOR = 80

FIRST_MB = 40
"""Megabytes for threads and kernels, which all models of a server share."""

_EXAMPLES = {
    (SIGNATURE, frozenset({"text"})): (
        'vectors = client.encode(["bolt"]', '{"text": ["bolt"]}'
    ),
    (SIGNATURE, frozenset({"text", "k"})): (
        'hits = client.search(["bolt"], k=5', '{"text": ["bolt"], "k": [5]}'
    ),
    (FILTERED, frozenset({"text", "k", "tags"})): (
        'hits = client.search(["bolt"], k=5, tags=["kind:new"]',
        '{"text": ["bolt"], "k": [5], "tags": ["kind:new"]}',
    ),
    (KEYS, frozenset({"text", "n"})): (
        'parts = client.keys(["Use bolts. They hold."], n=1',
        '{"text": ["Use bolts. They hold."], "n": [1]}',
    ),
    (SIGNATURE, frozenset({"query", "document"})): (
        'scores = client.score("bolt", ["hex bolt", "wood glue"]',
        '{"query": ["bolt", "bolt"], "document": ["hex bolt", "wood glue"]}',
    ),
}  # fmt: skip
"""(signature, inputs) -> example call of a `Client`, and JSON of `inputs` in a
REST request. The README adds the argument `model` and `)` to the call."""


def server_readme(folders: Mapping[str, Path]) -> str:
    """Returns the text of the README for models in these folders."""
    signatures: list[list[Cell]] = []
    memory: list[list[Cell]] = []
    calls, total = [], 0
    for name, base in folders.items():
        number, newest = list(version_folders(base).items())[-1]
        size = memory_bytes(newest)
        total += size
        memory.append([f"`{name}`", number, _megabytes(size)])
        by_name = predict_signatures(newest)
        if not by_name:
            raise InputError(
                f"{newest}: found no signature that Predict can call; move "
                f"{base} elsewhere, or export it with a signature"
            )
        for key in sorted(by_name, key=lambda key: (key != SIGNATURE, key)):
            signature = by_name[key]
            signatures.append([f"`{name}`", f"`{key}`", *map(_cell, signature)])
            example = _EXAMPLES.get((key, frozenset(signature.inputs)))
            if example is None:  # such as for the signature `explained`
                continue
            call, inputs = example
            prefix = "" if key == SIGNATURE else f'"signature_name": "{key}", '
            calls.append((name, call, f'{{{prefix}"inputs": {inputs}}}'))
    return render(
        "server_readme.md.jinja",
        signatures=Table(
            ["model", "signature", "inputs", "outputs"],
            signatures,
            text_columns=[1, 2, 3],
        ),
        memory=Table(["model", "newest version", "in memory, about"], memory),
        calls=calls,
        total=_megabytes(total),
        twice=_megabytes(2 * total),
        image=IMAGE,
        root=ROOT,
        rows=BATCH_SIZES[-1],
        warmup=WARMUP_SIZES[-1],
        factor=_GRAPH_FACTOR,
        first=FIRST_MB,
        hits=MAX_HITS,
        reply=MAX_REPLY_BYTES,
        explained=MAX_EXPLAINED,
        explained_k=EXPLAINED_K,
    )


def memory_bytes(version: Path) -> int:
    """Estimates the memory of a loaded version's variables and graph."""
    graph = version / "saved_model.pb"
    size = _GRAPH_FACTOR * graph.stat().st_size if graph.exists() else 0
    variables = version / "variables"
    if not (variables / "variables.index").exists():
        return size
    try:
        reader = tf.train.load_checkpoint(str(variables / "variables"))
    except (tf.errors.OpError, RuntimeError) as error:
        raise InputError(
            f"{variables}: found variables that cannot be read; move "
            f"{version} elsewhere"
        ) from error
    dtypes = reader.get_variable_to_dtype_map()
    strings = sum(
        math.prod(shape)
        for key, shape in reader.get_variable_to_shape_map().items()
        if dtypes[key] == tf.string
    )
    size += sum(f.stat().st_size for f in variables.glob("variables.data-*"))
    return size + _STRING_BYTES * strings


def _megabytes(size: int) -> str:
    return f"{max(size / 1e6, 0.1):,.1f} MB"


def _cell(tensors: Mapping[str, TensorInfo]) -> str:
    """Describes tensors in a table's cell, such as "`text` string [batch]"."""
    parts = []
    for name, tensor in tensors.items():
        sizes = ["any" if n is None else str(n) for n in tensor.shape or ()]
        sizes[:1] = ["batch"]
        parts.append(f"`{name}` {tensor.dtype} [{', '.join(sizes)}]")
    return ", ".join(parts)


def publish_models(
    models_dir: str | os.PathLike[str], modules: Mapping[str, ServedModule]
) -> list[Path]:
    """Publishes modules and server files; needs the lock of `publication`."""
    sizes = warmup_sizes(models_dir)
    writers = {
        name: saved_model_writer(module, name, sizes)
        for name, module in modules.items()
    }
    folders = publish_together(models_dir, writers)
    write_server_files(
        models_dir, {path.parent.name: int(path.name) for path in folders}
    )
    return folders


def check_server_files(
    models_dir: str | os.PathLike[str], names: Collection[str] = ()
) -> None:
    """Checks `models.config` and the models whose names are not in `names`."""
    read_models_config(Path(models_dir, MODELS_CONFIG))
    unchanged = {
        name: base
        for name, base in find_models(models_dir).items()
        if name not in names
    }
    server_readme(unchanged)


def write_server_files(
    models_dir: str | os.PathLike[str],
    exported: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Writes `README.md`, `models.config` and a missing `batching.config`."""
    models_dir = Path(models_dir)
    folders = model_folders(models_dir)
    if not (models_dir / BATCHING_CONFIG).exists():
        write_text(models_dir / BATCHING_CONFIG, BATCHING_TEXT)
    write_text(models_dir / "README.md", server_readme(folders))
    # Written last, so that a server sees all new versions together.
    update_models_config(models_dir / MODELS_CONFIG, folders, exported)


def update_models_config(
    path: Path, names: Iterable[str], exported: Mapping[str, int]
) -> None:
    """Writes exported versions to `models.config`, and adds missing models."""
    config = read_models_config(path)
    old_text = path.read_text(encoding="utf-8") if path.exists() else ""
    text = old_text
    for name, version in exported.items():
        # Changes a version number only if `_comment(name)` follows the number.
        # An operator can remove the comment to keep the number.
        text = re.sub(
            rf"(specific {{ versions: )\d+( }} }}{re.escape(_comment(name))})$",
            rf"\g<1>{version}\2",
            text,
            flags=re.MULTILINE,
        )
    missing = sorted(
        set(names) - {model.name for model in config.model_config_list.config}
    )
    if missing:
        entries = [_entry(name, exported.get(name)) for name in missing]
        text = _with_entries(text, "".join(entries))
    if text != old_text:
        write_text(path, text)


def _comment(name: str) -> str:
    return f"  # newest export of {name}"


def _entry(name: str, version: int | None) -> str:
    lines = [
        f'name: "{name}"',
        f'base_path: "{ROOT}/{name}"',
        'model_platform: "tensorflow"',
    ]
    if version:
        lines.append(
            f"model_version_policy {{ specific {{ versions: {version} }} }}"
            + _comment(name)
        )
    body = "".join(f"    {line}\n" for line in lines)
    return f"  config {{\n{body}  }}\n"


def _with_entries(text: str, entries: str) -> str:
    """Adds entries to the list of models in a configuration's text."""
    new_list = f"model_config_list {{\n{entries}}}\n"
    config = text_format.Parse(text, ModelServerConfig())
    if not config.model_config_list.config:
        return new_list
    # Entries are added before the closing brace. If the text does not end with
    # this brace, the configuration is written anew, without its comments.
    old_texts = text, text_format.MessageToString(config)
    config.MergeFrom(text_format.Parse(new_list, ModelServerConfig()))
    for old_text in old_texts:
        new_text = f"{old_text.rstrip()[:-1]}{entries}}}\n"
        try:
            if text_format.Parse(new_text, ModelServerConfig()) == config:
                return new_text
        except text_format.ParseError:
            continue
    raise AssertionError(text)


MOST_CHANGED = 0.2
"""Share of the served ids that an export may change without `--yes`."""


def check_ids(path: str | os.PathLike[str], ids: Iterable[str]) -> None:
    """Raises `InputError` if too many ids differ from the served ids.

    `path` is the folder of a retriever or of one version.
    """
    folder = served_version(path) or Path(path)
    if not (folder / IDS_FILE).exists():
        return
    served = read_array(folder / IDS_FILE, "export to another folder")
    hashes = id_hashes(ids)
    common = len(np.intersect1d(served, hashes))
    removed, new = len(served) - common, len(hashes) - common
    if removed + new > MOST_CHANGED * len(served):
        raise InputError(
            f"{folder}: found {removed:,} of its {len(served):,} ids removed"
            f" and {new:,} added, expected changes of {MOST_CHANGED:.0%} at"
            " most: check the documents, or give --yes"
        )
