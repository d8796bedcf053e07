"""Writes and checks the files next to exported models, for the server.

Writes the README next to exported models, for the server's operator.
"""

import math
import os
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import tensorflow as tf

from keras_lstm_dssm.errors import InputError
from keras_lstm_dssm.export.graphs.saved_module import (
    SIGNATURE,
    predict_signatures,
)
from keras_lstm_dssm.export.publish.models_config import (
    MODELS_CONFIG,
    read_models_config,
    update_models_config,
)
from keras_lstm_dssm.export.publish.versions import (
    find_models,
    model_folders,
    version_folders,
)
from keras_lstm_dssm.export.publish.warmup import BATCH_SIZES, WARMUP_SIZES
from keras_lstm_dssm.files import write_text
from lstm_dssm_client.signatures import FILTERED, KEYS, TensorInfo

# The newest server with these models' ops. Servers from 2.12 on load the
# models, too, but have older Unicode tables.
_IMAGE = "tensorflow/serving:2.20.0"

# Memory of a string in a tensor, without its own bytes.
_STRING_BYTES = 24


class _Example(NamedTuple):
    """Shows how to call a signature.

    Attributes:
        call: Python code with a `Client`, up to the argument `model`.
        inputs: The JSON value of `inputs` in a REST request.
    """

    call: str
    inputs: str


_EXAMPLES = {
    (SIGNATURE, frozenset({"text"})): _Example(
        'vectors = client.encode(["bolt"]', '{"text": ["bolt"]}'
    ),
    (SIGNATURE, frozenset({"text", "k"})): _Example(
        'hits = client.search(["bolt"], k=5', '{"text": ["bolt"], "k": [5]}'
    ),
    (FILTERED, frozenset({"text", "k", "tags"})): _Example(
        'hits = client.search(["bolt"], k=5, tags=["steel", "zinc"]',
        '{"text": ["bolt"], "k": [5], "tags": ["steel,zinc"]}',
    ),
    (KEYS, frozenset({"text", "n"})): _Example(
        'parts = client.keys(["Use bolts. They hold."], n=1',
        '{"text": ["Use bolts. They hold."], "n": [1]}',
    ),
    (SIGNATURE, frozenset({"query", "document"})): _Example(
        'scores = client.score("bolt", ["hex bolt", "wood glue"]',
        '{"query": ["bolt", "bolt"], "document": ["hex bolt", "wood glue"]}',
    ),
}
"""Examples by the name of a signature and the names of its inputs."""

_README = """\
# Models for TensorFlow Serving

| model | signature | inputs | outputs |
| --- | --- | --- | --- |
{table}

Texts are UTF-8 strings. Equal version numbers of two models mean that they come
from the same training.

`models.config` says which versions are served. The next export changes the
version numbers of its own models, all at once, where they have the comment
`# newest export of ...`, and nothing else in `models.config` and
`batching.config`. To choose a model's
versions yourself, remove its comment.

## Start a server

In this folder, with gRPC on port 8500 and REST on 8501:

```sh
docker run --rm -p 8500:8500 -p 8501:8501 -v "$PWD:{root}:ro" {image} \\
  --model_config_file={root}/models.config \\
  --model_config_file_poll_wait_seconds=10 \\
  --enable_batching --batching_parameters_file={root}/batching.config
```

Without a container, if `tensorflow_model_server` (2.12 or newer) is
installed (run the first two lines again after each export):

```sh
sed "s|{root}/|$PWD/|" models.config > /tmp/new
mv /tmp/new /tmp/models.config
tensorflow_model_server --port=8500 --rest_api_port=8501 \\
  --model_config_file=/tmp/models.config \\
  --model_config_file_poll_wait_seconds=10 \\
  --enable_batching --batching_parameters_file="$PWD/batching.config"
```

For a trial, without TensorFlow Serving:
`lstm-dssm-serve --models=. --port=8500 --http_port=8501`

## With batching

- A request may have at most `max_batch_size` rows, {rows} unless you changed
  it. **Never send a request without rows to a server that batches**: it is not
  answered, and together with other requests it can end the server process.
- A request whose input has a wrong type or rank fails together with the other
  requests in its batch.
- A request to a scorer has one row for each pair: a query is repeated for each
  of its documents.
- The `ids` and `scores` of a retriever are as wide as the largest `k` in the
  batch; columns beyond a row's own `k` hold "" and -2. An export limits `k`
  (`--max_k`, by default 1000): a larger one is reduced to the limit. A
  `two_stage` returns 100 at most, and fills with the lowest float32 number.
- The signature `filtered` finds only documents that have any of the `tags`,
  which are separated by commas; all documents where they are "".
- The outputs of the signature `keys` are as wide as the largest `n` in the
  batch, at most 250; columns beyond a row's own `n`, or beyond its sentences,
  hold "" and 0.
- The server runs the requests in `assets.extra/tf_serving_warmup_requests`
  before it serves a version, and rejects the version if one of them has more
  rows than `max_batch_size`. The largest has {warmup} rows, fewer where
  `max_batch_size` was smaller; `batching.config` says how to get smaller ones.

## Which server

| TensorFlow Serving | TF.Text in it | Unicode tables |
| --- | --- | --- |
| before 2.12 | lacks ops of these models | |
| 2.12 to 2.19 | 2.12.1 | ICU 64 |
| 2.20 | 2.20.0 | ICU 77 |

A letter that is newer than a server's Unicode tables is neither converted to
lower case nor normalised there. All other text has the same vector and the same
scores on every server.

## Memory

| model | newest version | in memory |
| --- | --- | --- |
{memory}

Together {total}, and {twice} while new versions of all models replace the old
ones, because a server loads the new version first. The server itself and the
requests need memory in addition.

## Send requests

gRPC:

```python
from keras_lstm_dssm.serving import Client

with Client("127.0.0.1:8500") as client:
{calls}
```

REST:

```sh
{curls}
```
"""


def server_readme(folders: Mapping[str, Path], root: str) -> str:
    """Returns the README of a folder of models.

    Args:
        folders: Model name to folder, each with at least one version.
        root: The path of the folder of all models on the server.

    Raises:
        InputError: The newest version of a model is no SavedModel, or has no
            signature for Predict.
    """
    table, memory, calls, curls, total = [], [], [], [], 0
    for name, base in folders.items():
        number, newest = list(version_folders(base).items())[-1]
        size = memory_bytes(newest)
        total += size
        memory.append(f"| `{name}` | {number} | {_megabytes(size)} |")
        by_name = predict_signatures(newest)
        if not by_name:
            raise InputError(
                f"{newest}: found no signature that Predict can call; move "
                f"{base} elsewhere, or export it with a signature"
            )
        # The default signature comes first.
        for key in sorted(by_name, key=lambda key: (key != SIGNATURE, key)):
            signature = by_name[key]
            inputs, outputs = map(_cell, signature)
            table.append(f"| `{name}` | `{key}` | {inputs} | {outputs} |")
            example = _EXAMPLES.get((key, frozenset(signature.inputs)))
            if example is None:  # a model of someone else
                continue
            calls.append(f'    {example.call}, model="{name}")')
            other = "" if key == SIGNATURE else f'"signature_name": "{key}", '
            curls.append(
                f"curl http://127.0.0.1:8501/v1/models/{name}:predict \\\n"
                f"  -d '{{{other}\"inputs\": {example.inputs}}}'"
            )
    return _README.format(
        table="\n".join(table),
        memory="\n".join(memory),
        total=_megabytes(total),
        twice=_megabytes(2 * total),
        calls="\n".join(calls),
        curls="\n".join(curls),
        image=_IMAGE,
        root=root,
        rows=BATCH_SIZES[-1],
        warmup=WARMUP_SIZES[-1],
    )


def memory_bytes(version: Path) -> int:
    """Returns the memory of a version's variables, in bytes, from its files.

    Args:
        version: The version's folder.

    Raises:
        InputError: The files of the variables are damaged.
    """
    variables = version / "variables"
    if not (variables / "variables.index").exists():
        return 0
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
    files = variables.glob("variables.data-*")
    return sum(f.stat().st_size for f in files) + _STRING_BYTES * strings


def _megabytes(size: int) -> str:
    return f"{max(size / 1e6, 0.1):,.1f} MB"


def _cell(tensors: Mapping[str, TensorInfo]) -> str:
    """Returns a cell of the table, such as "`text` string [batch]"."""
    parts = []
    for name, tensor in tensors.items():
        sizes = ["any" if n is None else str(n) for n in tensor.shape or ()]
        sizes[:1] = ["batch"]
        parts.append(f"`{name}` {tensor.dtype} [{', '.join(sizes)}]")
    return ", ".join(parts)


BATCHING_CONFIG = "batching.config"
_ROOT = "/models"  # in the container; TF Serving needs an absolute path

# Requests that arrive within a millisecond are computed together. The last
# of the allowed sizes must be the maximum.
_BATCHING = f"""\
# Exports never change this file, so you can edit it. TF Serving rejects
# a version if one of its warm-up requests has more rows than max_batch_size.
# The largest has {WARMUP_SIZES[-1]} rows. For a lower max_batch_size, change it
# here and export again: the new versions have smaller warm-up requests.
max_batch_size {{ value: {BATCH_SIZES[-1]} }}
batch_timeout_micros {{ value: 1000 }}
max_enqueued_batches {{ value: 100 }}
num_batch_threads {{ value: 2 }}
""" + "".join(f"allowed_batch_sizes: {size}\n" for size in BATCH_SIZES)


def check_server_files(
    models_dir: str | os.PathLike[str], names: Collection[str] = ()
) -> None:
    """Checks, before an export, that `write_server_files` will succeed.

    Args:
        models_dir: The folder of the models, which may be missing.
        names: Models that will get a new version.

    Raises:
        InputError: There is a `models.config` that no server could read, a
            folder whose name is no valid model name, or another model whose
            newest version is no SavedModel with a signature.
    """
    read_models_config(Path(models_dir, MODELS_CONFIG))
    others = {
        name: base
        for name, base in find_models(models_dir).items()
        if name not in names
    }
    server_readme(others, _ROOT)


def warmup_sizes(models_dir: str | os.PathLike[str]) -> list[int]:
    """Returns the warm-up sizes that `batching.config` allows.

    Args:
        models_dir: The folder of the models.

    Returns:
        The `WARMUP_SIZES` up to `max_batch_size`, all of them if there is no
        file or no such entry, and `[1]` if none is small enough.
    """
    path = Path(models_dir, BATCHING_CONFIG)
    text = path.read_text(errors="replace") if path.exists() else ""
    entry = re.search(
        r"^[^#]*?max_batch_size\s*:?\s*{\s*value\s*:\s*(\d+)", text, re.M
    )
    largest = int(entry[1]) if entry else BATCH_SIZES[-1]
    return [s for s in WARMUP_SIZES if s <= largest] or [1]


def write_server_files(
    models_dir: str | os.PathLike[str],
    exported: Mapping[str, int] = MappingProxyType({}),
) -> None:
    """Writes `batching.config`, `README.md` and, last, `models.config`.

    `models.config` names the version of each exported model that is served.
    It is replaced as a whole, so a server that reads it sees the versions of
    one export together, and never those of an export that was interrupted.

    An operator's changes to the two configurations are kept: in
    `models.config` only the version numbers with the export's own comment
    change and missing models are added, and an existing `batching.config` is
    not replaced. The README is always replaced.

    Args:
        models_dir: A folder with models, `NAME/NUMBER/saved_model.pb`.
        exported: Model name to the version that an export has published.

    Raises:
        InputError: There is no model in the folder, one is damaged, or
            `models.config` cannot be read.

    Example:
        >>> write_server_files("models", {"query_encoder": 1})
        >>> print(Path("models/models.config").read_text())
        model_config_list {
          config {
            name: "query_encoder"
            base_path: "/models/query_encoder"
            model_platform: "tensorflow"
            model_version_policy { specific { versions: 1 } }  # newest ...
          }
        }
    """
    models_dir = Path(models_dir)
    folders = model_folders(models_dir)
    if not (models_dir / BATCHING_CONFIG).exists():
        write_text(models_dir / BATCHING_CONFIG, _BATCHING)
    write_text(models_dir / "README.md", server_readme(folders, _ROOT))
    update_models_config(models_dir / MODELS_CONFIG, folders, exported, _ROOT)
