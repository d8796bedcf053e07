r"""Encode texts into vectors, or find key sentences and key words of a page.

Example:
  lstm-dssm-encode --saved_model=MODELS/document_encoder \
      --input=titles.txt --output=vectors.npy --ids=vectors.ids
  lstm-dssm-encode --saved_model=MODELS/document_encoder \
      --input="titles-*.tsv.gz" --output=PARTS --shard=3/16
  lstm-dssm-encode --write=keys --run=KEYVEC_RUN --input=page.txt

The input, compressed by gzip or not, has one text a line; an empty line is an
empty text. The output is a NumPy array, float32 [lines, d], of unit vectors.
With --ids a line of the input is a title, or an id, a tab and a title. The ids
are written to the file --ids: line i has the id of row i of the array.

The input can also be a folder of documents, or a file of JSON lines (.jsonl or
.jsonl.gz), as in docs/documents.md: the array has a row for each document.

With --shard, --rows_per_file, --format or --workers the output is a folder of
parts, with vectors and ids of titles; a complete part is not encoded again
(docs/scaling.md). A shard is a share of the parts, encoded by one process;
--workers starts several processes with Ray. lstm-dssm-export reads the folder.

With --write=keys the input is a page: a text file, or - for standard input.
Prints the most probable key sentences, and then the words that the page's
vector predicts best. These words need not occur in the page.
"""

import os
import sys
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from absl import app

from lstm_dssm_programs import load_package
from keras_lstm_dssm.command_line import Program, printable
from keras_lstm_dssm.errors import InputError, import_optional
from keras_lstm_dssm.files import check_folder, check_writable
from keras_lstm_dssm.plain_files import reading, text_lines
from keras_lstm_dssm.settings.fields import FORMATS

if TYPE_CHECKING:
    from keras_lstm_dssm.export.bulk.encode import Encode, PartResult

program = Program(__doc__, required=["input"])
FLAGS = program.flags
program.enum(
    "write", "vectors", ["vectors", "keys"],
    "Write vectors of texts, or print the key sentences and key words of a "
    "page.",
)  # fmt: skip
program.string(
    "saved_model", None,
    "Folder of an exported encoder or KeyVec, or the folder of one version. "
    "Without a version: the newest version that models.config serves.",
)  # fmt: skip
program.string(
    "input", None,
    "File of texts, one text a line; or documents in JSON. For parts, a line "
    "is a title, or an id, a tab and a title; a second tab and tags may "
    "follow. The input of parts can also be .parquet files with the columns "
    "title, id and tags, globs, or several files separated by commas. For "
    "--write=keys: a page, or - for standard input.",
)  # fmt: skip
program.string("output", None, "The .npy file to write, or a folder of parts.")
program.string("ids", None, "File to write the documents' ids to.")
program.string(
    "shard", "0/1",
    "Encode only a share of the parts: 3/16 is share 3 of the shares 0 to 15. "
    "Other processes, on any machine, encode the other shares.",
)  # fmt: skip
program.integer("rows_per_file", 1_000_000, "Lines of the input in a part.", 1)
program.enum(
    "format", "npy", list(FORMATS),
    "How parts are written. npy: a NumPy array, and files with ids, titles, "
    "tags and hashes. parquet: one file for each part, which needs pyarrow; "
    "the default with --workers.",
)  # fmt: skip
program.integer(
    "workers", None,
    "Encode all parts with this many actors of Ray, which restarts failed "
    'actors. Needs pip install "keras-lstm-dssm[ray]".', 1,
)  # fmt: skip
program.string(
    "ray_address", None,
    "With --workers: address of a Ray cluster, or auto for the cluster of this "
    "machine; by default Ray is started on this machine.",
)  # fmt: skip
program.string(
    "run", None,
    "With --write=keys: folder of a run of a KeyVec. If --input is a data "
    "folder: the encoder's run; its recipe may name product fields to read.",
)  # fmt: skip
program.integer("k", 5, "With --write=keys: number of sentences and words.", 1)

_LONGEST = 1 << 26
"""Maximum size of a page in bytes."""

PART_FLAGS = ("shard", "rows_per_file", "format", "workers")
"""Flags that make the output a folder of parts."""

_VECTOR_FLAGS = ("saved_model", "output", "ids", "ray_address", *PART_FLAGS)
_KEY_FLAGS = ("k",)


@program.main
def main(_: list[str]) -> dict[str, Any]:
    """Writes vectors, or prints key sentences and words; returns results."""
    keys = FLAGS.write == "keys"
    program.check_unused(
        _VECTOR_FLAGS if keys else _KEY_FLAGS,
        f"is not for --write={FLAGS.write}",
    )
    for name in ["run"] if keys else ["saved_model", "output"]:
        if not FLAGS[name].value:
            raise InputError(f"--{name} is missing: {FLAGS[name].help}")
    if not FLAGS.workers:
        program.check_unused(["ray_address"], "is used with --workers only")
    load_package()
    from keras_lstm_dssm.tensorflow_start import use_one_intra_op_thread

    use_one_intra_op_thread()
    if keys:
        return _print_keys(FLAGS.input)
    if any(FLAGS[name].present for name in PART_FLAGS):
        program.check_unused(
            ["ids", "run"],
            "is a flag for one .npy file, but the output is parts: leave it "
            "out",
        )
        return _encode_parts()
    return _encode_file()


def _encode_file() -> dict[str, Any]:
    from keras_lstm_dssm.export.bulk.documents import (
        has_json_documents,
        read_documents,
    )
    from keras_lstm_dssm.export.bulk.parts import write_ids, write_vectors
    from keras_lstm_dssm.run_folder import RunFolder
    from keras_lstm_dssm.serving.saved_models import SavedEncoder

    check_writable(FLAGS.output)
    ids: list[str] = []
    if FLAGS.ids:
        check_writable(FLAGS.ids)
    if FLAGS.ids or has_json_documents(FLAGS.input):
        config = RunFolder(FLAGS.run).read_config() if FLAGS.run else {}
        fields = config.get("recipe", {}).get("fields")
        documents = read_documents(FLAGS.input, fields)
        ids, texts = documents.ids, documents.titles
    else:
        program.check_unused(["run"], "is for a data folder: leave it out")
        texts = list(text_lines(FLAGS.input, blank_end=True))
    encoder = SavedEncoder(FLAGS.saved_model)
    start = time.perf_counter()
    vectors = encoder.encode(texts, progress=sys.stderr.isatty())
    seconds = time.perf_counter() - start
    write_vectors(FLAGS.output, vectors)
    if FLAGS.ids:
        write_ids(FLAGS.ids, ids)
    speed = len(texts) / seconds
    print(f"wrote {FLAGS.output}: {vectors.shape}, {speed:,.0f} texts/s")
    return {"shape": vectors.shape, "texts_per_second": speed}


def _encode_parts() -> dict[str, Any]:
    from keras_lstm_dssm.export.bulk import encode as bulk
    from keras_lstm_dssm.export.bulk.documents import document_files, is_parquet
    from keras_lstm_dssm.export.graphs.saved_module import saved_fingerprint

    shard = bulk.Shard.parse(FLAGS.shard)
    if FLAGS.workers and FLAGS["shard"].present:
        raise InputError(
            "--shard and --workers are both set: expected one of them, since "
            "Ray divides the parts among its workers"
        )
    part_format = FLAGS.format
    if FLAGS.workers and not FLAGS["format"].present:
        part_format = "parquet"
    folder = Path(FLAGS.output)
    if folder.suffix == ".npy" and not folder.is_dir():
        raise InputError(
            f"{folder}: expected a folder for parts: leave out the suffix"
        )
    check_folder(folder)
    files = document_files(FLAGS.input)
    if part_format == "parquet" or any(map(is_parquet, files)):
        import_optional("pyarrow.parquet", "parquet")  # before titles are read
    job = bulk.PartJob(
        folder, files, FLAGS.rows_per_file, part_format,
        saved_fingerprint(FLAGS.saved_model),
    )  # fmt: skip
    if FLAGS.workers:
        load = partial(load_encoder, os.path.abspath(FLAGS.saved_model))
        results = bulk.encode_with_ray(
            load, job, FLAGS.workers, FLAGS.ray_address
        )
    else:
        encode = load_encoder(FLAGS.saved_model)
        folder.mkdir(parents=True, exist_ok=True)
        results = bulk.encode_shard(encode, job, shard)
    return _report_parts(results)


def load_encoder(saved_model: str) -> "Encode":
    """Returns an encoder's `encode`. Processes of Ray call `load_encoder`."""
    from keras_lstm_dssm.serving.saved_models import SavedEncoder

    return SavedEncoder(saved_model).encode


def _report_parts(results: "Iterable[PartResult]") -> dict[str, Any]:
    start = time.monotonic()
    parts = complete = rows = encoded = 0
    for result in results:
        parts += 1
        rows += result.rows
        if result.was_complete:
            complete += 1
            status = "complete already"
        else:
            encoded += result.rows
            speed = result.rows / max(result.seconds, 1e-9)
            status = f"{speed:,.0f} titles/s"
        print(f"{result.name}: {result.rows:,} titles, {status}", flush=True)
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


def _print_keys(page: str) -> dict[str, Any]:
    from keras_lstm_dssm.run_folder import RunFolder
    from keras_lstm_dssm.text import split_sentences

    sentences = split_sentences(read_page(page))
    model = RunFolder(FLAGS.run).load_model("keyvec")
    limit = model.max_sentences
    if limit is not None and len(sentences) > limit:
        print(
            f"the model reads the first {limit:,} of {len(sentences):,} "
            "sentences",
            file=sys.stderr,
        )
    key_sentences = model.key_sentences(sentences, FLAGS.k)
    key_words = model.key_words(sentences, FLAGS.k)
    for sentence, probability in key_sentences:
        print(f"{probability:.4f}  {printable(sentence)}")
    print()
    for word, probability in key_words:
        print(f"{probability:.4f}  {printable(word)}")
    return {
        "page": page,
        "sentences": [
            {"sentence": sentence, "probability": probability}
            for sentence, probability in key_sentences
        ],
        "words": [
            {"word": word, "probability": probability}
            for word, probability in key_words
        ],
    }


def read_page(path: str) -> str:
    """Returns the text of a page."""
    source: AbstractContextManager[IO[bytes]] = (
        open(0, "rb", closefd=False) if path == "-" else reading(path)
    )
    with source as file:
        data = file.read(_LONGEST + 1)
    name = "standard input" if path == "-" else path
    if len(data) > _LONGEST:
        raise InputError(
            f"{name}: found more than {_LONGEST >> 20} MB, expected the text "
            "of one page: divide it"
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"{name}:{line}: found invalid UTF-8 ({error.reason}), expected "
            "a text file: convert it to UTF-8"
        ) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(
            f"{name}:{line}: found a NUL, as in binary files, expected a text "
            "file: convert it to text"
        )
    if not text.strip():
        raise InputError(f"{name}: found no text, expected the text of a page")
    return text


if __name__ == "__main__":
    app.run(main, flags_parser=program.parse)
